/* Products of the columns of tiles, in doubles. docs/proofs/block-estimates.md */
#ifndef DPFAST_PRODUCTS_H
#define DPFAST_PRODUCTS_H

#include <stddef.h>
#include <string.h>

#include "clones.h"
#include "fits.h"
#include "tiles.h"

#define FITS_WIDE 4 /* columns that FITS_PANEL others are multiplied by at once: 8 sums stay in registers */

/* eta = X beta over one tile. */
FITS_INLINE void fits_predictor(const double *tile, const double *beta, ptrdiff_t padded, double *eta)
{
    for (ptrdiff_t i = 0; i < FITS_ROWS; i += 32) {
        fits_rows sums[8] = {0};
        for (ptrdiff_t j = 0; j < padded; j++)
            for (int k = 0; k < 8; k++)
                sums[k] += beta[j] * *(const fits_rows *)(tile + j * FITS_ROWS + i + 4 * k);
        memcpy(eta + i, sums, sizeof sums);
    }
}

/* out[r stride + k] += the product, over one tile, of columns u_r and x_k, in lanes. */
FITS_INLINE void fits_add_some(const double *u, const int rows, const double *x, const int width, fits_lanes *out,
                               ptrdiff_t stride)
{
    fits_lanes sums[FITS_PANEL][FITS_WIDE];
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < width; k++)
            sums[r][k] = out[r * stride + k];
    for (ptrdiff_t i = 0; i < FITS_ROWS; i += FITS_LANES) {
        fits_lanes u0 = *(const fits_lanes *)(u + i), u1 = *(const fits_lanes *)(u + (rows - 1) * FITS_ROWS + i);
        for (int k = 0; k < width; k++) {
            fits_lanes xk = *(const fits_lanes *)(x + k * FITS_ROWS + i);
            sums[0][k] += u0 * xk;
            if (rows > 1)
                sums[1][k] += u1 * xk;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < width; k++)
            out[r * stride + k] = sums[r][k];
}

/* The same for any even number of columns x, in parts of 2 to FITS_WIDE, of sizes that differ by at most 1. */
FITS_INLINE void fits_add_products(const double *u, const int rows, const double *x, ptrdiff_t columns, fits_lanes *out,
                                   ptrdiff_t stride)
{
    ptrdiff_t parts = (columns + FITS_WIDE - 1) / FITS_WIDE;
    for (; parts; parts--) {
        ptrdiff_t width = (columns + parts - 1) / parts;
        switch (width) {
        case 2: fits_add_some(u, rows, x, 2, out, stride); break;
        case 3: fits_add_some(u, rows, x, 3, out, stride); break;
        default: fits_add_some(u, rows, x, 4, out, stride);
        }
        columns -= width, x += width * FITS_ROWS, out += width;
    }
}

#if DPFAST_AVX512
#include <immintrin.h>

#define FITS_PAIRS 6 /* pairs of columns at once: 12 sums stay in registers */

/* The same for two columns u and `pairs` pairs of columns x, whose lanes share a vector. */
DPFAST_512 FITS_INLINE void fits_add_pairs(const double *u, const double *x, const int pairs, fits_lanes *out,
                                           ptrdiff_t stride)
{
    __m512d first[FITS_PAIRS], second[FITS_PAIRS];
    for (int k = 0; k < pairs; k++) {
        first[k] = _mm512_loadu_pd(out + 2 * k);
        second[k] = _mm512_loadu_pd(out + stride + 2 * k);
    }
    for (ptrdiff_t i = 0; i < FITS_ROWS; i += FITS_LANES) {
        const __m512d u0 = _mm512_broadcast_f64x4(_mm256_loadu_pd(u + i));
        const __m512d u1 = _mm512_broadcast_f64x4(_mm256_loadu_pd(u + FITS_ROWS + i));
        for (int k = 0; k < pairs; k++) {
            const double *left = x + 2 * k * FITS_ROWS + i;
            const __m512d both =
                _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(left)), _mm256_loadu_pd(left + FITS_ROWS), 1);
            first[k] = _mm512_add_pd(first[k], _mm512_mul_pd(u0, both));
            second[k] = _mm512_add_pd(second[k], _mm512_mul_pd(u1, both));
        }
    }
    for (int k = 0; k < pairs; k++) {
        _mm512_storeu_pd(out + 2 * k, first[k]);
        _mm512_storeu_pd(out + stride + 2 * k, second[k]);
    }
}

DPFAST_512 static void fits_add_pair_products(const double *u, const double *x, ptrdiff_t columns, fits_lanes *out,
                                              ptrdiff_t stride)
{
    for (ptrdiff_t pairs = columns / 2; pairs > 0;) {
        const ptrdiff_t some = pairs < FITS_PAIRS ? pairs : FITS_PAIRS;
        switch (some) {
        case 1: fits_add_pairs(u, x, 1, out, stride); break;
        case 2: fits_add_pairs(u, x, 2, out, stride); break;
        case 3: fits_add_pairs(u, x, 3, out, stride); break;
        case 4: fits_add_pairs(u, x, 4, out, stride); break;
        case 5: fits_add_pairs(u, x, 5, out, stride); break;
        default: fits_add_pairs(u, x, FITS_PAIRS, out, stride);
        }
        pairs -= some, x += 2 * some * FITS_ROWS, out += 2 * some;
    }
}
#endif

/* The products of a panel of two columns u with an even number of columns x. */
FITS_INLINE void fits_add_panel(const double *u, const double *x, ptrdiff_t columns, fits_lanes *out, ptrdiff_t stride)
{
#if DPFAST_AVX512
    if (dpfast_has_avx512()) {
        fits_add_pair_products(u, x, columns, out, stride);
        return;
    }
#endif
    fits_add_products(u, FITS_PANEL, x, columns, out, stride);
}

/* sums += X'WX over one tile, the upper triangle, in lanes. */
FITS_INLINE void fits_add_hessian(const double *tile, const double *w, ptrdiff_t padded, double *panel,
                                  fits_lanes *sums)
{
    for (ptrdiff_t j = 0; j < padded; j += FITS_PANEL) {
        const double *x = tile + j * FITS_ROWS;
        for (ptrdiff_t i = 0; i < FITS_ROWS; i++)
            panel[i] = w[i] * x[i], panel[i + FITS_ROWS] = w[i] * x[i + FITS_ROWS];
        fits_add_panel(panel, x, padded - j, sums + j * padded + j, padded);
    }
}

#endif
