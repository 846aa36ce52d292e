/* Exact sums of the products of codes of rows in a ball, and of the codes. docs/proofs/covariance.md
 *
 * The codes of 32 rows, each followed by a 1 and zeros, are multiplied in tiles: doubles that add up 32 products, which
 * stay in registers. Products of the 1 are the codes. A squared norm is at most 2^46, so 32 products add up to at most
 * 2^51, exactly, in any order, and those of 2^16 rows to 2^62.
 */
#ifndef DPFAST_MOMENTS_H
#define DPFAST_MOMENTS_H

#include "rows.h"

#define MOMENTS_ROWS ROWS_GROUP     /* whose products are added in doubles */
#define MOMENTS_PIECE (1 << 16)     /* rows whose products are added in 64 bits */
#define MOMENTS_HIGH 4              /* a tile's rows and columns */
#define MOMENTS_WIDE 8

/* A row of the block: d codes, the 1, and zeros up to a multiple of the tile's columns. */
static inline ptrdiff_t moments_width(ptrdiff_t d)
{
    return (d / MOMENTS_WIDE + 1) * MOMENTS_WIDE;
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

/* words += the products of 32 rows: those on and above the diagonal of a square array, and some below. */
DPFAST_CLONES
static void moments_multiply(const double *block, ptrdiff_t width, int64_t *words)
{
    for (ptrdiff_t j = 0; j < width; j += MOMENTS_WIDE)
        for (ptrdiff_t i = 0; i < j + MOMENTS_WIDE; i += MOMENTS_HIGH)
            moments_tile(block, width, i, j, words);
}

DPFAST_CLONES
static void moments_encode(const double *x, ptrdiff_t stride, ptrdiff_t count, const struct rows_ball *given,
                           ptrdiff_t d, double *restrict y, double *restrict block, ptrdiff_t width)
{
    const struct rows_ball ball = *given;
    rows_encode_group(x, stride, count, &ball, y, block, width, d);
}

/* Doubles of scratch: a row and the block. */
static ptrdiff_t moments_scratch(ptrdiff_t d)
{
    return d + MOMENTS_ROWS * moments_width(d);
}

/* Adds to the sums of d (d + 3) / 2 products, for each column those with it and the columns after it, then its codes. */
static void moments_sum(const struct rows_table *table, const struct rows_ball *ball, double *room, double *scratch,
                        int64_t *words, const struct rows_sums *sums)
{
    const ptrdiff_t most = rows_at_once(table), d = table->d, width = moments_width(d);
    const ptrdiff_t at_once = most < MOMENTS_ROWS ? most : most - most % MOMENTS_ROWS;
    double *y = scratch, *block = y + d;
    memset(block, 0, (size_t)(MOMENTS_ROWS * width) * sizeof *block);
    for (ptrdiff_t r = 0; r < MOMENTS_ROWS; r++)
        block[r * width + d] = 1.0;
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
                if (count < MOMENTS_ROWS) /* rows of zeros change no sum */
                    for (ptrdiff_t r = count; r < MOMENTS_ROWS; r++)
                        memset(block + r * width, 0, (size_t)d * sizeof *block);
                moments_multiply(block, width, words);
            }
            start += loaded;
        }
        ptrdiff_t place = 0;
        for (ptrdiff_t i = 0; i < d; i++)
            for (ptrdiff_t j = i; j <= d; j++)
                rows_add(sums, place++, words[i * width + j]);
    }
}

#endif
