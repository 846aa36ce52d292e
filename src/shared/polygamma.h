/* The derivatives of log Gamma: digamma, trigamma, tetragamma, together. docs/proofs/block-estimates.md
 *
 * Not certified: for estimates, not for decisions. Every machine computes the same bits.
 */
#ifndef DPFAST_POLYGAMMA_H
#define DPFAST_POLYGAMMA_H

#include "certified.h"
#include "clones.h"

struct polygamma {
    double zero, one, two;
};

/* x moved up to y = x + i >= 8 by the recurrence of the functions: what their values at y lack. */
struct polygamma_shift {
    double y, zero, one, two;
};

/* Two steps, as far as they begin below 8, by one division. */
static inline struct polygamma_shift dpfast_polygamma_steps(struct polygamma_shift at)
{
    double next = at.y + 1.0, inverse = 1.0 / (at.y * next);
    uint64_t first = -(uint64_t)(at.y < 8.0), second = -(uint64_t)(next < 8.0);
    double r = dpfast_double(dpfast_bits(next * inverse) & first), w = r * r;
    double s = dpfast_double(dpfast_bits(at.y * inverse) & second), v = s * s;
    double up = dpfast_double(dpfast_bits(1.0) & first) + dpfast_double(dpfast_bits(1.0) & second);
    return (struct polygamma_shift){at.y + up, at.zero + (r + s), at.one + (w + v), at.two + 2.0 * (w * r + v * s)};
}

/* log x - psi(x), psi'(x) - 1/x and -1/x^2 - psi''(x) from x shifted to y >= 8, by Stirling's series there. */
static inline struct polygamma dpfast_polygamma_stirling(double x, struct polygamma_shift at)
{
    double r = 1.0 / at.y, w = r * r, inverse = 1.0 / x;
    /* clang-format off */
    double tail = r * 0.5 + w * (1.0 / 12 - w * (1.0 / 120 - w * (1.0 / 252 - w * (1.0 / 240 - w * (1.0 / 132
                  - w * (691.0 / 32760 - w * (1.0 / 12)))))));
    double tail1 = w * (0.5 + r * (1.0 / 6 - w * (1.0 / 30 - w * (1.0 / 42 - w * (1.0 / 30 - w * (5.0 / 66
                   - w * (691.0 / 2730 - w * (7.0 / 6))))))));
    double tail2 = w * r * (1.0 + r * (0.5 - w * (1.0 / 6 - w * (1.0 / 6 - w * (3.0 / 10 - w * (5.0 / 6
                   - w * (691.0 / 210 - w * 17.5)))))));
    /* clang-format on */
    double square = dpfast_double(dpfast_bits(w - inverse * inverse) & -(uint64_t)(at.y > x));
    return (struct polygamma){tail + at.zero - dpfast_log(at.y / x), tail1 + at.one + (r - inverse),
                              tail2 + at.two + square};
}

/* log x - psi(x), psi'(x) - 1/x and -1/x^2 - psi''(x), all positive, for x > 0. */
static inline struct polygamma dpfast_polygamma_gaps(double x)
{
    struct polygamma_shift at = {x, 0.0, 0.0, 0.0};
    while (at.y < 8.0)
        at = dpfast_polygamma_steps(at);
    return dpfast_polygamma_stirling(x, at);
}

/* The same bits for each of `count` arguments, in vector loops. */
DPFAST_CLONES static void dpfast_polygamma_gaps_each(const double *restrict x, ptrdiff_t count, double *restrict zero,
                                                     double *restrict one, double *restrict two)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        struct polygamma_shift at = {x[i], 0.0, 0.0, 0.0};
        for (int step = 0; step < 8; step += 2)
            at = dpfast_polygamma_steps(at);
        struct polygamma gaps = dpfast_polygamma_stirling(x[i], at);
        zero[i] = gaps.zero, one[i] = gaps.one, two[i] = gaps.two;
    }
}

/* psi(x), psi'(x), psi''(x), for normal x > 0. */
static inline struct polygamma dpfast_polygamma(double x)
{
    struct polygamma gaps = dpfast_polygamma_gaps(x);
    double r = 1.0 / x;
    return (struct polygamma){dpfast_log(x) - gaps.zero, r + gaps.one, -r * r - gaps.two};
}

#endif
