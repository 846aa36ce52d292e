/* The derivatives of log Gamma: digamma, trigamma, tetragamma, together. docs/proofs/block-estimates.md
 *
 * Not certified: for estimates, not for decisions. Every machine computes the same bits.
 */
#ifndef DPFAST_POLYGAMMA_H
#define DPFAST_POLYGAMMA_H

#include "certified.h"

struct polygamma {
    double zero, one, two;
};

/* x where the mask is set, else 0. */
static inline double dpfast_masked(double x, uint64_t mask) { return dpfast_double(dpfast_bits(x) & mask); }

/* log x - psi(x), psi'(x) - 1/x and -1/x^2 - psi''(x), all positive, for x > 0: by recurrence to y >= 8 and Stirling's
 * series there. Masks instead of branches, so that loops vectorise. */
static inline __attribute__((always_inline)) struct polygamma dpfast_polygamma_gaps(double x)
{
    double shift = 0.0, shift1 = 0.0, shift2 = 0.0, y = x;
    for (int step = 0; step < 8; step++) {
        const uint64_t below = dpfast_negative(y - 8.0);
        double r = 1.0 / y, w = r * r;
        shift += dpfast_masked(r, below);
        shift1 += dpfast_masked(w, below);
        shift2 += dpfast_masked(2.0 * w * r, below);
        y += dpfast_masked(1.0, below);
    }
    const uint64_t moved = dpfast_negative(x - y);
    double r = 1.0 / y, w = r * r;
    double tail = r * 0.5 + w * (1.0 / 12 - w * (1.0 / 120 - w * (1.0 / 252 - w * (1.0 / 240 - w * (1.0 / 132
                  - w * (691.0 / 32760 - w * (1.0 / 12)))))));
    double tail1 = w * (0.5 + r * (1.0 / 6 - w * (1.0 / 30 - w * (1.0 / 42 - w * (1.0 / 30 - w * (5.0 / 66
                   - w * (691.0 / 2730 - w * (7.0 / 6))))))));
    double tail2 = w * r * (1.0 + r * (0.5 - w * (1.0 / 6 - w * (1.0 / 6 - w * (3.0 / 10 - w * (5.0 / 6
                   - w * (691.0 / 210 - w * 17.5)))))));
    return (struct polygamma){
        tail + shift - dpfast_masked(dpfast_log(y / x), moved),
        tail1 + shift1 + dpfast_masked(r - 1.0 / x, moved),
        tail2 + shift2 + dpfast_masked(w - 1.0 / (x * x), moved),
    };
}

/* The three of each of n numbers; NaN unless positive and finite. */
DPFAST_CLONES static void dpfast_polygamma_rows(const double *restrict x, ptrdiff_t n, double *restrict zero,
                                                double *restrict one, double *restrict two)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double known = x[i] > 0.0 ? (x[i] < __builtin_inf() ? x[i] : __builtin_nan("")) : __builtin_nan("");
        const struct polygamma at = dpfast_polygamma_gaps(known);
        zero[i] = at.zero;
        one[i] = at.one;
        two[i] = at.two;
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
