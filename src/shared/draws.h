/* Exact draws, one word at a time where possible. Each states its law; the proofs are in docs/proofs.
 *
 * If doubles cannot decide a draw, it returns "undecided" and leaves its word to the caller, which decides in ball
 * arithmetic (src/samplers/_samplers.pyx) from that word and, if necessary, more words. The fast and the slow path therefore give
 * the same output for the same words.
 */
#ifndef DPFAST_DRAWS_H
#define DPFAST_DRAWS_H

#include <math.h>
#include <numpy/random/bitgen.h>

#include "certified.h"

/* Selections by masks. Where a condition is secret they replace ?:, which compilers may turn into a branch: `dpfast_mask`
 * hides from the compiler that its value is 0 or all bits. */
static inline uint64_t dpfast_mask(int condition)
{
    uint64_t mask = -(uint64_t)condition;
    __asm__("" : "+r"(mask));
    return mask;
}

static inline uint64_t dpfast_either(uint64_t mask, uint64_t yes, uint64_t no)
{
    return (yes & mask) | (no & ~mask);
}

/* Law: uniform on 0..n-1, n >= 1, `word` being the first word drawn. Lemire's multiplication method: the
 * 2^64 mod n words whose low half is below that number are rejected, which leaves n equal shares. */
static inline uint64_t dpfast_below(bitgen_t *source, uint64_t word, uint64_t n)
{
    unsigned __int128 product = (unsigned __int128)word * n;
    if ((uint64_t)product < n) {
        uint64_t unfair = -n % n;
        while ((uint64_t)product < unfair)
            product = (unsigned __int128)source->next_uint64(source->state) * n;
    }
    return (uint64_t)(product >> 64);
}

/* Law: uniform on 0..last (inclusive, so that the full range of words is possible). */
static inline uint64_t dpfast_uniform(bitgen_t *source, uint64_t last)
{
    uint64_t word = source->next_uint64(source->state);
    return last + 1 == 0 ? word : dpfast_below(source, word, last + 1);
}

/* floor(scale * E + 1/2 + offset), E the exponential -log(U) of the uniform U whose first 63 bits are the word's, or
 * undecided. offset is a real in [-1/2, 1/2]: 0 rounds, -1/2 takes the floor.
 *
 * y is computed at the middle of the interval of U; the margin bounds |y - exact| for every U in it, and every real scale
 * and offset that round to `scale` and `offset`. The exact value is at least -1/2, so y below 0 counts as 0. A word below
 * 2^12 (probability 2^-52) does not determine its logarithm well enough. */
static inline int64_t dpfast_round_exponential(uint64_t word, double scale, double offset)
{
    double two_to_minus_k;
    double e = dpfast_neg_log_word(word | 1, &two_to_minus_k);
    double y = scale * e + offset;
    y = dpfast_double(dpfast_bits(y) & ~dpfast_negative(y));
    double margin = scale * ((e + 1.0) * 0x1p-49 + 2.0 * two_to_minus_k) + 0x1p-50;
    double nearest = (y + 0x1.8p52) - 0x1.8p52;
    /* masks instead of branches, so that the time does not depend on the draw and the loops below vectorise */
    uint64_t decided = dpfast_negative(__builtin_fabs(y - nearest) - (0.5 - margin));
    uint64_t telling = -(uint64_t)(word >> 12 != 0);
    uint64_t mask = decided & telling;
    return (int64_t)(((uint64_t)dpfast_to_int(nearest) & mask) | ((uint64_t)DPFAST_UNDECIDED & ~mask));
}

/* Law: Bernoulli(numerator / denominator), 0 <= numerator <= denominator, denominator > 0: a uniform number is compared
 * with the fraction 64 binary digits at a time. It takes one word except with probability 2^-64. */
