/* The nested-interval law, docs/proofs/nested-intervals.md: with q = exp(-rate), draw the level t with weight
 *
 *     (1 - q^(depth + 1)) weight(box 0)   for t = 0,      (1 - q) q^(t + depth) weight(box t)   for 0 < t < n,
 *     q^(n + depth) total                 for t = n (anywhere),
 *
 * then a point of box t by the base measure. A point of score s lies in the boxes t >= s, whose weights sum to 1 for s = 0
 * and to q^(min(s, n) + depth) for s > 0, times the weight of the point. depth is 0 unless box 0 is one point.
 */
#ifndef DPFAST_LEVELS_H
#define DPFAST_LEVELS_H

#include "measure.h"

/* Twice the error of cumulative / total: a weight has relative error 2^-50 (1 + y) + 2^-45, y <= rate n, and for y >
 * 127 the weight is below 2^63 e^-127 of the total. (rate n <= log(total / least) + 42 + rate by the choice of the window,
 * `least` the least weight of a point.) */
#define DPFAST_LEVEL_ERROR 0x1p-40

/* What the weights take from the rate alone. */
typedef struct {
    double rate, loss;    /* loss = 1 - q */
    const double *powers; /* q^0 .. q^(count - 1), kept for draws with one rate; count may be 0 */
    ptrdiff_t count;
} dpfast_decay;

static inline void dpfast_set_decay(dpfast_decay *decay, double rate)
{
    *decay = (dpfast_decay){.rate = rate, .loss = dpfast_one_minus_exp_neg(rate)};
}

DPFAST_CLONES static void dpfast_level_powers(double *powers, ptrdiff_t count, double rate)
{
    for (ptrdiff_t k = 0; k < count; k++)
        powers[k] = dpfast_exp_neg((double)k * rate);
}

/* weights[t] times (1 - q) q^(t + depth) for the levels 0..n-1. */
DPFAST_CLONES static void dpfast_level_weights(double *weights, ptrdiff_t n, ptrdiff_t depth, double rate, double loss)
{
    for (ptrdiff_t t = 0; t < n; t++)
        weights[t] = dpfast_exp_neg((double)(t + depth) * rate) * weights[t] * loss;
}

/* The same doubles from `powers`, which starts at q^depth. */
DPFAST_CLONES static void dpfast_level_weights_of(double *weights, ptrdiff_t n, const double *powers, double loss)
{
    for (ptrdiff_t t = 0; t < n; t++)
        weights[t] = powers[t] * weights[t] * loss;
}

/* cumulative[t] = sum of the weights of the levels 0..t, t = 0..n, from the doubles of dpfast_level_weights. */
static void dpfast_level_sums(double *cumulative, ptrdiff_t n)
{
    dpfast_sum sum = {0.0, 0.0};
    for (ptrdiff_t t = 0; t <= n; t++) {
        cumulative[t] = dpfast_add(&sum, cumulative[t]);
        if (t && cumulative[t] < cumulative[t - 1])
            cumulative[t] = cumulative[t - 1];
    }
}

static void dpfast_level_cumulative(const dpfast_measure *measure, const int64_t *lower, const int64_t *upper,
                                    double *cumulative, ptrdiff_t n, ptrdiff_t depth, const dpfast_decay *decay)
{
    const int kept = n + depth < decay->count;
    dpfast_interval_weights(measure, lower, upper, cumulative, n);
    const double first = n ? cumulative[0] : 0.0;
    if (kept)
        dpfast_level_weights_of(cumulative, n, decay->powers + depth, decay->loss);
    else
        dpfast_level_weights(cumulative, n, depth, decay->rate, decay->loss);
    if (n)
        cumulative[0] = first * (depth ? dpfast_one_minus_exp_neg((double)(depth + 1) * decay->rate) : decay->loss);
    cumulative[n] =
        (kept ? decay->powers[n + depth] : dpfast_exp_neg((double)(n + depth) * decay->rate)) * (double)measure->total;
    dpfast_level_sums(cumulative, n);
}

