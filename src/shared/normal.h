/* The inverse normal in doubles with a proved error bound, and its rounded draws. docs/proofs/rounded-gaussian.md
 *
 * z(U) >= 0 is where P(|Z| > z) = U, Z standard normal. As in certified.h every machine computes the same bits: only
 * + - * / and sqrt, each correctly rounded, and integer operations.
 */
#ifndef DPFAST_NORMAL_H
#define DPFAST_NORMAL_H

#include "certified.h"

/* z(u) from x = 1 - u, u the double nearest to m 2^-64, m odd and > 2^61 - 2^7: x times a rational function of x^2, in
 * powers of r = (7/8)^2 - x^2. Bound: within (9.5 z + 10) 2^-53 of the z of every number within 2^-64 of m 2^-64. */
static inline double dpfast_normal_of_center(double x)
{
    double r = 0x1.88p-1 - x * x, top = 0x1.02ea186c447d9p-3, bottom = 0x1.224ad0200403fp-1;

    top = top * r + 0x1.0274ba21f22f9p3, bottom = bottom * r + 0x1.da04e081b12dep3;
    top = top * r + 0x1.39e8691f330d9p6, bottom = bottom * r + 0x1.8471096e0db3p6;
    top = top * r + 0x1.0622cc494baa3p8, bottom = bottom * r + 0x1.fd2a65db08d4ap7;
    top = top * r + 0x1.893f08b55513cp8, bottom = bottom * r + 0x1.42ac7357512e5p8;
    top = top * r + 0x1.29813c56ae6eep8, bottom = bottom * r + 0x1.aec35b8fa4197p7;
    top = top * r + 0x1.d58768a9bdabap6, bottom = bottom * r + 0x1.34777e080fa8bp6;
    top = top * r + 0x1.6f6349044250bp4, bottom = bottom * r + 0x1.bea5acb523acap3;
    top = top * r + 0x1.c0d6ffb4b4322p0, bottom = bottom * r + 0x1p0;
    return x * (top / bottom);
}

/* z / (1 - U) as a polynomial in t = -log(U (2 - U)), for 2^-8 <= U <= 1, 0 <= t < 4.854. Even and odd powers are
 * summed apart, at the same time. */
static inline double dpfast_normal_shoulder(double t)
{
    double s = t - 2.5, v = s * s;
    double even = 0x1.1f569dfe6720dp-58, odd = 0x1.cbd46bfc47d48p-62;

    even = even * v - 0x1.5e38af5e3f513p-53, odd = odd * v - 0x1.85cf1eb25a323p-55;
    even = even * v - 0x1.3c7cf4b0138fcp-48, odd = odd * v + 0x1.8a4e3bee5fe39p-49;
    even = even * v + 0x1.ab4ac13ba61dbp-41, odd = odd * v - 0x1.e688141fb1823p-44;
    even = even * v - 0x1.82f236fe47c18p-35, odd = odd * v + 0x1.6b4edc5096feep-40;
    even = even * v + 0x1.60b44808ef9cp-30, odd = odd * v + 0x1.73f481ccb049cp-33;
    even = even * v + 0x1.45f979f27a906p-26, odd = odd * v - 0x1.07e20498c42a4p-26;
    even = even * v - 0x1.444234075c8f1p-18, odd = odd * v + 0x1.6b78e0abc280fp-21;
    even = even * v + 0x1.43a5452e7f445p-12, odd = odd * v - 0x1.da28c514eb868p-18;
    even = even * v - 0x1.83296808f72f1p-8, odd = odd * v - 0x1.d069d456ba9e9p-10;
    even = even * v + 0x1.0fc8bc55fe004p1, odd = odd * v + 0x1.652c5b9e4a462p-2;
    return even + s * odd;
}