static inline int dpfast_bernoulli(bitgen_t *source, uint64_t numerator, uint64_t denominator)
{
    while (numerator < denominator) {
        unsigned __int128 shifted = (unsigned __int128)numerator << 64;
        uint64_t digits = (uint64_t)(shifted / denominator);
        uint64_t word = source->next_uint64(source->state);
        if (word != digits)
            return word < digits;
        numerator = (uint64_t)(shifted % denominator);
    }
    return 1;
}

/* Law, over uniform words and exact completion of the undecided: floor(scale * Exp(1)), the geometric law
 * P(k) = (1 - e^(-1/scale)) e^(-k/scale). */
DPFAST_CLONES static void dpfast_geometric(const uint64_t *words, int64_t *out, ptrdiff_t n, double scale)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = dpfast_round_exponential(words[i], scale, -0.5);
}

/* Law, under the same conditions: floor(scale * Exp(1) + offset), offset in [0, 1]: the level of staircase noise. */
DPFAST_CLONES static void dpfast_levels(const uint64_t *words, int64_t *out, ptrdiff_t n, double scale, double offset)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = dpfast_round_exponential(words[i], scale, offset - 0.5);
}

/* Law: uniform on the integers of a level of staircase noise with period s: |z| < r for level 0, r + (level - 1) s <= |z|
 * < r + level s for another, saturated. 1 <= r <= s <= 2^56; `word` is the first word drawn. */
static inline int64_t dpfast_on_level(bitgen_t *source, uint64_t word, int64_t level, uint64_t s, uint64_t r)
{
    uint64_t top = dpfast_mask(level == 0);
    uint64_t place = dpfast_below(source, word, dpfast_either(top, 2 * r - 1, 2 * s)), sign = -(place & 1) & ~top;
    unsigned __int128 product = (unsigned __int128)(uint64_t)(level - 1) * s;
    uint64_t beyond = dpfast_either(dpfast_mask(product < INT64_MAX), (uint64_t)product, INT64_MAX) + r + (place >> 1);
    beyond = dpfast_either(-(beyond >> 63), INT64_MAX, beyond);
    return (int64_t)((dpfast_either(top, place - (r - 1), beyond) ^ sign) - sign);
}

/* Law, under the same conditions: round(scale * Laplace(1)): magnitude floor(scale * Exp(1) + 1/2), the word's last
 * bit the sign. */
DPFAST_CLONES static void dpfast_rounded_laplace(const uint64_t *words, int64_t *out, ptrdiff_t n, double scale)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        uint64_t sign = -(words[i] & 1);
        uint64_t magnitude = (uint64_t)dpfast_round_exponential(words[i], scale, 0.0);
        out[i] = (int64_t)((magnitude ^ sign) - sign); /* DPFAST_UNDECIDED stays: it is its own negative modulo 2^64 */
    }
}

/* How often a scale of 2^34 or more is halved, to one in [2^28, 2^29): there doubles decide nearly all draws, and one more
 * word refines them. docs/proofs/large-scales.md */
static inline int dpfast_halvings(double scale)
{
    int exponent = (int)(dpfast_bits(scale) >> 52) - 1022;
    return exponent > 34 ? exponent - 29 : 0;
}

/* scale 2^-halvings, exact for the halvings of `dpfast_halvings`. */
static inline double dpfast_coarse(double scale, int halvings)
{
    return scale * dpfast_double((uint64_t)(1023 - halvings) << 52);
}

/* Whether it is left to ball arithmetic if a refining word keeps its place: its last 32 bits, as a number in [0, 1), must be
 * below exp(-gamma), and gamma is below 2^-21 for draws of magnitude below 2^34. */
static inline int dpfast_doubtful(uint64_t word, int64_t coarse)
{
    uint64_t magnitude = coarse < 0 ? -(uint64_t)coarse : (uint64_t)coarse;
    return ((word & 0xFFFFFFFFu) >= 0xFFFFF800u) | (magnitude >= UINT64_C(1) << 34);
}

static inline ptrdiff_t dpfast_count_doubtful(const uint64_t *words, const int64_t *coarse, ptrdiff_t n)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        count += dpfast_doubtful(words[i], coarse[i]);
    return count;
}

