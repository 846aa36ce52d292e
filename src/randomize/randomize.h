/* Local randomisers of scalars and categories: one exact coin per report; all else is uniform, independent of the record.
 * docs/proofs/local-categories.md, docs/proofs/local-interval.md
 *
 * Words come in arrays, a fixed number per report; `source` gives the further words that an exactly uniform integer needs,
 * with probability at most 2^-32 per report.
 */
#ifndef DPFAST_RANDOMIZE_H
#define DPFAST_RANDOMIZE_H

#include <string.h>

#include "clones.h"
#include "draws.h"
#include "pages.h"

/* Law: with probability threshold / 2^64 uniform on the window start..start+width-1 of 0..size-1, else on the rest.
 * words: the coin, the place. Assumes 1 <= width < size, start <= size - width. */
static inline uint32_t dpfast_window(bitgen_t *source, const uint64_t *words, uint32_t start, uint32_t width,
                                     uint32_t size, uint64_t threshold)
{
    uint64_t inside = dpfast_mask(words[0] < threshold);
    uint64_t place = dpfast_below(source, words[1], dpfast_either(inside, width, size - width));
    return (uint32_t)(place + dpfast_either(inside, start, width & dpfast_mask(place >= start)));
}

/* Law: 2 row + bit, row uniform on 0..2^m-1, bit the parity of the digits common to row and x with probability
 * threshold / 2^64, else the opposite. words: the coin, the row. `last` is 2^m - 1. */
static inline uint32_t dpfast_row(const uint64_t *words, uint32_t x, uint32_t last, uint64_t threshold)
{
    uint32_t row = (uint32_t)words[1] & last;
    uint32_t bit = (uint32_t)__builtin_parity(row & x) ^ (words[0] >= threshold);
    return 2 * row + bit;
}

/* Round the distance of a number from `lower` to one of the knots s and s + 1 around it, to the upper one with
 * probability (distance - knot s) / (knot s + 1 - knot s), rounded up to 53 binary digits: the mean is the distance
 * for a number between the ends. A NaN is 0; then the distance is clamped to the ends. Assumes at least two knots,
 * strictly increasing and finite. Whatever x, the result is in 0..n-1. */
static inline uint32_t dpfast_dither(double x, double lower, uint64_t word, const double *knots, ptrdiff_t n)
{
    x = (x == x ? x : 0.0) - lower;
    x = x > knots[0] ? x : knots[0];
    x = x < knots[n - 1] ? x : knots[n - 1];
    const double *low = knots;
    for (ptrdiff_t left = n - 1; left > 1;) {
        ptrdiff_t half = left / 2;
        low = low[half] <= x ? low + half : low;
        left -= half;
    }
    double part = (x - low[0]) / (low[1] - low[0]);
    return (uint32_t)(low - knots) + ((double)(word >> 11) * 0x1p-53 < part);
}

/* The number of binary digits of a threshold that are compared in 64 lanes at once; 2^-8 of the lanes remain open. */
#define DPFAST_DIGITS 8

/* Law: bits that are 1 with probability threshold / 2^64, in 64 lanes for each of n words of `bits`, except the lanes
 * set in `open`, whose random number agrees with the threshold in its first DPFAST_DIGITS digits.
 * words: n for the first digit, n for the second, ... */
DPFAST_CLONES static void dpfast_threshold_bits(const uint64_t *words, uint64_t threshold, uint64_t *bits,
                                                uint64_t *open, ptrdiff_t n)
{
    memset(bits, 0, (size_t)n * sizeof *bits);
    memset(open, 0xff, (size_t)n * sizeof *open);
    for (int digit = 0; digit < DPFAST_DIGITS; digit++, words += n) {
        uint64_t ones = -(threshold >> (63 - digit) & 1);
        for (ptrdiff_t i = 0; i < n; i++) {
            bits[i] |= open[i] & ones & ~words[i]; /* digit 0 under a 1: the number is below the threshold */
            open[i] &= ~(words[i] ^ ones);
        }
    }
}