/* z / sqrt(-log U) as a polynomial in y = 1 / sqrt(-log U), for 2^-52 <= U <= 2^-8: 0.166 < y < 0.425. */
static inline double dpfast_normal_tail(double y)
{
    double s = y - 0x1.3p-2;
    double p = -0x1.8846f55f2c34cp20;

    p = p * s + 0x1.df53207967f78p18;
    p = p * s - 0x1.ea034469fdc8ep14;
    p = p * s + 0x1.0944a23aeef93p14;
    p = p * s - 0x1.67a9928178fa3p13;
    p = p * s + 0x1.f47cb4c45a7e4p11;
    p = p * s - 0x1.56cd3d47b9fefp10;
    p = p * s + 0x1.0537525755508p9;
    p = p * s - 0x1.96d83953f462p7;
    p = p * s + 0x1.42a9ad3c7bfe1p6;
    p = p * s - 0x1.0836682670ca7p5;
    p = p * s + 0x1.c18ada7fb4775p3;
    p = p * s - 0x1.8ea53b1a7aa7dp2;
    p = p * s + 0x1.6ea443a2ba5f4p1;
    p = p * s - 0x1.62000fdf715d6p0;
    p = p * s + 0x1.a61e9a8474472p-1;
    p = p * s - 0x1.7b4e5b9b69d75p-1;
    p = p * s + 0x1.6548a2fb96552p-1;
    p = p * s - 0x1.1d44347bacf22p-2;
    p = p * s - 0x1.202f912bde4f6p-1;
    return p * s + 0x1.4cf4bc944e81p0;
}

/* z(u) for u the double nearest to m 2^-64, m odd and > 2^56 - 4. Bound: within (9.5 z + 8) 2^-53 of the z of every
 * number within 2^-64 of m 2^-64. */
static inline double dpfast_normal_of_shoulder(double u)
{
    double x = 1.0 - u;
    return x * dpfast_normal_shoulder(-dpfast_log(u * (1.0 + x)));
}

/* z(m 2^-64) for m odd, 2^12 < m < 2^56, with the 2^-k of m = 2^k f, f in [sqrt(1/2), sqrt(2)). Bound: within
 * 16 z 2^-53 + 2^-k of the z of every number within 2^-64 of m 2^-64. */
static inline double dpfast_normal_of_tail(uint64_t m, double *two_to_minus_k)
{
    double r = __builtin_sqrt(dpfast_neg_log_word(m, two_to_minus_k));
    return r * dpfast_normal_tail(1.0 / r);
}

/* z(m 2^-64) for the odd m = word | 1, word >= 2^12, as the draws below compute it first. */
static inline double dpfast_normal_of_word(uint64_t word)
{
    double unused, u = dpfast_from_word(word | 1) * 0x1p-64;
    if (u >= 0x1p-3)
        return dpfast_normal_of_center(1.0 - u);
    return u >= 0x1p-8 ? dpfast_normal_of_shoulder(u) : dpfast_normal_of_tail(word | 1, &unused);
}

/* The integer nearest to y with the sign of the word's last bit, or undecided if y is not `margin` away from a change of
 * that integer; always undecided for a `usable` of 0. The margin includes 2^-50 for its own roundings. */
static inline int64_t dpfast_round_signed(uint64_t word, double y, double margin, uint64_t usable)
{
    double nearest = (y + 0x1.8p52) - 0x1.8p52;
    uint64_t decided = dpfast_negative(__builtin_fabs(y - nearest) - (0.5 - margin)) & usable;
    uint64_t sign = -(word & 1), signed_nearest = ((uint64_t)dpfast_to_int(nearest) ^ sign) - sign;
    return (int64_t)((signed_nearest & decided) | ((uint64_t)DPFAST_UNDECIDED & ~decided));
}

/* The integer nearest to sigma z with the sign of the word's last bit, or undecided, always so for a `usable` of 0.
 *
 * Assumes: z is within `error` - z 2^-52 of z(U) for every U of the word, and `sigma` within 2^-53 of the real one. */
static inline int64_t dpfast_round_normal(uint64_t word, double z, double error, double sigma, uint64_t usable)
{
    return dpfast_round_signed(word, sigma * z, sigma * error + 0x1p-50, usable);
}

/* The draws by the three approximations, undecided where these do not hold. */
static inline int64_t dpfast_gaussian_of_center(uint64_t word, double sigma)
{
    double u = dpfast_from_word(word | 1) * 0x1p-64, z = dpfast_normal_of_center(1.0 - u);
    return dpfast_round_normal(word, z, z * 0x1.8p-50 + 0x1.4p-50, sigma, ~dpfast_negative(u - 0x1p-3));
}

static inline int64_t dpfast_gaussian_of_shoulder(uint64_t word, double sigma)
{
    double u = dpfast_from_word(word | 1) * 0x1p-64, z = dpfast_normal_of_shoulder(u);
    return dpfast_round_normal(word, z, z * 0x1.8p-50 + 0x1p-50, sigma, ~dpfast_negative(u - 0x1p-8));
}

