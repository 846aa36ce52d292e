#include "prelude.h"
#include "descent.h"
#include "randomize.h"
#include "secure.h"

/* One word of the keystream: the buffer is read inside, after a refill that leaves at least one word (secure.h). */
static void refill(void *owner)
{
    secure_stream *stream = owner;
    stream->next = (size_t)any_between(0, SECURE_WORDS - 1);
    stream->generation = secure_forks;
}

void check_secure_word(void)
{
    static uint64_t words[SECURE_WORDS];
    secure_stream stream = {words, (size_t)any_between(0, SECURE_WORDS), any_uint64(), refill, &stream};
    (void)secure_uint64(&stream);
    (void)secure_uint32(&stream);
    holds(stream.next <= SECURE_WORDS);
}

/* A number below 64 from a window or from the rest, as the coin says; at most one further word. */
void check_window(void)
{
    uint64_t words[2];
    const uint32_t size = (uint32_t)any_between(2, 63), width = (uint32_t)any_between(1, size - 1);
    const uint32_t start = (uint32_t)any_between(0, size - width);
    const uint64_t threshold = any_uint64();
    bitgen_t source = source_of(1);
    const uint32_t drawn = dpfast_window(&source, words, start, width, size, threshold);
    holds(drawn < size && (words[0] < threshold) == (start <= drawn && drawn < start + width));
}

/* A set of `width` of `size` categories, packed, with x in it if the coin says so; no further words. */
void check_random_subset(void)
{
    uint64_t words[3], out[1] = {0};
    const uint32_t size = (uint32_t)any_between(2, SIZE), width = (uint32_t)any_between(1, size < 3 ? size - 1 : 2);
    const uint32_t x = (uint32_t)any_between(0, size - 1);
    const uint64_t threshold = any_uint64();
    bitgen_t source = source_of(0);
    dpfast_subset(&source, words, x, width, size, threshold, out);
    holds(__builtin_popcountll(out[0]) == (int)width && out[0] >> size == 0);
    holds((words[0] < threshold) == (out[0] >> x & 1));
}

/* The row of a report, with the parity of its digits and those of x if the coin says so. */
void check_row(void)
{
    uint64_t words[2];
    const uint32_t x = any_uint32(), last = ((uint32_t)1 << any_between(0, 30)) - 1;
    const uint64_t threshold = any_uint64();
    const uint32_t report = dpfast_row(words, x, last, threshold);
    holds(report >> 1 <= last);
    holds((report & 1) == ((uint32_t)__builtin_parity(report >> 1 & x) ^ (words[0] >= threshold)));
}

/* A lane whose number has other first digits than the threshold is decided by them, the others by a word each. */
void check_threshold_bits(void)
{
    uint64_t words[DPFAST_DIGITS], bits[1], open[1];
    const uint64_t threshold = any_uint64();
    const int lane = (int)any_between(0, 63);
    uint64_t digits = 0;
    for (int digit = 0; digit < DPFAST_DIGITS; digit++)
        digits = digits << 1 | (words[digit] >> lane & 1);
    dpfast_threshold_bits(words, threshold, bits, open, 1);
    holds((open[0] >> lane & 1) == (digits == threshold >> 56));
    holds((bits[0] >> lane & 1) == (digits < threshold >> 56));
    bitgen_t source = source_of(2);
    const uint64_t closed = dpfast_close_lanes(&source, bits[0], open[0], threshold);
    holds((closed & ~open[0]) == (bits[0] & ~open[0]) && (bits[0] & ~closed) == 0);
}

/* Sums of entries of 4 bits, each with the sign of a parity. */
static void hadamard_of(ptrdiff_t n)
{
    int64_t x[SIZE], sum = 0;
    const ptrdiff_t row = any_between(0, n - 1);
    for (ptrdiff_t i = 0; i < n; i++) {
        x[i] = (int64_t)(any_byte() >> 4) - 8;
        sum += __builtin_parity((unsigned)(i & row)) ? -x[i] : x[i];
    }
    dpfast_hadamard(x, n);
    holds(x[row] == sum);
}

void check_hadamard(void)
{
    hadamard_of(1);
    hadamard_of(2);
    hadamard_of(4);
}

/* The lines that are below an edge at the categories 0 and 1, two abreast, against the sum modulo the prime. */
void check_count_lines(void)
{
    uint32_t lines[2 * SIZE];
    const uint32_t edge = any_uint32();
    int64_t counts[2] = {0, 0}, first = 0, second = 0;
    requires(1 <= edge && edge < DPFAST_PRIME);
    for (int i = 0; i < SIZE; i++) {
        requires(lines[2 * i] < DPFAST_PRIME && lines[2 * i + 1] < DPFAST_PRIME);
        const uint64_t next = (uint64_t)lines[2 * i] + lines[2 * i + 1];
        first += lines[2 * i + 1] < edge;
        second += (next < DPFAST_PRIME ? next : next - DPFAST_PRIME) < edge;
    }
    dpfast_count_lines(lines, SIZE, edge, counts, 2);
    holds(counts[0] == first && counts[1] == second);
}

/* Lanes of 16 bits: those equal to the first 16 bits of the threshold are decided, all others stay. */
void check_settle(void)
{
    uint64_t words[1] = {any_uint64()};
    uint16_t lanes[4], before[4];
    dpfast_split_lanes(words, lanes, 1);
    for (int i = 0; i < 4; i++) {
        before[i] = lanes[i];
        holds(lanes[i] == (uint16_t)(words[0] >> 16 * i));
    }
    const uint64_t threshold = any_uint64();
    const uint16_t top = (uint16_t)(threshold >> 48);
    requires(top > 0);
    bitgen_t source = source_of(4);
    dpfast_settle(&source, threshold, lanes, 4);
    for (int i = 0; i < 4; i++)
        holds(lanes[i] == before[i] || (before[i] == top && lanes[i] == 0));
}
