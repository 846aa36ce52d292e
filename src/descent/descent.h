/* Private gradient descent for the median from a one-bit report per person. docs/proofs/median-descent.md */
#ifndef DPFAST_DESCENT_H
#define DPFAST_DESCENT_H

#include <stdint.h>
#include <string.h>

#include "clones.h"
#include "draws.h"

#define DPFAST_LANE_CHUNK 256

/* The first 16 bits of four coins from each word, the low bits first, whatever the byte order of the machine. */
static void dpfast_split_lanes(const uint64_t *words, uint16_t *lanes, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (int j = 0; j < 4; j++)
            lanes[4 * i + j] = (uint16_t)(words[i] >> (16 * j));
}

/* Decide the coins whose 16 bits equal those of the threshold, with 48 bits of a further word: one coin in 2^16.
 * Afterwards a coin means "keep" if its lane is below the first 16 bits of the threshold.
 *
 * Law, over uniform lanes and words: P(keep) = t1 / 2^16 + t2 / 2^48 / 2^16 = threshold / 2^64, t1 the first 16 bits
 * of the threshold and t2 its last 48. Assumes t1 > 0. */
static void dpfast_settle(bitgen_t *source, uint64_t threshold, uint16_t *lanes, ptrdiff_t n)
{
    const uint16_t top = (uint16_t)(threshold >> 48);
    const uint64_t rest = threshold & 0xffffffffffffu;
    for (ptrdiff_t start = 0; start < n; start += DPFAST_LANE_CHUNK) {
        ptrdiff_t end = n - start < DPFAST_LANE_CHUNK ? n : start + DPFAST_LANE_CHUNK;
        uint16_t open = 0;
        for (ptrdiff_t i = start; i < end; i++)
            open |= (uint16_t)(lanes[i] == top);
        if (!open)
            continue;
        for (ptrdiff_t i = start; i < end; i++)
            if (lanes[i] == top && (source->next_uint64(source->state) >> 16) < rest)
                lanes[i] = 0;
    }
}

/* push, or -push if the coin means "lie". */
static inline double dpfast_signed_push(double push, uint16_t lane, uint16_t top)
{
    return dpfast_double(dpfast_bits(push) ^ ((uint64_t)(lane >= top) << 63));
}

static inline double dpfast_record(double x, double lower, double upper, double missing)
{
    x = x == x ? x : missing;
    x = x > lower ? x : lower;
    return x < upper ? x : upper;
}

/* Move theta up by drift, then away from x by push (a tie counts as above), and clamp it to the bounds. The sign of
 * theta - x is exact and branch-free. Assumes that theta and lower are not -0, so that a tie is +0; theta remains so. */
static inline double dpfast_moved(double theta, double x, double push, double drift, double lower, double upper)
{
    const uint64_t below = dpfast_bits(theta - x) & ((uint64_t)1 << 63);
    double moved = theta + drift - dpfast_double(dpfast_bits(push) ^ below);
    moved = moved > lower ? moved : lower;
    return moved < upper ? moved : upper;
}

/* For each person in turn: add theta to `total`, then move theta down if it is at least x, else up, or the opposite after a
 * lie, and up by the part `lean` of the step. Each of the `runs` repetitions has its own coins, theta and total. Exact
 * operations and IEEE sums only, so every machine computes the same bits. */
DPFAST_CLONES static void dpfast_descend(const double *x, const double *push, const uint16_t *lanes, ptrdiff_t n,
                                         ptrdiff_t runs, uint16_t top, double lean, double lower, double upper,
                                         double missing, double *theta, double *total)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double value = dpfast_record(x[i], lower, upper, missing), step = push[i], drift = lean * step;
        const uint16_t *lane = lanes + i * runs;
        for (ptrdiff_t r = 0; r < runs; r++) {
            total[r] += theta[r];
            theta[r] = dpfast_moved(theta[r], value, dpfast_signed_push(step, lane[r], top), drift, lower, upper);
        }
    }
}

/* The same for one repetition, with theta in a register. */
static void dpfast_descend_once(const double *x, const double *push, const uint16_t *lanes, ptrdiff_t n, uint16_t top,
                                double lean, double lower, double upper, double missing, double *theta, double *total)
{
    double t = *theta, sum = *total;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double value = dpfast_record(x[i], lower, upper, missing);
        sum += t;
        t = dpfast_moved(t, value, dpfast_signed_push(push[i], lanes[i], top), lean * push[i], lower, upper);
    }
    *theta = t;
    *total = sum;
}

/* Ask n people in turn whether theta is at least their number, until the reports of a test decide it: `counts` are those
 * of 1 and of 0, and `evidence` what each adds for "above" and for "below"; at `enough` for one of both the test is
 * decided. Sums of two products of doubles, as in `QuantileSearch._decision`. */
static void dpfast_test(const double *x, const uint64_t *words, ptrdiff_t n, uint64_t threshold, double theta,
                        double lower, double upper, double missing, const double evidence[4], double enough,
                        int64_t counts[2])
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const int above = theta >= dpfast_record(x[i], lower, upper, missing);
        counts[above != (words[i] < threshold)]++;
        const double ones = (double)counts[0], zeros = (double)counts[1];
        if ((evidence[0] * ones + evidence[1] * zeros >= enough)
            != (evidence[2] * ones + evidence[3] * zeros >= enough))
            return;
    }
}

