#include "prelude.h"
#include "stream.h"

/* Counts of cells below SIZE: each cell is counted once, in either loop. */
void check_stream_add(void)
{
    uint32_t cells[SIZE], counts[2] = {0, 0}, ones = 0;
    for (int i = 0; i < SIZE; i++) {
        requires(cells[i] < 2);
        ones += cells[i];
    }
    stream_add(cells, SIZE, counts);
    holds(counts[0] == SIZE - ones && counts[1] == ones);
}

/* The cell of a code in table `mark - 2`: below tables << bits. */
void check_stream_cell(void)
{
    const int bits = (int)any_between(0, 20), shift = (int)any_between(0, 51);
    const struct stream_level level = {NULL, shift, bits};
    const int32_t tables = (int32_t)any_between(1, 1 << 10), mark = (int32_t)any_between(2, tables + 1);
    holds(stream_cell(&level, mark, any_uint64()) < (uint64_t)tables << bits);
}
