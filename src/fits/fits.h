/* Maximum-likelihood estimates of one block that need all its records. docs/proofs/block-estimates.md
 *
 * Estimates are doubles, not certified: the mechanism clamps each to a public box and rounds it to a grid, and one
 * record changes one estimate only, by any amount. Errors here therefore cannot break privacy, but the code must
 * terminate: every iteration is capped, and an estimate that does not exist is NaN, or infinite if the likelihood
 * increases towards infinity.
 *
 * Sums are taken in four lanes in a fixed order, and logarithms and exponentials are those of this file and of
 * certified.h, so every clone and every libm computes the same bits.
 */
#ifndef DPFAST_FITS_H
#define DPFAST_FITS_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "certified.h"
#include "clones.h"
#include "polygamma.h"
#include "select.h"

#define FITS_LANES 4
#define FITS_PASSES 60 /* of any iteration */

#define FITS_INLINE static inline __attribute__((always_inline))

/* ---- records ---- */

static struct select_keys fits_keys(const char *data, ptrdiff_t n, ptrdiff_t stride, enum select_kind kind)
{
    return (struct select_keys){
        .data = data, .n = n, .stride = stride, .kind = kind, .scale = 1.0, .lower = -DBL_MAX, .upper = DBL_MAX};
}

/* Copy the finite records >= `least` in order; returns their number. */
static ptrdiff_t fits_load(const struct select_keys *keys, ptrdiff_t start, ptrdiff_t stop, double least, double *out)
{
    ptrdiff_t kept = 0;
    select_load(keys, start, stop - start, out);
    for (ptrdiff_t i = 0; i < stop - start; i++) {
        double x = out[i];
        out[kept] = x;
        kept += x >= least && x <= DBL_MAX;
    }
    return kept;
}

/* 1 or 0, by a mask instead of a branch, so that loops vectorise. */
static inline double fits_one_if(int condition)
{
    return dpfast_double(-(uint64_t)condition & 0x3FF0000000000000u);
}

/* log x of a finite x > 0: x = 2^k z, log z = 2 atanh(s), as in certified.h. Relative error about 2^-51, also near 1. */
static inline double fits_log(double x)
{
    double small = fits_one_if(x < 0x1p-1022);
    uint64_t b = dpfast_bits(x * (small * 0x1p54 + 1.0)); /* by 2^54, to which 2^54 + 1 is rounded, or by 1 */
    uint64_t k = (b - 0x3FE6A09E667F3BCDu + (UINT64_C(1024) << 52)) >> 52; /* biased by 1024: positive */
    double exponent = dpfast_double(k | 0x4330000000000000u) - (0x1p52 + 1024.0) - 54.0 * small;
    double f = dpfast_double(b - (k << 52) + (UINT64_C(1024) << 52)) - 1.0;
    double s = f / (2.0 + f), v = s * s, p = dpfast_atanh_tail(v);
    return exponent * 0x1.62e42fefa38p-1 + (exponent * 0x1.ef35793c7673p-45 + (2.0 * s + 2.0 * s * (p * v)));
}

/* exp(-y) for y >= 0; 0 for y > 708 and for NaN. As dpfast_exp_neg, but by a shorter series (the rest is < 2^-47 of it) in
 * Estrin's order, whose chain of dependent steps is a third as long. */
FITS_INLINE double fits_exp_neg(double y)
{
    uint64_t inside = -(uint64_t)(y < 708.0);
    double top = dpfast_double(dpfast_bits(y) & inside);
    double rounded = top * 0x1.71547652b82fep0 + 0x1.8p52, j = rounded - 0x1.8p52; /* its last bits also hold j */
    double r = j * 0x1.ef35793c7673p-45 - (top - j * 0x1.62e42fefa38p-1);
    double two = r * r, four = two * two;
    double a = (r + 1.0) + (r * (1.0 / 6) + 0.5) * two;
    double b = (r * (1.0 / 120) + 1.0 / 24) + (r * (1.0 / 5040) + 1.0 / 720) * two;
    double c = (r * (1.0 / 362880) + 1.0 / 40320) + (r * (1.0 / 39916800) + 1.0 / 3628800) * two;
    double p = (a + b * four) + c * (four * four);
    return dpfast_double(dpfast_bits(p * dpfast_double((1023 - dpfast_bits(rounded)) << 52)) & inside);
}

/* log(1 + x) for x > 0, after Kahan: the rounding of u = 1 + x changes x by the factor (u - 1) / x. */
static inline double fits_log1p(double x)
{
    double u = 1.0 + x;
    return u > 1.0 ? fits_log(u) * (x / (u - 1.0)) : x;
}

/* ---- Weibull: shape k, scale ---- */

struct fits_sums {
    double zero, one, two;
};

