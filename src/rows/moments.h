/* Exact sums of the products of codes of rows in a ball, and of the codes. docs/proofs/covariance.md
 *
 * The codes of 32 rows, each followed by that of its label, if it has one, a 1 and zeros, are multiplied in tiles:
 * doubles that add up 32 products, which stay in registers. Products of the 1 are the codes. A squared norm is at most
 * 2^46, so 32 products add up to at most 2^51, exactly, in any order, and those of 2^16 rows to 2^62.
 */
#ifndef DPFAST_MOMENTS_H
#define DPFAST_MOMENTS_H

#include "rows.h"

#define MOMENTS_ROWS ROWS_GROUP /* whose products are added in doubles */
#define MOMENTS_PIECE (1 << 16) /* rows whose products are added in 64 bits */
#define MOMENTS_HIGH 4          /* a tile's rows and columns */
#define MOMENTS_WIDE 8

/* The label of each record, and the ball of one column that it is in. */
struct moments_labels {
    struct select_keys keys;
    struct rows_ball ball;
};

/* A row of the block: the codes, also that of the label, the 1, and zeros up to a multiple of the tile's columns. */
static inline ptrdiff_t moments_width(ptrdiff_t codes)
{
    return (codes / MOMENTS_WIDE + 1) * MOMENTS_WIDE;
}

/* words += the products of 4 columns from i on with 8 columns from j on. */
ROWS_INLINE void moments_tile(const double *block, ptrdiff_t width, ptrdiff_t i, ptrdiff_t j, int64_t *restrict words)
{
    double sums[MOMENTS_HIGH][MOMENTS_WIDE] = {{0.0}};
    for (ptrdiff_t r = 0; r < MOMENTS_ROWS; r++) {
        const double *row = block + r * width;
        for (int a = 0; a < MOMENTS_HIGH; a++)
            for (int b = 0; b < MOMENTS_WIDE; b++)
                sums[a][b] += row[i + a] * row[j + b];
    }
    for (int a = 0; a < MOMENTS_HIGH; a++)
        for (int b = 0; b < MOMENTS_WIDE; b++)
            words[(i + a) * width + j + b] += dpfast_to_int(sums[a][b]);
}

DPFAST_CLONES
static void moments_multiply_all(const double *block, ptrdiff_t width, int64_t *words)
{
    for (ptrdiff_t j = 0; j < width; j += MOMENTS_WIDE)
        for (ptrdiff_t i = 0; i < j + MOMENTS_WIDE; i += MOMENTS_HIGH)
            moments_tile(block, width, i, j, words);
}

#if DPFAST_AVX512
#include <immintrin.h>

/* words += the products of 8 columns from i on with 8 columns from j on, or with 16, in vectors of 8. */
DPFAST_512 ROWS_INLINE void moments_wide_tile(const double *block, ptrdiff_t width, ptrdiff_t i, ptrdiff_t j,
                                              const int vectors, int64_t *words)
{
    const __m512d whole = _mm512_set1_pd(0x1.8p52); /* plus an integer below 2^51: its last bits are the integer */
    __m512d sums[MOMENTS_WIDE][2];
    for (int a = 0; a < MOMENTS_WIDE; a++)
        sums[a][0] = sums[a][1] = whole;
    for (ptrdiff_t r = 0; r < MOMENTS_ROWS; r++) {
        const double *row = block + r * width;
        const __m512d first = _mm512_loadu_pd(row + j), second = _mm512_loadu_pd(row + j + 8 * (vectors - 1));
        for (int a = 0; a < MOMENTS_WIDE; a++) {
            const __m512d factor = _mm512_set1_pd(row[i + a]);
            sums[a][0] = _mm512_fmadd_pd(factor, first, sums[a][0]); /* exact, and so the same as without fusion */
            if (vectors > 1)
                sums[a][1] = _mm512_fmadd_pd(factor, second, sums[a][1]);
        }
    }
    for (int a = 0; a < MOMENTS_WIDE; a++)
        for (int k = 0; k < vectors; k++) {
            int64_t *to = words + (i + a) * width + j + 8 * k;
            const __m512i sum = _mm512_sub_epi64(_mm512_castpd_si512(sums[a][k]), _mm512_castpd_si512(whole));
            _mm512_storeu_si512(to, _mm512_add_epi64(_mm512_loadu_si512(to), sum));
        }
}

DPFAST_512 static void moments_multiply_wide(const double *block, ptrdiff_t width, int64_t *words)
{
    for (ptrdiff_t j = 0; j < width; j += 2 * MOMENTS_WIDE) {
        const int both = j + MOMENTS_WIDE < width;
        for (ptrdiff_t i = 0; i <= j; i += MOMENTS_WIDE)
            if (both)
                moments_wide_tile(block, width, i, j, 2, words);
            else
                moments_wide_tile(block, width, i, j, 1, words);
        if (both)
            moments_wide_tile(block, width, j + MOMENTS_WIDE, j + MOMENTS_WIDE, 1, words);
    }
}
#endif

