/* Exact counts of several marginals of a coded table at once. docs/proofs/marginals.md
 *
 * The table is stored by columns: the code of record i in column c is codes[c * records + i]. A marginal is a run of
 * columns, its cell the number with these codes as digits, the last column varying fastest. Records are read in blocks
 * that stay in the first-level cache while all marginals count them.
 */
#ifndef DPFAST_MARGINALS_H
#define DPFAST_MARGINALS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"

#define MARGINALS_BLOCK 1024

struct marginals_plan {
    const int32_t *columns; /* of all marginals, one after the other */
    const int32_t *ends;    /* of the run of each marginal in `columns` */
    const int64_t *offsets; /* of the first cell of each marginal in the counts */
    const int32_t *bins;    /* of each column of the table */
    ptrdiff_t marginals;
};

/* cells[i] = cells[i] * bins + codes[i] */
DPFAST_CLONES
static void marginals_append(const uint16_t *codes, ptrdiff_t count, int32_t bins, int32_t *cells)
{
    for (ptrdiff_t i = 0; i < count; i++)
        cells[i] = cells[i] * bins + codes[i];
}

/* Adds records start..stop-1, fewer than 2^32, to the counts. */
static void marginals_count(const struct marginals_plan *plan, const uint16_t *codes, ptrdiff_t records,
                            ptrdiff_t start, ptrdiff_t stop, uint32_t *counts)
{
    int32_t cells[MARGINALS_BLOCK];
    for (ptrdiff_t i = start; i < stop; i += MARGINALS_BLOCK) {
        ptrdiff_t count = stop - i < MARGINALS_BLOCK ? stop - i : MARGINALS_BLOCK;
        for (ptrdiff_t m = 0, c = 0; m < plan->marginals; m++) {
            uint32_t *table = counts + plan->offsets[m];
            memset(cells, 0, (size_t)count * sizeof *cells);
            for (; c < plan->ends[m]; c++)
                marginals_append(codes + plan->columns[c] * records + i, count, plan->bins[plan->columns[c]], cells);
            for (ptrdiff_t j = 0; j < count; j++)
                table[cells[j]]++;
        }
    }
}

/* The l1 distance of the counts of two columns from those of independent columns, rounded to integers. */
DPFAST_CLONES
static int64_t marginals_distance(const int64_t *counts, const double *one, ptrdiff_t rows, const double *other,
                                  ptrdiff_t columns, double total)
{
    int64_t distance = 0;
    for (ptrdiff_t i = 0; i < rows; i++, counts += columns)
        for (ptrdiff_t j = 0; j < columns; j++) {
            int64_t away = counts[j] - (int64_t)rint(one[i] * other[j] / total);
            distance += away < 0 ? -away : away;
        }
    return distance;
}

#endif
