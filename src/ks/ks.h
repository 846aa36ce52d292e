/* Paths between bands, docs/proofs/kolmogorov.md. Edges e_0 = 0 < e_1 < ... < e_m = size cut the codes into cells;
 * S_i is the number of synthetic records below e_i, low_i <= S_i <= high_i, both bounds nondecreasing, S_m = k. A
 * path has weight
 *
 *     prod over cells of c_i^j_i / j_i!,    j_i = S_i - S_(i-1),    c_i = rate * (e_i - e_(i-1)).
 *
 * Q_i(s), the weight of all paths to S_i = s, is log-concave in s. Every number is a double in [1/2, 1) with a
 * separate exponent: bands of ties span thousands of binary orders of magnitude, all of which may matter. */
#ifndef DPFAST_KS_H
#define DPFAST_KS_H

#include "draws.h"

/* Terms below this power of two of the peak are left out of a sum: with 2^13 of them 2^-63 of it. */
#define DPFAST_NEGLIGIBLE (-78)

/* The weight of a possible choice more than 990 binary orders below the largest: not less than its true weight. */
#define DPFAST_BAND_FLOOR 0x1p-990

typedef struct {
    const double *part;
    const int32_t *exponent;
    ptrdiff_t low, high;
} dpfast_row;

/* x > 0 as a double in [1/2, 1) and an exponent. */
static inline double dpfast_normalize(double x, int32_t *exponent)
{
    uint64_t b = dpfast_bits(x);
    *exponent += (int32_t)(b >> 52) - 1022;
    return dpfast_double((b & 0x000FFFFFFFFFFFFFu) | 0x3FE0000000000000u);
}

static inline double dpfast_power(int32_t exponent)
{
    return dpfast_double((uint64_t)(1023 + exponent) << 52);
}

/* c^j / j! for j = 0..last. Relative error 3 j 2^-53, the rounding of c included. */
static void dpfast_jump_weights(double c, ptrdiff_t last, double *part, int32_t *exponent)
{
    int32_t e = 0, step = 0;
    double p = dpfast_normalize(1.0, &e);
    c = dpfast_normalize(c, &step);
    part[0] = p;
    exponent[0] = e;
    for (ptrdiff_t j = 1; j <= last; j++) {
        e += step;
        part[j] = p = dpfast_normalize(p * c / (double)j, &e);
        exponent[j] = e;
    }
}

/* Q_i(s), s = low..high, into (part, exponent), from Q_(i-1) in q: the sum over r of Q_(i-1)(r) p_(s-r). The terms are
 * log-concave in r and their peak does not decrease as s increases: the code tracks it and sums from it to both sides. */
static void dpfast_next_row(dpfast_row q, const double *p, const int32_t *pe, ptrdiff_t low, ptrdiff_t high,
                            double *part, int32_t *exponent)
{
    ptrdiff_t peak = q.low;
    for (ptrdiff_t s = low; s <= high; s++) {
        const ptrdiff_t end = s < q.high ? s : q.high;
        const double *x = q.part - q.low, *y = p + s;
        const int32_t *xe = q.exponent - q.low, *ye = pe + s;
        double sum = x[peak] * y[-peak];
        int32_t top = xe[peak] + ye[-peak];
        while (peak < end) {
            const ptrdiff_t r = peak + 1;
            const double term = x[r] * y[-r];
            const int32_t rise = xe[r] + ye[-r] - top;
            if (rise < -2 || (rise <= 2 && term * dpfast_power(rise) <= sum))
                break;
            peak = r;
            sum = term;
            top += rise;
        }
        for (ptrdiff_t r = peak + 1; r <= end; r++) {
            const int32_t fall = xe[r] + ye[-r] - top;
            if (fall < DPFAST_NEGLIGIBLE)
                break;
            sum += x[r] * y[-r] * dpfast_power(fall);
        }
        for (ptrdiff_t r = peak - 1; r >= q.low; r--) {
            const int32_t fall = xe[r] + ye[-r] - top;
            if (fall < DPFAST_NEGLIGIBLE)
                break;
            sum += x[r] * y[-r] * dpfast_power(fall);
        }
        part[s - low] = dpfast_normalize(sum, &top);
        exponent[s - low] = top;
    }
}

/* The weights Q_(i-1)(r) p_(s-r) of the states r = q.low, ... that lead to s, in units of a power of two near the largest.
 * Returns how many. */
static ptrdiff_t dpfast_origins(dpfast_row q, const double *p, const int32_t *pe, ptrdiff_t s, double *weights)
{
    const ptrdiff_t end = s < q.high ? s : q.high, n = end - q.low + 1;
    int32_t top = INT32_MIN;
    for (ptrdiff_t i = 0; i < n; i++) {
        const int32_t e = q.exponent[i] + pe[s - q.low - i];
        top = e > top ? e : top;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        const int32_t fall = q.exponent[i] + pe[s - q.low - i] - top;
        weights[i] = fall < -990 ? DPFAST_BAND_FLOOR : q.part[i] * p[s - q.low - i] * dpfast_power(fall);
    }
    return n;
}

#endif
