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

/* log x - psi(x), psi'(x) - 1/x and -1/x^2 - psi''(x), all positive, for x > 0: by recurrence to y >= 8 and Stirling's
 * series there. */
static inline struct polygamma dpfast_polygamma_gaps(double x)
{
    double shift = 0.0, shift1 = 0.0, shift2 = 0.0, y = x;
    for (; y < 8.0; y += 1.0) {
        double r = 1.0 / y, w = r * r;
        shift += r;
        shift1 += w;
        shift2 += 2.0 * w * r;
    }
    double r = 1.0 / y, w = r * r;
    double tail = r * 0.5 + w * (1.0 / 12 - w * (1.0 / 120 - w * (1.0 / 252 - w * (1.0 / 240 - w * (1.0 / 132
                  - w * (691.0 / 32760 - w * (1.0 / 12)))))));
    double tail1 = w * (0.5 + r * (1.0 / 6 - w * (1.0 / 30 - w * (1.0 / 42 - w * (1.0 / 30 - w * (5.0 / 66
                   - w * (691.0 / 2730 - w * (7.0 / 6))))))));
    double tail2 = w * r * (1.0 + r * (0.5 - w * (1.0 / 6 - w * (1.0 / 6 - w * (3.0 / 10 - w * (5.0 / 6
                   - w * (691.0 / 210 - w * 17.5)))))));
    return (struct polygamma){
        tail + shift - (y > x ? dpfast_log(y / x) : 0.0),
        tail1 + shift1 + (y > x ? r - 1.0 / x : 0.0),
        tail2 + shift2 + (y > x ? w - 1.0 / (x * x) : 0.0),
    };
}

/* psi(x), psi'(x), psi''(x), for normal x > 0. */
static inline struct polygamma dpfast_polygamma(double x)
{
    struct polygamma gaps = dpfast_polygamma_gaps(x);
    double r = 1.0 / x;
    return (struct polygamma){dpfast_log(x) - gaps.zero, r + gaps.one, -r * r - gaps.two};
}

#endif
