/* Base measures: an exact integer weight for each of the codes 0..last. docs/proofs/base-measures.md
 *
 * Every code weighs `unit`, and more if it is in a part. The parts are sets of evenly spaced codes, each inside the one
 * before: part j holds index i of the multiples at the least code k with (k + offset + 1/2) numerator / denominator >= i.
 * A table holds the weights of any other measure, and magnitudes.h has that of floats.
 *
 * The number of multiples up to a code is floor((k + offset + 1/2) / spacing), from part to part floor((count + 1/2) /
 * ratio). In doubles it is exact: with an odd numerator the quotient is at least 1 / (2 denominator) from every integer,
 * and the nearest integer to count * factor + shift, shift = factor / 2 - 1/2, is the floor.
 */
#ifndef DPFAST_MEASURE_H
#define DPFAST_MEASURE_H

#include "draws.h"
#include "magnitudes.h"

#define DPFAST_PARTS 64
#define DPFAST_MEASURE_BLOCK 128

typedef struct {
    double factor, shift;           /* from the count of the part before, or k + offset, to that of this part */
    int64_t weight;                 /* of each code of the part */
    int64_t numerator, denominator; /* of 1 / spacing, in codes */
} dpfast_part;

typedef struct {
    int64_t total, unit, offset;
    const int64_t *table;            /* the weight of all codes below k, k = 0..last + 1; or NULL */
    const dpfast_magnitudes *floats; /* the weight of code k is that of the index k + offset; or NULL */
    ptrdiff_t parts;
    dpfast_part part[DPFAST_PARTS];
} dpfast_measure;

/* The uniform measure: weight 1 for each code. */
static inline void dpfast_set_uniform(dpfast_measure *measure, int64_t last)
{
    measure->total = last + 1;
    measure->unit = 1;
    measure->offset = 0;
    measure->table = NULL;
    measure->floats = NULL;
    measure->parts = 0;
}

static inline double dpfast_count(const dpfast_part *part, double before)
{
    return (before * part->factor + part->shift + 0x1.8p52) - 0x1.8p52;
}

/* The weight of the codes first..last by a measure of floats, exact. */
static inline int64_t dpfast_float_weight(const dpfast_measure *measure, int64_t first, int64_t last)
{
    return dpfast_below_index(measure->floats, last + 1 + measure->offset)
           - dpfast_below_index(measure->floats, first + measure->offset);
}

/* The weight of the codes first..last, exact. */
static inline int64_t dpfast_interval_weight(const dpfast_measure *measure, int64_t first, int64_t last)
{
    if (measure->floats)
        return dpfast_float_weight(measure, first, last);
    if (measure->table)
        return measure->table[last + 1] - measure->table[first];
    int64_t weight = measure->unit * (last - first + 1);
    double below = (double)(first + measure->offset - 1), up_to = (double)(last + measure->offset);
    for (const dpfast_part *part = measure->part; part < measure->part + measure->parts; part++) {
        below = dpfast_count(part, below);
        up_to = dpfast_count(part, up_to);
        weight += part->weight * (int64_t)(up_to - below);
    }
    return weight;
}

/* The weights of the intervals lower[t]..upper[t] as doubles, relative error <= 2^-46. */
DPFAST_CLONES static void dpfast_interval_weights(const dpfast_measure *measure, const int64_t *lower,
                                                  const int64_t *upper, double *weights, ptrdiff_t n)
{
    double below[DPFAST_MEASURE_BLOCK], up_to[DPFAST_MEASURE_BLOCK];
    if (measure->table || measure->floats) {
        for (ptrdiff_t t = 0; t < n; t++)
            weights[t] = (double)dpfast_interval_weight(measure, lower[t], upper[t]);
        return;
    }
    const double unit = (double)measure->unit, offset = (double)measure->offset;
    for (ptrdiff_t t = 0; t < n; t++)
        weights[t] = unit * (double)(upper[t] - lower[t] + 1);
    for (ptrdiff_t start = 0; start < n && measure->parts; start += DPFAST_MEASURE_BLOCK) {
        const ptrdiff_t count = n - start < DPFAST_MEASURE_BLOCK ? n - start : DPFAST_MEASURE_BLOCK;
        double *out = weights + start;
        for (ptrdiff_t t = 0; t < count; t++) {
            below[t] = (double)lower[start + t] + (offset - 1.0);
            up_to[t] = (double)upper[start + t] + offset;
        }
        for (const dpfast_part *part = measure->part; part < measure->part + measure->parts; part++) {
            const double factor = part->factor, shift = part->shift, weight = (double)part->weight;
            for (ptrdiff_t t = 0; t < count; t++) {
                below[t] = (below[t] * factor + shift + 0x1.8p52) - 0x1.8p52;
                up_to[t] = (up_to[t] * factor + shift + 0x1.8p52) - 0x1.8p52;
                out[t] += (up_to[t] - below[t]) * weight;
            }
        }
    }
}

