/* Score laws of M-estimators: P(theta) proportional to w(theta) exp(-rate min(|S(theta)|, M + reach)), S(theta) the sum of
 * psi(theta - x) over the records, M its least magnitude on the grid. docs/proofs/score-laws.md
 *
 * psi is an integer table, linear between knots, so S is linear between the positions x + knot. score_cells.h sums S in an
 * interval around its root; `scores_sweep` cuts the grid into pieces on which the weight is nearly constant,
 * `scores_attempt` draws a piece and a point of it.
 */
#ifndef DPFAST_SCORES_H
#define DPFAST_SCORES_H

#include <stdlib.h>

#include "draws.h"
#include "grid.h"
#include "select.h"

typedef __int128 scores_wide;

/* ---- psi ---- */

/* values[0] up to knots[0], then slope slopes[j] between the knots j and j + 1, values[count - 1] from the last on. */
typedef struct {
    const int64_t *knots, *values, *slopes;
    ptrdiff_t count;
    const int32_t *guide; /* search index for a difference among many knots: `scores_bucket` */
} scores_psi;

/* The search for a difference begins at the guide's entry for its bucket: 0 is one bucket, then there are 32 per
 * doubling of the magnitude, so that each difference below 64 has its own. Ascending; magnitudes up to 2^53. */
#define SCORES_SIDE (1 + 54 * 32)
#define SCORES_BUCKETS (2 * SCORES_SIDE)

static inline ptrdiff_t scores_bucket(int64_t d)
{
    /* -1 - d for negative ones: knots begin a bucket on both sides. */
    const int64_t sign = d >> 63, magnitude = d ^ sign;
    const int64_t exponent_and_five_bits = (int64_t)(dpfast_bits((double)magnitude) >> 47);
    const int64_t bucket = magnitude ? exponent_and_five_bits - (1023 << 5) + 1 : 0;
    return (ptrdiff_t)(SCORES_SIDE + (bucket ^ sign));
}

/* guide[bucket] = the number of knots up to the least difference of the bucket, or fewer. */
static void scores_fill_guide(const scores_psi *psi, int32_t *guide)
{
    ptrdiff_t bucket = 0;
    for (ptrdiff_t j = 0; j < psi->count; j++) {
        const ptrdiff_t own = scores_bucket(psi->knots[j]),
                        first = scores_bucket(psi->knots[j] - 1) == own ? own + 1 : own;
        for (; bucket < first; bucket++)
            guide[bucket] = (int32_t)j;
    }
    for (; bucket < SCORES_BUCKETS; bucket++)
        guide[bucket] = (int32_t)psi->count;
}

/* The number of knots <= d. */
static inline ptrdiff_t scores_index(const scores_psi *psi, int64_t d)
{
    ptrdiff_t index = psi->guide[scores_bucket(d)];
    while (index < psi->count && psi->knots[index] <= d)
        index++;
    return index;
}

static inline int64_t scores_value(const scores_psi *psi, int64_t d, ptrdiff_t index)
{
    if (index == 0)
        return psi->values[0];
    if (index == psi->count)
        return psi->values[index - 1];
    return psi->values[index - 1] + psi->slopes[index - 1] * (d - psi->knots[index - 1]);
}

/* ---- pieces ---- */

/* The points near, near + side, ..., near + side (length - 1), on one side of the root; `near` is the end nearest to it.
 * Their magnitudes of S are M + excess + slope j; their prior weights at most 1 / closest. */
typedef struct {
    int64_t near, length;
    scores_wide excess, slope, closest;
    int side;
} scores_piece;

typedef struct {
    scores_piece *pieces;
    ptrdiff_t count, room;
    double rate;          /* of the exponential, the nearest double up to a few units in the last place */
    const int64_t *edges; /* no piece holds both edge - 1 and edge; ascending */
    ptrdiff_t edge_count;
    int64_t center, width; /* of the Cauchy prior 1 / (width^2 + (theta - center)^2); width 0: uniform */
} scores_cut;

static inline scores_wide scores_inverse_prior(const scores_cut *cut, int64_t theta)
{
    scores_wide away = (scores_wide)theta - cut->center;
    return cut->width ? (scores_wide)cut->width * cut->width + away * away : 1;
}

