/* From values to grid codes: an exact map of each record, monotone except for NaN. It scales by a power of two, rounds once
 * to an integer (half to even), and subtracts exactly. */
#ifndef DPFAST_GRID_H
#define DPFAST_GRID_H

#include <stddef.h>
#include <stdint.h>

#include "certified.h"

typedef struct {
    double lower, upper, step;  /* step a power of two; both bounds multiples of it, at most 2^53 steps from 0 */
    double missing;             /* the value for NaN: any number */
    double first;               /* lower / step */
    int shift;                  /* step = 2^shift */
} dpfast_grid;

/* The code of a double, as a double in [0, 2^52). Assumes a valid grid. */
static inline double dpfast_code(double x, double lower, double upper, double step, double missing, double first)
{
    x = x == x ? x : missing;
    x = x > lower ? x : lower;
    x = x < upper ? x : upper;
    return __builtin_rint(x / step) - first;
}

static inline int64_t dpfast_encode(const dpfast_grid *g, double x)
{
    return (int64_t)dpfast_code(x, g->lower, g->upper, g->step, g->missing, g->first);
}

/* The clones copy the fields to locals, so that the compiler can keep them in registers across the stores. */
DPFAST_CLONES static void dpfast_encode_array(const dpfast_grid *g, const double *x, int64_t *out, ptrdiff_t n)
{
    const double lower = g->lower, upper = g->upper, step = g->step, missing = g->missing, first = g->first;
    for (ptrdiff_t i = 0; i < n; i++) {
        double code = dpfast_code(x[i], lower, upper, step, missing, first);
        out[i] = (int64_t)(dpfast_bits(code + 0x1p52) & 0x000FFFFFFFFFFFFFu);
    }
}

/* v / 2^shift rounded to an integer, half to even: for 64-bit integers, which doubles may not represent. shift >= 1.
 * The result may be 2^63: the greatest uint64 rounded to a multiple of 2. */
static inline __int128 dpfast_round_shift(__int128 v, int shift)
{
    if (shift > 64)
        return 0;
    __int128 half = (__int128)1 << (shift - 1);
    __int128 quotient = v >> shift;
    __int128 rest = v - quotient * 2 * half;
    return quotient + (rest > half || (rest == half && (quotient & 1)));
}

/* The code of a 64-bit integer. Rounding before clamping gives the same code: the bounds are multiples of the step. */
static inline int64_t dpfast_encode_integer(const dpfast_grid *g, __int128 v)
{
    if (g->shift <= 0)              /* the bounds are within 2^53 of 0: rounded conversions are clamped anyway */
        return dpfast_encode(g, (double)v);
    return dpfast_encode(g, (double)dpfast_round_shift(v, g->shift) * g->step);
}

#endif
