/* Rows of bits in 64-bit words, bit j of a row in word j / 64 at place j % 64: rounding of vectors to signs, random
 * masks of given weight, sums of columns. docs/proofs/hypercube.md
 */
#ifndef DPFAST_BITS_H
#define DPFAST_BITS_H

#include <numpy/random/bitgen.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"
#include "certified.h"
#include "draws.h"
#include "mix.h"

#if DPFAST_AVX512
#include <immintrin.h>
#endif

#define DPFAST_TOP 0x000FFFFFFFFFFFFFu
#define DPFAST_STRIP 264     /* words whose columns are counted together; planes are then not a power of two apart */
#define DPFAST_PLANES 8      /* bits of the counters of a strip */
#define DPFAST_MOST_ROWS 248 /* rows that these counters can count, a multiple of 8 */
#define DPFAST_SUM_PLANES 16 /* bits of the sums of these counters, which 264 of them cannot exceed */

static inline ptrdiff_t dpfast_words_of(ptrdiff_t bits)
{
    return (bits + 63) / 64;
}

/* The mask of the bits of a row of d bits that lie in its word w. */
static inline uint64_t dpfast_inside(ptrdiff_t d, ptrdiff_t w)
{
    ptrdiff_t left = d - 64 * w;
    return left >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << left) - 1;
}

/* The probability that x is rounded up to +radius, in units of 2^-48: (1 + x / radius) / 2, x clamped, 0 where x is NaN. */
static inline uint64_t dpfast_up_code(double x, double inverse)
{
    double y = x * inverse, size = __builtin_fabs(y);
    uint64_t known = -(uint64_t)(y == y), sign = dpfast_bits(y) & 0x8000000000000000u;
    size = size < 1.0 ? size : 1.0; /* masks, not branches: the loop below runs on vectors */
    y = dpfast_double((dpfast_bits(size) | sign) & known);
    return dpfast_bits((y + 1.0) * 0x1p47 + 0x1p52) & DPFAST_TOP; /* rounded by the addition, half to even */
}

/* For 64 coordinates: where the 16 random bits are below the first 16 bits of the code, and where they are equal. */
DPFAST_CLONES static void dpfast_round_word(const double *x, double inverse, const uint16_t *lanes, const uint64_t *one,
                                            uint64_t *below, uint64_t *open)
{
    uint64_t less = 0, equal = 0;
    int64_t rest[64];
    for (int j = 0; j < 64; j++)
        rest[j] = (int64_t)(dpfast_up_code(x[j], inverse) >> 32) - lanes[j];
    for (int j = 0; j < 64; j++) {
        less |= one[j] & (uint64_t)(-rest[j] >> 63);
        equal |= one[j] & ~(uint64_t)((rest[j] | -rest[j]) >> 63);
    }
    *below = less;
    *open = equal;
}

/* Law: bit j is 1 with probability code_j 2^-48, independently: 16 random bits each, from ceil(n / 4) words, and a
 * further word if they equal the first 16 bits of the code, with probability 2^-16. Bits beyond n are zero. */
static inline void dpfast_round_bits(bitgen_t *source, const double *x, ptrdiff_t n, double inverse,
                                     const uint64_t *words, const uint64_t *one, uint64_t *out)
{
    double last[64];
    uint16_t lanes[64];
    for (ptrdiff_t w = 0; w < dpfast_words_of(n); w++) {
        ptrdiff_t left = n - 64 * w < 64 ? n - 64 * w : 64;
        const double *row = x + 64 * w;
        uint64_t below, open;
        memcpy(lanes, words + 16 * w, 8 * (size_t)((left + 3) / 4));
        if (left < 64) {
            memset(last, 0, sizeof last);
            memcpy(last, row, (size_t)left * sizeof(double));
            memset(lanes + left, 0, (size_t)(64 - left) * sizeof(uint16_t));
            row = last;
        }
        dpfast_round_word(row, inverse, lanes, one, &below, &open);
        below &= dpfast_inside(n, w);
        open &= dpfast_inside(n, w);
        while (open) {
            int j = __builtin_ctzll(open);
            uint64_t rest = dpfast_up_code(row[j], inverse) & 0xFFFFFFFFu;
            below |= (uint64_t)((source->next_uint64(source->state) >> 32) < rest) << j;
            open &= open - 1;
        }
        out[w] = below;
    }
}