/* words += the products of 32 rows: those on and above the diagonal of a square array, and some below. */
static void moments_multiply(const double *block, ptrdiff_t width, int64_t *words)
{
#if DPFAST_AVX512
    if (dpfast_has_avx512()) {
        moments_multiply_wide(block, width, words);
        return;
    }
#endif
    moments_multiply_all(block, width, words);
}

DPFAST_CLONES
static void moments_encode(const double *x, ptrdiff_t stride, ptrdiff_t count, const struct rows_ball *given,
                           ptrdiff_t d, double *restrict y, double *restrict block, ptrdiff_t width)
{
    const struct rows_ball ball = *given;
    rows_encode_group(x, stride, count, &ball, y, block, width, d);
}

static inline int moments_finite(const double *x, ptrdiff_t d)
{
    double sum = 0.0;
    for (ptrdiff_t j = 0; j < d; j++)
        sum += 0.0 * x[j]; /* NaN for infinities, too */
    return sum == 0.0;
}

/* Puts the codes of `count` labels, from `start` on, into column d of the block; all codes of a record of which a number
 * is not finite become 0. */
static void moments_label(const double *x, ptrdiff_t stride, ptrdiff_t start, ptrdiff_t count,
                          const struct moments_labels *labels, ptrdiff_t d, double *block, ptrdiff_t width)
{
    double keys[MOMENTS_ROWS], codes[MOMENTS_ROWS], y;
    select_load(&labels->keys, start, count, keys);
    rows_encode_group(keys, 1, count, &labels->ball, &y, codes, 1, 1);
    for (ptrdiff_t r = 0; r < count; r++) {
        double *row = block + r * width;
        row[d] = codes[r];
        if (row[0] == 0.0 && !moments_finite(x + r * stride, d)) /* its codes are 0 already */
            row[d] = 0.0;
        if (codes[r] == 0.0 && !moments_finite(keys + r, 1))
            memset(row, 0, (size_t)d * sizeof *row);
    }
}

/* Doubles of scratch: a row and the block. */
static ptrdiff_t moments_scratch(ptrdiff_t codes)
{
    return codes + MOMENTS_ROWS * moments_width(codes);
}

/* Adds to the sums of the products of the codes of columns, and of the label, if there are labels: for each of them the
 * products with it and those after it, then its codes. */
static void moments_sum(const struct rows_table *table, const struct rows_ball *ball,
                        const struct moments_labels *labels, double *room, double *scratch, int64_t *words,
                        const struct rows_sums *sums)
{
    const ptrdiff_t most = rows_at_once(table), d = table->d, codes = d + (labels != NULL);
    const ptrdiff_t width = moments_width(codes);
    const ptrdiff_t at_once = most < MOMENTS_ROWS ? most : most - most % MOMENTS_ROWS;
    double *y = scratch, *block = y + codes;
    memset(block, 0, (size_t)(MOMENTS_ROWS * width) * sizeof *block);
    for (ptrdiff_t r = 0; r < MOMENTS_ROWS; r++)
        block[r * width + codes] = 1.0;
    for (ptrdiff_t start = 0; start < table->n;) {
        const ptrdiff_t end = table->n - start < MOMENTS_PIECE ? table->n : start + MOMENTS_PIECE;
        memset(words, 0, (size_t)(width * width) * sizeof *words);
        while (start < end) {
            const ptrdiff_t loaded = end - start < at_once ? end - start : at_once;
            ptrdiff_t stride;
            const double *x = rows_load(table, start, loaded, room, &stride);
            for (ptrdiff_t i = 0; i < loaded; i += MOMENTS_ROWS) {
                const ptrdiff_t count = loaded - i < MOMENTS_ROWS ? loaded - i : MOMENTS_ROWS;
                moments_encode(x + i * stride, stride, count, ball, d, y, block, width);
                if (labels)
                    moments_label(x + i * stride, stride, start + i, count, labels, d, block, width);
                if (count < MOMENTS_ROWS) /* rows of zeros change no sum */
                    for (ptrdiff_t r = count; r < MOMENTS_ROWS; r++)
                        memset(block + r * width, 0, (size_t)codes * sizeof *block);
                moments_multiply(block, width, words);
            }
            start += loaded;
        }
        ptrdiff_t place = 0;
        for (ptrdiff_t i = 0; i < codes; i++)
            for (ptrdiff_t j = i; j <= codes; j++)
                rows_add(sums, place++, words[i * width + j]);
    }
}

#endif
