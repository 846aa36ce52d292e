/* Sums over the records of each block, in exact fixed point. docs/proofs/sample-and-aggregate.md
 *
 * Record i of n is in block floor(i k / n): a function of its position, never of its value. A term is a function of one
 * record and public numbers, rounded to an integer. The sums are therefore integers that depend only on the records of
 * their block, not on chunks, threads or machine, and states of different records merge by addition. Doubles are
 * rounded to integers by adding 1.5 * 2^52: the bits of the sum are those of 1.5 * 2^52 plus the integer, and are added
 * directly. Only + - * / of doubles, each correctly rounded: every machine computes the same bits.
 */
#ifndef DPFAST_BLOCKS_H
#define DPFAST_BLOCKS_H

#include <float.h>

#include "certified.h"
#include "polygamma.h"
#include "select.h"

/* Records at once: their terms, below 2^51, sum below 2^63, and stay in the first-level cache. */
#define BLOCKS_PART 256
#define BLOCKS_MAGIC 0x1.8p52
#define BLOCKS_MAGIC_BITS UINT64_C(0x4338000000000000)
#define BLOCKS_LOG_STEP 0x1p-37
#define BLOCKS_MOST_COLUMNS 4
#define BLOCKS_LANES 8

/* The logarithms last. */
enum blocks_kind { BLOCKS_VALUE, BLOCKS_SQUARE, BLOCKS_WIDE, BLOCKS_LOG, BLOCKS_LOG_SQUARE, BLOCKS_LOG1M };

/* The terms: functions of (x - center) / step, clamped to +-most; step is a power of two, `scale` its reciprocal. */
struct blocks_column {
    enum blocks_kind kind;
    double center, scale, most;
};

/* The total number of records; the block of the first cells; the range of records that count: low <= x <= high. Each column
 * has a sum, a cell of two words, and if any has squares each has a second cell: `words` is 2 or 4. */
struct blocks_plan {
    int64_t n, blocks, first;
    double low, high;
    int columns, words;
    struct blocks_column column[BLOCKS_MOST_COLUMNS];
};

typedef unsigned __int128 blocks_wide;
typedef uint64_t blocks_half __attribute__((vector_size(4 * BLOCKS_LANES), aligned(8), may_alias)); /* of the lanes */

/* The first record of block j: the least i with floor(i k / n) >= j. Assumes j <= k <= n, k < 2^31. */
static inline int64_t blocks_start(const struct blocks_plan *plan, int64_t j)
{
    int64_t k = plan->blocks;
    return j * (plan->n / k) + (j * (plan->n % k) + k - 1) / k;
}

/* floor(i k / n), for one record. */
static inline int64_t blocks_of(const struct blocks_plan *plan, int64_t i)
{
    return (int64_t)((blocks_wide)i * (blocks_wide)plan->blocks / (blocks_wide)plan->n);
}

/* A block, its end, and the remainder of that division, so that the next block needs no division. */
struct blocks_cursor {
    int64_t block, end, rest;
};

static inline struct blocks_cursor blocks_at(const struct blocks_plan *plan, int64_t position)
{
    int64_t k = plan->blocks, j = blocks_of(plan, position);
    return (struct blocks_cursor){j, blocks_start(plan, j + 1), ((j + 1) * (plan->n % k) + k - 1) % k};
}

static inline void blocks_next(struct blocks_cursor *cursor, int64_t quotient, int64_t remainder, int64_t k)
{
    cursor->rest += remainder;
    cursor->end += quotient + (cursor->rest >= k);
    cursor->rest -= cursor->rest >= k ? k : 0;
    cursor->block++;
}

static inline double blocks_clamp(double x, double low, double high)
{
    x = x > low ? x : low;
    return x < high ? x : high;
}

/* A value in steps from the center, before rounding. */
static inline double blocks_steps(double x, double center, double scale, double most)
{
    return blocks_clamp((x - center) * scale, -most, most);
}

/* The number of records of a part that are in the support, and a mask of them. */
DPFAST_CLONES static uint64_t blocks_count(const double *x, ptrdiff_t count, double low, double high)
{
    uint64_t total = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        uint64_t above = x[i] >= low ? 1 : 0, below = x[i] <= high ? 1 : 0;
        total += above & below;
    }
    return total;
}

