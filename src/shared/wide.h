/* Numbers of 53 bits with an exponent of 64: sums and products that no double holds. docs/proofs/joint-quantiles.md
 *
 * A number is mantissa 2^exponent, the mantissa in [1/2, 1), or 0. Sums and products are rounded to nearest, as those of
 * doubles are that are neither too large nor too small: a relative error of at most 2^-53 each.
 */
#ifndef DPFAST_WIDE_H
#define DPFAST_WIDE_H

#include <math.h>

#include "certified.h"

typedef struct {
    double mantissa;
    int64_t exponent;
} dpfast_wide;

#define DPFAST_WIDE_ZERO ((dpfast_wide){0.0, INT64_MIN / 4}) /* its exponent is less than all others */

/* The number x >= 0, exact. */
static inline dpfast_wide dpfast_wide_of(double x)
{
    int exponent;
    const double mantissa = frexp(x, &exponent);
    return x > 0.0 ? (dpfast_wide){mantissa, exponent} : DPFAST_WIDE_ZERO;
}

static inline dpfast_wide dpfast_wide_plus(dpfast_wide x, dpfast_wide y)
{
    const dpfast_wide most = x.exponent < y.exponent ? y : x, least = x.exponent < y.exponent ? x : y;
    const int64_t fall = most.exponent - least.exponent;
    if (fall > 64) /* less than half a unit in the last place */
        return most;
    const double sum = most.mantissa + least.mantissa * dpfast_double((uint64_t)(1023 - fall) << 52);
    return sum < 1.0 ? (dpfast_wide){sum, most.exponent} : (dpfast_wide){0.5 * sum, most.exponent + 1};
}

static inline dpfast_wide dpfast_wide_times(dpfast_wide x, dpfast_wide y)
{
    const double product = x.mantissa * y.mantissa;
    if (product == 0.0)
        return DPFAST_WIDE_ZERO;
    const int64_t exponent = x.exponent + y.exponent;
    return product < 0.5 ? (dpfast_wide){2.0 * product, exponent - 1} : (dpfast_wide){product, exponent};
}

/* exp(-y) for y >= 0. Bound: relative error <= 2^-49 (1 + y). It is exp(-y / 2^k), y / 2^k in (256, 512], squared k times,
 * which doubles the error and adds 2^-53 each time: 2^-50 (2^k + y) + 2^k 2^-53, 2^k < y / 256. */
static inline dpfast_wide dpfast_wide_exp_neg(double y)
{
    int squares = 0;
    for (; y > 512.0; squares++)
        y *= 0.5;
    dpfast_wide power = dpfast_wide_of(dpfast_exp_neg(y));
    for (; squares > 0; squares--)
        power = dpfast_wide_times(power, power);
    return power;
}

/* doubles[k] = numbers[k] in units of the largest one's power of two, at least `least` unless it is 0. */
static inline void dpfast_wide_scaled(const dpfast_wide *numbers, ptrdiff_t n, double least, double *doubles)
{
    int64_t most = DPFAST_WIDE_ZERO.exponent;
    for (ptrdiff_t k = 0; k < n; k++)
        most = numbers[k].exponent > most ? numbers[k].exponent : most;
    for (ptrdiff_t k = 0; k < n; k++) {
        const int64_t fall = most - numbers[k].exponent;
        const double x = ldexp(numbers[k].mantissa, fall < 2000 ? -(int)fall : -2000);
        doubles[k] = numbers[k].mantissa > 0.0 && x < least ? least : x;
    }
}

#endif
