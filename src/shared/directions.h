/* Directions of R^d from public seeds, and the half-space bit of a vector. docs/proofs/reflection.md
 *
 * This file decides no privacy event: directions do not depend on data, and the data enter only through a sign, which an
 * exact coin keeps or flips. Only + - * / and square roots in a fixed order, so every machine computes the same bits.
 */
#ifndef DPFAST_DIRECTIONS_H
#define DPFAST_DIRECTIONS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "clones.h"
#include "certified.h"
#include "mix.h"

#define DPFAST_LANES 8 /* partial sums of a reduction */

/* Pairs of independent standard normals (Box and Muller) at out[i] and out[i + pairs], from one mixed word each: the
 * upper 32 bits give the radius, the lower 32 the angle, as a swap, a sign and an angle in (-pi / 4, pi / 4). */
DPFAST_CLONES static void dpfast_normals(uint64_t seed, double *out, ptrdiff_t pairs)
{
    uint64_t base = dpfast_mix(seed + DPFAST_GOLDEN);
    for (ptrdiff_t i = 0; i < pairs; i++) {
        uint64_t w = dpfast_mix(base + ((uint64_t)i + 1) * DPFAST_GOLDEN);
        double unused;
        double radius = __builtin_sqrt(2.0 * dpfast_neg_log_word((w & 0xFFFFFFFF00000000u) | 0x80000000u, &unused));
        double turn = dpfast_double((w & 0x3FFFFFFFu) | 0x4330000000000000u) - 0x1p52 - (0x1p29 - 0.5);
        double a = turn * 0x1.921fb54442d18p-30; /* times pi / 2 / 2^30 */
        double v = a * a;
        double s = 1.0 / 6227020800.0, c = 1.0 / 479001600.0;

        s = s * v - 1.0 / 39916800.0;
        s = s * v + 1.0 / 362880.0;
        s = s * v - 1.0 / 5040.0;
        s = s * v + 1.0 / 120.0;
        s = s * v - 1.0 / 6.0;
        s = (s * v + 1.0) * a;
        c = c - v * (1.0 / 87178291200.0);
        c = c * v - 1.0 / 3628800.0;
        c = c * v + 1.0 / 40320.0;
        c = c * v - 1.0 / 720.0;
        c = c * v + 1.0 / 24.0;
        c = c * v - 0.5;
        c = c * v + 1.0;
        uint64_t x = dpfast_bits(radius * c) ^ ((w & 0x40000000u) << 33), y = dpfast_bits(radius * s);
        uint64_t swapped = (x ^ y) & -(w >> 31 & 1);
        out[i] = dpfast_double(x ^ swapped);
        out[i + pairs] = dpfast_double(y ^ swapped);
    }
}