DPFAST_CLONES static void blocks_mask(const double *x, ptrdiff_t count, double low, double high, uint64_t *mask)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        uint64_t above = x[i] >= low ? UINT64_MAX : 0, below = x[i] <= high ? UINT64_MAX : 0;
        mask[i] = above & below;
    }
}

/* The terms of a column: the bits of 1.5 * 2^52 + integer, for each record of a part. */
DPFAST_CLONES static void blocks_values(const double *x, ptrdiff_t count, const struct blocks_column *column,
                                        uint64_t *restrict first)
{
    const double center = column->center, scale = column->scale, most = column->most;
    for (ptrdiff_t i = 0; i < count; i++)
        first[i] = dpfast_bits(blocks_steps(x[i], center, scale, most) + BLOCKS_MAGIC);
}

/* Whole steps, and units of 2^-50 of a step: the remainder of a rounded double is exact. */
DPFAST_CLONES static void blocks_wides(const double *x, ptrdiff_t count, const struct blocks_column *column,
                                       uint64_t *restrict first, uint64_t *restrict second)
{
    const double center = column->center, scale = column->scale, most = column->most;
    for (ptrdiff_t i = 0; i < count; i++) {
        double steps = blocks_steps(x[i], center, scale, most);
        double whole = (steps + BLOCKS_MAGIC) - BLOCKS_MAGIC;
        first[i] = dpfast_bits(whole + BLOCKS_MAGIC);
        second[i] = dpfast_bits((steps - whole) * 0x1p50 + BLOCKS_MAGIC);
    }
}

/* log x in steps, of x >= 0 and at least 2^-1022: k log 2 + 2 atanh(s) as in certified.h, by a polynomial that is right to
 * 2^-47, since steps are 2^-37. Of any other x some finite number, which a mask leaves out. */
static inline double blocks_log_steps(double x)
{
    const double unit = 1 / BLOCKS_LOG_STEP;
    const int64_t least = 0x0010000000000000;
    int64_t b = (int64_t)dpfast_bits(x);
    b = b > least ? b : least;
    uint64_t k = ((uint64_t)b - 0x3FE6A09E667F3BCDu + (UINT64_C(1023) << 52)) >> 52; /* biased by 1023 */
    double exponent = dpfast_double(k | 0x4330000000000000u) - (0x1p52 + 1023.0);
    double f = dpfast_double((uint64_t)b - (k << 52) + (UINT64_C(1023) << 52)) - 1.0;
    double s = f / (2.0 + f), v = s * s, p = 0x1.941c8e803e8a4p-4 * (2 * unit);
    p = p * v + 0x1.c5ec5ed3823c5p-4 * (2 * unit);
    p = p * v + 0x1.2494fe05eb466p-3 * (2 * unit);
    p = p * v + 0x1.999993a029211p-3 * (2 * unit);
    p = p * v + 0x1.555555582756fp-2 * (2 * unit);
    p = p * v + 0x1.ffffffffff9ecp-1 * (2 * unit);
    return exponent * (0x1.62e42fefa39efp-1 * unit) + s * p;
}

DPFAST_CLONES static void blocks_logs(const double *x, ptrdiff_t count, double *restrict steps)
{
    for (ptrdiff_t i = 0; i < count; i++)
        steps[i] = blocks_log_steps(x[i]);
}

DPFAST_CLONES static void blocks_log_values(const double *x, ptrdiff_t count, uint64_t *restrict first)
{
    for (ptrdiff_t i = 0; i < count; i++)
        first[i] = dpfast_bits(blocks_log_steps(x[i]) + BLOCKS_MAGIC);
}

/* Logarithms of any x: -inf for what is below 2^-1022, inf for inf, NaN for NaN. Two loops: with constant bounds, gcc would
 * branch in one. */
DPFAST_CLONES static void blocks_log_part(const double *x, ptrdiff_t count, double *restrict out)
{
    const double infinity = __builtin_inf();
    for (ptrdiff_t i = 0; i < count; i++)
        out[i] = blocks_clamp(x[i], 0x1p-1022, 0x1.fffffffffffffp1023);
    for (ptrdiff_t i = 0; i < count; i++) {
        double log = dpfast_log(out[i]), special = x[i] > 1.0 ? infinity : x[i] == x[i] ? -infinity : x[i];
        out[i] = ((x[i] >= 0x1p-1022) & (x[i] <= 0x1.fffffffffffffp1023)) ? log : special;
    }
}