/* The weight of the codes below each of n codes 0..last + 1, doubles, in place: exact if `total` is at most 2^52. */
DPFAST_CLONES static void dpfast_weigh_below(const dpfast_measure *measure, double *codes, ptrdiff_t n)
{
    double counts[DPFAST_MEASURE_BLOCK];
    if (measure->table) {
        for (ptrdiff_t t = 0; t < n; t++)
            codes[t] = (double)measure->table[(ptrdiff_t)codes[t]];
        return;
    }
    if (measure->floats) {
        const int64_t start = dpfast_below_index(measure->floats, measure->offset);
        for (ptrdiff_t t = 0; t < n; t++)
            codes[t] = (double)(dpfast_below_index(measure->floats, (int64_t)codes[t] + measure->offset) - start);
        return;
    }
    const double unit = (double)measure->unit, before = (double)(measure->offset - 1);
    for (ptrdiff_t start = 0; start < n; start += DPFAST_MEASURE_BLOCK) {
        const ptrdiff_t count = n - start < DPFAST_MEASURE_BLOCK ? n - start : DPFAST_MEASURE_BLOCK;
        double *weights = codes + start, none = before; /* counts of the codes below 0 */
        for (ptrdiff_t t = 0; t < count; t++) {
            counts[t] = weights[t] + before;
            weights[t] *= unit;
        }
        for (const dpfast_part *part = measure->part; part < measure->part + measure->parts; part++) {
            const double factor = part->factor, shift = part->shift, weight = (double)part->weight;
            none = dpfast_count(part, none);
            for (ptrdiff_t t = 0; t < count; t++) {
                counts[t] = (counts[t] * factor + shift + 0x1.8p52) - 0x1.8p52;
                weights[t] += (counts[t] - none) * weight;
            }
        }
    }
}

/* The code of multiple i of a part: ceil(i spacing - 1/2). */
static inline int64_t dpfast_multiple(const dpfast_measure *measure, const dpfast_part *part, int64_t i)
{
    const int64_t twice = 2 * part->numerator;
    return (2 * i * part->denominator - part->numerator + twice - 1) / twice - measure->offset;
}

/* Law: the code k of first..last with probability weight(k) / (the weight of first..last), given that `place` is uniform
 * below that weight. */
static int64_t dpfast_point_at(const dpfast_measure *measure, int64_t first, int64_t last, int64_t place)
{
    if (measure->floats)
        return dpfast_index_at(measure->floats, place + dpfast_below_index(measure->floats, first + measure->offset))
               - measure->offset;
    if (measure->table) {
        const int64_t *table = measure->table;
        place += table[first];
        while (first < last) {
            int64_t middle = first + (last - first) / 2;
            if (table[middle + 1] > place)
                last = middle;
            else
                first = middle + 1;
        }
        return first;
    }
    int64_t evenly = measure->unit * (last - first + 1);
    double below = (double)(first + measure->offset - 1), up_to = (double)(last + measure->offset);
    if (place < evenly)
        return first + place / measure->unit;
    place -= evenly;
    for (const dpfast_part *part = measure->part;; part++) {
        below = dpfast_count(part, below);
        up_to = dpfast_count(part, up_to);
        int64_t weight = part->weight * (int64_t)(up_to - below);
        if (place < weight)
            return dpfast_multiple(measure, part, (int64_t)below + 1 + place / part->weight);
        place -= weight;
    }
}

