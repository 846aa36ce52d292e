/* Synthetic records of a junction tree, one clique after the other. docs/proofs/cliques.md
 *
 * The records of a row of weights get its columns in random order, each column its share. A row is an urn. The cells of a
 * large urn are first divided among buckets, each independently, of which only the counts are kept; buckets are used up
 * one after the other, so that draws without replacement stay in a cache. One shuffle of 1e7 cells took three times as
 * long.
 */
#ifndef DPFAST_DRAWS_OF_CELLS_H
#define DPFAST_DRAWS_OF_CELLS_H

#include <stddef.h>
#include <stdint.h>

#include "draws.h"

#define CELLS_BUCKET 4096 /* cells of a bucket, about; 1024 to 16384 take equally long */
#define CELLS_BITS 16     /* of the number of buckets, at most */

struct cells_row {
    uint32_t records;
    int32_t bits;            /* of the number of buckets */
    uint32_t left, next;     /* the cells of the open bucket, and the bucket after it */
    ptrdiff_t start, counts; /* where the open bucket and the counts of all buckets begin */
};

/* Sets the number of buckets of each row, which follows from its records, and where its counts begin; their number. */
static ptrdiff_t cells_plan(struct cells_row *rows, ptrdiff_t count, ptrdiff_t columns)
{
    ptrdiff_t counts = 0, least = columns > CELLS_BUCKET ? columns : CELLS_BUCKET;
    for (ptrdiff_t i = 0; i < count; i++) {
        int32_t bits = 0;
        while (bits < CELLS_BITS && (least << (bits + 1)) <= (ptrdiff_t)rows[i].records)
            bits++;
        rows[i].bits = bits;
        rows[i].counts = counts;
        counts += rows[i].records ? columns << bits : 0;
    }
    return counts;
}

/* Counts the cells of each column in each bucket: a column has its share of the records of the row, rounded down or up by
 * one random offset for all columns. A row without weight has equal shares. */
static void cells_divide(bitgen_t *source, const double *weights, ptrdiff_t columns, const struct cells_row *row,
                         uint32_t *counts)
{
    double total = 0.0, sum = 0.0, offset = (double)(source->next_uint64(source->state) >> 11) * 0x1p-53;
    uint64_t word = 0, mask = (UINT64_C(1) << row->bits) - 1;
    uint32_t filled = 0;
    int fresh = 0; /* bits of the word */
    for (ptrdiff_t j = 0; j < columns; j++)
        total += weights[j];
    for (ptrdiff_t j = 0; j < columns; j++) {
        sum += total > 0.0 ? weights[j] / total : 1.0 / (double)columns;
        double next = sum * row->records + offset;
        uint32_t last = j + 1 < columns && next < row->records ? (uint32_t)next : row->records;
        if (row->bits == 0) {
            counts[j] += last > filled ? last - filled : 0;
            filled = last > filled ? last : filled;
        }
        for (; filled < last; filled++) {
            if (fresh < row->bits) {
                word = source->next_uint64(source->state);
                fresh = 64;
            }
            counts[(ptrdiff_t)(word & mask) * columns + j]++;
            word >>= row->bits;
            fresh -= row->bits;
        }
    }
}

/* The number of cells of the largest bucket. */
static uint32_t cells_most(const uint32_t *counts, ptrdiff_t columns, int bits)
{
    uint32_t most = 0;
    for (ptrdiff_t bucket = 0; bucket < (ptrdiff_t)1 << bits; bucket++) {
        uint32_t cells = 0;
        for (ptrdiff_t j = 0; j < columns; j++)
            cells += counts[bucket * columns + j];
        most = cells > most ? cells : most;
    }
    return most;
}

/* Lists the cells of the next bucket. */
static void cells_open(struct cells_row *row, ptrdiff_t columns, const uint32_t *counts, uint32_t *cells)
{
    const uint32_t *own = counts + row->counts + (ptrdiff_t)row->next++ * columns;
    cells += row->start;
    for (ptrdiff_t j = 0; j < columns; j++)
        for (uint32_t i = 0; i < own[j]; i++)
            cells[row->left++] = (uint32_t)j;
}

/* Law: uniform on 0..n-1 from half a word, and more words if Lemire's method rejects it. */
static inline uint32_t cells_below(bitgen_t *source, uint32_t half, uint32_t n)
{
    uint64_t product = (uint64_t)half * n;
    if ((uint32_t)product < n) {
        uint32_t unfair = -n % n;
        while ((uint32_t)product < unfair)
            product = (source->next_uint64(source->state) >> 32) * n;
    }
    return (uint32_t)(product >> 32);
}

/* Replaces the given row of each record by a cell of the open bucket of the row, which it takes out: a word for each two
 * records. */
static void cells_take(bitgen_t *source, const uint64_t *words, struct cells_row *rows, ptrdiff_t columns,
                       const uint32_t *counts, uint32_t *cells, uint32_t *given, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        struct cells_row *row = &rows[given[i]];
        while (row->left == 0)
            cells_open(row, columns, counts, cells);
        uint32_t place = cells_below(source, (uint32_t)(words[i >> 1] >> ((i & 1) << 5)), row->left);
        uint32_t *own = cells + row->start;
        given[i] = own[place];
        own[place] = own[--row->left];
    }
}

#endif