static void blocks_log_each(const double *x, ptrdiff_t count, double *out)
{
    for (ptrdiff_t i = 0; i < count; i += BLOCKS_PART)
        blocks_log_part(x + i, count - i < BLOCKS_PART ? count - i : BLOCKS_PART, out + i);
}

DPFAST_CLONES static void blocks_complements(const double *x, ptrdiff_t count, double *restrict out)
{
    for (ptrdiff_t i = 0; i < count; i++)
        out[i] = 1.0 - x[i];
}

/* Of a rounded value c: c itself; then high^2, high low and low^2 for c = high 2^24 + low, both at most 2^23 for |c| <=
 * 2^47 - 2^23: integers that doubles hold. c^2 = high^2 2^48 + high low 2^25 + low^2. */
DPFAST_CLONES static void blocks_squares(const double *x, ptrdiff_t count, const struct blocks_column *column,
                                         uint64_t *restrict first, uint64_t *restrict highs, uint64_t *restrict mixed,
                                         uint64_t *restrict lows)
{
    const double center = column->center, scale = column->scale, most = column->most;
    for (ptrdiff_t i = 0; i < count; i++) {
        double rounded = (blocks_steps(x[i], center, scale, most) + BLOCKS_MAGIC) - BLOCKS_MAGIC;
        double high = (rounded * 0x1p-24 + BLOCKS_MAGIC) - BLOCKS_MAGIC, low = rounded - high * 0x1p24;
        first[i] = dpfast_bits(rounded + BLOCKS_MAGIC);
        highs[i] = dpfast_bits(high * high + BLOCKS_MAGIC);
        mixed[i] = dpfast_bits(high * low + BLOCKS_MAGIC);
        lows[i] = dpfast_bits(low * low + BLOCKS_MAGIC);
    }
}

/* The integers of a stretch of terms, of which `counted` are not masked, added up. Blocks are short, so that the last lanes
 * are masked instead of added one by one: up to BLOCKS_LANES - 1 terms after the stretch are read. */
