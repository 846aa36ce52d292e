/* Choice among scored candidates. docs/proofs/selection.md
 *
 * A score has the exponent y = rate (top - score), top the largest score: the exponential mechanism chooses with weight
 * e^-y, permute-and-flip flips a coin of probability e^-y. NaN counts as 0; an infinite score equal to the largest has
 * exponent 0. Weights are summed by blocks, so that a draw needs one pass and memory only for the block sums.
 */
#ifndef DPFAST_CHOICE_H
#define DPFAST_CHOICE_H

#include "draws.h"

#define CHOICE_BLOCK 1024
#define CHOICE_LANES 8

/* Twice the error of an edge / total: a weight has relative error 2^-50 (1 + y), all weights with y > 75 together
 * are below 2^-58 of the total; a block sum rounds by 130 2^-53, the sums of sums by 2^-51. */
#define CHOICE_ERROR 0x1p-40

/* The score, 0 for NaN; a mask instead of a branch, so that the loops below vectorise. */
static inline double choice_number(double score)
{
    return dpfast_double(dpfast_bits(score) & -(uint64_t)(score == score));
}

/* The exponent, relative error <= 3 2^-53 where it is normal; larger ones become 2^60. Assumes 2^-900 <= rate <= 2^900. */
static inline double choice_exponent(double score, double top, double rate)
{
    double number = choice_number(score);
    double y = (top - number) * rate;
    uint64_t inside = -(uint64_t)(y < 0x1p60), below = -(uint64_t)(number != top);
    return dpfast_double(((dpfast_bits(y) & inside) | (dpfast_bits(0x1p60) & ~inside)) & below);
}

/* The largest score, in lanes, because a running maximum does not vectorise. */
DPFAST_CLONES static double choice_largest(const double *scores, ptrdiff_t n)
{
    double most[CHOICE_LANES], largest;
    ptrdiff_t i = 0;
    for (int lane = 0; lane < CHOICE_LANES; lane++)
        most[lane] = -INFINITY;
    for (; i + CHOICE_LANES <= n; i += CHOICE_LANES)
        for (int lane = 0; lane < CHOICE_LANES; lane++) {
            double number = choice_number(scores[i + lane]);
            most[lane] = number > most[lane] ? number : most[lane];
        }
    largest = most[0];
    for (int lane = 1; lane < CHOICE_LANES; lane++)
        largest = most[lane] > largest ? most[lane] : largest;
    for (; i < n; i++) {
        double number = choice_number(scores[i]);
        largest = number > largest ? number : largest;
    }
    return largest;
}

DPFAST_CLONES static void choice_weights(const double *scores, double *weights, ptrdiff_t count, double top,
                                         double rate)
{
    for (ptrdiff_t i = 0; i < count; i++)
        weights[i] = dpfast_exp_neg(choice_exponent(scores[i], top, rate));
}

/* The sum of at most CHOICE_BLOCK weights: a lane adds 128, the lanes 8. */
DPFAST_CLONES static double choice_block_sum(const double *weights, ptrdiff_t count)
{
    double lanes[CHOICE_LANES] = {0.0}, sum = 0.0;
    ptrdiff_t i = 0;
    for (; i + CHOICE_LANES <= count; i += CHOICE_LANES)
        for (int lane = 0; lane < CHOICE_LANES; lane++)
            lanes[lane] += weights[i + lane];
    for (int lane = 0; i < count; i++, lane++)
        lanes[lane] += weights[i];
    for (int lane = 0; lane < CHOICE_LANES; lane++)
        sum += lanes[lane];
    return sum;
}

/* totals[b] = sum of the weights of the blocks 0..b. */
static void choice_totals(const double *scores, ptrdiff_t n, double top, double rate, double *totals)
{
    dpfast_sum sum = {0.0, 0.0};
    double weights[CHOICE_BLOCK];
    for (ptrdiff_t b = 0, start = 0; start < n; b++, start += CHOICE_BLOCK) {
        ptrdiff_t count = n - start < CHOICE_BLOCK ? n - start : CHOICE_BLOCK;
        choice_weights(scores + start, weights, count, top, rate);
        totals[b] = dpfast_add(&sum, choice_block_sum(weights, count));
        if (b && totals[b] < totals[b - 1])
            totals[b] = totals[b - 1];
    }
}

/* cumulative[i] = `before` and the sum of the weights 0..i of one block. */
static void choice_cumulative(const double *scores, ptrdiff_t count, double top, double rate, double before,
                              double *cumulative)
{
    dpfast_sum sum = {before, 0.0};
    choice_weights(scores, cumulative, count, top, rate);
    for (ptrdiff_t i = 0; i < count; i++) {
        double last = i ? cumulative[i - 1] : before;
        cumulative[i] = dpfast_add(&sum, cumulative[i]);
        if (cumulative[i] < last)
            cumulative[i] = last;
    }
}

/* The candidate whose part of the total holds the uniform number with these first digits, or -1 for undecided.
 * `cumulative` holds the sums of all blocks, or is scratch for the one block that is needed (`filled` = 0). */
static ptrdiff_t choice_locate(uint64_t word, const double *scores, ptrdiff_t n, double top, double rate,
                               const double *totals, double *cumulative, int filled)
{
    ptrdiff_t blocks = (n + CHOICE_BLOCK - 1) / CHOICE_BLOCK;
    double total = totals[blocks - 1], margin = CHOICE_ERROR * total;
    double target = dpfast_from_word(word) * 0x1p-64 * total;
    ptrdiff_t block = dpfast_first_above(target, totals, blocks), start = block * CHOICE_BLOCK;
    ptrdiff_t count = n - start < CHOICE_BLOCK ? n - start : CHOICE_BLOCK;
    double before = block ? totals[block - 1] : 0.0;
    if (filled)
        cumulative += start;
    else
        choice_cumulative(scores + start, count, top, rate, before, cumulative);
    ptrdiff_t i = dpfast_first_above(target, cumulative, count);
    if (start + i > 0 && target - (i ? cumulative[i - 1] : before) < margin)
        return -1;
    if (start + i < n - 1 && cumulative[i] - target < margin)
        return -1;
    return start + i;
}

/* coins[i] = 1 with probability e^-y_i, else 0, one word each; 2 for undecided. */
DPFAST_CLONES static void choice_flip(const uint64_t *words, const double *scores, uint8_t *coins, ptrdiff_t n,
                                      double top, double rate)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        uint64_t decision = (uint64_t)dpfast_below_exp_neg(words[i], choice_exponent(scores[i], top, rate));
        coins[i] = (uint8_t)((decision & 1) | (decision >> 62)); /* undecided is the highest bit alone */
    }
}

#endif