static inline ptrdiff_t dpfast_popcount(const uint64_t *row, ptrdiff_t words)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t w = 0; w < words; w++)
        count += __builtin_popcountll(row[w]);
    return count;
}

/* out ^= F, F a random mask of d bits with P(F) proportional to the odds of `threshold` where fewer than half of its bits
 * are 1, to 1 elsewhere. `words` holds a first try: the bits of F, then the coin; a tie not accepted takes as many words
 * from the source for another. */
static inline void dpfast_flip_minority(bitgen_t *source, uint64_t *words, ptrdiff_t d, uint64_t threshold,
                                        uint64_t *out)
{
    ptrdiff_t length = dpfast_words_of(d);
    for (;;) {
        uint64_t coin = words[length], complement;
        words[length - 1] &= dpfast_inside(d, length - 1);
        ptrdiff_t ones = dpfast_popcount(words, length);
        if (2 * ones != d) {
            complement = -(uint64_t)((2 * ones > d) != (coin >= threshold));
        } else if (coin >> 1 < -threshold) { /* accepted with probability 2 (1 - threshold 2^-64) */
            complement = 0;
        } else {
            for (ptrdiff_t w = 0; w <= length; w++)
                words[w] = source->next_uint64(source->state);
            continue;
        }
        for (ptrdiff_t w = 0; w < length; w++)
            out[w] ^= words[w] ^ (complement & dpfast_inside(d, w));
        return;
    }
}

static inline __attribute__((always_inline)) void dpfast_rows_have_ones(const uint64_t *rows, ptrdiff_t n,
                                                                        ptrdiff_t words, uint64_t beyond, int weight,
                                                                        uint8_t *right)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint64_t *row = rows + i * words;
        int ones = 0;
        for (ptrdiff_t w = 0; w < words; w++)
            ones += __builtin_popcountll(row[w]);
        right[i] = (ones == weight) & !(row[words - 1] & beyond);
    }
}

/* Whether each of n rows of d bits has `weight` ones, and none beyond. One and two words are compiled by themselves. */
DPFAST_CLONES static void dpfast_have_ones(const uint64_t *rows, ptrdiff_t n, ptrdiff_t d, int weight, uint8_t *right)
{
    ptrdiff_t words = dpfast_words_of(d);
    uint64_t beyond = ~dpfast_inside(d, words - 1);
    if (words == 1)
        dpfast_rows_have_ones(rows, n, 1, beyond, weight, right);
    else if (words == 2)
        dpfast_rows_have_ones(rows, n, 2, beyond, weight, right);
    else
        dpfast_rows_have_ones(rows, n, words, beyond, weight, right);
}

/* A uniform mask of `weight` ones among k bits, made from k random bits by flipping random bits of the surplus value. */
static inline void dpfast_fix_weight(bitgen_t *source, uint64_t *mask, ptrdiff_t k, ptrdiff_t weight)
{
    ptrdiff_t length = dpfast_words_of(k);
    mask[length - 1] &= dpfast_inside(k, length - 1);
    ptrdiff_t ones = dpfast_popcount(mask, length);
    while (ones != weight) {
        uint64_t place = dpfast_uniform(source, (uint64_t)k - 1);
        uint64_t bit = mask[place >> 6] >> (place & 63) & 1;
        if (bit == (ones > weight)) {
            mask[place >> 6] ^= (uint64_t)1 << (place & 63);
            ones += bit ? -1 : 1;
        }
    }
}

/* The class of a word: the number of the n edges that are not above the uniform number with these first digits, or -1 if
 * the word equals the first 64 binary digits of an edge. Edges are nondecreasing. */