DPFAST_CLONES static double dpfast_dot(const double *a, const double *b, ptrdiff_t n)
{
    double sums[DPFAST_LANES] = {0};
    ptrdiff_t i = 0;
    for (; i + DPFAST_LANES <= n; i += DPFAST_LANES)
        for (int l = 0; l < DPFAST_LANES; l++)
            sums[l] += a[i + l] * b[i + l];
    for (; i < n; i++)
        sums[0] += a[i] * b[i];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/* The direction that a seed defines, not normalised, in a buffer of d rounded up to even. Returns its length, which
 * is never 0: the radius is not 0, and no multiple of the angle's unit lies on an axis. In one dimension it is +1 or
 * -1. */
static inline double dpfast_direction(uint64_t seed, double *out, ptrdiff_t d)
{
    dpfast_normals(seed, out, (d + 1) / 2);
    if (d == 1)
        out[0] = out[0] < 0.0 ? -1.0 : 1.0;
    return __builtin_sqrt(dpfast_dot(out, out, d));
}

/* The largest magnitude, infinity included, NaN if there is one. */
DPFAST_CLONES static double dpfast_largest(const double *x, ptrdiff_t n)
{
    uint64_t most = 0; /* magnitudes order like their bits, NaN above all */
    for (ptrdiff_t i = 0; i < n; i++) {
        uint64_t bits = dpfast_bits(x[i]) & 0x7FFFFFFFFFFFFFFFu;
        most = most > bits ? most : bits;
    }
    return dpfast_double(most);
}

DPFAST_CLONES static void dpfast_scale(const double *x, double factor, double *out, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = x[i] * factor;
}

/* The record of a row: a multiple of it in `out`, whose squares do not overflow, and its length in units of the radius, at
 * most 1. A row with NaN is the zero vector; a row with infinities is the limit: +-1 for these, 0 for the others. */
static inline double dpfast_record(const double *x, ptrdiff_t d, double inverse, double *out)
{
    double largest = dpfast_largest(x, d), factor = 1.0, length;
    if (largest < INFINITY) {
        int exponent;
        frexp(largest, &exponent);
        factor = ldexp(1.0, exponent < -1000 ? 1000 : -exponent);
        dpfast_scale(x, factor, out, d);
    } else {
        for (ptrdiff_t i = 0; i < d; i++)
            out[i] = largest != largest ? 0.0 : x[i] == INFINITY ? 1.0 : x[i] == -INFINITY ? -1.0 : 0.0;
    }
    length = __builtin_sqrt(dpfast_dot(out, out, d));
    length = largest == INFINITY ? 1.0 : length / factor * inverse;
    return length < 1.0 ? length : 1.0;
}

/* Law, over a uniform word: whether a record of this length, at most 1, is rounded to the sphere on its own side rather
 * than to the antipode: probability (1 + length) / 2, in units of 2^-63. */
static inline int dpfast_own_side(uint64_t word, double length)
{
    return word >> 1 < (uint64_t)((1.0 + length) * 0x1p62);
}

/* Whether a vector's square times factor^2 lies between two bounds; false if the vector has a NaN or an infinity. */
static inline int dpfast_has_length(const double *x, ptrdiff_t d, double factor, double least, double most)
{
    enum { ABREAST = 32 }; /* enough independent additions that none waits for the previous one */
    double sums[ABREAST] = {0}, square;
    ptrdiff_t i = 0;
    for (; i + ABREAST <= d; i += ABREAST)
        for (int l = 0; l < ABREAST; l++)
            sums[l] += (x[i + l] * factor) * (x[i + l] * factor);
    for (int l = 0; l < 16; l++)
        sums[l] += sums[l + 16];
    for (int l = 0; l < 8; l++)
        sums[l] += sums[l + 8];
    square = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; i < d; i++)
        square += (x[i] * factor) * (x[i] * factor);
    return square >= least && square <= most;
}

DPFAST_CLONES static void dpfast_have_length(const double *rows, ptrdiff_t n, ptrdiff_t d, double factor, double least,
                                             double most, uint8_t *right)
{
    for (ptrdiff_t i = 0; i < n; i++)
        right[i] = (uint8_t)dpfast_has_length(rows + i * d, d, factor, least, most);
}

/* sums += the rows of that length, in order; returns their number. If four rows in a row qualify, which is the common case,
 * sums are read and written once for all four. */
DPFAST_CLONES static ptrdiff_t dpfast_add_vectors(const double *rows, ptrdiff_t n, ptrdiff_t d, double factor,
                                                  double least, double most, double *restrict sums)
{
    ptrdiff_t added = 0;
    for (ptrdiff_t i = 0; i < n; i += 4) {
        const double *a = rows + i * d;
        int right[4], count = 0;
        for (int r = 0; r < 4; r++)
            count += right[r] = i + r < n && dpfast_has_length(a + r * d, d, factor, least, most);
        if (count == 4) {
            const double *b = a + d, *c = b + d, *e = c + d;
            for (ptrdiff_t j = 0; j < d; j++)
                sums[j] = (((sums[j] + a[j]) + b[j]) + c[j]) + e[j];
        } else {
            for (int r = 0; r < 4; r++)
                for (ptrdiff_t j = 0; j < d && right[r]; j++)
                    sums[j] += a[r * d + j];
        }
        added += count;
    }
    return added;
}

#endif