/* sum of e, a e and a^2 e with e = exp(-k a). `count` is a multiple of 4; padding is a = 1e300, whose e is 0. */
DPFAST_CLONES static struct fits_sums fits_tilt(const double *a, ptrdiff_t count, double k)
{
    double zero[FITS_LANES] = {0}, one[FITS_LANES] = {0}, two[FITS_LANES] = {0};
    for (ptrdiff_t i = 0; i < count; i += FITS_LANES)
        for (int j = 0; j < FITS_LANES; j++) {
            double e = fits_exp_neg(k * a[i + j]), first = a[i + j] * e;
            zero[j] += e, one[j] += first, two[j] += a[i + j] * first;
        }
    return (struct fits_sums){
        (zero[0] + zero[1]) + (zero[2] + zero[3]),
        (one[0] + one[1]) + (one[2] + one[3]),
        (two[0] + two[1]) + (two[2] + two[3]),
    };
}

/* x becomes a = log(greatest / x). */
DPFAST_CLONES static void fits_depths(double *x, ptrdiff_t count, double greatest, int far_apart)
{
    if (far_apart) {
        double top = fits_log(greatest);
        for (ptrdiff_t i = 0; i < count; i++)
            x[i] = top - fits_log(x[i]);
    } else
        for (ptrdiff_t i = 0; i < count; i++)
            x[i] = -fits_log(x[i] / greatest);
}

/* The root k of mean a - sum(a e) / sum(e) = 1 / k, whose left side less the right increases with k. x has room for
 * three more than n, and is overwritten. */
static void fits_weibull(double *x, ptrdiff_t n, double *shape, double *scale)
{
    double least = INFINITY, greatest = 0, mean = 0, square = 0, low = 0, high = INFINITY, k, log_mean = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        greatest = x[i] > greatest ? x[i] : greatest;
    }
    *shape = *scale = NAN;
    if (n == 0)
        return;
    *scale = greatest;
    *shape = INFINITY;
    if (least == greatest)
        return;
    fits_depths(x, n, greatest, least < greatest * 1e-290);
    for (ptrdiff_t i = 0; i < n; i++)
        mean += x[i];
    mean /= n;
    for (ptrdiff_t i = 0; i < n; i++)
        square += (x[i] - mean) * (x[i] - mean);
    ptrdiff_t count = n;
    while (count % FITS_LANES)
        x[count++] = 1e300;
    k = 1.2825498301618641 / sqrt(square / n); /* pi / sqrt(6): exact for an infinite Weibull sample */
    for (int pass = 0; pass < FITS_PASSES; pass++) {
        struct fits_sums sums = fits_tilt(x, count, k);
        double tilted = sums.one / sums.zero, value = (mean - tilted) - 1 / k;
        double next = k - value / ((sums.two / sums.zero - tilted * tilted) + 1 / (k * k));
        log_mean = fits_log(sums.zero / n);
        if (value < 0)
            low = k;
        else
            high = k;
        if (!(next > low && next < high))
            next = high == INFINITY ? 2 * low : low == 0 ? high / 2 : sqrt(low) * sqrt(high);
        int done = fabs(next - k) <= 1e-9 * k; /* the next error is the square of that, plus rounding */
        k = next;
        if (done)
            break;
    }
    double root = dpfast_exp_neg(-log_mean / (2 * k)); /* its square may be below the least double */
    *shape = k;
    *scale = greatest * root * root;
}

/* ---- Laplace: location, mean absolute deviation ---- */

/* x is sorted. Halves avoid overflow. */
static void fits_laplace(const double *x, ptrdiff_t n, double *location, double *deviation)
{
    double half, sum = 0;
    *location = *deviation = NAN;
    if (n == 0)
        return;
    half = x[(n - 1) / 2] / 4 + x[n / 2] / 4;
    *location = (n - 1) / 2 == n / 2 ? x[n / 2] : 2 * half;
    half = *location / 2;
    for (ptrdiff_t i = 0; i < n; i++)
        sum += fabs(x[i] / 2 - half) / n;
    *deviation = 2 * sum;
}

/* ---- negative binomial: r, mean ---- */

struct fits_counts {
    const double *x; /* the counts */
    ptrdiff_t n;
    const double *above; /* above[j], j < top: the share of the counts that are > j; NULL if top is too large */
    ptrdiff_t top;
    double mean;
};

/* The mean score in r at the best p, and its derivative:
 * mean(psi(x + r) - psi(r)) - log(1 + mean / r), psi(x + r) - psi(r) = 1 / r + ... + 1 / (r + x - 1). */
static void fits_binomial_score(const struct fits_counts *counts, double r, double *score, double *slope)
{
    double first = 0, second = 0;
    if (counts->above)
        for (ptrdiff_t j = 0; j < counts->top; j++) {
            double inverse = 1 / (r + j), part = counts->above[j] * inverse;
            first += part, second += part * inverse;
        }
    else {
        struct polygamma at_r = dpfast_polygamma(r);
        for (ptrdiff_t i = 0; i < counts->n; i++) {
            struct polygamma at = dpfast_polygamma(counts->x[i] + r);
            first += (at.zero - at_r.zero) / counts->n, second += (at_r.one - at.one) / counts->n;
        }
    }
    *score = first - fits_log1p(counts->mean / r);
    *slope = counts->mean / (r * (r + counts->mean)) - second;
}

