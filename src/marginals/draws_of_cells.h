/* Synthetic records of a junction tree, one clique after the other. docs/proofs/cliques.md */
#ifndef DPFAST_DRAWS_OF_CELLS_H
#define DPFAST_DRAWS_OF_CELLS_H

#include <stddef.h>
#include <stdint.h>

#include "draws.h"

/* Fills cells[0..count-1] with columns 0..columns-1 by their weights, in random order: each column gets its share of
 * count, rounded down or up. A row without weight has equal shares. */
static void cells_of_row(bitgen_t *source, const double *weights, ptrdiff_t columns, uint32_t count, uint32_t *cells)
{
    double total = 0.0, sum = 0.0, offset = (double)(source->next_uint64(source->state) >> 11) * 0x1p-53;
    uint32_t filled = 0;
    for (ptrdiff_t j = 0; j < columns; j++)
        total += weights[j];
    for (ptrdiff_t j = 0; j < columns; j++) {
        sum += total > 0.0 ? weights[j] / total : 1.0 / (double)columns;
        double next = j + 1 < columns ? sum * count + offset : (double)count;
        for (; filled < count && (double)filled + 1.0 <= next; filled++)
            cells[filled] = (uint32_t)j;
    }
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = (uint32_t)dpfast_below(source, source->next_uint64(source->state), i);
        uint32_t cell = cells[other];
        cells[other] = cells[i - 1];
        cells[i - 1] = cell;
    }
}

/* Replaces the given row of each record by a column of that row of the weights. `starts` has room for rows + 1 numbers,
 * `cells` for one of each record. */
static void cells_draw(bitgen_t *source, const double *weights, ptrdiff_t rows, ptrdiff_t columns, uint32_t *given,
                       ptrdiff_t records, uint32_t *starts, uint32_t *cells)
{
    for (ptrdiff_t row = 0; row <= rows; row++)
        starts[row] = 0;
    for (ptrdiff_t i = 0; i < records; i++)
        starts[given[i] + 1]++;
    for (ptrdiff_t row = 0; row < rows; row++)
        starts[row + 1] += starts[row];
    for (ptrdiff_t row = 0; row < rows; row++)
        if (starts[row + 1] > starts[row])
            cells_of_row(source, weights + row * columns, columns, starts[row + 1] - starts[row], cells + starts[row]);
    for (ptrdiff_t i = 0; i < records; i++)
        given[i] = cells[starts[given[i]]++];
}

#endif
