/* Keys against up to 15 brackets at once: counts of those below, in and between the brackets, and a copy of those inside.
 *
 * Brackets are disjoint, each from one edge to the next, the second excluded. The class of a key is the number of edges
 * up to it: odd inside a bracket. A search among the edges, which stay in registers of AVX-512, finds the classes of
 * eight keys in five steps, and their counts are nibbles of two registers; that is 4 instructions a key, none of which
 * branches on a key. Only a block with NaN is read again, with their value filled in.
 */
#ifndef DPFAST_BRACKETS_H
#define DPFAST_BRACKETS_H

#include "select.h"

#define BRACKETS_MOST 15
#define BRACKETS_EDGES 31   /* 2 for each bracket and one that no key reaches */
#define BRACKETS_BLOCK 2040 /* keys of one call: at most 255 in each lane, 15 x 17 */

/* Whether this machine has the vectors: without them buckets are faster. */
static inline int brackets_pay(void)
{
#if DPFAST_AVX512
    return dpfast_has_avx512() != 0;
#else
    return 0;
#endif
}

/* Edges ascending, then NaN, which no key reaches. */
struct brackets {
    double edges[BRACKETS_EDGES + 1];
    int used; /* edges that are not NaN */
};

struct brackets_counts {
    int64_t of[BRACKETS_EDGES + 1]; /* keys of each class */
};

/* Counts and copies keys one by one; -1 if a key is NaN. */
static ptrdiff_t brackets_each(const double *x, ptrdiff_t count, const struct brackets *b, double *out,
                               struct brackets_counts *counts)
{
    ptrdiff_t copied = 0;
    int missing = 0;
    for (ptrdiff_t i = 0; i < count; i++)
        missing |= x[i] != x[i];
    for (ptrdiff_t i = 0; i < count && !missing; i++) {
        int class = 0;
        for (int e = 0; e < b->used; e++)
            class += x[i] >= b->edges[e];
        counts->of[class]++;
        out[copied] = x[i];
        copied += class % 2;
    }
    return missing ? -1 : copied;
}

#if DPFAST_AVX512
#include <immintrin.h>

#define BRACKETS_SET(edges, at, step) \
    _mm512_setr_pd((edges)[at], (edges)[(at) + (step)], (edges)[(at) + 2 * (step)], (edges)[(at) + 3 * (step)], \
                   (edges)[(at) + 4 * (step)], (edges)[(at) + 5 * (step)], (edges)[(at) + 6 * (step)], \
                   (edges)[(at) + 7 * (step)])

