/* Trigonometric sums s(u) = a_0 + sum_l (a_l cos(l w u) + b_l sin(l w u)) by Clenshaw's recurrence, several points at a
 * time. They are evaluated only after the release: doubles, without private data. */
#ifndef DPFAST_SERIES_H
#define DPFAST_SERIES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "clones.h"

#define DPFAST_LANES 8

/* The recurrence for 8 points, given the cosine and the sine of w u. */
DPFAST_CLONES static void dpfast_clenshaw(const double *a, const double *b, ptrdiff_t terms, const double *cosine,
                                          const double *sine, double *out)
{
    double p[DPFAST_LANES] = {0}, before_p[DPFAST_LANES] = {0};
    double r[DPFAST_LANES] = {0}, before_r[DPFAST_LANES] = {0};
    for (ptrdiff_t l = terms; l > 0; l--)
        for (int i = 0; i < DPFAST_LANES; i++) {
            double next_p = a[l] + 2 * cosine[i] * p[i] - before_p[i];
            double next_r = b[l] + 2 * cosine[i] * r[i] - before_r[i];
            before_p[i] = p[i], p[i] = next_p;
            before_r[i] = r[i], r[i] = next_r;
        }
    for (int i = 0; i < DPFAST_LANES; i++)
        out[i] = a[0] + cosine[i] * p[i] - before_p[i] + sine[i] * r[i];
}

/* s at n points. a and b hold terms + 1 numbers; b[0] is not read. */
static void dpfast_series(const double *a, const double *b, ptrdiff_t terms, double w, const double *u, double *out,
                          ptrdiff_t n)
{
    for (ptrdiff_t start = 0; start < n; start += DPFAST_LANES) {
        ptrdiff_t lanes = n - start < DPFAST_LANES ? n - start : DPFAST_LANES;
        double cosine[DPFAST_LANES] = {0}, sine[DPFAST_LANES] = {0}, sum[DPFAST_LANES];
        for (ptrdiff_t i = 0; i < lanes; i++) {
            cosine[i] = cos(w * u[start + i]);
            sine[i] = sin(w * u[start + i]);
        }
        dpfast_clenshaw(a, b, terms, cosine, sine, sum);
        for (ptrdiff_t i = 0; i < lanes; i++)
            out[start + i] = sum[i];
    }
}

/* The node of a code: floor(code * multiplier / 2^63), multiplier = floor(2^63 nodes / size). Below `nodes` for every
 * code below `size`; the code itself where nodes == size. */
static inline ptrdiff_t dpfast_node(int64_t code, uint64_t multiplier)
{
    return (ptrdiff_t)(((unsigned __int128)code * multiplier) >> 63);
}

/* The code at a position in [0, 1), given as a word: floor(position * size / 2^64). */
static inline int64_t dpfast_code_at(uint64_t position, uint64_t size)
{
    return (int64_t)(((unsigned __int128)position * size) >> 64);
}

#endif