/* Law: the code k of first..last with probability weight(k) / (the weight of first..last): one word. */
static inline int64_t dpfast_draw_point(const dpfast_measure *measure, bitgen_t *source, int64_t first, int64_t last)
{
    uint64_t word = source->next_uint64(source->state);
    uint64_t weight = (uint64_t)dpfast_interval_weight(measure, first, last);
    return dpfast_point_at(measure, first, last, (int64_t)dpfast_below(source, word, weight));
}

/* ---- several intervals at once ---- */

#define DPFAST_TOGETHER 384
/* How many multiples of each part lie below each of DPFAST_TOGETHER intervals, and in it. */
typedef struct {
    double below[DPFAST_PARTS][DPFAST_TOGETHER], within[DPFAST_PARTS][DPFAST_TOGETHER];
} dpfast_interval_counts;

/* A code below 2^52 as a double, by operations that all processors have for vectors. */
static inline double dpfast_small_double(int64_t code)
{
    return dpfast_double((uint64_t)code | dpfast_bits(0x1p52)) - 0x1p52;
}

/* The doubles of dpfast_interval_weights for at most DPFAST_TOGETHER intervals of codes below 2^52, and the counts that
 * dpfast_counted_point needs. */
DPFAST_CLONES static void dpfast_counted_weights(const dpfast_measure *measure, const int64_t *lower,
                                                 const int64_t *upper, ptrdiff_t n, dpfast_interval_counts *counts,
                                                 double *weights)
{
    const double unit = (double)measure->unit, offset = (double)measure->offset;
    double below[DPFAST_TOGETHER], up_to[DPFAST_TOGETHER];
    if (measure->floats) {
        dpfast_interval_weights(measure, lower, upper, weights, n);
        return;
    }
    for (ptrdiff_t t = 0; t < n; t++) {
        const double first = dpfast_small_double(lower[t]), last = dpfast_small_double(upper[t]);
        weights[t] = unit * (last - first + 1.0);
        below[t] = first + (offset - 1.0);
        up_to[t] = last + offset;
    }
    for (ptrdiff_t j = 0; j < measure->parts; j++) {
        const double factor = measure->part[j].factor, shift = measure->part[j].shift;
        const double weight = (double)measure->part[j].weight;
        double *restrict below_each = counts->below[j], *restrict within = counts->within[j];
        for (ptrdiff_t t = 0; t < n; t++) {
            below[t] = (below[t] * factor + shift + 0x1.8p52) - 0x1.8p52;
            up_to[t] = (up_to[t] * factor + shift + 0x1.8p52) - 0x1.8p52;
            below_each[t] = below[t];
            within[t] = up_to[t] - below[t];
            weights[t] += within[t] * weight;
        }
    }
}

/* dpfast_draw_point for the interval of entry t. */
static int64_t dpfast_counted_point(const dpfast_measure *measure, bitgen_t *source,
                                    const dpfast_interval_counts *counts, int64_t first, int64_t last, ptrdiff_t t)
{
    if (measure->floats)
        return dpfast_draw_point(measure, source, first, last);
    const uint64_t word = source->next_uint64(source->state);
    const int64_t evenly = measure->unit * (last - first + 1);
    int64_t weight = evenly;
    for (ptrdiff_t j = 0; j < measure->parts; j++)
        weight += measure->part[j].weight * (int64_t)counts->within[j][t];
    int64_t place = (int64_t)dpfast_below(source, word, (uint64_t)weight);
    if (place < evenly)
        return first + place / measure->unit;
    place -= evenly;
    for (ptrdiff_t j = 0;; j++) {
        const dpfast_part *part = measure->part + j;
        weight = part->weight * (int64_t)counts->within[j][t];
        if (place < weight)
            return dpfast_multiple(measure, part, (int64_t)counts->below[j][t] + 1 + place / part->weight);
        place -= weight;
    }
}

/* Doubles side by side, whose operations are those of each by itself. */
#define DPFAST_LANES 4
#define DPFAST_MOST_POWERS 128
typedef double dpfast_lanes __attribute__((vector_size(8 * DPFAST_LANES)));