/* Law, with dpfast_threshold_bits: the open lanes are decided by the remaining digits of the threshold, one word each. */
static inline uint64_t dpfast_close_lanes(bitgen_t *source, uint64_t bits, uint64_t open, uint64_t threshold)
{
    uint64_t rest = threshold << DPFAST_DIGITS >> DPFAST_DIGITS;
    for (; open; open &= open - 1)
        if (source->next_uint64(source->state) >> DPFAST_DIGITS < rest)
            bits |= open & -open;
    return bits;
}

/* Law: with probability threshold / 2^64 a uniform set of `width` of the categories 0..size-1 with x in it, else one
 * without x; its indicator, packed, is added to `out`, which is zero. words: the coin, then `width` places.
 * Floyd's algorithm on the categories other than x, numbered by skipping x. Assumes 1 <= width < size, x < size. */
static inline void dpfast_subset(bitgen_t *source, const uint64_t *words, uint32_t x, uint32_t width, uint32_t size,
                                 uint64_t threshold, uint64_t *out)
{
    uint32_t inside = words[0] < threshold, others = width - inside;
    for (uint32_t i = 0; i < width; i++) {
        uint64_t used =
            dpfast_mask(i < others); /* not the last if x is inside, whose word then is one without rejection */
        uint32_t last = size - 1 - others + i;
        uint32_t place = (uint32_t)(dpfast_below(source, words[1 + i] | ~used, (uint64_t)last + 1) & used);
        place += place >= x;
        uint32_t newest = last + (last >= x);
        uint64_t taken = dpfast_mask(out[place >> 6] >> (place & 63) & 1);
        place = (uint32_t)dpfast_either(taken & used, newest, place);
        out[place >> 6] |= (used & 1) << (place & 63);
    }
    out[x >> 6] |= (uint64_t)inside << (x & 63);
}

/* The number of bits that are 1. */
DPFAST_CLONES static uint64_t dpfast_weight(const uint64_t *bits, ptrdiff_t n)
{
    uint64_t ones = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        ones += (uint64_t)__builtin_popcountll(bits[i]);
    return ones;
}

/* The same law as dpfast_subset, for large sets. The bits of the categories other than x are drawn alike and independent
 * of each other; then random ones are flipped, from 0 to 1 or from 1 to 0, until `width` - 1 are 1; one more is found,
 * and taken in place of x if the coin says so. words: the coin, then DPFAST_DIGITS words for each of the
 * n = ceil(size / 64) of `out`; further ones for places, whose number depends neither on x nor on the coin. `open` has
 * room for n words. */
static inline void dpfast_large_subset(bitgen_t *source, const uint64_t *words, uint32_t x, uint32_t width,
                                       uint32_t size, uint64_t threshold, uint64_t *out, uint64_t *open, ptrdiff_t n)
{
    uint64_t inside = words[0] < threshold, share = ((uint64_t)width << DPFAST_DIGITS) / size, found = 0;
    dpfast_threshold_bits(words + 1, share << (64 - DPFAST_DIGITS), out, open, n);
    out[n - 1] &= ~UINT64_C(0) >> (-size & 63);
    out[x >> 6] &= ~(UINT64_C(1) << (x & 63));
    for (uint64_t ones = dpfast_weight(out, n), surplus = ones >= width; ones != width - 1;) {
        uint32_t place = (uint32_t)dpfast_below(source, source->next_uint64(source->state), size);
        uint64_t flip = ((out[place >> 6] >> (place & 63) & 1) == surplus) & (place != x);
        out[place >> 6] ^= flip << (place & 63);
        ones += surplus ? -flip : flip;
    }
    while (!found) {
        uint32_t place = (uint32_t)dpfast_below(source, source->next_uint64(source->state), size);
        found = ~(out[place >> 6] >> (place & 63)) & (place != x);
        out[place >> 6] |= (found & ~inside) << (place & 63);
    }
    out[x >> 6] |= inside << (x & 63);
}

/* The largest prime below 2^32: lines over its field hash categories, any two of them independently. */
#define DPFAST_PRIME 4294967291u

/* Law: a line (slope, offset), uniform among those with (slope x + offset) mod PRIME below `edge` with probability
 * threshold / 2^64, else among the others. words: the coin, the slope, the height at x.
 * Assumes 1 <= edge < PRIME, x < PRIME. */