/* Permute-and-flip on the same boxes, docs/proofs/permute-and-flip.md. Level t has the shell of the points of box t that
 * are not in box t - 1; level n has the points outside all boxes. A shell may be empty. */

/* The weights of the shells of the levels 0..n, exact. */
static void dpfast_shell_weights(const dpfast_measure *measure, const int64_t *lower, const int64_t *upper,
                                 int64_t *sizes, ptrdiff_t n)
{
    int64_t below = 0;
    for (ptrdiff_t t = 0; t <= n; t++) {
        const int64_t box = t < n ? dpfast_interval_weight(measure, lower[t], upper[t]) : measure->total;
        sizes[t] = box - below;
        below = box;
    }
}

/* The level t that has the greatest E_t - exponents[t] rate, E_t = -log(1 - U_t^(1/sizes[t])) the greatest of sizes[t]
 * standard exponentials, exponents 0, depth + 1, depth + 2, ...; -1 if doubles do not decide it. U_t is a uniform number
 * whose first 64 digits are words[t], drawn here for each of the levels 0..n, of size 0 or not.
 *
 * With L = -log U, E_t = -log(1 - exp(-L / size)). An error of L changes log(1 - exp(-L / size)) by at most its relative
 * error; L is known to 2^-50 (L + 1) + 2^-63 / U. A level with 1 - U > size exp(-bottom - loss) is below `bottom`, as
 * U^(1/size) <= 1 - (1 - U) / size; a factor of 2 is more than the errors of these doubles. */
static ptrdiff_t dpfast_flip(bitgen_t *source, const int64_t *sizes, uint64_t *words, ptrdiff_t n, ptrdiff_t depth,
                             double rate)
{
    ptrdiff_t best = -1;
    double bottom = -INFINITY, top = -INFINITY, rival = -INFINITY; /* bounds of the best value, and one of all others */
    const double coin = dpfast_exp_neg(rate);
    double power = dpfast_exp_neg((double)depth * rate), odds = 1.0; /* of the level, after its loss; exp(-bottom) */
    for (ptrdiff_t t = 0; t <= n; t++) {
        double unused, lower = -INFINITY, upper = INFINITY;
        words[t] = source->next_uint64(source->state);
        power *= t ? coin : 1.0;
        if (sizes[t] == 0 || (best >= 0 && (double)~words[t] * 0x1p-64 > 2.0 * (double)sizes[t] * odds * power))
            continue;
        double loss = t ? (double)(t + depth) * rate : 0.0, l = dpfast_neg_log_word(words[t] | 1, &unused);
        loss = loss < 0x1p40 ? loss : 0x1p40; /* enough to lose to level 0, whose value is positive */
        if (words[t] >> 12 && l > 0x1p-40) {
            double u = dpfast_from_word(words[t]) * 0x1p-64;
            double value = -dpfast_log(dpfast_one_minus_exp_neg(l / (double)sizes[t]));
            double margin = (1.0 + 1.0 / l) * 0x1p-46 + 0x1p-62 / (u * l) + (value + loss + 1.0) * 0x1p-48;
            lower = value - loss - margin;
            upper = value - loss + margin;
        }
        int better = best < 0 || lower > bottom;
        double other = better ? top : upper;
        rival = other > rival ? other : rival;
        if (better) {
            best = t;
            bottom = lower;
            top = upper;
            odds = bottom > 0.0 ? dpfast_exp_neg(bottom) : 1.0;
        }
    }
    return bottom > rival ? best : -1;
}

/* A point of the shell of level t, which is not empty, by the base measure: one word. */
static int64_t dpfast_draw_shell_point(const dpfast_measure *measure, bitgen_t *source, const int64_t *lower,
                                       const int64_t *upper, ptrdiff_t n, ptrdiff_t t, int64_t last)
{
    const int64_t first = t < n ? lower[t] : 0, final = t < n ? upper[t] : last;
    if (t == 0)
        return dpfast_draw_point(measure, source, first, final);
    const int64_t before = lower[t - 1] - 1, after = upper[t - 1] + 1;
    const int64_t below = dpfast_interval_weight(measure, first, before);
    const uint64_t word = source->next_uint64(source->state);
    const uint64_t weight = (uint64_t)(below + dpfast_interval_weight(measure, after, final));
    const int64_t place = (int64_t)dpfast_below(source, word, weight);
    return place < below ? dpfast_point_at(measure, first, before, place)
                         : dpfast_point_at(measure, after, final, place - below);
}