/* The number of edges <= theta. */
static inline ptrdiff_t scores_edges_up_to(const scores_cut *cut, int64_t theta)
{
    ptrdiff_t low = 0, high = cut->edge_count;
    while (low < high) {
        ptrdiff_t middle = low + (high - low) / 2;
        if (cut->edges[middle] <= theta)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds the points near, near + side, ... up to `count`, in pieces that contain no edge and on which the exponential
 * decreases by a factor of at most e. Returns -1 if memory is exhausted. */
static int scores_add(scores_cut *cut, int64_t near, int64_t count, scores_wide excess, scores_wide slope, int side)
{
    const double flat = cut->rate * (double)slope;
    const int64_t longest = flat * 0x1p53 > 1.0 ? (flat >= 1.0 ? 1 : (int64_t)(1.0 / flat)) : INT64_MAX;
    while (count > 0) {
        int64_t length = count < longest ? count : longest;
        ptrdiff_t edge = scores_edges_up_to(cut, near);
        if (side > 0 && edge < cut->edge_count && cut->edges[edge] - near < length)
            length = cut->edges[edge] - near;
        if (side < 0 && edge > 0 && near - cut->edges[edge - 1] + 1 < length)
            length = near - cut->edges[edge - 1] + 1;
        if (cut->count == cut->room) {
            ptrdiff_t room = 2 * cut->room + 64;
            scores_piece *pieces = realloc(cut->pieces, (size_t)room * sizeof *pieces);
            if (pieces == NULL)
                return -1;
            cut->pieces = pieces;
            cut->room = room;
        }
        const int64_t far = near + side * (length - 1);
        const scores_wide one = scores_inverse_prior(cut, near), other = scores_inverse_prior(cut, far);
        cut->pieces[cut->count++] = (scores_piece){near, length, excess, slope, one < other ? one : other, side};
        near = far + side;
        excess += slope * length;
        count -= length;
    }
    return 0;
}

/* S on left..right: value S(left), then linear with the slopes[i] from positions[i] to positions[i + 1], positions[0]
 * being left; past the last position up to right. */
typedef struct {
    const int64_t *positions;
    scores_wide *values, *slopes;
    ptrdiff_t count;
    int64_t left, right, last;
} scores_line;

static inline scores_wide scores_at(const scores_line *line, ptrdiff_t i, int64_t theta)
{
    return line->values[i] + line->slopes[i] * (theta - line->positions[i]);
}

static inline int64_t scores_end(const scores_line *line, ptrdiff_t i)
{
    return i + 1 < line->count ? line->positions[i + 1] : line->right;
}

/* The pieces of 0..last. Returns 1; 0 if the interval does not contain all points of an excess below `reach`; -1 if memory
 * is exhausted. */
static int scores_sweep(const scores_line *line, scores_wide reach, scores_cut *cut)
{
    ptrdiff_t i = 0, root_segment;
    /* The root: the least theta with S(theta) >= 0, or right + 1, and the segment that leads to it. */
    while (i + 1 < line->count && line->values[i + 1] < 0)
        i++;
    root_segment = i;
    int64_t root = line->left;
    if (line->values[i] < 0) {
        const int64_t steps = scores_end(line, i) - line->positions[i];
        const scores_wide slope = line->slopes[i], needed = slope ? (-line->values[i] + slope - 1) / slope : 0;
        root = slope == 0 || needed > steps ? scores_end(line, i) + 1 : line->positions[i] + (int64_t)needed;
    }
    /* The least magnitude is next to it, on one side or the other. */
    if ((root == line->left && line->left > 0) || (root > line->right && line->right < line->last))
        return 0;
    scores_wide least = -1;
    if (root <= line->right)
        least = scores_at(line, root_segment, root);
    if (root > line->left) {
        const scores_wide before = -scores_at(line, root_segment, root - 1);
        least = least < 0 || before < least ? before : least;
    }
    const scores_wide limit = least + reach;

    int64_t theta = root;
    for (i = root_segment; theta <= line->right; i++) {
        const int64_t end = i + 1 < line->count ? line->positions[i + 1] - 1 : line->right;
        if (theta > end)
            continue;
        const scores_wide value = scores_at(line, i, theta), slope = line->slopes[i];
        if (value >= limit)
            break;
        int64_t count = end - theta + 1;
        if (slope && (limit - value - 1) / slope + 1 < count)
            count = (int64_t)((limit - value - 1) / slope + 1);
        if (scores_add(cut, theta, count, value - least, slope, 1) < 0)
            return -1;
        theta += count;
        if (theta <= end)
            break;
    }
    if (theta > line->right && line->right < line->last)
        return 0;
    if (scores_add(cut, theta, line->last - theta + 1, reach, 0, 1) < 0)
        return -1;

    theta = root - 1;
    for (i = root_segment; theta >= line->left; i--) {
        if (theta < line->positions[i])
            continue;
        const scores_wide value = -scores_at(line, i, theta), slope = line->slopes[i];
        if (value >= limit)
            break;
        int64_t count = theta - line->positions[i] + 1;
        if (slope && (limit - value - 1) / slope + 1 < count)
            count = (int64_t)((limit - value - 1) / slope + 1);
        if (scores_add(cut, theta, count, value - least, slope, -1) < 0)
            return -1;
        theta -= count;
        if (theta >= line->positions[i])
            break;
    }
    if (theta < line->left && line->left > 0)
        return 0;
    return scores_add(cut, theta, theta + 1, reach, 0, -1) < 0 ? -1 : 1;
}

/* Twice the error of cumulative / total: a weight has relative error 2^-49 (1 + y) + 2^-50, y <= 160, and all weights
 * with y > 160 together are below 2^160 e^-160 of the total. docs/proofs/score-laws.md */
#define SCORES_ERROR 0x1p-39

/* cumulative[i] = sum of the weights of the pieces 0..i: length times the greatest weight of a point on the piece, in
 * units of width^2 for the Cauchy prior. */
static void scores_cumulative(const scores_cut *cut, double *cumulative)
{
    dpfast_sum sum = {0.0, 0.0};
    const double unit = cut->width ? (double)cut->width * (double)cut->width : 1.0;
    for (ptrdiff_t i = 0; i < cut->count; i++) {
        const scores_piece *piece = cut->pieces + i;
        const double weight = dpfast_exp_neg(cut->rate * (double)piece->excess) * (unit / (double)piece->closest);
        cumulative[i] = dpfast_add(&sum, weight * (double)piece->length);
        if (i && cumulative[i] < cumulative[i - 1])
            cumulative[i] = cumulative[i - 1];
    }
}

/* ---- the draw ---- */

enum scores_stage {
    SCORES_CHOOSE, /* no draw yet, or the last attempt was rejected */
    SCORES_CHOSEN, /* the piece is known */
    SCORES_KEPT,   /* the point is known, and its acceptance by the slope */
    SCORES_DONE,
    SCORES_WHICH,  /* open: the piece that `word` chooses */
    SCORES_WHETHER /* open: whether `word` is below exp(-rate slope step) */
};

typedef struct {
    uint64_t word;
    ptrdiff_t piece;
    int64_t step;
} scores_draw;

/* Law: 1 with probability numerator / denominator, 0 < numerator <= denominator < 2^110: a uniform integer below the
 * denominator, by rejection from the least power of two, is compared. */
static inline int scores_bernoulli(bitgen_t *source, scores_wide numerator, scores_wide denominator)
{
    typedef unsigned __int128 word_pair;
    if (numerator == denominator)
        return 1;
    const uint64_t top = (uint64_t)((word_pair)denominator >> 64), low = (uint64_t)denominator;
    const uint64_t high_mask = top ? ~(uint64_t)0 >> __builtin_clzll(top) : 0;
    const uint64_t low_mask = top ? ~(uint64_t)0 : ~(uint64_t)0 >> __builtin_clzll(low);
    for (;;) {
        word_pair draw = source->next_uint64(source->state) & low_mask;
        if (high_mask)
            draw |= (word_pair)(source->next_uint64(source->state) & high_mask) << 64;
        if (draw < (word_pair)denominator)
            return draw < (word_pair)numerator;
    }
}

/* One attempt, from `stage` on: DONE, CHOOSE after a rejection, or an open decision, which the caller makes from the same
 * word. With `exact` all decisions are left to the caller. */
static int scores_attempt(bitgen_t *source, const scores_cut *cut, const double *cumulative, scores_draw *draw,
                          int stage, int exact)
{
    if (stage == SCORES_CHOOSE) {
        draw->word = source->next_uint64(source->state);
        draw->piece = exact ? -1 : dpfast_choose(draw->word, cumulative, cut->count, SCORES_ERROR);
        if (draw->piece < 0)
            return SCORES_WHICH;
        stage = SCORES_CHOSEN;
    }
    const scores_piece *piece = cut->pieces + draw->piece;
    if (stage == SCORES_CHOSEN) {
        draw->step = (int64_t)dpfast_uniform(source, (uint64_t)piece->length - 1);
        if (draw->step && piece->slope) {
            draw->word = source->next_uint64(source->state);
            int64_t kept = DPFAST_UNDECIDED;
            if (!exact)
                kept = dpfast_below_exp_neg(draw->word, cut->rate * (double)piece->slope * (double)draw->step);
            if (kept == DPFAST_UNDECIDED)
                return SCORES_WHETHER;
            if (!kept)
                return SCORES_CHOOSE;
        }
    }
    const scores_wide inverse = scores_inverse_prior(cut, piece->near + piece->side * draw->step);
    return scores_bernoulli(source, piece->closest, inverse) ? SCORES_DONE : SCORES_CHOOSE;
}

#endif