/* The bias of r to first order, times n, after Cox and Snell with r and the mean as parameters, which are orthogonal;
 * expectations are means over the block. The information of a record about r goes to `per_record`. */
static double fits_binomial_bias(const struct fits_counts *counts, double r, double *per_record)
{
    const double m = counts->mean, t = 1 / (r + m);
    double information = 0, third = 0, mixed = 0, one = 0, two = 0, three = 0, left = 1;
    struct polygamma at_r = dpfast_polygamma(r);
    ptrdiff_t steps = counts->above ? counts->top + 1 : counts->n;
    for (ptrdiff_t i = 0; i < steps; i++) {
        double x = i, part;
        if (counts->above) { /* the value i, which a share `part` of the records has */
            double stays = i < counts->top ? counts->above[i] : 0;
            part = left - stays, left = stays;
        } else {
            x = counts->x[i], part = 1.0 / counts->n;
            struct polygamma at = dpfast_polygamma(x + r);
            one = at.zero - at_r.zero, two = at_r.one - at.one, three = (at.two - at_r.two) / 2;
        }
        double score = one - fits_log1p(m / r) + (m - x) * t;
        double curvature = -two + 1 / r - 2 * t + (x + r) * t * t;
        information -= part * curvature;
        third += part * (2 * three - 1 / (r * r) + 3 * t * t - 2 * (x + r) * t * t * t);
        mixed += part * score * curvature;
        if (counts->above) {
            double inverse = 1 / (r + i);
            one += inverse, two += inverse * inverse, three += inverse * inverse * inverse;
        }
    }
    *per_record = information;
    return ((third / 2 + mixed) / information + m * t / (2 * r)) / information;
}

/* A positive estimate minus its bias to first order, kept positive. */
static double fits_less(double estimate, double bias)
{
    return bias > 0 ? estimate / (1 + bias / estimate) : estimate - bias;
}

/* The root r of the score, over x >= 0, n of them, rounded to integers in place; r is infinite where the variance is not
 * above the mean, NaN where all counts are 0. `above` has room for 4 n + 64. The three estimates: r, p, mean. */
static void fits_binomial(double *x, ptrdiff_t n, double *above, int correct, double *out)
{
    struct fits_counts counts = {.x = x, .n = n};
    double greatest = 0, square = 0, low = 0, high = INFINITY, r, p;
    out[0] = out[1] = out[2] = NAN;
    if (n == 0)
        return;
    for (ptrdiff_t i = 0; i < n; i++) {
        x[i] = floor(x[i] + 0.5);
        greatest = x[i] > greatest ? x[i] : greatest;
        counts.mean += x[i] / n;
    }
    for (ptrdiff_t i = 0; i < n; i++)
        square += (x[i] - counts.mean) / n * (x[i] - counts.mean);
    out[1] = 1;
    out[2] = counts.mean;
    if (greatest == 0)
        return;
    out[0] = INFINITY;
    if (square <= counts.mean)
        return;
    out[0] = out[1] = NAN;
    if (!(square < INFINITY))
        return;
    if (greatest <= 4 * n + 64) {
        counts.above = above, counts.top = (ptrdiff_t)greatest;
        memset(above, 0, counts.top * sizeof *above);
        for (ptrdiff_t i = 0; i < n; i++)
            if (x[i] > 0)
                above[(ptrdiff_t)x[i] - 1] += 1;
        for (ptrdiff_t j = counts.top - 1; j > 0; j--)
            above[j - 1] += above[j];
        for (ptrdiff_t j = 0; j < counts.top; j++)
            above[j] /= n;
    }
    r = counts.mean / (square - counts.mean) * counts.mean;
    for (int pass = 0; pass < FITS_PASSES; pass++) {
        double score, slope, next;
        fits_binomial_score(&counts, r, &score, &slope);
        if (score > 0)
            low = r;
        else
            high = r;
        next = INFINITY;
        if (slope < 0) { /* Newton step in log r, limited */
            double step = fmin(fmax(-score / (r * slope), -2), 2), factor = dpfast_exp_neg(fabs(step));
            next = step < 0 ? r * factor : r / factor;
        }
        if (!(next > low && next < high))
            next = high == INFINITY ? 4 * low : low == 0 ? high / 4 : sqrt(low) * sqrt(high);
        int done = fabs(next - r) <= 1e-9 * r;
        r = next;
        if (done)
            break;
    }
    p = r / (r + counts.mean);
    if (correct) {
        /* p is a function of r and the mean, whose variances times n are 1 / information and m / p; the bias of p. */
        double m = counts.mean, t = 1 / (r + m), information, bias = fits_binomial_bias(&counts, r, &information);
        p = fits_less(p, t * t * (m * bias - m * t / information + m) / n);
        r = fits_less(r, bias / n);
    }
    out[0] = r;
    out[1] = p;
}

#endif