/* The draw of a scale from that of its 2^-halvings-th, V the uniform number whose first 32 bits are the word's:
 * floor(2^halvings (|coarse| + V)), or, of a symmetric law, which is rounded, floor(2^halvings (|coarse| - 1/2 + V) + 1/2),
 * with the sign of `coarse`. Assumes: the word is not doubtful, halvings <= 28. */
static inline int64_t dpfast_refined(uint64_t word, int64_t coarse, int halvings, int symmetric)
{
    uint64_t sign = (uint64_t)(coarse >> 63), magnitude = ((uint64_t)coarse ^ sign) - sign;
    uint64_t half = (uint64_t)symmetric << 31, place = (word >> 32) << halvings;
    uint64_t fine = (magnitude << halvings) + ((place + half) >> 32) - ((half << halvings) >> 32);
    return (int64_t)((fine ^ sign) - sign);
}

DPFAST_CLONES static void dpfast_refine(const uint64_t *words, int64_t *out, ptrdiff_t n, int halvings, int symmetric)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = dpfast_refined(words[i], out[i], halvings, symmetric);
}

/* dpfast_student_tail in a time that does not depend on c: each of its pieces, at the point of its range next to c. */
static double dpfast_secret_student_tail(double c)
{
    double near = dpfast_student_tail(dpfast_between(c, 0.0, 0x1.fffffffffffffp-1));
    double middle = dpfast_student_tail(dpfast_between(c, 1.0, 0x1.3ffffffffffffp1));
    double far = dpfast_student_tail(dpfast_between(c, 2.5, INFINITY));
    uint64_t one = dpfast_negative(c - 1.0), two = dpfast_negative(c - 2.5);
    uint64_t others = dpfast_either(two, dpfast_bits(middle), dpfast_bits(far));
    return dpfast_double(dpfast_either(one, dpfast_bits(near), others));
}

/* The c with dpfast_student_tail(c) = u, to 2 %: c = cot(angle / 2), angle - sin(angle) = pi u. */
static inline double dpfast_student_start(double u)
{
    double w = 0x1.2d97c7f3321d2p4 * u, z = dpfast_double(dpfast_bits(w) / 3 + 0x2A9F7893782DA1CEu);
    for (int step = 0; step < 2; step++) /* z^3 = w = 6 pi u, by Halley's method */
        z = z * (z * z * z + 2.0 * w) / (2.0 * z * z * z + w);
    double v = z * z, half = z * (0.5 + v * (1.0 / 120 + v * (1.0 / 2800 + v / 50400))), t = half * half;
    double sine = half * (1.0 - t / 6 * (1.0 - t / 20 * (1.0 - t / 42 * (1.0 - t / 72))));
    double cosine = 1.0 - t / 2 * (1.0 - t / 12 * (1.0 - t / 30 * (1.0 - t / 56 * (1.0 - t / 90))));
    return dpfast_between(cosine / sine, 0.0, INFINITY);
}

/* Law, under the same conditions: round(scale * T), T Student's t with 3 degrees of freedom: the magnitude is the k with
 * tail((k + 1/2) / s) <= U < tail((k - 1/2) / s), s = scale sqrt(3), U the uniform whose first 63 bits are the word's; the
 * word's last bit is the sign. docs/proofs/rounded-student.md
 *
 * The candidate k comes from Newton's method without proof; the two comparisons with its edges are certified. */
