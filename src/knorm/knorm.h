/* Noise on vectors by a norm: r times a vector, each coordinate rounded. docs/proofs/knorm.md
 *
 * As in certified.h every machine computes the same bits: only + - * / and sqrt, each correctly rounded, and integer
 * operations. What is undecided goes on in ball arithmetic from the same words (src/knorm/_knorm.pyx).
 */
#ifndef DPFAST_KNORM_H
#define DPFAST_KNORM_H

#include "draws.h"
#include "normal.h"

#define DPFAST_UNIT 0x1p-53 /* the relative error of an operation */
enum { DPFAST_LANES = 8 };

/* A number in doubles and the bound of its relative error; not a bound of anything if that is above 2^-6. */
typedef struct {
    double value, error;
} dpfast_bounded;

/* The product of n uniform numbers U as M 2^-places, M in [1, 2), and a bound of the sum of 2^-64 / U. */
typedef struct {
    double mantissa, places, widths;
} dpfast_product;

/* The product so far in one lane, and the exponents that were split off. */
typedef struct {
    double product[DPFAST_LANES], widths[DPFAST_LANES];
    uint64_t exponents[DPFAST_LANES];
} dpfast_lanes;

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
    enum { MOST = 15 }; /* factors of a lane between splits: 2 * 2^(64 * 15) < 2^1023 */
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
    for (; i < n; i++) /* at most 7 */
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

/* A relative error in place of an absolute one; above 2^-6 where that bounds nothing: short words, or r near 0. */
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

/* What the tail words of a row add to the errors of its normal numbers: the greatest, and the sum of squares. */
typedef struct {
    double most, squares;
} dpfast_extra;

/* The normal magnitudes z of rows of p words, each within (9.5 z + 10) 2^-53 of z(U) for every U of its word, besides
 * what `extra` says; that is infinite for a word below 2^12. See dpfast_rounded_gaussian for the three loops. */
static inline void dpfast_normals(const uint64_t *words, double *z, ptrdiff_t rows, ptrdiff_t p, dpfast_extra *extra)
{
    enum { CHUNK = 1024 };
    uint64_t rest[CHUNK];
    double drawn[CHUNK];
    int32_t place[CHUNK];
    for (ptrdiff_t row = 0; row < rows; row++)
        extra[row] = (dpfast_extra){0.0, 0.0};
    for (ptrdiff_t start = 0, n = rows * p; start < n; start += CHUNK, words += CHUNK, z += CHUNK) {
        int32_t size = n - start < CHUNK ? (int32_t)(n - start) : CHUNK, count = 0;
        for (int32_t i = 0; i < size; i++)
            z[i] = dpfast_normal_of_center(1.0 - dpfast_from_word(words[i] | 1) * 0x1p-64);
        for (int32_t i = 0; i < size; i++) {
            place[count] = i;
            count += words[i] >> 61 == 0;
        }
        for (int32_t j = 0; j < count; j++)
            rest[j] = words[place[j]];
        for (int32_t j = 0; j < count; j++)
            drawn[j] = dpfast_normal_of_shoulder(dpfast_from_word(rest[j] | 1) * 0x1p-64);
        for (int32_t j = 0; j < count; j++) {
            z[place[j]] = drawn[j];
            if (rest[j] >> 56 == 0) {
                double error = INFINITY;
                if (rest[j] >> 12 != 0) {
                    double tail = z[place[j]] = dpfast_normal_of_tail(rest[j] | 1, &error);
                    error += 6.5 * DPFAST_UNIT * tail;
                }
                dpfast_extra *added = &extra[(start + place[j]) / p];
                added->most = error > added->most ? error : added->most;
                added->squares += error * error;
            }
        }
    }
}

/* The sum of n squares, in lanes of blocks. Relative error: (min(n, 256) / 8 + 20) 2^-53, n < 2^31. */
static inline double dpfast_squares(const double *z, ptrdiff_t n)
{
    enum { BLOCK = 256 };
    dpfast_sum total = {0.0, 0.0};
    double sum = 0.0;
    for (; n > 0; z += BLOCK, n -= BLOCK) {
        ptrdiff_t size = n < BLOCK ? n : BLOCK, i = 0;
        double lanes[DPFAST_LANES] = {0.0};
        for (; i + DPFAST_LANES <= size; i += DPFAST_LANES)
            for (ptrdiff_t j = 0; j < DPFAST_LANES; j++)
                lanes[j] += z[i + j] * z[i + j];
        for (; i < size; i++) /* at most 7 */
            lanes[0] += z[i] * z[i];
        for (ptrdiff_t j = 1; j < DPFAST_LANES; j++)
            lanes[0] += lanes[j];
        sum = dpfast_add(&total, lanes[0]);
    }
    return sum;
}

