/* Logistic regressions of one block in single precision, until doubles are needed. docs/proofs/block-estimates.md
 *
 * Columns are scaled by powers of two to magnitudes of at most FITS_SPAN and rounded to floats, in pairs of tiles. X'WX is
 * a sum of floats at every step, because its errors only slow Newton's method down; the score is one as long as its own do
 * not matter. Floats are summed in eight lanes, in a fixed order, and after FITS_FLUSH pairs lanes are added to doubles.
 */
#ifndef DPFAST_SINGLES_H
#define DPFAST_SINGLES_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "clones.h"
#include "fits.h"
#include "tiles.h"

#define FITS_FLUSH 32
#define FITS_SINGLE_WIDE 4   /* columns that FITS_PANEL others are multiplied by at once */
#define FITS_LEAST 0x1p-60f  /* of a diagonal entry of X'WX of scaled columns: products of floats are not denormal */
#define FITS_GREATEST 0x1p50 /* of the inverse of its factor, whose products with rows then have finite squares */

typedef float fits_floats __attribute__((vector_size(4 * 2 * FITS_LANES), may_alias));
typedef float fits_four __attribute__((vector_size(16), may_alias));
typedef float fits_sixteen __attribute__((vector_size(64), aligned(4), may_alias)); /* rows, each by itself */

/* The floats again if those of the first scales are too great, or the columns were divided. */
static void fits_narrow_tiles(struct fits_room *room)
{
    const double *greatest = room->sizes + room->padded + 1;
    int again = 0;
    for (ptrdiff_t j = 0; j < room->parameters; j++)
        again |= room->exponent[j] != 0 || !(greatest[j] < FITS_SPAN * room->scale[j]);
    if (!again)
        return;
    for (ptrdiff_t j = 0; j < room->parameters; j++)
        room->scale[j] = fits_scale(greatest[j], room->exponent[j]);
    for (ptrdiff_t t = 0; t < room->count; t++)
        fits_narrow_tile(room, t);
}

/* eta = X beta over one tile; beta is that of the scaled columns. */
FITS_INLINE void fits_single_predictor(const float *tile, const float *beta, ptrdiff_t padded, double *eta)
{
    fits_floats sums[FITS_ROWS / 8] = {0};
    for (ptrdiff_t j = 0; j < padded; j++)
        for (int k = 0; k < FITS_ROWS / 8; k++)
            sums[k] += beta[j] * *(const fits_floats *)(tile + j * FITS_PAIR + 8 * k);
    for (ptrdiff_t i = 0; i < FITS_ROWS; i++)
        eta[i] = ((const float *)sums)[i];
}

/* out[r stride + k] += the product, over a pair, of columns u_r and x_k, in lanes: first the even, then the odd eights of
 * rows. */
FITS_INLINE void fits_add_some_singles(const float *u, const int rows, const float *x, const int width,
                                       fits_floats *out, ptrdiff_t stride)
{
    for (ptrdiff_t first = 0; first < 16; first += 8) {
        fits_floats sums[FITS_PANEL][FITS_SINGLE_WIDE] = {0};
        for (ptrdiff_t i = first; i < FITS_PAIR; i += 16) {
            const fits_floats u0 = *(const fits_floats *)(u + i);
            const fits_floats u1 = *(const fits_floats *)(u + (rows - 1) * FITS_PAIR + i);
            for (int k = 0; k < width; k++) {
                const fits_floats xk = *(const fits_floats *)(x + k * FITS_PAIR + i);
                sums[0][k] += u0 * xk;
                if (rows > 1)
                    sums[1][k] += u1 * xk;
            }
        }
        for (int r = 0; r < rows; r++)
            for (int k = 0; k < width; k++)
                out[r * stride + k] += sums[r][k];
    }
}

/* The same for any even number of columns x. */
FITS_INLINE void fits_add_singles(const float *u, const int rows, const float *x, ptrdiff_t columns, fits_floats *out,
                                  ptrdiff_t stride)
{
    for (; columns >= FITS_SINGLE_WIDE; columns -= FITS_SINGLE_WIDE) {
        fits_add_some_singles(u, rows, x, FITS_SINGLE_WIDE, out, stride);
        x += FITS_SINGLE_WIDE * FITS_PAIR, out += FITS_SINGLE_WIDE;
    }
    if (columns)
        fits_add_some_singles(u, rows, x, 2, out, stride);
}

#if DPFAST_AVX512
#include <immintrin.h>

#define FITS_SINGLES 6 /* columns at once: 12 sums stay in registers */

/* The same for two columns u, whose even and odd eights share a vector. */
DPFAST_512 FITS_INLINE void fits_add_wide(const float *u, const float *x, const int width, fits_floats *out,
                                          ptrdiff_t stride)
{
    __m512 sums[2][FITS_SINGLES];
    for (int k = 0; k < width; k++)
        sums[0][k] = sums[1][k] = _mm512_setzero_ps();
    for (ptrdiff_t i = 0; i < FITS_PAIR; i += 16) {
        const __m512 u0 = _mm512_loadu_ps(u + i), u1 = _mm512_loadu_ps(u + FITS_PAIR + i);
        for (int k = 0; k < width; k++) {
            __m512 xk = _mm512_loadu_ps(x + k * FITS_PAIR + i);
            __asm__("" : "+v"(xk)); /* one load for two products */
            sums[0][k] = _mm512_add_ps(sums[0][k], _mm512_mul_ps(u0, xk));
            sums[1][k] = _mm512_add_ps(sums[1][k], _mm512_mul_ps(u1, xk));
        }
    }
    for (int r = 0; r < 2; r++)
        for (int k = 0; k < width; k++) {
            float *to = (float *)(out + r * stride + k);
            const __m256 odd = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sums[r][k]), 1));
            const __m256 even = _mm256_add_ps(_mm256_loadu_ps(to), _mm512_castps512_ps256(sums[r][k]));
            _mm256_storeu_ps(to, _mm256_add_ps(even, odd));
        }
}