static inline ptrdiff_t dpfast_class(uint64_t word, const uint64_t *digits, ptrdiff_t n)
{
    ptrdiff_t low = 0, high = n;
    while (low < high) {
        ptrdiff_t middle = low + (high - low) / 2;
        if (digits[middle] < word)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && digits[low] == word ? -1 : low;
}

/* Law: the number of ones of a mask, a favoured number with probability threshold / 2^64, else another; -1 if more digits
 * must decide. words: the coin, the class. `few` and `many` are the first digits of the edges of both. */
static inline ptrdiff_t dpfast_ones(const uint64_t *words, uint64_t threshold, const uint64_t *few, ptrdiff_t favoured,
                                    const uint64_t *many, ptrdiff_t others)
{
    if (words[0] < threshold)
        return dpfast_class(words[1], few, favoured);
    ptrdiff_t index = dpfast_class(words[1], many, others);
    return index < 0 ? -1 : favoured + 1 + index;
}

/* out ^= F, F uniform among the masks of k bits with `ones` ones; `mask` holds k random bits. */
static inline void dpfast_flip_weight(bitgen_t *source, uint64_t *mask, ptrdiff_t k, ptrdiff_t ones, uint64_t *out)
{
    dpfast_fix_weight(source, mask, k, ones);
    for (ptrdiff_t w = 0; w < dpfast_words_of(k); w++)
        out[w] ^= mask[w];
}

/* The k-subset of 0..d-1 that a public seed defines, uniform for uniform words (Floyd's algorithm). `taken` has d bits,
 * all zero before and after. */
static inline void dpfast_subset(uint64_t seed, ptrdiff_t d, ptrdiff_t k, uint64_t *taken, int64_t *out)
{
    dpfast_mixer mixer = {dpfast_mix(seed + DPFAST_GOLDEN)};
    bitgen_t source = {&mixer, dpfast_next_mixed, NULL, NULL, NULL};
    for (ptrdiff_t i = 0; i < k; i++) {
        uint64_t last = (uint64_t)(d - k + i), place = dpfast_uniform(&source, last);
        if (taken[place >> 6] >> (place & 63) & 1)
            place = last;
        taken[place >> 6] |= (uint64_t)1 << (place & 63);
        out[i] = (int64_t)place;
    }
    for (ptrdiff_t i = 0; i < k; i++)
        taken[out[i] >> 6] = 0;
}

/* Carry-save addition: three words of equal weight become one of that weight and one of twice that weight. */
#define DPFAST_ADD3(low, high, a, b, c) \
    do { \
        uint64_t a_ = (a), b_ = (b), c_ = (c), u_ = a_ ^ b_; \
        (high) = (a_ & b_) | (u_ & c_); \
        (low) = u_ ^ c_; \
    } while (0)

/* Add eight rows to the counters of their columns, whose bit l is plane l, for `words` words. */
static inline __attribute__((always_inline)) void dpfast_add_words(const uint64_t *restrict x, ptrdiff_t stride,
                                                                   int words, uint64_t *restrict planes)
{
    for (int w = 0; w < words; w++, x++, planes++) {
        uint64_t one = planes[0], two = planes[DPFAST_STRIP], four = planes[2 * DPFAST_STRIP], a, b, c, d, e, f, eight;
        DPFAST_ADD3(one, a, one, x[0], x[stride]);
        DPFAST_ADD3(one, b, one, x[2 * stride], x[3 * stride]);
        DPFAST_ADD3(two, e, two, a, b);
        DPFAST_ADD3(one, c, one, x[4 * stride], x[5 * stride]);
        DPFAST_ADD3(one, d, one, x[6 * stride], x[7 * stride]);
        DPFAST_ADD3(two, f, two, c, d);
        DPFAST_ADD3(four, eight, four, e, f);
        planes[0] = one;
        planes[DPFAST_STRIP] = two;
        planes[2 * DPFAST_STRIP] = four;
        for (int l = 3; l < DPFAST_PLANES; l++) {
            uint64_t carry = planes[l * DPFAST_STRIP] & eight;
            planes[l * DPFAST_STRIP] ^= eight;
            eight = carry;
        }
    }
}

/* Add eight rows of a strip to its counters. Rows that are `ahead` words away, unless that is 0, are fetched meanwhile: a
 * strip of a long row is too short for the processor to foresee the next. */
DPFAST_CLONES static void dpfast_add_rows(const uint64_t *rows, ptrdiff_t stride, ptrdiff_t words, ptrdiff_t ahead,
                                          uint64_t planes[DPFAST_PLANES][DPFAST_STRIP])
{
    ptrdiff_t w = 0;
    for (; w + 8 <= words; w += 8) {
        for (int i = 0; ahead && i < 8; i++)
            __builtin_prefetch(rows + ahead + i * stride + w, 0, 2);
        dpfast_add_words(rows + w, stride, 8, &planes[0][w]);
    }
    dpfast_add_words(rows + w, stride, (int)(words - w), &planes[0][w]);
}

/* Add the counters of a strip to its sums of DPFAST_SUM_PLANES bits, and make them zero. */
DPFAST_CLONES static void dpfast_add_planes(uint64_t planes[DPFAST_PLANES][DPFAST_STRIP], ptrdiff_t words,
                                            uint64_t sums[DPFAST_SUM_PLANES][DPFAST_STRIP])
{
    for (ptrdiff_t w = 0; w < words; w++) {
        uint64_t carry = 0;
        for (int l = 0; l < DPFAST_PLANES; l++) {
            DPFAST_ADD3(sums[l][w], carry, sums[l][w], planes[l][w], carry);
            planes[l][w] = 0;
        }
        for (int l = DPFAST_PLANES; l < DPFAST_SUM_PLANES; l++) {
            uint64_t sum = sums[l][w];
            sums[l][w] = sum ^ carry;
            carry &= sum;
        }
    }
}

/* counts[b] += 2^shift times the number whose bit l is bit b of word l of eight planes, for 64 columns: bytes of the
 * planes, transposed as matrices of 8 x 8 bits (Warren, Hacker's delight, 7-3). */
DPFAST_CLONES static void dpfast_spread_planes(const uint64_t *planes, ptrdiff_t apart, int shift, int64_t *counts)
{
    uint64_t bytes[8] = {0};
    for (int l = 0; l < DPFAST_PLANES; l++)
        for (int g = 0; g < 8; g++)
            bytes[g] |= (planes[l * apart] >> 8 * g & 0xFF) << 8 * l;
    for (int g = 0; g < 8; g++) {
        uint64_t x = bytes[g], swap = (x ^ x >> 7) & 0x00AA00AA00AA00AAu;
        x ^= swap ^ swap << 7;
        swap = (x ^ x >> 14) & 0x0000CCCC0000CCCCu;
        x ^= swap ^ swap << 14;
        swap = (x ^ x >> 28) & 0x00000000F0F0F0F0u;
        bytes[g] = x ^ swap ^ swap << 28;
    }
    for (int g = 0; g < 8; g++)
        for (int b = 0; b < 8; b++)
            counts[8 * g + b] += (int64_t)(bytes[g] >> 8 * b & 0xFF) << shift;
}

/* Add the number of ones of each of eight rows of a strip to `ones`. */
DPFAST_CLONES static void dpfast_add_ones(const uint64_t *rows, ptrdiff_t stride, ptrdiff_t words, int64_t *ones)
{
    for (int i = 0; i < 8; i++)
        ones[i] += dpfast_popcount(rows + i * stride, words);
}

#if DPFAST_AVX512
/* DPFAST_ADD3 for eight words, in two instructions. */
#define DPFAST_ADD3_EIGHT(low, high, a, b, c) \
    do { \
        const __m512i a_ = (a), b_ = (b), c_ = (c); \
        (high) = _mm512_ternarylogic_epi64(a_, b_, c_, 0xE8); \
        (low) = _mm512_ternarylogic_epi64(a_, b_, c_, 0x96); \
    } while (0)

/* dpfast_add_rows and, where `ones` is given, dpfast_add_ones: each word is read once. */
__attribute__((target("avx512f,avx512vpopcntdq"))) static void dpfast_add_eight(
    const uint64_t *rows, ptrdiff_t stride, ptrdiff_t words, ptrdiff_t ahead,
    uint64_t planes[DPFAST_PLANES][DPFAST_STRIP], int64_t *ones)
{
    __m512i x[8], sums[8];
    ptrdiff_t w = 0;
    for (int i = 0; i < 8; i++)
        sums[i] = _mm512_setzero_si512();
    for (; w + 8 <= words; w += 8) {
        __m512i one = _mm512_loadu_si512(&planes[0][w]), two = _mm512_loadu_si512(&planes[1][w]);
        __m512i four = _mm512_loadu_si512(&planes[2][w]), a, b, c, d, e, f, carry;
        for (int i = 0; i < 8; i++) {
            if (ahead)
                __builtin_prefetch(rows + ahead + i * stride + w, 0, 2);
            x[i] = _mm512_loadu_si512(rows + i * stride + w);
            if (ones)
                sums[i] = _mm512_add_epi64(sums[i], _mm512_popcnt_epi64(x[i]));
        }
        DPFAST_ADD3_EIGHT(one, a, one, x[0], x[1]);
        DPFAST_ADD3_EIGHT(one, b, one, x[2], x[3]);
        DPFAST_ADD3_EIGHT(two, e, two, a, b);
        DPFAST_ADD3_EIGHT(one, c, one, x[4], x[5]);
        DPFAST_ADD3_EIGHT(one, d, one, x[6], x[7]);
        DPFAST_ADD3_EIGHT(two, f, two, c, d);
        DPFAST_ADD3_EIGHT(four, carry, four, e, f);
        _mm512_storeu_si512(&planes[0][w], one);
        _mm512_storeu_si512(&planes[1][w], two);
        _mm512_storeu_si512(&planes[2][w], four);
        for (int l = 3; l < DPFAST_PLANES; l++) {
            const __m512i plane = _mm512_loadu_si512(&planes[l][w]);
            _mm512_storeu_si512(&planes[l][w], _mm512_xor_si512(plane, carry));
            carry = _mm512_and_si512(plane, carry);
        }
    }
    dpfast_add_words(rows + w, stride, (int)(words - w), &planes[0][w]);
    for (int i = 0; ones && i < 8; i++)
        ones[i] += _mm512_reduce_add_epi64(sums[i]) + dpfast_popcount(rows + i * stride + w, words - w);
}
#endif

/* Add eight rows of a strip to its counters and, where `ones` is given, their numbers of ones to those of the rows. */
static inline void dpfast_add_strip(const uint64_t *rows, ptrdiff_t stride, ptrdiff_t words, ptrdiff_t ahead,
                                    uint64_t planes[DPFAST_PLANES][DPFAST_STRIP], int64_t *ones)
{
#if DPFAST_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vpopcntdq")) {
        dpfast_add_eight(rows, stride, words, ahead, planes, ones);
        return;
    }
#endif
    dpfast_add_rows(rows, stride, words, ahead, planes);
    if (ones)
        dpfast_add_ones(rows, stride, words, ones);
}

