/* The derivatives of log Gamma: digamma, trigamma, tetragamma, together. docs/proofs/block-estimates.md */
#ifndef DPFAST_POLYGAMMA_H
#define DPFAST_POLYGAMMA_H

#include <math.h>

struct polygamma {
    double zero, one, two; /* psi(x), psi'(x), psi''(x) */
};

/* For x > 0: up to 12 by recurrence, then Stirling's series, whose next term is below 1e-16 of the first.
 * Not certified: for estimates, not for decisions. */
static struct polygamma dpfast_polygamma(double x)
{
    double zero = 0, one = 0, two = 0;
    for (; x < 12; x += 1) {
        double r = 1 / x;
        zero -= r, one += r * r, two -= 2 * r * r * r;
    }
    double r = 1 / x, v = r * r;
    zero += log(x) - r / 2
            - v * (1. / 12 - v * (1. / 120 - v * (1. / 252 - v * (1. / 240 - v * (1. / 132 - v * (691. / 32760))))));
    one += r + v / 2
           + r * v * (1. / 6 - v * (1. / 30 - v * (1. / 42 - v * (1. / 30 - v * (5. / 66 - v * (691. / 2730 - v * 7 / 6))))));
    two -= v + r * v
           + v * v * (1. / 2 - v * (1. / 6 - v * (1. / 6 - v * (3. / 10 - v * (5. / 6 - v * (691. / 210 - v * 35 / 2))))));
    return (struct polygamma){zero, one, two};
}

#endif