static inline void dpfast_line(bitgen_t *source, const uint64_t *words, uint32_t x, uint32_t edge, uint64_t threshold,
                               uint32_t *out)
{
    uint64_t inside = dpfast_mask(words[0] < threshold);
    uint64_t slope = dpfast_below(source, words[1], DPFAST_PRIME);
    uint64_t height =
        dpfast_below(source, words[2], dpfast_either(inside, edge, DPFAST_PRIME - edge)) + (edge & ~inside);
    out[0] = (uint32_t)slope;
    out[1] = (uint32_t)((height + DPFAST_PRIME - slope * x % DPFAST_PRIME) % DPFAST_PRIME);
}

/* The transform of the four integers x[0], x[step], ..., for `step` neighbouring places of the first. */
static inline __attribute__((always_inline)) void dpfast_butterflies(int64_t *x, ptrdiff_t step)
{
    for (ptrdiff_t i = 0; i < step; i++) {
        const int64_t a = x[i] + x[i + step], b = x[i] - x[i + step];
        const int64_t c = x[i + 2 * step] + x[i + 3 * step], d = x[i + 2 * step] - x[i + 3 * step];
        x[i] = a + c;
        x[i + step] = b + d;
        x[i + 2 * step] = a - c;
        x[i + 3 * step] = b - d;
    }
}

/* Each entry becomes the sum of all entries j, with the sign of the parity of j & its index: the Walsh-Hadamard transform
 * of 2^m integers, in place, two steps between neighbours in one read and one write. Four blocks of one size are joined as
 * soon as they are done, in the cache if it holds them. The first step is one for itself, which gcc vectorises. */
DPFAST_CLONES static void dpfast_hadamard(int64_t *x, ptrdiff_t n)
{
    ptrdiff_t block = n;
    while (block > 2048)
        block /= 4;
    for (ptrdiff_t done = block; done <= n; done += block) {
        int64_t *first = x + done - block;
        ptrdiff_t size = 2;
        for (ptrdiff_t i = 0; i + 1 < block; i += 2) {
            const int64_t a = first[i], b = first[i + 1];
            first[i] = a + b;
            first[i + 1] = a - b;
        }
        for (; 4 * size <= block; size *= 4)
            for (ptrdiff_t i = 0; i < block; i += 4 * size)
                dpfast_butterflies(first + i, size);
        for (ptrdiff_t i = 0; size < block && i < size; i++) {
            const int64_t a = first[i], b = first[size + i];
            first[i] = a + b;
            first[size + i] = a - b;
        }
        for (size = block; size < n && done % (4 * size) == 0; size *= 4)
            dpfast_butterflies(x + done - 4 * size, size);
    }
}

/* counts[v] += the number of the n lines below `edge` at v, for v = 0..size-1; returns the number of lines, which are
 * those whose numbers are below PRIME. Lines advance in parallel, one category at a time. Assumes edge < PRIME. */
DPFAST_CLONES static ptrdiff_t dpfast_count_lines(const uint32_t *lines, ptrdiff_t n, uint32_t edge, int64_t *counts,
                                                  ptrdiff_t size)
{
    enum { ABREAST = 256 };
    uint32_t height[ABREAST], slope[ABREAST];
    ptrdiff_t counted = 0;
    for (ptrdiff_t first = 0; first < n; first += ABREAST) {
        for (ptrdiff_t i = 0; i < ABREAST; i++) {
            const uint32_t *line = lines + 2 * (first + i);
            const int is_line = first + i < n && line[0] < DPFAST_PRIME && line[1] < DPFAST_PRIME;
            slope[i] = is_line ? line[0] : 0; /* in place of others: a line that stays above every edge */
            height[i] = is_line ? line[1] : DPFAST_PRIME - 1;
            counted += is_line;
        }
        for (ptrdiff_t v = 0; v < size; v++) {
            uint32_t below = 0;
            for (int i = 0; i < ABREAST; i++) {
                uint32_t h = height[i], room = DPFAST_PRIME - slope[i];
                below += h < edge;
                height[i] = h - room + (DPFAST_PRIME & -(uint32_t)(h < room));
            }
            counts[v] += below;
        }
    }
    return counted;
}

#endif