DPFAST_512 static void fits_add_wide_singles(const float *u, const float *x, ptrdiff_t columns, fits_floats *out,
                                             ptrdiff_t stride)
{
    for (; columns >= FITS_SINGLES; columns -= FITS_SINGLES) {
        fits_add_wide(u, x, FITS_SINGLES, out, stride);
        x += FITS_SINGLES * FITS_PAIR, out += FITS_SINGLES;
    }
    if (columns == 4)
        fits_add_wide(u, x, 4, out, stride);
    else if (columns)
        fits_add_wide(u, x, 2, out, stride);
}
#endif

/* sums += X'WX over a pair of tiles, the upper triangle, in lanes. */
FITS_INLINE void fits_add_single_hessian(const float *tile, const float *w, ptrdiff_t padded, float *panel,
                                         fits_floats *sums)
{
    for (ptrdiff_t j = 0; j < padded; j += FITS_PANEL) {
        const float *x = tile + j * FITS_PAIR;
        for (ptrdiff_t i = 0; i < FITS_PAIR; i++)
            panel[i] = w[i] * x[i], panel[i + FITS_PAIR] = w[i] * x[i + FITS_PAIR];
#if DPFAST_AVX512
        if (dpfast_has_avx512()) {
            fits_add_wide_singles(panel, x, padded - j, sums + j * padded + j, padded);
            continue;
        }
#endif
        fits_add_singles(panel, FITS_PANEL, x, padded - j, sums + j * padded + j, padded);
    }
}

/* By address, because passing vectors by value depends on the target. */
FITS_INLINE double fits_across(const fits_lanes *sum)
{
    return ((*sum)[0] + (*sum)[1]) + ((*sum)[2] + (*sum)[3]);
}

/* out += the lanes of `sums`, which are cleared. */
FITS_INLINE void fits_flush(fits_floats *sums, ptrdiff_t count, double *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        const fits_four *half = (const fits_four *)(sums + i);
        fits_lanes sum = __builtin_convertvector(half[0], fits_lanes) + __builtin_convertvector(half[1], fits_lanes);
        out[i] += fits_across(&sum);
        memset(&sums[i], 0, sizeof sums[i]);
    }
}

/* The inverse of the factor for scaled columns; returns 0 if floats cannot hold it. */
static int fits_narrow_inverse(struct fits_room *room)
{
    const ptrdiff_t padded = room->padded;
    int fits = 1;
    for (ptrdiff_t j = 0; j < padded; j++)
        for (ptrdiff_t k = 0; k < padded; k++) {
            double value = room->inverse[j * padded + k] * room->scale[k];
            fits &= fabs(value) < FITS_GREATEST;
            room->narrow[j * padded + k] = (float)value;
        }
    return fits;
}

/* h = x . H^-1 x of the rows of a tile, four vectors of rows at once, of some type. */
#define FITS_LEVERAGES(vector) \
    const ptrdiff_t width = sizeof(vector) / sizeof(float); \
    for (ptrdiff_t i = 0; i < FITS_ROWS; i += 4 * width) { \
        vector squares[4] = {0}; \
        for (ptrdiff_t j = 0; j < padded; j += FITS_PANEL) { \
            const float *row = inverse + j * padded; \
            vector a[4] = {0}, b[4] = {0}; \
            for (ptrdiff_t k = 0; k < j + FITS_PANEL; k++) \
                for (int l = 0; l < 4; l++) { \
                    const vector x = *(const vector *)(tile + k * FITS_PAIR + i + width * l); \
                    a[l] += row[k] * x, b[l] += row[padded + k] * x; \
                } \
            for (int l = 0; l < 4; l++) \
                squares[l] += a[l] * a[l] + b[l] * b[l]; \
        } \
        for (ptrdiff_t l = 0; l < 4 * width; l++) \
            h[i + l] = ((const float *)squares)[l]; \
    }

FITS_INLINE void fits_some_leverages(const float *tile, const float *inverse, ptrdiff_t padded, double *h)
{
    FITS_LEVERAGES(fits_floats)
}

#if DPFAST_AVX512
DPFAST_512 static void fits_wide_leverages(const float *tile, const float *inverse, ptrdiff_t padded, double *h)
{
    FITS_LEVERAGES(fits_sixteen)
}
#endif

FITS_INLINE void fits_single_leverages(const float *tile, const float *inverse, ptrdiff_t padded, double *h)
{
#if DPFAST_AVX512
    if (dpfast_has_avx512()) {
        fits_wide_leverages(tile, inverse, padded, h);
        return;
    }
#endif
    fits_some_leverages(tile, inverse, padded, h);
}

#endif