static inline int64_t blocks_sum(const uint64_t *terms, ptrdiff_t count, uint64_t counted)
{
    static const uint64_t kept[2 * BLOCKS_LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const ptrdiff_t rest = count % BLOCKS_LANES, half = BLOCKS_LANES / 2;
    const uint64_t *last = terms + (count - rest), *mask = kept + BLOCKS_LANES - rest;
    blocks_half one = {0}, two = {0};
    for (; terms < last; terms += BLOCKS_LANES)
        one += *(const blocks_half *)terms, two += *(const blocks_half *)(terms + half);
    one += *(const blocks_half *)last & *(const blocks_half *)mask;
    two += *(const blocks_half *)(last + half) & *(const blocks_half *)(mask + half);
    one += two;
    uint64_t sum = (one[0] + one[1]) + (one[2] + one[3]);
    return (int64_t)(sum - counted * BLOCKS_MAGIC_BITS);
}

/* A cell of 128 bits, two words, the lower first. */
static inline void blocks_add(uint64_t *cell, __int128 value)
{
    blocks_wide total = ((blocks_wide)cell[1] << 64 | cell[0]) + (blocks_wide)value;
    cell[0] = (uint64_t)total;
    cell[1] = (uint64_t)(total >> 64);
}

static inline blocks_wide blocks_cell(const uint64_t *cell)
{
    return (blocks_wide)cell[1] << 64 | cell[0];
}

/* The cells of another state, added. */
static void blocks_add_cells(uint64_t *cells, const uint64_t *other, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        blocks_add(cells + 2 * i, (__int128)blocks_cell(other + 2 * i));
}

/* The terms of a part of the records: up to four each, and a mask if not all records are in the support. */
struct blocks_terms {
    uint64_t term[4][BLOCKS_PART + BLOCKS_LANES], mask[BLOCKS_PART];
    int terms, masked;
};

static void blocks_make_terms(const double *x, ptrdiff_t count, const struct blocks_column *column,
                              struct blocks_terms *out)
{
    static const struct blocks_column logarithm = {BLOCKS_VALUE, 0.0, 1.0, 0x1p47 - 0x1p23};
    double steps[BLOCKS_PART];
    if (column->kind == BLOCKS_LOG1M) {
        blocks_complements(x, count, steps);
        x = steps;
    }
    switch (column->kind) {
    case BLOCKS_VALUE: blocks_values(x, count, column, out->term[0]); break;
    case BLOCKS_WIDE: blocks_wides(x, count, column, out->term[0], out->term[1]); break;
    case BLOCKS_SQUARE: blocks_squares(x, count, column, out->term[0], out->term[1], out->term[2], out->term[3]); break;
    case BLOCKS_LOG:
    case BLOCKS_LOG1M: blocks_log_values(x, count, out->term[0]); break;
    case BLOCKS_LOG_SQUARE:
        blocks_logs(x, count, steps);
        blocks_squares(steps, count, &logarithm, out->term[0], out->term[1], out->term[2], out->term[3]);
        break;
    }
    out->terms = column->kind == BLOCKS_WIDE                                          ? 2
                 : column->kind == BLOCKS_SQUARE || column->kind == BLOCKS_LOG_SQUARE ? 4
                                                                                      : 1;
    if (out->masked)
        for (int t = 0; t < out->terms; t++)
            for (ptrdiff_t i = 0; i < count; i++)
                out->term[t][i] &= out->mask[i];
}

/* The terms of records position.. of the plan, the first of them in block `at`, added to the cells of their blocks. Returns
 * the block of the next record. */
DPFAST_CLONES
static struct blocks_cursor blocks_spread(const struct blocks_plan *plan, const struct blocks_terms *terms,
                                          ptrdiff_t count, int64_t position, struct blocks_cursor at, uint64_t *counts,
                                          uint64_t *cells)
{
    const int64_t k = plan->blocks, quotient = plan->n / k, remainder = plan->n % k;
    for (ptrdiff_t i = 0; i < count; cells += plan->words * plan->columns) {
        ptrdiff_t stop = at.end - position < count ? at.end - position : count, length = stop - i;
        uint64_t counted = length;
        if (terms->masked) {
            counted = 0;
            for (ptrdiff_t r = i; r < stop; r++)
                counted += terms->mask[r] & 1;
        }
        int64_t first = blocks_sum(terms->term[0] + i, length, counted);
        if (terms->terms == 1)
            blocks_add(cells, first);
        else if (terms->terms == 2)
            blocks_add(cells, (__int128)first * ((__int128)1 << 50) + blocks_sum(terms->term[1] + i, length, counted));
        else {
            blocks_add(cells, first);
            blocks_add(cells + 2, (__int128)blocks_sum(terms->term[1] + i, length, counted) * ((__int128)1 << 48)
                                      + (__int128)blocks_sum(terms->term[2] + i, length, counted) * ((__int128)1 << 25)
                                      + blocks_sum(terms->term[3] + i, length, counted));
        }
        if (counts)
            counts[at.block - plan->first] += counted;
        i = stop;
        if (position + stop == at.end)
            blocks_next(&at, quotient, remainder, k);
    }
    return at;
}

/* The same for one column of contiguous doubles, without storing terms: the speed is bounded by memory. */
DPFAST_CLONES
static void blocks_scan_values(const struct blocks_plan *plan, const double *x, ptrdiff_t count, int64_t position,
                               uint64_t *counts, uint64_t *cells)
{
    const double low = plan->low, high = plan->high, center = plan->column[0].center, scale = plan->column[0].scale;
    const double most = plan->column[0].most;
    const int64_t k = plan->blocks, quotient = plan->n / k, remainder = plan->n % k;
    struct blocks_cursor at = blocks_at(plan, position);
    for (ptrdiff_t i = 0; i < count; blocks_next(&at, quotient, remainder, k)) {
        ptrdiff_t end = at.end - position < count ? at.end - position : count;
        while (i < end) {
            ptrdiff_t stop = end - i < BLOCKS_PART ? end : i + BLOCKS_PART;
            uint64_t sum = 0, counted = 0;
            for (; i < stop; i++) {
                uint64_t above = x[i] >= low ? UINT64_MAX : 0, below = x[i] <= high ? UINT64_MAX : 0;
                sum += dpfast_bits(blocks_steps(x[i], center, scale, most) + BLOCKS_MAGIC) & above & below;
                counted -= above & below;
            }
            blocks_add(cells + plan->words * (at.block - plan->first), (int64_t)(sum - counted * BLOCKS_MAGIC_BITS));
            counts[at.block - plan->first] += counted;
        }
    }
}

/* Records start..stop-1 of the keys, of which the first of all is record `position` of the plan, added to the cells of
 * their blocks: `counts` one word and `cells` words * columns words for each block, from plan->first on. */
static void blocks_scan(const struct blocks_plan *plan, const struct select_keys *keys, ptrdiff_t start, ptrdiff_t stop,
                        int64_t position, uint64_t *counts, uint64_t *cells)
{
    double buffer[BLOCKS_PART];
    struct blocks_terms terms;
    if (keys->in_place && plan->columns == 1 && plan->column[0].kind == BLOCKS_VALUE) {
        blocks_scan_values(plan, (const double *)keys->data + start, stop - start, position + start, counts, cells);
        return;
    }
    struct blocks_cursor at = blocks_at(plan, position + start), next = at;
    for (ptrdiff_t i = start; i < stop; i += BLOCKS_PART, at = next) {
        ptrdiff_t count = stop - i < BLOCKS_PART ? stop - i : BLOCKS_PART;
        const double *x = (const double *)keys->data + i;
        if (!keys->in_place) {
            select_load(keys, i, count, buffer);
            x = buffer;
        }
        terms.masked = blocks_count(x, count, plan->low, plan->high) < (uint64_t)count;
        if (terms.masked)
            blocks_mask(x, count, plan->low, plan->high, terms.mask);
        for (int c = 0; c < plan->columns; c++) {
            blocks_make_terms(x, count, &plan->column[c], &terms);
            next = blocks_spread(plan, &terms, count, position + i, at, c ? NULL : counts,
                                 cells + plan->words * ((at.block - plan->first) * plan->columns + c));
        }
    }
}

/* The nearest double; most numbers fit into 64 bits and take one instruction. */
static inline double blocks_double(blocks_wide value)
{
    __int128 number = (__int128)value;
    return number == (int64_t)number ? (double)(int64_t)number : (double)number;
}

/* The sum of squared deviations from the mean of m numbers, s their sum, s2 that of their squares. It is s2 - 2 q s + m q^2
 * - (s - m q)^2 / m for any q: near the mean, all but the last term is an integer below 2^128, taken modulo 2^128, and the
 * last one small. */
static double blocks_deviations(blocks_wide s, blocks_wide s2, uint64_t m)
{
    if (!m)
        return 0.0;
    int64_t q = (int64_t)(blocks_double(s) / (double)m); /* |c| < 2^47 */
    blocks_wide u = (blocks_wide)(__int128)q;
    double left = blocks_double(s - (blocks_wide)m * u);
    return blocks_double(s2 - 2 * u * s + (blocks_wide)m * u * u) - left * (left / (double)m);
}

/* Of column c of each of k blocks: the sum, of `count` numbers that are `unit` from one another and start at `center`; and
 * the sum of squared deviations from the mean, unless `deviations` is NULL. */
static void blocks_totals(const struct blocks_plan *plan, const uint64_t *counts, const uint64_t *cells, ptrdiff_t k,
                          int c, double unit, double center, double *sums, double *deviations)
{
    const ptrdiff_t stride = plan->words * plan->columns;
    cells += plan->words * c;
    for (ptrdiff_t j = 0; j < k; j++)
        sums[j] = blocks_double(blocks_cell(cells + j * stride)) * unit + center * (double)(int64_t)counts[j];
    for (ptrdiff_t j = 0; deviations && j < k; j++) {
        const uint64_t *cell = cells + j * stride;
        deviations[j] = blocks_deviations(blocks_cell(cell), blocks_cell(cell + 2), counts[j]) * unit * unit;
    }
}

/* ---- the shape of a gamma distribution, the bias of a standard deviation: doubles, without private decisions ---- */

/* The start within 1.5 % of the k > 0 with log k - digamma k = s. */
DPFAST_CLONES static void blocks_gamma_starts(const double *s, ptrdiff_t count, double *k)
{
    for (ptrdiff_t i = 0; i < count; i++)
        k[i] = (3.0 - s[i] + __builtin_sqrt((s[i] - 3.0) * (s[i] - 3.0) + 24.0 * s[i])) / (12.0 * s[i]);
}

/* A step of Halley's method for each k that still moves; `moving` is then 0 or all ones. Returns whether any does. The
 * derivatives of log k - digamma k are -`one` and `two`. The method is exact for a / k, to which that is close. */
DPFAST_CLONES static int blocks_gamma_steps(const double *s, const double *zero, const double *one, const double *two,
                                            ptrdiff_t count, double *k, uint64_t *moving)
{
    uint64_t any = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        double newton = (zero[i] - s[i]) / (k[i] * one[i]),
               change = newton / (1.0 - newton * k[i] * two[i] / (2.0 * one[i]));
        double factor = change > 1.0 ? 2.0 : change < -0.5 ? 0.5 : 1.0 + change, moved = k[i] * factor;
        k[i] = dpfast_double((dpfast_bits(moved) & moving[i]) | (dpfast_bits(k[i]) & ~moving[i]));
        moving[i] &= ~(-(uint64_t)(change < 1e-5) & -(uint64_t)(change > -1e-5));
        any |= moving[i];
    }
    return any != 0;
}

