/* The slopes of the lines through pairs of records. docs/proofs/theil-sen.md */
#ifndef DPFAST_SLOPES_H
#define DPFAST_SLOPES_H

#include <stddef.h>
#include <stdint.h>

#include "clones.h"

/* Which end stands for the missing slope of a public index: the leading bit of a Weyl sequence, which takes both values
 * equally often in every arithmetic progression of indices, so that missing values at regular places are balanced. */
static inline uint64_t slopes_end(uint64_t index)
{
    return (index + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 63;
}

/* The slopes of the pairs (a + k, b - k) of records, k = 0..count-1, with the indices from `index` on. One without a
 * slope (equal or infinite x, NaN) gets `lower` or `upper`. */
DPFAST_CLONES
static void slopes_between(const double *x, const double *y, ptrdiff_t a, ptrdiff_t b, ptrdiff_t count, uint64_t index,
                           double lower, double upper, double *restrict out)
{
    for (ptrdiff_t k = 0; k < count; k++) {
        const double dx = x[a + k] - x[b - k], dy = y[a + k] - y[b - k];
        const double slope = dy / dx, missing = slopes_end(index + (uint64_t)k) ? upper : lower;
        /* dx - dx is 0 for a finite dx, else NaN */
        out[k] = dx != 0.0 && dx - dx == 0.0 && slope == slope ? slope : missing;
    }
}

/* Matching `turn` of the round-robin schedule: the pairs (turn + i, turn - i) modulo m, i = 1..(m-1)/2, m the greatest
 * odd number up to n; for even n then (turn, n - 1). `index` is that of the first pair. */
static void slopes_of_matching(const double *x, const double *y, ptrdiff_t n, ptrdiff_t turn, uint64_t index,
                               double lower, double upper, double *out)
{
    const ptrdiff_t m = n % 2 ? n : n - 1, half = (m - 1) / 2;
    for (ptrdiff_t i = 1, count; i <= half; i += count) {
        const ptrdiff_t a = (turn + i) % m, b = (turn + m - i) % m;
        count = half - i + 1; /* until one of the two runs over an end of 0..m-1 */
        if (count > m - a)
            count = m - a;
        if (count > b + 1)
            count = b + 1;
        slopes_between(x, y, a, b, count, index + (uint64_t)(i - 1), lower, upper, out + i - 1);
    }
    if (n % 2 == 0)
        slopes_between(x, y, turn, n - 1, 1, index + (uint64_t)half, lower, upper, out + half);
}

#endif
