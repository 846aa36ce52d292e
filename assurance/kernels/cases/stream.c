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

/* Digits below 2 of a group: its records are counted, found and picked; the hits have room for a group. */
void check_stream_pick(void)
{
    double x[STREAM_GROUP], hits[STREAM_GROUP];
    uint64_t words[STREAM_WORDS];
    unsigned char any[2] = {any_int() & 1, any_int() & 1};
    uint32_t counts[2] = {0, 0}, ones = 0;
    for (int k = 0; k < STREAM_WORDS; k++) {
        requires((words[k] & ~UINT64_C(0x100000001)) == 0);
        ones += (uint32_t)(words[k] & 1) + (uint32_t)(words[k] >> 32);
    }
    stream_add_group(words, counts);
    holds(counts[1] == ones && counts[0] == STREAM_GROUP - ones);
    const ptrdiff_t picked = stream_pick(x, words, any, hits) - hits;
    holds(picked == (any[0] ? counts[0] : 0) + (any[1] ? counts[1] : 0));
    holds(stream_found(words, any) == (picked > 0));
}

/* Records of 4 bits walk down two levels of 1 and 2 bits to the last one of 1 bit, or are copied as long as there is room. */
void check_stream_walk(void)
{
    const struct stream_door door = {0.0, 15.0, 0.0, 1.0, 0x1p52, stream_bits(0x1p52), 0};
    const ptrdiff_t n = SIZE, capacity = any_between(0, SIZE);
    const int depth = 2;
    double hits[SIZE];
    int32_t marks[2], next[4];
    uint32_t counts[2] = {0, 0};
    int64_t *copied = room(int64_t, capacity);
    for (int i = 0; i < 2; i++)
        requires(0 <= marks[i] && marks[i] <= 2);
    for (int i = 0; i < 4; i++)
        requires(0 <= next[i] && next[i] <= 2);
    const struct stream_level levels[2] = {{marks, 3, 1}, {next, 1, 2}};
    struct stream_sink sink = {levels, depth, {NULL, 0, 1}, counts, copied, 0, capacity};
    stream_walk(hits, n, &door, &sink);
    holds(sink.copied <= capacity && sink.copied + counts[0] + counts[1] <= n);
    if (sink.copied)
        holds(0 <= copied[0] && copied[0] <= 15);
}
