/* From values to grid codes: an exact map of each record, monotone except for NaN. On evenly spaced points it scales by a
 * power of two, rounds once to an integer (half to even), and subtracts exactly; on floats of few digits it rounds the
 * bits. docs/proofs/grid.md, docs/proofs/float-grid.md */
#ifndef DPFAST_GRID_H
#define DPFAST_GRID_H

#include <stddef.h>
#include <stdint.h>

#include "certified.h"
#include "odd.h"

typedef struct {
    double lower, upper, step; /* step a power of two; both bounds multiples of it, at most 2^53 steps from 0 */
    double missing;            /* the value for NaN: any number */
    double first;              /* lower / step */
    int shift;                 /* step = 2^shift */
} dpfast_grid;

/* `missing` where x is NaN, else x. */
static inline double dpfast_known(double x, double missing)
{
    uint64_t nan = -(uint64_t)(x != x);
    return dpfast_double((dpfast_bits(x) & ~nan) | (dpfast_bits(missing) & nan));
}

/* The code of a double, as a double in [0, 2^52), for vectorised loops: the compiler has masks for the choices there, and
 * branches on the record elsewhere, where dpfast_encode has masks of its own. Assumes a valid grid. */
static inline double dpfast_code(double x, double lower, double upper, double step, double missing, double first)
{
    x = x == x ? x : missing;
    x = x > lower ? x : lower;
    x = x < upper ? x : upper;
    return __builtin_rint(x / step) - first;
}

static inline int64_t dpfast_encode(const dpfast_grid *g, double x)
{
    x = dpfast_between(dpfast_known(x, g->missing), g->lower, g->upper);
    return (int64_t)(__builtin_rint(x / g->step) - g->first);
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
    return quotient + ((rest > half) | ((rest == half) & (int)(quotient & 1)));
}

/* A double with the code of a 64-bit integer. Rounding before clamping gives the same code: the bounds are multiples of the
 * step, and within 2^53 of 0 if shift <= 0, so that rounded conversions are clamped anyway. */
static inline double dpfast_from_integer(const dpfast_grid *g, __int128 v)
{
    return g->shift <= 0 ? (double)v : (double)dpfast_round_shift(v, g->shift) * g->step;
}

/* ---- floats of few digits ---- */

/* The points i * unit for integers |i| < 2^(digits - 1), and from resolution = 2^(digits - 1) unit on all doubles of
 * `digits` significant bits. The index of a point is i, or the leading bits of its magnitude less `origin`, signed. */
typedef struct {
    double lower, upper;     /* points */
    double missing;          /* the value for NaN: any number */
    double resolution, unit; /* powers of two; resolution at least 2^-1022 */
    int64_t origin, first;   /* the bits of resolution less 2^52; the index of lower */
    int shift;               /* the bits of a fraction that are dropped: 53 - digits, at least 12 */
} dpfast_floats;

/* The code of a double, as a double in [0, 2^52). The sum that rounds the bits half to even may carry into the exponent,
 * which is right: the next point is then a power of two. */
static inline double dpfast_float_code(const dpfast_floats *g, double x)
{
    x = dpfast_between(dpfast_known(x, g->missing), g->lower, g->upper);
    double a = __builtin_fabs(x);
    uint64_t near = dpfast_negative(a - g->resolution);
    uint64_t bits = dpfast_bits(a) - (uint64_t)g->origin, half = (UINT64_C(1) << (g->shift - 1)) - 1;
    uint64_t leading = (bits + half + (bits >> g->shift & 1)) >> g->shift;
    double far = dpfast_double((leading & 0x000FFFFFFFFFFFFFu) | 0x4330000000000000u) - 0x1p52;
    double below = __builtin_rint(dpfast_double(dpfast_bits(a) & near) / g->unit);
    uint64_t index = (dpfast_bits(below) & near) | (dpfast_bits(far) & ~near);
    return dpfast_double(index | (dpfast_bits(x) & 0x8000000000000000u)) - (double)g->first;
}

DPFAST_CLONES static void dpfast_encode_floats(const dpfast_floats *given, const double *x, double *out, ptrdiff_t n)
{
    const dpfast_floats g = *given;
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = dpfast_float_code(&g, x[i]);
}

#endif
