/* The nested-interval law, docs/proofs/nested-intervals.md: with q = exp(-rate), draw the level t with weight
 *
 *     (1 - q) q^t weight(box t)   for t < n,      q^n total   for t = n (anywhere),
 *
 * then a point of box t by the base measure. A point of score s lies in the boxes t >= s, whose weights sum to q^min(s, n)
 * times the weight of the point.
 */
#ifndef DPFAST_LEVELS_H
#define DPFAST_LEVELS_H

#include "measure.h"

/* Twice the error of cumulative / total: a weight has relative error 2^-50 (1 + y) + 2^-45, y <= rate n, and for y >
 * 127 the weight is below 2^63 e^-127 of the total. (rate n <= log(total / least) + 42 + rate by the choice of the window,
 * `least` the least weight of a point.) */
#define DPFAST_LEVEL_ERROR 0x1p-40

/* weights[t] times (1 - q) q^t for the levels 0..n-1; loss = 1 - q. */
DPFAST_CLONES static void dpfast_level_weights(double *weights, ptrdiff_t n, double rate, double loss)
{
    for (ptrdiff_t t = 0; t < n; t++)
        weights[t] = dpfast_exp_neg((double)t * rate) * weights[t] * loss;
}

/* cumulative[t] = sum of the weights of the levels 0..t, t = 0..n. */
static void dpfast_level_cumulative(const dpfast_measure *measure, const int64_t *lower, const int64_t *upper,
                                    double *cumulative, ptrdiff_t n, double rate)
{
    dpfast_sum sum = {0.0, 0.0};
    dpfast_interval_weights(measure, lower, upper, cumulative, n);
    dpfast_level_weights(cumulative, n, rate, dpfast_one_minus_exp_neg(rate));
    cumulative[n] = dpfast_exp_neg((double)n * rate) * (double)measure->total;
    for (ptrdiff_t t = 0; t <= n; t++) {
        cumulative[t] = dpfast_add(&sum, cumulative[t]);
        if (t && cumulative[t] < cumulative[t - 1])
            cumulative[t] = cumulative[t - 1];
    }
}

/* lower[t] and upper[t], least and greatest of max(0, high[-a] - low[b]) and of high[a] - low[-b] over a + b = t, for the
 * levels t = 0..n-1; low and high point to the middles of 2n - 1 sorted codes. `scratch` holds n. O(n^2). */
DPFAST_CLONES static void dpfast_difference_ranges(const int64_t *low, const int64_t *high, int64_t *lower, int64_t *upper,
                                                   int64_t *scratch, ptrdiff_t n)
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
