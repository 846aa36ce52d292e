/* The exact sums of many groups of records, and what is released of them. docs/proofs/groups.md */
#ifndef DPFAST_SEGMENTS_H
#define DPFAST_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "certified.h"

typedef unsigned __int128 dpfast_whole;

/* A group: the number of its records, the sum of their codes, and the sum of the squares in two words. */
enum { DPFAST_COUNT, DPFAST_TOTAL, DPFAST_SQUARES, DPFAST_SQUARES_HIGH };

/* Adds a code of 0..last to a group of `width` words, 4 with squares. A code below 0 is a missing record: with `half` it
 * becomes 0 at an even place in its group, `last` at an odd one; else it is left out. */
static inline void dpfast_add_code(int64_t *group, int64_t code, int64_t last, int half, ptrdiff_t width)
{
    if (code < 0) {
        if (!half)
            return;
        code = group[DPFAST_COUNT] & 1 ? last : 0;
    }
    group[DPFAST_COUNT]++;
    group[DPFAST_TOTAL] += code;
    if (width > DPFAST_SQUARES) {
        dpfast_whole square = (dpfast_whole)(uint64_t)code * (uint64_t)code;
        square += (uint64_t)group[DPFAST_SQUARES];
        group[DPFAST_SQUARES] = (int64_t)(uint64_t)square;
        group[DPFAST_SQUARES_HIGH] += (int64_t)(uint64_t)(square >> 64);
    }
}

static inline int dpfast_length(dpfast_whole x)
{
    uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;
    return high ? 128 - __builtin_clzll(high) : low ? 64 - __builtin_clzll(low) : 0;
}

/* a / b as a double, rounded once, half to even; b > 0. Beyond exact doubles it is that of 57 bits of the quotient, the last
 * of which says whether more follow. */
static inline double dpfast_quotient(dpfast_whole a, uint64_t b)
{
    const dpfast_whole exact = (dpfast_whole)1 << 53;
    if (a == 0 || (a <= exact && b <= exact))
        return (double)(int64_t)a / (double)(int64_t)b;
    int left = 128 - dpfast_length(a);
    dpfast_whole quotient = (a << left) / b, rest = (a << left) - quotient * b;
    int drop = dpfast_length(quotient) - 57; /* at least 6: a << left is 2^127 at least */
    uint64_t bits = (uint64_t)(quotient >> drop);
    bits |= (quotient & (((dpfast_whole)1 << drop) - 1)) != 0 || rest != 0;
    return __builtin_ldexp((double)(int64_t)bits, drop - left);
}

/* What is public of the variance of n records on last + 1 points: that of `Variance.sensitivity`, `span`, `coarseness` and
 * `last` in dpfast/statistics/moment.py. */
typedef struct {
    dpfast_whole span;
    int64_t sensitivity, last;
    int shift;
} dpfast_spread;

static inline dpfast_spread dpfast_spread_of(int64_t n, int64_t last)
{
    dpfast_spread out;
    dpfast_whole square = (dpfast_whole)(uint64_t)last * (uint64_t)last,
                 most = (dpfast_whole)(uint64_t)(n - 1) * square;
    out.span = ((dpfast_whole)(uint64_t)n * (uint64_t)n >> 2) * square;
    dpfast_whole excess = most >> 32 > out.span >> 62 ? most >> 32 : out.span >> 62;
    out.shift = dpfast_length(excess);
    dpfast_whole below = ((dpfast_whole)1 << out.shift) - 1;
    out.sensitivity = (int64_t)((most + below) >> out.shift);
    out.last = (int64_t)((out.span + below) >> out.shift);
    return out;
}

/* n sum(x^2) - sum(x)^2 of a group in release codes, rounded half up. */
static inline int64_t dpfast_spread_code(const int64_t *group, int shift)
{
    dpfast_whole squares = (dpfast_whole)(uint64_t)group[DPFAST_SQUARES_HIGH] << 64 | (uint64_t)group[DPFAST_SQUARES];
    dpfast_whole total = (dpfast_whole)(uint64_t)group[DPFAST_TOTAL] * (uint64_t)group[DPFAST_TOTAL];
    dpfast_whole code = (dpfast_whole)(uint64_t)group[DPFAST_COUNT] * squares - total;
    return (int64_t)((code + (((dpfast_whole)1 << shift) >> 1)) >> shift);
}

/* The variance in squared steps that a release code means. */
static inline double dpfast_spread_value(int64_t code, int64_t n, int64_t last)
{
    dpfast_spread public = dpfast_spread_of(n, last);
    dpfast_whole span = (dpfast_whole)(uint64_t)code << public.shift;
    return dpfast_quotient(span < public.span ? span : public.span, (uint64_t)n * (uint64_t)n);
}

#endif
