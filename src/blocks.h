/* Sums over the records of each block, in exact fixed point. docs/proofs/sample-and-aggregate.md
 *
 * Record i of n is in block floor(i k / n): a function of its place, never of its value. What is summed of a record is a
 * function of that record and public numbers, rounded to an integer; so the sums are integers that depend on the records
 * of their block only, not on chunks, threads or machine, and states that have seen different records merge by addition.
 * Doubles are rounded to integers by adding 1.5 * 2^52: the bits of that sum are those of 1.5 * 2^52 plus the integer, and
 * are added up as they stand. Only + - * / of doubles, each correctly rounded: every machine computes the same bits.
 */
#ifndef DPFAST_BLOCKS_H
#define DPFAST_BLOCKS_H

#include "certified.h"
#include "select.h"

#define BLOCKS_PART 256         /* records summed at once: 2^51 of each fit 64 bits, and the keys of a part stay in cache */
#define BLOCKS_MAGIC 0x1.8p52
#define BLOCKS_MAGIC_BITS UINT64_C(0x4338000000000000)
#define BLOCKS_LOG_STEP 0x1p-37
#define BLOCKS_MOST_COLUMNS 4

enum blocks_kind {
    BLOCKS_VALUE, BLOCKS_SQUARE, BLOCKS_WIDE, BLOCKS_LOG, BLOCKS_LOG_SQUARE, BLOCKS_LOG1M
};

/* What is summed: of (x - center) / step, clamped to +-most; step is a power of two, `scale` its reciprocal. */
struct blocks_column {
    enum blocks_kind kind;
    double center, scale, most;
};

/* The records, all in all, and which of them count: low <= x <= high. */
struct blocks_plan {
    int64_t n, blocks;
    double low, high;
    int columns;
    struct blocks_column column[BLOCKS_MOST_COLUMNS];
};

typedef unsigned __int128 blocks_wide;

/* Of the records of one part of a block: modulo 2^64, two's complement. */
struct blocks_sums {
    uint64_t count, first, second, third;
};

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

static inline double blocks_clamp(double x, double low, double high)
{
    x = x > low ? x : low;
    return x < high ? x : high;
}

static inline uint64_t blocks_counts(double x, double low, double high)
{
    return -(uint64_t)((x >= low) & (x <= high));
}

/* log x for x in [2^-1022, inf), within 2^-50 (|log x| + 1): log x = e log 2 + 2 atanh(s), s = (z - 1) / (z + 1), z in
 * [sqrt(1/2), sqrt(2)), by its Taylor series to s^21 (the rest is < 2^-60). */
static inline double blocks_log(double x)
{
    uint64_t b = dpfast_bits(x), e = (b - UINT64_C(0x3FE6A09E667F3BCD) + (UINT64_C(1023) << 52)) >> 52;
    double f = dpfast_double(b - ((e - 1023) << 52)) - 1.0;
    double s = f / (2.0 + f), v = s * s, p = 1.0 / 21;
    double exponent = dpfast_double(e | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023.0);
    p = p * v + 1.0 / 19;
    p = p * v + 1.0 / 17;
    p = p * v + 1.0 / 15;
    p = p * v + 1.0 / 13;
    p = p * v + 1.0 / 11;
    p = p * v + 1.0 / 9;
    p = p * v + 1.0 / 7;
    p = p * v + 1.0 / 5;
    p = p * v + 1.0 / 3;
    p = p * v + 1.0;
    return exponent * 0x1.62e42fefa39efp-1 + 2.0 * s * p;
}

/* What a record is before it is rounded: a value in steps from the center, or a logarithm in steps. */
static inline double blocks_steps(double x, double center, double scale, double most)
{
    return blocks_clamp((x - center) * scale, -most, most);
}

static inline double blocks_log_steps(double x)
{
    return blocks_log(blocks_clamp(x, 0x1p-1022, 0x1.fffffffffffffp1023)) * (1 / BLOCKS_LOG_STEP);
}

#define BLOCKS_SUM(steps_of_x) \
    for (ptrdiff_t i = 0; i < count; i++) { \
        uint64_t mask = blocks_counts(x[i], low, high); \
        sums.first += dpfast_bits((steps_of_x) + BLOCKS_MAGIC) & mask; \
        sums.count -= mask; \
    } \
    sums.first -= sums.count * BLOCKS_MAGIC_BITS

