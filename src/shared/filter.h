/* Keys of an array against an open interval: counts of those at or beyond each end, and a copy of those inside.
 *
 * No step branches on a key, so that no share of copied keys is slower than another. With AVX-512 a vector is compressed
 * in a register and stored whole, at 2 instructions a key. Elsewhere chunks that hold a key to copy are first moved
 * together, and their keys then copied one by one.
 */
#ifndef DPFAST_FILTER_H
#define DPFAST_FILTER_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"

#define FILTER_CHUNK 8    /* keys of one step; the copy writes whole chunks */
#define FILTER_BLOCK 2048 /* keys of one call at most: a third of a first-level cache */

struct filter_counts {
    ptrdiff_t from_low, above_low; /* keys >= low, keys > low; NaN is never counted */
    ptrdiff_t to_high, below_high; /* keys <= high, keys < high */
};

/* GCC's generic vectors, which every target lowers: a comparison gives -1 or 0 per lane. */
#define FILTER_VECTOR 4
typedef double filter_doubles __attribute__((vector_size(8 * FILTER_VECTOR), aligned(8), may_alias));
typedef int64_t filter_masks __attribute__((vector_size(8 * FILTER_VECTOR)));

#define FILTER_SUM(v) ((v)[0] + (v)[1] + (v)[2] + (v)[3])

/* Whole chunks; see filter_between. */
DPFAST_CLONES
static ptrdiff_t filter_chunks(const double *x, ptrdiff_t count, double low, double high, double *out,
                               struct filter_counts *counts)
{
    const filter_doubles lows = {low, low, low, low}, highs = {high, high, high, high};
    filter_masks from_low = {0}, above_low = {0}, to_high = {0}, below_high = {0};
    double staged[FILTER_BLOCK + FILTER_CHUNK];
    ptrdiff_t held = 0, copied = 0;
    for (ptrdiff_t i = 0; i < count; i += FILTER_CHUNK) {
        const filter_doubles *keys = (const filter_doubles *)(x + i);
        filter_masks inside = {0};
        for (int v = 0; v < FILTER_CHUNK / FILTER_VECTOR; v++) {
            const filter_masks above = keys[v] > lows, below = keys[v] < highs;
            from_low -= keys[v] >= lows;
            above_low -= above;
            to_high -= keys[v] <= highs;
            below_high -= below;
            inside |= above & below;
        }
        memcpy(staged + held, x + i, FILTER_CHUNK * sizeof *x);
        held += FILTER_SUM(inside) ? FILTER_CHUNK : 0;
    }
    for (ptrdiff_t i = 0; i < held; i++) {
        const double key = staged[i];
        out[copied] = key;
        copied += (key > low) & (key < high);
    }
    counts->from_low += FILTER_SUM(from_low);
    counts->above_low += FILTER_SUM(above_low);
    counts->to_high += FILTER_SUM(to_high);
    counts->below_high += FILTER_SUM(below_high);
    return copied;
}

#if DPFAST_AVX512
#include <immintrin.h>

DPFAST_512 static ptrdiff_t filter_chunks_avx512(const double *x, ptrdiff_t count, double low, double high, double *out,
                                                 struct filter_counts *counts)
{
    const __m512d lows = _mm512_set1_pd(low), highs = _mm512_set1_pd(high);
    const __m512i one = _mm512_set1_epi64(1);
    __m512i from_low = _mm512_setzero_si512(), above_low = from_low, to_high = from_low, below_high = from_low;
    double *end = out;
    for (ptrdiff_t i = 0; i < count; i += FILTER_CHUNK) {
        const __m512d keys = _mm512_loadu_pd(x + i);
        const __mmask8 above = _mm512_cmp_pd_mask(keys, lows, _CMP_GT_OQ);
        const __mmask8 below = _mm512_cmp_pd_mask(keys, highs, _CMP_LT_OQ);
        const __mmask8 from = _mm512_cmp_pd_mask(keys, lows, _CMP_GE_OQ);
        const __mmask8 to = _mm512_cmp_pd_mask(keys, highs, _CMP_LE_OQ);
        const __mmask8 inside = above & below;
        above_low = _mm512_mask_add_epi64(above_low, above, above_low, one);
        below_high = _mm512_mask_add_epi64(below_high, below, below_high, one);
        from_low = _mm512_mask_add_epi64(from_low, from, from_low, one);
        to_high = _mm512_mask_add_epi64(to_high, to, to_high, one);
        _mm512_storeu_pd(end, _mm512_maskz_compress_pd(inside, keys));
        end += __builtin_popcount(inside);
    }
    counts->from_low += _mm512_reduce_add_epi64(from_low);
    counts->above_low += _mm512_reduce_add_epi64(above_low);
    counts->to_high += _mm512_reduce_add_epi64(to_high);
    counts->below_high += _mm512_reduce_add_epi64(below_high);
    return end - out;
}
#endif

static ptrdiff_t filter_whole(const double *x, ptrdiff_t count, double low, double high, double *out,
                              struct filter_counts *counts)
{
#if DPFAST_AVX512
    if (dpfast_has_avx512())
        return filter_chunks_avx512(x, count, low, high, out, counts);
#endif
    return filter_chunks(x, count, low, high, out, counts);
}

/* Adds the counts of at most FILTER_BLOCK keys, and copies those in the open interval from low to high, in order. Returns
 * how many it copied; `out` has room for `count` keys and FILTER_CHUNK more. A partial chunk is filled with NaN. */
static ptrdiff_t filter_between(const double *x, ptrdiff_t count, double low, double high, double *out,
                                struct filter_counts *counts)
{
    const ptrdiff_t whole = count - count % FILTER_CHUNK;
    ptrdiff_t copied = filter_whole(x, whole, low, high, out, counts);
    if (whole < count) {
        double rest[FILTER_CHUNK];
        for (ptrdiff_t i = 0; i < FILTER_CHUNK; i++)
            rest[i] = whole + i < count ? x[whole + i] : NAN;
        copied += filter_whole(rest, FILTER_CHUNK, low, high, out + copied, counts);
    }
    return copied;
}

#endif