/* lower[t] and upper[t], t = 0..n-1: the total of x_(L)..x_(H) and `corner` times both ends, t ranks below and above. low
 * and high point to x_(L) and x_(H), of which the n - 1 codes before and after are known. */
static inline void dpfast_shifted_sums(const int64_t *low, const int64_t *high, int64_t total, int64_t corner,
                                       int64_t *lower, int64_t *upper, ptrdiff_t n)
{
    int64_t below = total, above = total;
    lower[0] = upper[0] = total + corner * (low[0] + high[0]);
    for (ptrdiff_t t = 1; t < n; t++) {
        below += low[-t] - high[1 - t];
        above += high[t] - low[t - 1];
        lower[t] = below + corner * (low[-t] + high[-t]);
        upper[t] = above + corner * (low[t] + high[t]);
    }
}

/* The depth of a statistic: the greatest t < n for which the box lower[t]..upper[t] is one point, or 0. */
static inline ptrdiff_t dpfast_depth(const int64_t *lower, const int64_t *upper, ptrdiff_t n)
{
    ptrdiff_t depth = 0;
    while (depth + 1 < n && lower[depth + 1] == upper[depth + 1])
        depth++;
    return depth;
}

/* The place of a code in the gap between the two entries of low[0..n] or high[0..n] around it: `step` from the one nearer
 * to the middle, of `width`; 0 of 1 for an entry itself, and for codes beyond all entries. */
static void dpfast_place_in_gap(const int64_t *low, const int64_t *high, ptrdiff_t n, int64_t code, int64_t *step,
                                int64_t *width)
{
    const int rises = code >= high[0];
    ptrdiff_t inner = 0, outer = n; /* the first entry at or beyond the code, if any */
    *step = 0;
    *width = 1;
    if (rises ? code > high[n] : code < low[n])
        return;
    while (inner < outer) {
        const ptrdiff_t middle = inner + (outer - inner) / 2;
        if (rises ? high[middle] < code : low[middle] > code)
            inner = middle + 1;
        else
            outer = middle;
    }
    const int64_t end = rises ? high[inner] : low[inner];
    if (end == code)
        return;
    const int64_t start = rises ? high[inner - 1] : low[inner - 1];
    *step = rises ? code - start : start - code;
    *width = rises ? end - start : start - end;
}

/* lower[t] and upper[t], least and greatest of max(0, high[-a] - low[b]) and of high[a] - low[-b] over a + b = t, for the
 * levels t = 0..n-1; low and high point to the middles of 2n - 1 sorted codes. `scratch` holds n. O(n^2). */
DPFAST_CLONES static void dpfast_difference_ranges(const int64_t *low, const int64_t *high, int64_t *lower,
                                                   int64_t *upper, int64_t *scratch, ptrdiff_t n)
{
    for (ptrdiff_t t = 0; t < n; t++) {
        lower[t] = INT64_MAX;
        upper[t] = 0;
        scratch[t] = low[-t];
    }
    for (ptrdiff_t a = 0; a < n; a++) {
        const int64_t falling = high[-a], rising = high[a];
        for (ptrdiff_t b = 0; b < n - a; b++) {
            int64_t least = falling - low[b], greatest = rising - scratch[b];
            lower[a + b] = least < lower[a + b] ? least : lower[a + b];
            upper[a + b] = greatest > upper[a + b] ? greatest : upper[a + b];
        }
    }
    for (ptrdiff_t t = 0; t < n; t++)
        lower[t] = lower[t] > 0 ? lower[t] : 0;
}

#endif
