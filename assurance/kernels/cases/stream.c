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

/* Records of at most STREAM_FEW values: each value once, with the number of its records; or more values, and 0. */
void check_stream_values(void)
{
    double x[SIZE], values[STREAM_FEW];
    uint32_t times[STREAM_FEW], same = 0, listed = 0;
    const int found = stream_values(x, SIZE, values, times);
    const ptrdiff_t one = any_between(0, SIZE - 1);
    int distinct = 0;
    for (int i = 0; i < SIZE; i++) {
        int earlier = 0;
        for (int k = 0; k < i; k++)
            earlier |= stream_bits(x[k]) == stream_bits(x[i]);
        distinct += !earlier;
        same += stream_bits(x[i]) == stream_bits(x[one]);
    }
    for (int k = 0; k < found; k++)
        if (stream_bits(values[k]) == stream_bits(x[one]))
            listed += times[k];
    holds(found == (distinct <= STREAM_FEW ? distinct : 0));
    holds(!found || listed == same);
}