/* c = high 2^24 + low, |high| <= 2^23, |low| <= 2^23 for |c| <= 2^47 less 2^23: products of two are integers of doubles
 * below 2^51, added up as integers. c^2 = high^2 2^48 + high low 2^25 + low^2. */
#define BLOCKS_SUM_SQUARES(steps_of_x) \
    for (ptrdiff_t i = 0; i < count; i++) { \
        uint64_t mask = blocks_counts(x[i], low, high); \
        double rounded = ((steps_of_x) + BLOCKS_MAGIC) - BLOCKS_MAGIC; \
        double upper = (rounded * 0x1p-24 + BLOCKS_MAGIC) - BLOCKS_MAGIC, lower = rounded - upper * 0x1p24; \
        sums.first += dpfast_bits(rounded + BLOCKS_MAGIC) & mask; \
        sums.second += dpfast_bits(upper * upper + BLOCKS_MAGIC) & mask; \
        sums.third += dpfast_bits(upper * lower + BLOCKS_MAGIC) & mask; \
        lowest += dpfast_bits(lower * lower + BLOCKS_MAGIC) & mask; \
        sums.count -= mask; \
    } \
    sums.first -= sums.count * BLOCKS_MAGIC_BITS; \
    sums.second -= sums.count * BLOCKS_MAGIC_BITS; \
    sums.third -= sums.count * BLOCKS_MAGIC_BITS; \
    lowest -= sums.count * BLOCKS_MAGIC_BITS

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

/* The sums of one column over a part of a block, added to its cells; how many records count. `cells` are two: the sum,
 * and that of the squares. */
static inline uint64_t blocks_part(const double *x, ptrdiff_t count, double low, double high,
                                   const struct blocks_column *column, uint64_t *cells)
{
    const double center = column->center, scale = column->scale, most = column->most;
    struct blocks_sums sums = {0, 0, 0, 0};
    uint64_t lowest = 0;
    switch (column->kind) {
    case BLOCKS_VALUE: BLOCKS_SUM(blocks_steps(x[i], center, scale, most)); break;
    case BLOCKS_LOG: BLOCKS_SUM(blocks_log_steps(x[i])); break;
    case BLOCKS_LOG1M: BLOCKS_SUM(blocks_log_steps(1.0 - x[i])); break;
    case BLOCKS_SQUARE: BLOCKS_SUM_SQUARES(blocks_steps(x[i], center, scale, most)); break;
    case BLOCKS_LOG_SQUARE: BLOCKS_SUM_SQUARES(blocks_log_steps(x[i])); break;
    case BLOCKS_WIDE: /* whole steps, and 2^-50 of them: what is left of a rounded double is exact */
        for (ptrdiff_t i = 0; i < count; i++) {
            uint64_t mask = blocks_counts(x[i], low, high);
            double steps = blocks_steps(x[i], center, scale, most);
            double whole = (steps + BLOCKS_MAGIC) - BLOCKS_MAGIC, rest = (steps - whole) * 0x1p50;
            sums.first += dpfast_bits(whole + BLOCKS_MAGIC) & mask;
            sums.second += dpfast_bits(rest + BLOCKS_MAGIC) & mask;
            sums.count -= mask;
        }
        sums.first -= sums.count * BLOCKS_MAGIC_BITS;
        sums.second -= sums.count * BLOCKS_MAGIC_BITS;
        blocks_add(cells, (__int128)(int64_t)sums.first * ((__int128)1 << 50) + (int64_t)sums.second);
        return sums.count;
    }
    blocks_add(cells, (int64_t)sums.first);
    if (column->kind == BLOCKS_SQUARE || column->kind == BLOCKS_LOG_SQUARE)
        blocks_add(cells + 2, (__int128)(int64_t)sums.second * ((__int128)1 << 48)
                                  + (__int128)(int64_t)sums.third * ((__int128)1 << 25) + (int64_t)lowest);
    return sums.count;
}

/* Records start..stop-1 of the keys, which are records position.. of the plan, added to the cells of their blocks:
 * `counts` one word and `cells` 4 * columns words for each block, from block `first` on. */
