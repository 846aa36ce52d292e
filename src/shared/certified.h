/* Doubles with proved error bounds. docs/proofs/certified-doubles.md
 *
 * libm is not used: only + - * / of IEEE 754 doubles, each correctly rounded, and integer operations. Every machine
 * computes the same bits; callers decide only where the stated bound leaves no doubt.
 */
#ifndef DPFAST_CERTIFIED_H
#define DPFAST_CERTIFIED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"

#define DPFAST_UNDECIDED INT64_MIN

static inline uint64_t dpfast_bits(double x)
{
    uint64_t b;
    memcpy(&b, &x, 8);
    return b;
}
static inline double dpfast_double(uint64_t b)
{
    double x;
    memcpy(&x, &b, 8);
    return x;
}

/* All bits set if x < 0, without a comparison: compilers turn some of these into branches, and SSE2 has none whose result
 * fits into a vector of 64-bit integers. */
static inline uint64_t dpfast_negative(double x)
{
    return -(dpfast_bits(x) >> 63);
}

/* x between lower and upper, lower <= upper; x is not NaN. */
static inline double dpfast_between(double x, double lower, double upper)
{
    uint64_t below = dpfast_negative(x - lower), above = dpfast_negative(upper - x);
    return dpfast_double((dpfast_bits(x) & ~(below | above)) | (dpfast_bits(lower) & below)
                         | (dpfast_bits(upper) & above));
}

/* The nearest double to a 64-bit word: two exact halves, one rounding. Relative error <= 2^-53. */
static inline double dpfast_from_word(uint64_t w)
{
    double high = dpfast_double((w >> 32) | 0x4530000000000000u);        /* 2^84 + high * 2^32, exact */
    double low = dpfast_double((w & 0xFFFFFFFFu) | 0x4330000000000000u); /* 2^52 + low, exact */
    return (high - 0x1.00000001p84) + low; /* (high * 2^32 - 2^52) exact, then one rounding */
}

/* An integer-valued double of magnitude <= 2^51 as an int64, in vector registers. */
static inline int64_t dpfast_to_int(double x)
{
    return (int64_t)(dpfast_bits(x + 0x1.8p52) - 0x4338000000000000u);
}

/* (atanh(s) / s - 1) / v, v = s^2: 1/3 + v/5 + ... to v^9/21. For |s| < 0.1716 the rest is < 2^-60 of atanh(s). */
static inline double dpfast_atanh_tail(double v)
{
    double p = 1.0 / 21;

    p = p * v + 1.0 / 19;
    p = p * v + 1.0 / 17;
    p = p * v + 1.0 / 15;
    p = p * v + 1.0 / 13;
    p = p * v + 1.0 / 11;
    p = p * v + 1.0 / 9;
    p = p * v + 1.0 / 7;
    p = p * v + 1.0 / 5;
    return p * v + 1.0 / 3;
}

/* log x for x in [2^-1022, inf). Bound: |result - exact| <= 2^-50 (|exact| + 1).
 *
 * log x = k log 2 + 2 atanh(s), s = (z - 1)/(z + 1), x = 2^k z, z in [sqrt(1/2), sqrt(2)).
 */
static inline double dpfast_log(double x)
{
    uint64_t b = dpfast_bits(x), k = (b - 0x3FE6A09E667F3BCDu + (UINT64_C(1023) << 52)) >> 52; /* biased by 1023 */
    double f = dpfast_double(b - ((k - 1023) << 52)) - 1.0;
    double s = f / (2.0 + f), v = s * s;
    double exponent = dpfast_double(k | 0x4330000000000000u) - (0x1p52 + 1023.0);
    return exponent * 0x1.62e42fefa39efp-1 + 2.0 * s * (dpfast_atanh_tail(v) * v + 1.0);
}

/* -log(w 2^-64) for w >= 1, with the 2^-k of w = 2^k z, z in [sqrt(1/2), sqrt(2)).
 *
 * Bound: |result - exact| <= 2^-50 (exact + 1).
 * log z = 2 atanh(s), s = (z - 1)/(z + 1), |s| < 0.1716, by its Taylor series to s^21 (the rest is < 2^-60).
 */
