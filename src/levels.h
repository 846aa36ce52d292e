/* The nested-interval law, docs/proofs/nested-intervals.md: with q = exp(-rate), draw the level t with weight
 *
 *     (1 - q) q^t widths[t]   for t < n,      q^n total   for t = n (anywhere),
 *
 * then a uniform point of box t. A point of score s lies in the boxes t >= s, whose weights per point sum to q^min(s, n).
 */
#ifndef DPFAST_LEVELS_H
#define DPFAST_LEVELS_H

#include "draws.h"

/* Twice the error of cumulative / total: a weight is right to 2^-50 (1 + y) + 2^-46, y <= rate n, and where y > 127 the
 * weight is below 2^52 e^-127 of the total. (rate n <= log(total) + 42 + rate by the choice of the window.) */
#define DPFAST_LEVEL_ERROR 0x1p-40

/* The weights of the levels 0..n-1; loss = 1 - q. */
DPFAST_CLONES static void dpfast_level_weights(const int64_t *widths, double *weights, ptrdiff_t n, double rate, double loss)
{
    for (ptrdiff_t t = 0; t < n; t++)
        weights[t] = dpfast_exp_neg((double)t * rate) * (double)widths[t] * loss;
}

/* cumulative[t] = sum of the weights of the levels 0..t, t = 0..n. */
static void dpfast_level_cumulative(const int64_t *widths, double *cumulative, ptrdiff_t n, double rate, double total)
{
    dpfast_sum sum = {0.0, 0.0};
    dpfast_level_weights(widths, cumulative, n, rate, dpfast_one_minus_exp_neg(rate));
    cumulative[n] = dpfast_exp_neg((double)n * rate) * total;
    for (ptrdiff_t t = 0; t <= n; t++) {
        cumulative[t] = dpfast_add(&sum, cumulative[t]);
        if (t && cumulative[t] < cumulative[t - 1])
            cumulative[t] = cumulative[t - 1];
    }
}

#endif
