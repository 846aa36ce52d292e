#include "prelude.h"
#include "bits.h"

/* Rows of d bits, d >= 1, in (d + 63) / 64 words: the mask of each word. */
void check_inside(void)
{
    const ptrdiff_t d = any_between(1, (ptrdiff_t)1 << 62), words = dpfast_words_of(d), w = any_between(0, words - 1);
    const uint64_t mask = dpfast_inside(d, w);
    holds(mask != 0 && ((mask + 1) & mask) == 0);
    holds(w == words - 1 || mask == UINT64_MAX);
}

/* Edges in any order: a class within 0..n, or -1. */
void check_class(void)
{
    uint64_t digits[SIZE];
    const ptrdiff_t n = any_between(0, SIZE);
    const uint64_t word = any_uint64();
    for (int i = 1; i < SIZE; i++)
        requires(digits[i - 1] <= digits[i]);
    const ptrdiff_t found = dpfast_class(word, digits + SIZE - n, n);
    holds(-1 <= found && found <= n);
    holds(found < 1 || digits[SIZE - n + found - 1] < word);
    holds(found < 0 || found == n || digits[SIZE - n + found] > word);
}

/* A subset of 2 among 3 places, distinct, `taken` zero before and after, for the seeds of 8 bits. */
void check_public_subset(void)
{
    uint64_t taken[1] = {0};
    int64_t out[2];
    const ptrdiff_t d = 3, k = 2;
    dpfast_subset(any_byte(), d, k, taken, out);
    holds(taken[0] == 0 && 0 <= out[0] && out[0] < d && (k < 2 || (0 <= out[1] && out[1] < d && out[1] != out[0])));
}

/* Eight rows added to counters of 8 bits: counters below 248 do not wrap, and each column counts its ones. */
void check_add_rows(void)
{
    uint64_t rows[8], planes[DPFAST_PLANES][DPFAST_STRIP];
    const int bit = (int)any_between(0, 63);
    int before = 0, after = 0, ones = 0;
    for (int l = 0; l < DPFAST_PLANES; l++)
        before |= (int)(planes[l][0] >> bit & 1) << l;
    requires(before <= DPFAST_MOST_ROWS - 8);
    dpfast_add_rows(rows, 1, 1, 0, planes);
    for (int l = 0; l < DPFAST_PLANES; l++)
        after |= (int)(planes[l][0] >> bit & 1) << l;
    for (int i = 0; i < 8; i++)
        ones += (int)(rows[i] >> bit & 1);
    holds(after == before + ones);
}

/* Columns of rows that are `stride` words apart: a strip, and rows beyond a multiple of eight; ones of each row. */
void check_count_columns(void)
{
    uint64_t rows[2 * SIZE];
    int64_t counts[64] = {0}, in_rows[SIZE] = {0};
    dpfast_count_columns(rows, SIZE, 2, 1, counts, in_rows);
    int ones = 0;
    for (int i = 0; i < SIZE; i++)
        ones += (int)(rows[2 * i] >> 63);
    holds(counts[63] == ones);
    const ptrdiff_t row = any_between(0, SIZE - 1);
    holds(in_rows[row] == __builtin_popcountll(rows[2 * row]));
}

/* Counters of 8 bits added to sums of 16: sums below 2^16 - 255 do not wrap, and the counters are zero. */
void check_add_planes(void)
{
    uint64_t planes[DPFAST_PLANES][DPFAST_STRIP], sums[DPFAST_SUM_PLANES][DPFAST_STRIP];
    const int bit = (int)any_between(0, 63);
    int before = 0, after = 0, added = 0, left = 0;
    for (int l = 0; l < DPFAST_PLANES; l++)
        added |= (int)(planes[l][0] >> bit & 1) << l;
    for (int l = 0; l < DPFAST_SUM_PLANES; l++)
        before |= (int)(sums[l][0] >> bit & 1) << l;
    requires(before + added < 1 << DPFAST_SUM_PLANES);
    dpfast_add_planes(planes, 1, sums);
    for (int l = 0; l < DPFAST_SUM_PLANES; l++)
        after |= (int)(sums[l][0] >> bit & 1) << l;
    for (int l = 0; l < DPFAST_PLANES; l++)
        left |= (int)(planes[l][0] >> bit & 1);
    holds(after == before + added && left == 0);
}

/* Eight planes: the number of each column, digit by digit, times a power of two. */
void check_spread_planes(void)
{
    int64_t counts[64] = {0}, number = 0;
    uint64_t planes[DPFAST_PLANES];
    const int b = (int)any_between(0, 63), shift = (int)any_between(0, 8);
    for (int l = 0; l < DPFAST_PLANES; l++) {
        planes[l] = any_uint64();
        number |= (int64_t)(planes[l] >> b & 1) << l;
    }
    dpfast_spread_planes(planes, 1, shift, counts);
    holds(counts[b] == number << shift);
}

/* A mask of d bits is flipped, of which fewer than half are 1 or more than half, and no bit beyond them; a tie is drawn
 * again once. `words` has a word more than a row (hypercube.md). */
void check_flip_minority(void)
{
    const ptrdiff_t d = SIZE, length = dpfast_words_of(d);
    uint64_t *words = room(uint64_t, length + 1), *out = room(uint64_t, length), before = out[length - 1];
    bitgen_t source = source_of((int)length + 1);
    dpfast_flip_minority(&source, words, d, any_uint64(), out);
    holds(((out[length - 1] ^ before) & ~dpfast_inside(d, length - 1)) == 0);
}

/* A mask of k random bits becomes one of `weight` ones, none beyond k; at most 3 places are drawn. */
void check_flip_weight(void)
{
    const ptrdiff_t k = SIZE, weight = any_between(0, k);
    uint64_t mask[1] = {any_uint64()}, out[1] = {any_uint64()};
    const uint64_t before = out[0];
    bitgen_t source = source_of(3);
    dpfast_flip_weight(&source, mask, k, weight, out);
    holds(__builtin_popcountll(out[0] ^ before) == weight && ((out[0] ^ before) >> k) == 0);
}

/* The number of ones: one of the favoured numbers if the coin says so, else another, or -1. */
void check_ones(void)
{
    uint64_t words[2], few[SIZE], many[SIZE];
    const ptrdiff_t favoured = any_between(0, SIZE), others = any_between(0, SIZE);
    const uint64_t threshold = any_uint64();
    const ptrdiff_t ones = dpfast_ones(words, threshold, few + SIZE - favoured, favoured, many + SIZE - others, others);
    holds(-1 <= ones && ones <= favoured + 1 + others);
    holds(ones < 0 || (words[0] < threshold) == (ones <= favoured));
}

/* The probability of rounding up is at most 1 in units of 2^-48, whatever x and the scale. */
void check_up_code(void)
{
    holds(dpfast_up_code(any_double(), any_double()) <= (uint64_t)1 << 48);
}

/* A row of one, two and three words; one with a bit beyond d is never right. */
static void have_ones_of(ptrdiff_t d)
{
    const ptrdiff_t words = dpfast_words_of(d);
    uint64_t *row = room(uint64_t, words);
    uint8_t *right = room(uint8_t, 1);
    dpfast_have_ones(row, 1, d, (int)any_between(0, d), right);
    holds(!*right || (row[words - 1] & ~dpfast_inside(d, words - 1)) == 0);
}

void check_have_ones(void)
{
    have_ones_of(64);
    have_ones_of(65);
    have_ones_of(130);
}