/* counts[j] += the number of rows whose bit j is 1, for 64 * words columns; and, unless `ones` is NULL, ones[i] += the
 * number of ones of row i. Rows are `stride` words apart. */
static inline void dpfast_count_columns(const uint64_t *rows, ptrdiff_t n, ptrdiff_t stride, ptrdiff_t words,
                                        int64_t *counts, int64_t *ones)
{
    const ptrdiff_t most = 264 * DPFAST_MOST_ROWS;
    const int far = stride > DPFAST_STRIP;
    uint64_t planes[DPFAST_PLANES][DPFAST_STRIP] __attribute__((aligned(64)));
    uint64_t sums[DPFAST_SUM_PLANES][DPFAST_STRIP] __attribute__((aligned(64))), last[8 * DPFAST_STRIP];
    for (ptrdiff_t first = 0; first < words; first += DPFAST_STRIP) {
        ptrdiff_t width = words - first < DPFAST_STRIP ? words - first : DPFAST_STRIP;
        for (int l = 0; l < DPFAST_PLANES; l++)
            memset(planes[l], 0, (size_t)width * sizeof planes[l][0]);
        for (ptrdiff_t start = 0; start < n; start += most) {
            ptrdiff_t stop = n - start < most ? n : start + most, i = start;
            for (int l = 0; l < DPFAST_SUM_PLANES; l++)
                memset(sums[l], 0, (size_t)width * sizeof sums[l][0]);
            while (i < stop) {
                ptrdiff_t end = stop - i < DPFAST_MOST_ROWS ? stop : i + DPFAST_MOST_ROWS;
                for (; i + 8 <= end; i += 8)
                    dpfast_add_strip(rows + i * stride + first, stride, width, far && i + 16 <= n ? 8 * stride : 0,
                                     planes, ones ? ones + i : NULL);
                if (i < end) { /* the last rows, and rows of zeros */
                    int64_t few[8] = {0};
                    memset(last, 0, 8 * (size_t)width * sizeof *last);
                    for (ptrdiff_t row = i; row < end; row++)
                        memcpy(last + (row - i) * width, rows + row * stride + first, (size_t)width * sizeof *rows);
                    dpfast_add_strip(last, width, width, 0, planes, few);
                    for (; i < end; i++)
                        if (ones)
                            ones[i] += few[i % 8];
                }
                dpfast_add_planes(planes, width, sums);
            }
            for (ptrdiff_t w = 0; w < width; w++) {
                int64_t *column = counts + 64 * (first + w);
                dpfast_spread_planes(&sums[0][w], DPFAST_STRIP, 0, column);
                if (stop - start >= 1 << DPFAST_PLANES)
                    dpfast_spread_planes(&sums[DPFAST_PLANES][w], DPFAST_STRIP, DPFAST_PLANES, column);
            }
        }
    }
}

#endif
