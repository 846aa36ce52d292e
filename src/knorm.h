/* Noise on vectors by a norm: r times a vector, each coordinate rounded. docs/proofs/knorm.md
 *
 * As in certified.h every machine computes the same bits: only + - * / and sqrt, each correctly rounded, and integer
 * operations. What is undecided goes on in ball arithmetic from the same words (src/_knorm.pyx).
 */
#ifndef DPFAST_KNORM_H
#define DPFAST_KNORM_H

#include "normal.h"

#define DPFAST_UNIT 0x1p-53  /* the relative error of an operation */
enum { DPFAST_LANES = 8 };

/* A number in doubles and the bound of its relative error; not a bound of anything if that is above 2^-6. */
typedef struct { double value, error; } dpfast_bounded;

/* The product of n uniform numbers U as M 2^-places, M in [1, 2), and a bound of the sum of 2^-64 / U. */
typedef struct { double mantissa, places, widths; } dpfast_product;

/* The product so far in one lane, and the exponents that were split off. */
typedef struct { double product[DPFAST_LANES], widths[DPFAST_LANES]; uint64_t exponents[DPFAST_LANES]; } dpfast_lanes;

/* Multiply a lane by the odd word next to this one, in [1, 2^64]; its inverse is below 2^-k, k its exponent. */
static inline void dpfast_take(dpfast_lanes *lanes, ptrdiff_t lane, uint64_t word)
{
    double x = dpfast_from_word(word | 1);
    lanes->product[lane] *= x;
    lanes->widths[lane] += dpfast_double((UINT64_C(2046) << 52) - (dpfast_bits(x) & (UINT64_C(2047) << 52)));
}

/* Split off the exponent of a lane whose product is below 2^1023. */
static inline void dpfast_split(dpfast_lanes *lanes, ptrdiff_t lane)
{
    uint64_t b = dpfast_bits(lanes->product[lane]);
    lanes->exponents[lane] += (b >> 52) - 1023;
    lanes->product[lane] = dpfast_double((b & ((UINT64_C(1) << 52) - 1)) | (UINT64_C(1023) << 52));
}

/* The product of the n uniform numbers that begin with these words: n conversions and fewer than n products rounded. */
static inline dpfast_product dpfast_multiply(const uint64_t *words, ptrdiff_t n)
{
    enum { MOST = 15 };  /* factors of a lane between splits: 2 * 2^(64 * 15) < 2^1023 */
    dpfast_lanes lanes;
    ptrdiff_t i = 0, used = n < DPFAST_LANES ? 1 : DPFAST_LANES;
    for (ptrdiff_t j = 0; j < used; j++) {
        lanes.product[j] = 1.0;
        lanes.widths[j] = 0.0;
        lanes.exponents[j] = 0;
    }
    while (n - i >= DPFAST_LANES) {
        ptrdiff_t groups = (n - i) / DPFAST_LANES < MOST ? (n - i) / DPFAST_LANES : MOST;
        for (ptrdiff_t group = 0; group < groups; group++, i += DPFAST_LANES)
            for (ptrdiff_t j = 0; j < DPFAST_LANES; j++)
                dpfast_take(&lanes, j, words[i + j]);
        for (ptrdiff_t j = 0; j < DPFAST_LANES; j++)
            dpfast_split(&lanes, j);
    }
    for (; i < n; i++)  /* at most 7 */
        dpfast_take(&lanes, 0, words[i]);
    dpfast_split(&lanes, 0);
    for (ptrdiff_t j = 1; j < used; j++) {
        lanes.product[0] *= lanes.product[j];
        lanes.widths[0] += lanes.widths[j];
        lanes.exponents[0] += lanes.exponents[j];
    }
    dpfast_split(&lanes, 0);
    return (dpfast_product){lanes.product[0], (double)(64 * n - (int64_t)lanes.exponents[0]), lanes.widths[0]};
}

/* -log of the product of n numbers, and the bound of its absolute error: Gamma(n) over uniform words. */
static inline double dpfast_neg_log_product(dpfast_product product, double n, double *error)
{
    double r = product.places * 0x1.62e42fefa39efp-1 - dpfast_log(product.mantissa);
    *error = (2.0 * n + 3.0 * r + 16.0) * DPFAST_UNIT + 1.125 * product.widths;
    return r;
}

/* A relative error in place of an absolute one; above 2^-6 for what tells nothing: widths above 2^-12 or r near 0. */
static inline double dpfast_relative(double error, double r)
{
    return error < 0x1p-11 && error < r * 0x1p-6 ? error / r : 1.0;
}

/* Law, over uniform words and exact completion of the undecided: rows of d integers round(r scales_i (2 U_i - 1)), r
 * the -log of the product of d + 1 uniform numbers. |2 U_i - 1| is the uniform number whose first 63 bits are those of
 * the word i, the word's last bit is the sign. A row has d words in `words` and d + 1 words in `radii`. */
DPFAST_CLONES static void dpfast_box(const uint64_t *words, const uint64_t *radii, int64_t *out, ptrdiff_t rows,
                                     ptrdiff_t d, const double *scales)
{
    enum { ROWS = 256 };
    dpfast_product products[ROWS];
    dpfast_bounded r[ROWS];
    while (rows > 0) {
        ptrdiff_t size = rows < ROWS ? rows : ROWS;
        for (ptrdiff_t row = 0; row < size; row++)
            products[row] = dpfast_multiply(radii + row * (d + 1), d + 1);
        for (ptrdiff_t row = 0; row < size; row++) {
            double error;
            r[row].value = dpfast_neg_log_product(products[row], (double)(d + 1), &error);
            r[row].error = dpfast_relative(error, r[row].value);
        }
        for (ptrdiff_t row = 0; row < size; row++, words += d, out += d) {
            double unit = r[row].value * 0x1p-64, error = r[row].error + 10.0 * DPFAST_UNIT;
            uint64_t usable = dpfast_negative(error - 0x1p-6);
            for (ptrdiff_t i = 0; i < d; i++) {
                double step = unit * scales[i], y = step * dpfast_from_word(words[i] | 1);
                out[i] = dpfast_round_signed(words[i], y, y * error + step * 4.0 + 0x1p-50, usable);
            }
        }
        radii += size * (d + 1);
        rows -= size;
    }
}

#endif
