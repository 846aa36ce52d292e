/* The largest discounted gap between two ranks that move apart. docs/proofs/smooth-sensitivity.md
 *
 *     stretch = max over u, v >= 0 of  weights[v] * (weights[u] * (upper[u] - lower[v]))
 *
 * A row v is a maximum over lines in lower[v] whose slopes -weights[u] ascend with u; as v increases, lower[v]
 * decreases, so the best u does not increase: each level of a divide and conquer drops half of the columns. Rounding
 * may resolve a near tie wrongly, which costs a factor of at most 1 + 2^-52 per level. */
#ifndef DPFAST_GAPS_H
#define DPFAST_GAPS_H

#include <stddef.h>

#include "certified.h"

/* A double q, exp(-beta) + 2^-53 <= q <= exp(-beta) + 2^-45 min(beta, 1) + 2^-51: a product with it, rounded, is not below
 * the product with exp(-beta). */
static inline double dpfast_discount_up(double beta)
{
    return 1.0 - dpfast_one_minus_exp_neg(beta) * (1.0 - 0x1p-46) + 0x1p-52;
}

/* weights[0] = 1, weights[j + 1] >= exp(-beta) weights[j], while weights[j] * ratio > 1 and j < n; returns their number. */
static ptrdiff_t dpfast_gap_weights(double beta, double ratio, double *weights, ptrdiff_t n)
{
    double q = dpfast_discount_up(beta), weight = 1.0;
    ptrdiff_t j;
    for (j = 0; j < n && weight * ratio > 1.0; j++) {
        weights[j] = weight;
        weight *= q;
    }
    return j;
}

/* Rows first..last, whose best columns lie in left..right. `lower` is nonincreasing, `upper` is nondecreasing. */
static double dpfast_stretch(const double *lower, ptrdiff_t first, ptrdiff_t last, const double *upper, ptrdiff_t left,
                             ptrdiff_t right, const double *weights)
{
    double most = 0.0;
    while (first <= last) {
        ptrdiff_t middle = first + (last - first) / 2, best = left;
        double low = lower[middle], best_gap = -1.0, others;
        for (ptrdiff_t u = left; u <= right; u++) {
            double gap = weights[u] * (upper[u] - low);
            best = gap > best_gap ? u : best;
            best_gap = gap > best_gap ? gap : best_gap;
        }
        if (weights[middle] * best_gap > most)
            most = weights[middle] * best_gap;
        others = dpfast_stretch(lower, first, middle - 1, upper, best, right, weights);
        if (others > most)
            most = others;
        first = middle + 1;
        right = best;
    }
    return most;
}

#endif