static inline int64_t dpfast_gaussian_of_tail(uint64_t word, double sigma)
{
    uint64_t usable = -(uint64_t)((word >> 56 == 0) & (word >> 12 != 0));
    double two_to_minus_k, z = dpfast_normal_of_tail(word | 1, &two_to_minus_k);
    return dpfast_round_normal(word, z, z * 0x1.4p-49 + two_to_minus_k, sigma, usable);
}

/* The first draw, or the second if the first is undecided. */
static inline int64_t dpfast_decided(int64_t first, int64_t second)
{
    uint64_t other = (uint64_t)first ^ (uint64_t)DPFAST_UNDECIDED, open = ((other | -other) >> 63) - 1;
    return (int64_t)(((uint64_t)second & open) | ((uint64_t)first & ~open));
}

/* The number of words to treat: `most`, or `count` if that is more, which is rare. A branch, so that no loop depends on
 * `count` otherwise. */
static inline int32_t dpfast_enough(int32_t most, int32_t count)
{
    if (__builtin_expect(count > most, 0)) {
        __asm__ volatile(""); /* not a conditional move */
        most = count;
    }
    return most;
}

/* How many of n <= 1024 words the shoulder gets, and the tail: more are left for them with probability below 2^-38. */
static inline int32_t dpfast_shoulders(int32_t n)
{
    int32_t most = (int32_t)(n * 0x1p-3 + 2.5 * __builtin_sqrt(n) + 4.0);
    return most < n ? most : n;
}

static inline int32_t dpfast_tails(int32_t n)
{
    int32_t most = (int32_t)(n * 0x1p-8 + 0.5 * __builtin_sqrt(n) + 5.0);
    return most < n ? most : n;
}

/* Law, over uniform words and exact completion of the undecided: round(sigma Z). The magnitude is the k with
 * P(|Z| > (k + 1/2) / sigma) <= U < P(|Z| > (k - 1/2) / sigma), U the uniform whose first 63 bits are the word's; the
 * word's last bit is the sign.
 *
 * The center decides seven words in eight. The others are collected, so that the shoulder, which needs a logarithm, is
 * a loop without branches too; it leaves one word in 256 to the tail. Both get a fixed number of words, decided ones after
 * the undecided, so that the time does not show how many draws are large; more with probability below 2^-37 a chunk. */
DPFAST_CLONES static void dpfast_rounded_gaussian(const uint64_t *words, int64_t *out, ptrdiff_t n, double sigma)
{
    enum { CHUNK = 1024 };
    uint64_t rest[CHUNK];
    int64_t drawn[CHUNK];
    int32_t place[CHUNK], last[CHUNK];
    for (; n > 0; words += CHUNK, out += CHUNK, n -= CHUNK) {
        int32_t size = n < CHUNK ? (int32_t)n : CHUNK, count = 0, left = 0;
        for (int32_t i = 0; i < size; i++)
            out[i] = dpfast_gaussian_of_center(words[i], sigma);
        for (int32_t i = 0; i < size; i++) { /* undecided places from the front, the others from the back */
            place[count] = place[size - 1 - i + count] = i;
            count += out[i] == DPFAST_UNDECIDED;
        }
        int32_t shoulders = dpfast_enough(dpfast_shoulders(size), count);
        for (int32_t j = 0; j < shoulders; j++)
            rest[j] = words[place[j]];
        for (int32_t j = 0; j < shoulders; j++)
            drawn[j] = dpfast_gaussian_of_shoulder(rest[j], sigma);
        for (int32_t j = 0; j < shoulders; j++) {
            int64_t found = out[place[j]] = dpfast_decided(out[place[j]], drawn[j]);
            last[left] = last[shoulders - 1 - j + left] = place[j];
            left += found == DPFAST_UNDECIDED;
        }
        int32_t tails = dpfast_enough(dpfast_tails(size), left);
        for (int32_t j = 0; j < tails; j++)
            rest[j] = words[last[j]];
        for (int32_t j = 0; j < tails; j++)
            drawn[j] = dpfast_gaussian_of_tail(rest[j], sigma);
        for (int32_t j = 0; j < tails; j++)
            out[last[j]] = dpfast_decided(out[last[j]], drawn[j]);
    }
}

#endif