/* i^-decay to a relative error of 2^-45. */
static double dpfast_decayed(uint64_t i, double decay)
{
    double unused, exponent = decay * (0x1.62e42fefa39efp+5 - dpfast_neg_log_word(i, &unused));
    return dpfast_exp_neg(exponent > 0.0 ? exponent : 0.0);
}

/* i^-decay = power * factor, i = first, first + 1, ..., to a relative error of 2^-44, decay in [0, 1]; the same bits on
 * every machine and for every `first`. From 2^13 on one power is shared by 16 neighbours, a + j for j < 16: (1 +
 * z)^-decay, z = j / a < 2^-9, by its series to z^4 (the rest is < z^5 < 2^-45). */
static void dpfast_powers(uint64_t first, double decay, double *powers, double *factors, ptrdiff_t n)
{
    const double c2 = -(decay + 1.0) / 2.0, c3 = -(decay + 2.0) / 3.0, c4 = -(decay + 3.0) / 4.0;
    uint64_t anchor = 0;
    double power = 0.0, inverse = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        uint64_t index = first + (uint64_t)i;
        if (index < 1u << 13) {
            powers[i] = dpfast_decayed(index, decay);
            factors[i] = 1.0;
            continue;
        }
        if (anchor != (index & ~(uint64_t)15)) {
            anchor = index & ~(uint64_t)15;
            power = dpfast_decayed(anchor, decay);
            inverse = 1.0 / dpfast_from_word(anchor);
        }
        double z = dpfast_from_word(index - anchor) * inverse;
        powers[i] = power;
        factors[i] = 1.0 - decay * z * (1.0 + c2 * z * (1.0 + c3 * z * (1.0 + c4 * z)));
    }
}

/* scale * i^-decay, i = first, first + 1, ..., rounded as (scale * power) * factor. */
static void dpfast_pushes(uint64_t first, double scale, double decay, double *out, ptrdiff_t n)
{
    double factors[DPFAST_LANE_CHUNK];
    for (ptrdiff_t start = 0; start < n; start += DPFAST_LANE_CHUNK) {
        const ptrdiff_t count = n - start < DPFAST_LANE_CHUNK ? n - start : DPFAST_LANE_CHUNK;
        dpfast_powers(first + (uint64_t)start, decay, out + start, factors, count);
        for (ptrdiff_t i = 0; i < count; i++)
            out[start + i] = scale * out[start + i] * factors[i];
    }
}

/* ---- runs side by side ---- */

/* Doubles of four runs, whose operations are those of each by itself, and masks of them. */
typedef double dpfast_runs __attribute__((vector_size(32)));
typedef int64_t dpfast_run_masks __attribute__((vector_size(32)));
typedef uint16_t dpfast_run_lanes __attribute__((vector_size(8)));
typedef int16_t dpfast_run_lies __attribute__((vector_size(8)));

#define DPFAST_RUNS 8
#define DPFAST_WHERE(mask, a, b) ((dpfast_runs)(((dpfast_run_masks)(a) & (mask)) | ((dpfast_run_masks)(b) & ~(mask))))

/* dpfast_descend_once for each run r, from record first[r] on, with pushes of scale[r]: one run waits for the result of
 * each operation, several do not wait for one another. lanes[DPFAST_RUNS i + r] is the coin of record i. */
DPFAST_CLONES static void dpfast_descend_together(const double *x, const double *powers, const double *factors,
                                                  const uint16_t *lanes, ptrdiff_t n, uint16_t top, double lean,
                                                  double lower, double upper, double missing, const int64_t *first,
                                                  const double *scale, double *theta, double *total)
{
    const dpfast_run_masks sign = (dpfast_run_masks){0} + INT64_MIN;
    const dpfast_runs least = (dpfast_runs){0} + lower, most = (dpfast_runs){0} + upper;
    dpfast_run_masks starts[2];
    dpfast_runs scales[2], t[2], sums[2];
    ptrdiff_t start = n;
    memcpy(starts, first, sizeof starts);
    memcpy(scales, scale, sizeof scales);
    memcpy(t, theta, sizeof t);
    memcpy(sums, total, sizeof sums);
    for (ptrdiff_t r = 0; r < DPFAST_RUNS; r++)
        start = first[r] < start ? first[r] : start;
    for (ptrdiff_t i = start; i < n; i++) {
        const double value = dpfast_record(x[i], lower, upper, missing);
        for (int half = 0; half < 2; half++) {
            dpfast_run_lanes lane;
            memcpy(&lane, lanes + i * DPFAST_RUNS + 4 * half, sizeof lane);
            const dpfast_run_masks begun = starts[half] <= (dpfast_run_masks){0} + i;
            const dpfast_run_lies lie = lane >= (dpfast_run_lanes){0} + top;
            const dpfast_run_masks lies = __builtin_convertvector(lie, dpfast_run_masks);
            const dpfast_runs push = scales[half] * powers[i] * factors[i];
            sums[half] += DPFAST_WHERE(begun, t[half], (dpfast_runs){0});
            const dpfast_run_masks below = (dpfast_run_masks)(t[half] - value);
            const dpfast_run_masks away = (dpfast_run_masks)push ^ ((lies ^ below) & sign);
            dpfast_runs moved = t[half] + lean * push - (dpfast_runs)away;
            moved = DPFAST_WHERE(moved > least, moved, least);
            moved = DPFAST_WHERE(moved < most, moved, most);
            t[half] = DPFAST_WHERE(begun, moved, t[half]);
        }
    }
    memcpy(theta, t, sizeof t);
    memcpy(total, sums, sizeof sums);
}

#endif
