#include "prelude.h"
#include "blocks.h"
#include "rows.h"

/* A cell of two words: the sum modulo 2^128. */
void check_block_cells(void)
{
    uint64_t cell[2] = {any_uint64(), any_uint64()};
    const blocks_wide before = blocks_cell(cell);
    const __int128 value = any_wide();
    blocks_add(cell, value);
    holds(blocks_cell(cell) - before == (blocks_wide)value);
}

/* high 2^52 + low, 0 <= low < 2^52, for values within +-2^63 and sums of up to 2^62 records. */
void check_rows_add(void)
{
    int64_t high[1] = {any_int64() >> 1}, low[1] = {(int64_t)(any_uint64() >> 12)};
    const struct rows_sums sums = {high, low};
    const __int128 before = (__int128)high[0] * ((__int128)1 << 52) + low[0];
    const int64_t value = any_int64();
    rows_add(&sums, 0, value);
    holds(0 <= low[0] && low[0] < ((int64_t)1 << 52));
    holds((__int128)high[0] * ((__int128)1 << 52) + low[0] == before + value);
}

/* Rows of d >= 1 columns that are loaded at a time: as many as the buffer holds, at least one. */
void check_rows_at_once(void)
{
    const struct rows_table table = {.d = any_between(1, (ptrdiff_t)1 << 40), .in_place = any_int() & 1};
    const ptrdiff_t rows = rows_at_once(&table);
    holds(1 <= rows && rows <= ROWS_BLOCK);
    holds(rows_room(&table) == 0 || rows == 1 || rows * table.d <= ROWS_BUFFER);
    holds(1 <= rows_in_group(table.d) && rows_in_group(table.d) <= ROWS_GROUP);
}

/* The cells of another state, added modulo 2^128. */
void check_add_cells(void)
{
    uint64_t cells[4], other[4];
    const blocks_wide one = blocks_cell(cells + 2), two = blocks_cell(other + 2);
    blocks_add_cells(cells, other, 2);
    holds(blocks_cell(cells + 2) == one + two);
}

/* n records in k blocks: the first record of block j is the least of it, and a cursor that moves on agrees. */
static void block_starts_of(int64_t n, int64_t k)
{
    const struct blocks_plan plan = {.n = n, .blocks = k};
    struct blocks_cursor at = blocks_at(&plan, 0);
    for (int64_t j = 0; j < k; j++) {
        const int64_t start = blocks_start(&plan, j);
        holds(at.block == j && at.end == blocks_start(&plan, j + 1) && blocks_of(&plan, start) == j);
        holds(start == 0 || blocks_of(&plan, start - 1) == j - 1);
        blocks_next(&at, n / k, n % k, k);
    }
}

void check_block_starts(void)
{
    for (int64_t n = 1; n <= SIZE; n++)
        for (int64_t k = 1; k <= n; k++)
            block_starts_of(n, k);
}