static int64_t dpfast_rounded_student3(uint64_t word, double scale)
{
    double u = dpfast_from_word(word | 1) * 0x1p-64, s = scale * 0x1.bb67ae8584caap0;
    double c = dpfast_student_start(u);
    for (int step = 0; step < 3; step++) {
        double slope = 0x1.921fb54442d18p-1 * (1.0 + c * c) * (1.0 + c * c);
        c = dpfast_between(c + (dpfast_secret_student_tail(c) - u) * slope, 0.0, INFINITY);
    }
    double k = (s * c + 0x1.8p52) - 0x1.8p52, margin = u * 0x1p-43 + 0x1p-63;
    if (!(k < 0x1p51) || word >> 12 == 0)
        return DPFAST_UNDECIDED;
    if (!(dpfast_secret_student_tail((k + 0.5) / s) < u - margin))
        return DPFAST_UNDECIDED;
    if ((k > 0) & !(dpfast_secret_student_tail(dpfast_between(k - 0.5, 0.0, k) / s) > u + margin))
        return DPFAST_UNDECIDED;
    uint64_t sign = -(word & 1);
    return (int64_t)(((uint64_t)dpfast_to_int(k) ^ sign) - sign);
}

/* Law, under the same conditions: Bernoulli(exp(-gamma)): whether the uniform number with these first digits is below
 * exp(-gamma): 1, 0 or undecided; gamma may have a relative error of 3 2^-53, and an absolute one of at most `error` < 1
 * besides. */
static inline int64_t dpfast_below_exp_neg_within(uint64_t word, double gamma, double error)
{
    double p = dpfast_exp_neg(gamma) * 0x1p64;
    double u = dpfast_from_word(word);
    double margin = 2.0 + p * ((1.0 + gamma) * 0x1p-48 + 2.0 * error) + u * 0x1p-50;
    uint64_t below = -(uint64_t)(u < p - margin), above = -(uint64_t)(u > p + margin);
    return (int64_t)((below & 1) | ((uint64_t)DPFAST_UNDECIDED & ~(below | above)));
}

static inline int64_t dpfast_below_exp_neg(uint64_t word, double gamma)
{
    return dpfast_below_exp_neg_within(word, gamma, 0.0);
}

/* The first index whose entry in a nondecreasing array is above the target; the last index if there is no such entry. */
static inline ptrdiff_t dpfast_first_above(double target, const double *cumulative, ptrdiff_t n)
{
    ptrdiff_t low = 0, high = n - 1;
    while (low < high) {
        ptrdiff_t middle = low + (high - low) / 2;
        if (cumulative[middle] > target)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The index i with cumulative[i-1] <= u * total < cumulative[i], u the uniform number with these first digits, or -1.
 *
 * Assumes: `cumulative` nondecreasing, its last entry the total, and every entry / total within `error` / 2 of the exact
 * fraction (error >= 2^-50). */
static inline ptrdiff_t dpfast_choose(uint64_t word, const double *cumulative, ptrdiff_t n, double error)
{
    double total = cumulative[n - 1];
    double target = dpfast_from_word(word) * 0x1p-64 * total;
    double margin = error * total;
    ptrdiff_t low = dpfast_first_above(target, cumulative, n);
    if (low > 0 && target - cumulative[low - 1] < margin)
        return -1;
    if (low < n - 1 && cumulative[low] - target < margin)
        return -1;
    return low;
}

/* The running sum of n positive doubles in two words: relative error <= 2^-52 + n^2 2^-106, 2^-44 for n = 2^31. */
typedef struct {
    double high, low;
} dpfast_sum;

static inline double dpfast_add(dpfast_sum *sum, double term)
{
    double high = sum->high + term;
    double shadow = high - sum->high;
    sum->low += (sum->high - (high - shadow)) + (term - shadow);
    sum->high = high;
    return high + sum->low;
}

/* Running sums of the weights, and the index that the word chooses, or -1 if doubles do not decide it. */
static ptrdiff_t dpfast_choose_weight(uint64_t word, const double *weights, ptrdiff_t n, double *cumulative)
{
    dpfast_sum sum = {0.0, 0.0};
    for (ptrdiff_t j = 0; j < n; j++) {
        cumulative[j] = dpfast_add(&sum, weights[j]);
        if (j && cumulative[j] < cumulative[j - 1])
            cumulative[j] = cumulative[j - 1];
    }
    return dpfast_choose(word, cumulative, n, 0x1p-48);
}

#endif