/* Whole vectors; -1 if a key is NaN. */
DPFAST_512 static ptrdiff_t brackets_search(const double *x, ptrdiff_t count, const struct brackets *b, double *out,
                                            struct brackets_counts *counts)
{
    const double *edges = b->edges;
    const __m512d top = _mm512_set1_pd(edges[15]), lower = _mm512_set1_pd(edges[7]), upper = _mm512_set1_pd(edges[23]);
    const __m512d fourths = _mm512_setr_pd(edges[3], edges[11], edges[19], edges[27], 0.0, 0.0, 0.0, 0.0);
    const __m512d eighths = BRACKETS_SET(edges, 1, 4);
    const __m512d first = BRACKETS_SET(edges, 0, 2), second = BRACKETS_SET(edges, 16, 2);
    const __m512i one = _mm512_set1_epi64(1), two = _mm512_set1_epi64(2),
                  nibble = _mm512_set1_epi64(0x0F0F0F0F0F0F0F0F);
    __m512i bytes[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
    __mmask8 missing = 0;
    double *end = out;
    for (ptrdiff_t start = 0; start < count; start += 15 * 8) {
        const ptrdiff_t stop = count - start < 15 * 8 ? count : start + 15 * 8;
        __m512i outside = _mm512_setzero_si512(), within = outside; /* 16 counts of four bits in each lane */
        for (ptrdiff_t i = start; i < stop; i += 8) {
            const __m512d keys = _mm512_loadu_pd(x + i);
            const __mmask8 high = _mm512_cmp_pd_mask(keys, top, _CMP_GE_OQ);
            missing |= _mm512_cmp_pd_mask(keys, keys, _CMP_UNORD_Q);
            __mmask8 next = _mm512_cmp_pd_mask(keys, _mm512_mask_blend_pd(high, lower, upper), _CMP_GE_OQ);
            __m512i index = _mm512_maskz_mov_epi64(high, two);
            index = _mm512_mask_add_epi64(index, next, index, one);
            next = _mm512_cmp_pd_mask(keys, _mm512_permutexvar_pd(index, fourths), _CMP_GE_OQ);
            index = _mm512_add_epi64(index, index);
            index = _mm512_mask_add_epi64(index, next, index, one);
            next = _mm512_cmp_pd_mask(keys, _mm512_permutexvar_pd(index, eighths), _CMP_GE_OQ);
            index = _mm512_add_epi64(index, index);
            index = _mm512_mask_add_epi64(index, next, index, one);
            const __mmask8 inside = _mm512_cmp_pd_mask(keys, _mm512_permutex2var_pd(first, index, second), _CMP_GE_OQ);
            const __m512i counted = _mm512_sllv_epi64(one, _mm512_slli_epi64(index, 2));
            outside = _mm512_mask_add_epi64(outside, (__mmask8)~inside, outside, counted);
            within = _mm512_mask_add_epi64(within, inside, within, counted);
            _mm512_storeu_pd(end, _mm512_maskz_compress_pd(inside, keys));
            end += __builtin_popcount(inside);
        }
        bytes[0] = _mm512_add_epi64(bytes[0], _mm512_and_si512(outside, nibble));
        bytes[1] = _mm512_add_epi64(bytes[1], _mm512_and_si512(_mm512_srli_epi64(outside, 4), nibble));
        bytes[2] = _mm512_add_epi64(bytes[2], _mm512_and_si512(within, nibble));
        bytes[3] = _mm512_add_epi64(bytes[3], _mm512_and_si512(_mm512_srli_epi64(within, 4), nibble));
    }
    if (missing)
        return -1;
    const uint8_t *parts = (const uint8_t *)bytes;
    for (int part = 0; part < 4; part++)
        for (int k = 0; k < 64; k++)
            counts->of[4 * (k % 8) + 2 * (part % 2) + part / 2] += parts[64 * part + k];
    return end - out;
}
#endif

/* Adds the counts of at most BRACKETS_BLOCK keys, and copies those inside a bracket, in order. Returns how many it copied,
 * or -1, without counting, if a key is NaN; `out` has room for `count` keys and 8 more. */
static ptrdiff_t brackets_filter(const double *x, ptrdiff_t count, const struct brackets *b, double *out,
                                 struct brackets_counts *counts)
{
#if DPFAST_AVX512
    if (brackets_pay()) {
        const ptrdiff_t whole = count - count % 8;
        struct brackets_counts rest = {{0}};
        double kept[8];
        const ptrdiff_t last = brackets_each(x + whole, count - whole, b, kept, &rest);
        const ptrdiff_t copied = last < 0 ? -1 : brackets_search(x, whole, b, out, counts);
        if (copied < 0)
            return -1;
        for (int c = 0; c <= b->used; c++)
            counts->of[c] += rest.of[c];
        memcpy(out + copied, kept, (size_t)last * sizeof *out);
        return copied + last;
    }
#endif
    return brackets_each(x, count, b, out, counts);
}

/* Counts records start..stop-1, and copies those inside to `room`, for `capacity` keys and a block more. Returns how many
 * it copied, -1 if there are too many, or -2 if one is NaN and `missing` too. */
static ptrdiff_t brackets_scan(const struct select_keys *keys, const struct brackets *b, ptrdiff_t start,
                               ptrdiff_t stop, double *room, ptrdiff_t capacity, struct brackets_counts *counts)
{
    double block[BRACKETS_BLOCK];
    ptrdiff_t copied = 0;
    for (ptrdiff_t i = start; i < stop; i += BRACKETS_BLOCK) {
        const ptrdiff_t count = stop - i < BRACKETS_BLOCK ? stop - i : BRACKETS_BLOCK;
        const double *x = (const double *)keys->data + i;
        ptrdiff_t more = keys->in_place ? brackets_filter(x, count, b, room + copied, counts) : -1;
        if (more < 0) {
            select_load_filled(keys, i, count, block);
            more = brackets_filter(block, count, b, room + copied, counts);
            if (more < 0)
                return -2;
        }
        copied += more;
        if (copied > capacity)
            return -1;
    }
    return copied;
}

#endif