/* The s = log(mean) - mean_log of at most BLOCKS_PART blocks; 1 where the mean is not a positive number or s is not. */
DPFAST_CLONES static void blocks_gamma_gaps(const double *mean, const double *mean_log, ptrdiff_t count, double *s,
                                            uint64_t *valid)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        double gap = dpfast_log(mean[i]) - mean_log[i];
        valid[i] = -(uint64_t)(mean[i] > 0.0) & -(uint64_t)(mean[i] <= DBL_MAX) & -(uint64_t)(gap > 0.0)
                   & -(uint64_t)(gap <= DBL_MAX);
        s[i] = dpfast_double((dpfast_bits(gap) & valid[i]) | (dpfast_bits(1.0) & ~valid[i]));
    }
}

/* The k > 0 with log k - digamma k = log(mean) - mean_log for each of at most BLOCKS_PART blocks, NaN if there is none, by
 * Halley's method: it stops after a step below 1e-5, when the error, of the order of its cube, is below rounding. */
static void blocks_gamma_shapes(const double *mean, const double *mean_log, ptrdiff_t count, double *k)
{
    double s[BLOCKS_PART], zero[BLOCKS_PART], one[BLOCKS_PART], two[BLOCKS_PART];
    uint64_t valid[BLOCKS_PART], moving[BLOCKS_PART];
    blocks_gamma_gaps(mean, mean_log, count, s, valid);
    blocks_gamma_starts(s, count, k);
    memcpy(moving, valid, count * sizeof *moving);
    for (int pass = 0; pass < 6; pass++) {
        dpfast_polygamma_gaps_each(k, count, zero, one, two);
        if (!blocks_gamma_steps(s, zero, one, two, count, k, moving))
            break;
    }
    for (ptrdiff_t i = 0; i < count; i++)
        k[i] = valid[i] ? k[i] : __builtin_nan("");
}

/* E[s] / sigma for s^2 the unbiased variance of m >= 2 normal records: r(x) / sqrt(x), x = (m - 1) / 2, r(x) = gamma(x +
 * 1/2) / gamma(x) = r(x + 1) x / (x + 1/2), by its asymptotic series for x >= 16. */
static inline double blocks_c4(double m)
{
    double x = (m - 1.0) * 0.5, y = x, ratio = 1.0;
    while (y < 16.0) {
        ratio *= y / (y + 0.5);
        y += 1.0;
    }
    double r = 1.0 / y;
    double series =
        1.0 - r * (1.0 / 8 - r * (1.0 / 128 + r * (5.0 / 1024 - r * (21.0 / 32768 + r * (399.0 / 262144)))));
    return ratio * series * __builtin_sqrt(y / x);
}

#endif