/* dpfast_power_sums for a measure of floats, at most DPFAST_MOST_POWERS of them. */
static void dpfast_float_sums(const dpfast_measure *measure, const int64_t *first, const int64_t *last,
                              const dpfast_lanes *whole, dpfast_lanes *sums, ptrdiff_t count)
{
    double recent[DPFAST_MOST_POWERS] = {0.0};
    for (ptrdiff_t l = 0; l < DPFAST_LANES; l++) {
        const int64_t low = first[l] + measure->offset, high = last[l] + measure->offset;
        dpfast_powers powers = {(double *)sums + l, recent, count, DPFAST_LANES, 0};
        if (low > high)
            continue;
        dpfast_add_magnitudes(measure->floats, high < 0 ? -high : 1, -low, (*whole)[l], &powers);
        dpfast_add_magnitudes(measure->floats, low > 0 ? low : 0, high, (*whole)[l], &powers);
        dpfast_settle(&powers);
    }
}

/* sums[k - 1] = sum of (weight(g) / whole)^k over the codes g of first..last, k = 1..count, with a relative error of at most
 * (k + 4) 2^-52, of floats (k + 128) 2^-52, with more than 28 digits (3 k / 2 + 128) 2^-52, for an interval in each lane; 0
 * for an empty one. docs/proofs/base-measures.md */
DPFAST_CLONES static void dpfast_power_sums(const dpfast_measure *measure, const int64_t *first, const int64_t *last,
                                            const dpfast_lanes *whole, dpfast_lanes *sums, ptrdiff_t count)
{
    dpfast_lanes below, up_to, left;
    for (ptrdiff_t k = 0; k < count; k++)
        sums[k] = (dpfast_lanes){0.0};
    for (ptrdiff_t l = 0; measure->table && l < DPFAST_LANES; l++)
        for (int64_t g = first[l]; g <= last[l]; g++) {
            const double share = (double)dpfast_interval_weight(measure, g, g) / (*whole)[l];
            double power = 1.0;
            for (ptrdiff_t k = 0; k < count; k++)
                sums[k][l] += power *= share;
        }
    if (measure->floats)
        dpfast_float_sums(measure, first, last, whole, sums, count);
    if (measure->table || measure->floats)
        return;
    for (ptrdiff_t l = 0; l < DPFAST_LANES; l++) {
        below[l] = (double)(first[l] + measure->offset - 1);
        up_to[l] = (double)(last[l] + measure->offset);
        left[l] = (double)(last[l] - first[l] + 1); /* the codes in the parts so far */
    }
    int64_t weight = measure->unit;
    for (ptrdiff_t j = 0; j <= measure->parts; j++) { /* the codes of one weight */
        dpfast_lanes next = {0.0};
        if (j < measure->parts) {
            const double factor = measure->part[j].factor, shift = measure->part[j].shift;
            below = (below * factor + shift + 0x1.8p52) - 0x1.8p52;
            up_to = (up_to * factor + shift + 0x1.8p52) - 0x1.8p52;
            next = up_to - below;
        }
        const dpfast_lanes share = (double)weight / *whole;
        dpfast_lanes powers = left - next;
        left = next;
        for (ptrdiff_t k = 0; k < count; k++)
            sums[k] += powers *= share;
        weight += j < measure->parts ? measure->part[j].weight : 0;
    }
}

/* The same for one interval. */
static void dpfast_powers_of(const dpfast_measure *measure, int64_t first, int64_t last, double whole, double *sums,
                             ptrdiff_t count)
{
    int64_t low[DPFAST_LANES], high[DPFAST_LANES];
    dpfast_lanes all, side_by_side[DPFAST_MOST_POWERS];
    for (ptrdiff_t l = 0; l < DPFAST_LANES; l++) {
        low[l] = first;
        high[l] = l ? first - 1 : last;
        all[l] = whole;
    }
    dpfast_power_sums(measure, low, high, &all, side_by_side, count);
    for (ptrdiff_t k = 0; k < count; k++)
        sums[k] = side_by_side[k][0];
}

#endif