/* r / ||g|| of a row of d magnitudes g, r = (||g||^2 + odd^2) / 2 plus -log of a product of d / 2 uniform numbers, odd
 * a further normal number if d is odd, else 0. */
static inline dpfast_bounded dpfast_ball_unit(const double *g, ptrdiff_t d, double odd, dpfast_extra extra,
                                              const uint64_t *radii)
{
    double squares = dpfast_squares(g, d), norm = __builtin_sqrt(squares);
    double roundings = 22.0 + (d < 256 ? (double)d : 256.0) / 16.0;
    double own = 10.0 * DPFAST_UNIT * __builtin_sqrt((double)d) + __builtin_sqrt(extra.squares);
    double norm_error = norm > 0.0 ? roundings * DPFAST_UNIT + 1.01 * own / norm : 1.0;
    double r = (squares + odd * odd) / 2.0, error = 1.02 * norm_error * squares;
    if (d & 1)
        error += (odd + 1.0) * ((10.0 * odd + 11.0) * DPFAST_UNIT + extra.most);
    if (d > 1) {
        double more_error, more = dpfast_neg_log_product(dpfast_multiply(radii, d / 2), (double)(d / 2), &more_error);
        r += more;
        error += more_error;
    }
    error = 1.05 * (dpfast_relative(error, r) + norm_error) + 10.0 * DPFAST_UNIT;
    return (dpfast_bounded){error < 0x1p-6 ? r / norm : 0.0, error};
}

/* Law, under the same conditions: rows of d integers round(r scales_i g_i / ||g||), g normal and r a Gamma(d) variable.
 * A row has d words in `words`, one more if d is odd, and d / 2 words in `radii`; `normals` is as long as `words`. */
DPFAST_CLONES static void dpfast_ball(const uint64_t *words, const uint64_t *radii, int64_t *out, ptrdiff_t rows,
                                      ptrdiff_t d, const double *scales, double *normals)
{
    enum { ROWS = 256 };
    dpfast_extra extra[ROWS];
    dpfast_bounded unit[ROWS];
    ptrdiff_t p = d + (d & 1);
    while (rows > 0) {
        ptrdiff_t size = rows < ROWS ? rows : ROWS;
        dpfast_normals(words, normals, size, p, extra);
        for (ptrdiff_t row = 0; row < size; row++, radii += d / 2) {
            const double *g = normals + row * p;
            unit[row] = dpfast_ball_unit(g, d, d & 1 ? g[d] : 0.0, extra[row], radii);
        }
        for (ptrdiff_t row = 0; row < size; row++, words += p, normals += p, out += d) {
            double error = unit[row].error + 11.0 * DPFAST_UNIT, own = 10.5 * DPFAST_UNIT + 1.02 * extra[row].most;
            uint64_t usable = dpfast_negative(unit[row].error - 0x1p-6);
            for (ptrdiff_t i = 0; i < d; i++) {
                double step = unit[row].value * scales[i], y = step * normals[i];
                out[i] = dpfast_round_signed(words[i], y, y * error + step * own + 0x1p-50, usable);
            }
        }
        rows -= size;
    }
}

/* Law, under the same conditions: whether to accept a row z, with probability exp(-(max_i a_i - mean_i a_i)), a_i =
 * |z_i| / scales_i, d < 8: 1, 0 or undecided. */
static int64_t dpfast_accepts_box(uint64_t word, const int64_t *z, ptrdiff_t d, const double *scales)
{
    double most = 0.0, sum = 0.0;
    for (ptrdiff_t i = 0; i < d; i++) {
        double a = z[i] == 0 ? 0.0 : __builtin_fabs((double)z[i]) / scales[i];
        most = a > most ? a : most;
        sum += a;
    }
    double excess = most - sum / (double)d, error = most * (20.0 * DPFAST_UNIT);
    if (!(error < 1.0))
        return DPFAST_UNDECIDED;
    return dpfast_below_exp_neg_within(word, excess > 0.0 ? excess : 0.0, error);
}

#endif