static inline double dpfast_neg_log_word(uint64_t w, double *two_to_minus_k)
{
    uint64_t b = dpfast_bits(dpfast_from_word(w));
    uint64_t k = (b - 0x3FE6A09E667F3BCDu) >> 52;  /* the bits of sqrt(1/2): x >= 1 keeps this positive */
    double f = dpfast_double(b - (k << 52)) - 1.0; /* z - 1, exact (Sterbenz) */
    double s = f / (2.0 + f);
    double v = s * s;
    double p = dpfast_atanh_tail(v) * v + 1.0;
    double missing = dpfast_double((64 - k) | 0x4330000000000000u) - 0x1p52; /* 64 - k in 0..64, exact */

    *two_to_minus_k = dpfast_double((1023 - k) << 52);
    return missing * 0x1.62e42fefa39efp-1 - 2.0 * s * p;
}

/* exp(-y) for 0 <= y; 0 for y >= 708. Bound: relative error <= 2^-50 (1 + y).
 *
 * y = j log 2 + r, |r| <= 0.35, by the Taylor series of exp to r^13 (the rest is < 2^-57); the argument
 * may have a relative error of 2^-53 from the caller, which the term y 2^-50 includes.
 */
static inline double dpfast_exp_neg(double y)
{
    uint64_t inside = -(uint64_t)(y < 708.0); /* masks instead of branches, so that loops vectorise */
    double top = dpfast_double(dpfast_bits(y) & inside);
    double j = (top * 0x1.71547652b82fep0 + 0x1.8p52) - 0x1.8p52;         /* nearest integer, 0..1022 */
    double r = j * 0x1.ef35793c7673p-45 - (top - j * 0x1.62e42fefa38p-1); /* log 2 in two pieces: j * high is exact */
    double p = 1.0 / 6227020800.0;

    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    p = p * dpfast_double((uint64_t)(1023 - dpfast_to_int(j)) << 52);
    return dpfast_double(dpfast_bits(p) & inside);
}

/* 1 - exp(-y) for y > 0. Bound: relative error <= 2^-47, also where y is tiny. */
static inline double dpfast_one_minus_exp_neg(double y)
{
    if (y > 0.35)
        return 1.0 - dpfast_exp_neg(y);
    double p = 1.0;
    for (int j = 13; j > 1; j--) /* y - y^2/2! + y^3/3! - ... : the rest is < 2^-60 y */
        p = 1.0 - p * y / j;
    return p * y;
}

/* atan(z) for 0 <= z <= 1, by two half angles and the Taylor series to z^23 (the rest is < 2^-60). Bound: relative
 * error <= 2^-49 for z >= 2^-1018; below, both numbers are at most 2^-1018. */
static inline double dpfast_atan(double z)
{
    double half = z / (1.0 + __builtin_sqrt(1.0 + z * z));
    double quarter = half / (1.0 + __builtin_sqrt(1.0 + half * half));
    double v = quarter * quarter, p = 1.0 / 23;
    for (int j = 21; j > 0; j -= 2)
        p = 1.0 / j - p * v;
    return 4.0 * (quarter * p);
}

/* P(|X| > c) of the density (2 / pi) / (1 + x^2)^2, for c >= 0 (X sqrt(3) is Student's t with 3 degrees of freedom):
 * 1 - (2 / pi) (atan c + c / (1 + c^2)) = (2 / pi) (atan y - y / (1 + y^2)), y = 1 / c. Bound: relative error <= 2^-44 for
 * c <= 2^300; beyond, both numbers are below 2^-899. */
static inline double dpfast_student_tail(double c)
{
    double two_over_pi = 0x1.45f306dc9c883p-1, y = 1.0 / c;
    if (c < 1.0)
        return 1.0 - two_over_pi * (dpfast_atan(c) + c / (1.0 + c * c));
    if (c < 2.5)
        return two_over_pi * (dpfast_atan(y) - y / (1.0 + y * y));
    double v = y * y, p = 0.0;
    for (int n = 22; n > 0; n--) /* sum of (-1)^(n + 1) 2n / (2n + 1) y^(2n + 1): the rest is < 2^-57 of it */
        p = 2.0 * n / (2 * n + 1) - p * v;
    return two_over_pi * (p * v * y);
}

#endif