DPFAST_CLONES
static void blocks_scan(const struct blocks_plan *plan, const struct select_keys *keys, ptrdiff_t start, ptrdiff_t stop,
                        int64_t position, int64_t first, uint64_t *counts, uint64_t *cells)
{
    double buffer[BLOCKS_PART];
    const double low = plan->low, high = plan->high;
    ptrdiff_t i = start;
    for (int64_t j = blocks_of(plan, position + start); i < stop; j++) {
        int64_t end = blocks_start(plan, j + 1) - position;
        uint64_t *mine = cells + (j - first) * 4 * plan->columns;
        end = end < stop ? end : stop;
        while (i < end) {
            ptrdiff_t count = end - i < BLOCKS_PART ? end - i : BLOCKS_PART;
            const double *x = (const double *)keys->data + i;
            uint64_t counted = 0;
            if (!keys->in_place) {
                select_load(keys, i, count, buffer);
                x = buffer;
            }
            for (int c = 0; c < plan->columns; c++)
                counted = blocks_part(x, count, low, high, &plan->column[c], mine + 4 * c);
            counts[j - first] += counted;
            i += count;
        }
    }
}

/* The sum of a column as the nearest double, in steps (a wide one in 2^-50 steps), and, with squares, the sum of squared
 * deviations from the mean. That is s2 - 2 q s + m q^2 - (s - m q)^2 / m for q the mean rounded: all but the last term an
 * integer below 2^128, taken modulo 2^128, and the last one at most m / 4. */
static inline double blocks_double(blocks_wide value)
{
    __int128 number = (__int128)value;
    return (double)number;
}

static void blocks_total(const uint64_t *cells, uint64_t count, int squares, double *sum, double *deviations)
{
    __int128 total = (__int128)blocks_cell(cells), m = (__int128)count, q, rest;
    *sum = blocks_double((blocks_wide)total);
    if (!squares || !count) {
        if (squares)
            *deviations = 0.0;
        return;
    }
    q = total / m;
    rest = total - q * m;
    if (2 * rest > m)
        q++, rest -= m;
    else if (2 * rest < -m)
        q--, rest += m;
    blocks_wide s = (blocks_wide)total, u = (blocks_wide)q;
    blocks_wide about = blocks_cell(cells + 2) - 2 * u * s + (blocks_wide)m * u * u;
    *deviations = blocks_double(about) - (double)rest * ((double)rest / (double)m);
}

/* ---- digamma and trigamma, and the shape of a gamma distribution: doubles, nothing private decided ---- */

/* log x - digamma x, and 1 / x - trigamma x, for x > 0: by recurrence to x >= 8 and the asymptotic series. */
static inline void blocks_gamma_excess(double x, double *excess, double *slope)
{
    double shift = 0.0, shift2 = 0.0, y = x;
    while (y < 8.0) {
        shift += 1.0 / y;
        shift2 += 1.0 / (y * y);
        y += 1.0;
    }
    double r = 1.0 / y, r2 = r * r;
    double tail = r * 0.5 + r2 * (1.0 / 12 - r2 * (1.0 / 120 - r2 * (1.0 / 252 - r2 * (1.0 / 240 - r2 * (1.0 / 132
                  - r2 * (691.0 / 32760 - r2 * (1.0 / 12)))))));
    double tail2 = r2 * (0.5 + r * (1.0 / 6 - r2 * (1.0 / 30 - r2 * (1.0 / 42 - r2 * (1.0 / 30 - r2 * (5.0 / 66
                   - r2 * (691.0 / 2730 - r2 * (7.0 / 6))))))));
    /* digamma x = log y - tail - shift; trigamma x = 1 / y + tail2 + shift2 */
    *excess = tail + shift - (y > x ? blocks_log(y / x) : 0.0);
    *slope = 1.0 / x - 1.0 / y - tail2 - shift2;
}

/* The k > 0 with log k - digamma k = s, s > 0, to about 1e-13, relative: from a start within 1.5 %, Newton's method for
 * the logarithm of both sides, which is nearly a straight line in log k. */
static inline double blocks_gamma_shape(double s)
{
    double k = (3.0 - s + __builtin_sqrt((s - 3.0) * (s - 3.0) + 24.0 * s)) / (12.0 * s);
    for (int i = 0; i < 4; i++) {
        double excess, slope;
        blocks_gamma_excess(k, &excess, &slope);
        double change = (excess - s) / (k * slope);
        k *= change < -0.5 ? 2.0 : change > 0.5 ? 0.5 : 1.0 - change;
    }
    return k;
}

#endif
