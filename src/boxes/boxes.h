/* Volumes of nested boxes in d dimensions, and the choice of a level by them: docs/proofs/nested-boxes.md
 *
 * A volume is a product of d widths, of up to 63 bits each, kept as mantissa * 2^exponent with the mantissa in [1, 2): d
 * products and as many conversions, each correctly rounded, hence a relative error of at most d 2^-52 (1 + d 2^-52).
 */
#ifndef DPFAST_BOXES_H
#define DPFAST_BOXES_H

#include "draws.h"
#include "grid.h"

/* volume *= width, width >= 1. */
static inline void dpfast_grow(double *mantissa, int64_t *exponent, double width)
{
    uint64_t bits = dpfast_bits(*mantissa * width);
    *exponent += (int64_t)(bits >> 52) - 1023;
    *mantissa = dpfast_double((bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u);
}

/* One more column of n boxes lower[t]..upper[t]. */
DPFAST_CLONES static void dpfast_grow_by_ranges(const int64_t *restrict lower, const int64_t *restrict upper,
                                                double *restrict mantissa, int64_t *restrict exponent, ptrdiff_t n)
{
    for (ptrdiff_t t = 0; t < n; t++)
        dpfast_grow(mantissa + t, exponent + t, dpfast_from_word((uint64_t)(upper[t] - lower[t]) + 1));
}

/* One more column of n boxes: from the codes falling[-t] - radius to rising[t] + radius, kept inside 0..last. Codes are
 * integers below 2^52, so all differences are exact. */
DPFAST_CLONES static void dpfast_grow_by_codes(const double *falling, const double *rising, double radius, double last,
                                               double *restrict mantissa, int64_t *restrict exponent, ptrdiff_t n)
{
    for (ptrdiff_t t = 0; t < n; t++) {
        double low = falling[-t] - radius, high = rising[t] + radius;
        low = low > 0.0 ? low : 0.0;
        high = high < last ? high : last;
        dpfast_grow(mantissa + t, exponent + t, high - low + 1.0);
    }
}

DPFAST_CLONES static void dpfast_encode_in_place(const dpfast_grid *g, double *x, ptrdiff_t n)
{
    const double lower = g->lower, upper = g->upper, step = g->step, missing = g->missing, first = g->first;
    for (ptrdiff_t i = 0; i < n; i++)
        x[i] = dpfast_code(x[i], lower, upper, step, missing, first);
}

/* cumulative[t] = sum of the weights of the levels 0..t, up to one factor, t = 0..n - 1: level t < n - 1 has weight
 * (1 - q) q^t volume, the last q^t volume, q = exp(-rate). Returns twice the error of cumulative / total.
 *
 * y[t] = t rate - exponent log 2 is taken relative to the level s where it is least: its error is 2^-51 times `far`, the
 * greatest |t - s| rate + |exponent - exponent of s| log 2 of the levels that weigh 2^-100 of the total. */
static double dpfast_box_cumulative(const double *mantissa, const int64_t *exponent, double *cumulative, ptrdiff_t n,
                                    double rate, ptrdiff_t columns)
{
    const double log2 = 0x1.62e42fefa39efp-1, loss = dpfast_one_minus_exp_neg(rate);
    dpfast_sum sum = {0.0, 0.0};
    ptrdiff_t s = 0;
    double least = INFINITY, far = 0.0, total = 0.0;
    for (ptrdiff_t t = 0; t < n; t++) {
        double y = (double)t * rate - (double)exponent[t] * log2;
        s = y < least ? t : s;
        least = y < least ? y : least;
    }
    for (ptrdiff_t t = 0; t < n; t++) {
        double y = (double)(t - s) * rate - (double)(exponent[t] - exponent[s]) * log2;
        y = y > -1.0 ? y + 1.0 : 0.0;
        cumulative[t] = dpfast_exp_neg(y) * mantissa[t] * (t < n - 1 ? loss : 1.0);
        total += cumulative[t];
    }
    for (ptrdiff_t t = 0; t < n; t++) {
        double distance =
            __builtin_fabs((double)(t - s) * rate) + __builtin_fabs((double)(exponent[t] - exponent[s]) * log2);
        if (cumulative[t] > total * 0x1p-100)
            far = distance > far ? distance : far;
        cumulative[t] = dpfast_add(&sum, cumulative[t]);
        if (t && cumulative[t] < cumulative[t - 1])
            cumulative[t] = cumulative[t - 1];
    }
    return 0x1p-40 + 0x1p-49 * ((double)columns + far + 2.0);
}

/* y = matrix x for a tile of `count` records; x and y hold one row of `count` numbers for each coordinate. Every
 * record goes through the same operations in the same order, so the result for one does not depend on the others. */
DPFAST_CLONES static void dpfast_transform(const double *matrix, const double *restrict x, double *restrict y,
                                           ptrdiff_t d, ptrdiff_t count, ptrdiff_t stride)
{
    for (ptrdiff_t i = 0; i < d; i++) {
        double *restrict out = y + i * stride;
        for (ptrdiff_t k = 0; k < count; k++)
            out[k] = 0.0;
        for (ptrdiff_t j = 0; j < d; j++) {
            const double factor = matrix[i * d + j];
            const double *in = x + j * count;
            for (ptrdiff_t k = 0; k < count; k++)
                out[k] += factor * in[k];
        }
    }
}

#endif
