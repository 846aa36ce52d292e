/* Sums of psi over all records from one pass that puts them into cells. docs/proofs/score-laws.md
 *
 * A record x is known by its difference d = center - x, the center being near the root. A cell is a range of differences,
 * by the leading bits of the magnitude: 2^fine for each doubling, on both sides. `scores_fill` counts the records of each
 * cell, sums their differences, and stores the cell of each record in two bytes. So the sum S(theta) is known exactly
 * wherever no knot lies inside a cell: psi is linear there. `scores_mark` marks the few cells with a knot, for theta in an
 * interval around the root, and sums the others; `scores_collect` copies the records of the marked ones.
 */
#ifndef DPFAST_SCORE_CELLS_H
#define DPFAST_SCORE_CELLS_H

#include "scores.h"

/* Cells on both sides of 0, where differences are below 2^bits in magnitude. */
typedef struct {
    int64_t center;
    int fine;       /* log2 of the cells for each doubling, at most 8: numbers of cells fit two bytes */
    int drop;       /* last bits of doubles that are 0 for all magnitudes, and are left out of sums */
    ptrdiff_t side; /* cells on one side: one for the magnitude 0, then those for each doubling */
} scores_layout;

static scores_layout scores_lay_out(int64_t center, int bits, int fine)
{
    const int rest = 52 - fine, zeros = 53 - bits;
    return (scores_layout){center, fine, zeros < 0 ? 0 : zeros < rest ? zeros : rest, 1 + ((ptrdiff_t)bits << fine)};
}

/* Records whose last bits sum to less than 2^64. */
static inline int64_t scores_at_once(const scores_layout *layout)
{
    const int most = 12 + layout->fine + layout->drop;
    return (int64_t)1 << (most < 62 ? most : 62);
}

/* The count of a cell and the sum of the rests of its magnitudes; a vector, so that one store adds to both. */
typedef uint64_t scores_tally __attribute__((vector_size(16)));

/* What is known of the records of a cell. */
typedef struct {
    int64_t low, high; /* all their differences center - x are from low to high */
    int64_t middle;    /* the mean of these, rounded down */
    int64_t count;     /* the number of records in the cells before this one */
    scores_wide sum;   /* of their differences */
    ptrdiff_t place;   /* in the table, or among the codes */
} scores_cell;

/* The cell of one side that a magnitude below 2^53 is in, from its double without sign. */
static inline int64_t scores_cell_of(uint64_t bits, int fine)
{
    const int64_t cell = (int64_t)(bits >> (52 - fine)) - ((INT64_C(1023) << fine) - 1);
    return cell > 0 ? cell : 0;
}

/* The cells of the codes of a block, and the last bits of the magnitudes, less `drop` that are 0. Differences below 0 have
 * the magnitude -1 - d, so that both sides begin with a cell for 0. */
DPFAST_CLONES
static void scores_place(const dpfast_grid *g, const double *x, ptrdiff_t n, const scores_layout *layout,
                         uint16_t *restrict found, uint64_t *restrict rests)
{
    const double lower = g->lower, upper = g->upper, step = g->step, missing = g->missing, first = g->first;
    const double center = (double)layout->center;
    const int fine = layout->fine, drop = layout->drop;
    const int64_t side = layout->side;
    const uint64_t last = (UINT64_C(1) << (52 - fine)) - 1;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double d = center - dpfast_code(x[i], lower, upper, step, missing, first);
        const uint64_t negative = dpfast_negative(d);
        const uint64_t bits = dpfast_bits(d + dpfast_double(negative & dpfast_bits(1.0))) << 1 >> 1;
        found[i] = (uint16_t)(side + (scores_cell_of(bits, fine) ^ (int64_t)negative));
        rests[i] = (bits & last) >> drop;
    }
}

/* Adds records start..stop-1, at most `scores_at_once`, to a table of all cells, and stores their cells. */
static void scores_fill(const struct select_keys *keys, const dpfast_grid *grid, ptrdiff_t start, ptrdiff_t stop,
                        const scores_layout *layout, uint16_t *found, scores_tally *table)
{
    double block[SELECT_BLOCK];
    uint64_t rests[SELECT_BLOCK];
    for (ptrdiff_t i = start; i < stop; i += SELECT_BLOCK) {
        const ptrdiff_t count = stop - i < SELECT_BLOCK ? stop - i : SELECT_BLOCK;
        const double *x = (const double *)keys->data + i;
        if (!keys->in_place) {
            select_load(keys, i, count, block);
            x = block;
        }
        scores_place(grid, x, count, layout, found + i, rests);
        for (ptrdiff_t k = 0; k < count; k++)
            table[found[i + k]] += (scores_tally){1, rests[k]};
    }
}

/* Moves a table to the totals, three words for each cell: counts, and sums of two words. */
static void scores_add_table(scores_tally *table, ptrdiff_t size, uint64_t *totals)
{
    for (ptrdiff_t j = 0; j < size; j++) {
        uint64_t *total = totals + 3 * j, rest = table[j][1];
        total[0] += table[j][0];
        total[1] += rest;
        total[2] += total[1] < rest;
        table[j] = (scores_tally){0, 0};
    }
}

/* The least magnitude of a cell of one side; that of the next cell less 1 is the greatest. */
static inline int64_t scores_least(ptrdiff_t cell, int fine)
{
    if (cell == 0)
        return 0;
    const int64_t exponent = (cell - 1) >> fine, one = INT64_C(1) << fine, leading = ((cell - 1) & (one - 1)) + one;
    return exponent < fine ? ((leading << exponent) + one - 1) >> fine : leading << (exponent - fine);
}

/* The cells with records, ascending, and one more, whose count and sum are those of all; returns their number. */
static ptrdiff_t scores_cells(const uint64_t *totals, const scores_layout *layout, scores_cell *cells)
{
    const ptrdiff_t side = layout->side;
    ptrdiff_t n = 0;
    int64_t all = 0;
    scores_wide total = 0;
    for (ptrdiff_t j = 0; j < 2 * side; j++) {
        const int64_t count = (int64_t)totals[3 * j];
        if (!count)
            continue;
        const int negative = j < side;
        const ptrdiff_t cell = negative ? side - 1 - j : j - side;
        const int exponent = cell ? (int)((cell - 1) >> layout->fine) : 0;
        const int64_t least = scores_least(cell, layout->fine), greatest = scores_least(cell + 1, layout->fine) - 1;
        const scores_wide rests = ((scores_wide)totals[3 * j + 2] << 64) + totals[3 * j + 1];
        const scores_wide magnitudes = (scores_wide)least * count + (rests >> (52 - exponent - layout->drop));
        const scores_wide sum = negative ? -magnitudes - count : magnitudes;
        const int64_t low = negative ? -1 - greatest : least, high = negative ? -1 - least : greatest;
        const int64_t middle = low + (int64_t)((sum - (scores_wide)low * count) / count);
        cells[n++] = (scores_cell){low, high, middle, all, total, j};
        all += count;
        total += sum;
    }
    cells[n] = (scores_cell){.count = all, .sum = total};
    return n;
}

/* Ascending codes as cells of one record each, the center being 0, and one more as `scores_cells`. */
static void scores_singles(const int64_t *codes, ptrdiff_t n, scores_cell *cells)
{
    scores_wide total = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const int64_t d = -codes[n - 1 - i];
        cells[i] = (scores_cell){d, d, d, i, total, n - 1 - i};
        total += d;
    }
    cells[n] = (scores_cell){.count = n, .sum = total};
}

/* Whether psi is linear on the differences low..high, by the number of knots up to low. */
static inline int scores_is_linear(const scores_psi *psi, ptrdiff_t index, int64_t high)
{
    return index == psi->count || psi->knots[index] >= high;
}

/* The end of the cells i, i + 1, ... of n on which psi has no bend for a shift up to `shift`: they are between the same
 * knots as low of cell i, up to which there are `index` knots for the least shift. i if there is a bend in cell i. */
static inline ptrdiff_t scores_run(const scores_psi *psi, const scores_cell *cells, ptrdiff_t i, ptrdiff_t n,
                                   int64_t shift, ptrdiff_t index)
{
    ptrdiff_t step = 1;
    if (index == psi->count)
        return n;
    const int64_t last = psi->knots[index] - shift;
    while (i + step <= n && cells[i + step - 1].high <= last) {
        i += step;
        step *= 2;
    }
    for (step /= 2; step; step /= 2)
        if (i + step <= n && cells[i + step - 1].high <= last)
            i += step;
    return i;
}

/* The sum of psi(d + shift) over the cells i..end-1 of such a run. */
static inline scores_wide scores_run_sum(const scores_psi *psi, const scores_cell *cells, ptrdiff_t i, ptrdiff_t end,
                                         int64_t shift, ptrdiff_t index)
{
    const ptrdiff_t known = index ? index - 1 : 0;
    const scores_wide count = cells[end].count - cells[i].count, level = count * psi->values[known];
    if (index == 0 || index == psi->count)
        return level;
    return level + psi->slopes[known] * (cells[end].sum - cells[i].sum + count * (shift - psi->knots[known]));
}

/* S(theta), theta = center + shift: exact where psi is linear on each cell, else near. The cells are ascending, so that
 * few knots take few runs, whatever the number of cells. */
static scores_wide scores_estimate(const scores_psi *psi, const scores_cell *cells, ptrdiff_t n, int64_t shift)
{
    scores_wide sum = 0;
    for (ptrdiff_t i = 0; i < n;) {
        const ptrdiff_t index = scores_index(psi, cells[i].low + shift);
        const ptrdiff_t end = scores_run(psi, cells, i, n, shift, index);
        if (end > i) {
            sum += scores_run_sum(psi, cells, i, end, shift, index);
            i = end;
        } else {
            const int64_t d = cells[i].middle + shift;
            sum += (scores_wide)(cells[i + 1].count - cells[i].count) * scores_value(psi, d, scores_index(psi, d));
            i++;
        }
    }
    return sum;
}

/* About the most by which the estimate may be wrong: a guess that only the run time depends on. */
static scores_wide scores_doubt(const scores_psi *psi, const scores_cell *cells, ptrdiff_t n, int64_t shift)
{
    scores_wide doubt = 0;
    for (ptrdiff_t i = 0; i < n;) {
        const int64_t low = cells[i].low + shift, high = cells[i].high + shift;
        ptrdiff_t index = scores_index(psi, low);
        const ptrdiff_t end = scores_run(psi, cells, i, n, shift, index);
        if (end > i) {
            i = end;
            continue;
        }
        const scores_wide above = scores_value(psi, high, scores_index(psi, high));
        const scores_wide rise = above - scores_value(psi, low, index);
        int64_t least = INT64_MAX, greatest = 0;
        for (;; index++) {
            const int64_t slope = index && index < psi->count ? psi->slopes[index - 1] : 0;
            least = slope < least ? slope : least;
            greatest = slope > greatest ? slope : greatest;
            if (scores_is_linear(psi, index, high))
                break;
        }
        const scores_wide bend = (scores_wide)(greatest - least) * (high - low);
        doubt += (cells[i + 1].count - cells[i].count) * (bend < rise ? bend : rise);
        i++;
    }
    return doubt;
}

/* Grid points low < high around the place where S crosses `target`: S(low) < target <= S(high) by the estimate. */
typedef struct {
    int64_t low, high; /* -1 and last + 1 where there is no such point */
    scores_wide at_low, at_high;
} scores_crossing;

/* Narrowed until the points are neighbours or their sums differ by at most `close`: every second point at least halves
 * the interval, the others interpolate. */
static scores_crossing scores_cross(const scores_psi *psi, const scores_cell *cells, ptrdiff_t n, int64_t center,
                                    int64_t last, scores_wide target, scores_wide close)
{
    scores_crossing c = {0, last, scores_estimate(psi, cells, n, -center),
                         scores_estimate(psi, cells, n, last - center)};
    if (c.at_low >= target)
        return (scores_crossing){-1, 0, c.at_low, c.at_low};
    if (c.at_high < target)
        return (scores_crossing){last, last + 1, c.at_high, c.at_high};
    for (int halve = 0; c.high - c.low > 1 && c.at_high - c.at_low > close; halve = !halve) {
        const double share = (double)(target - c.at_low) / (double)(c.at_high - c.at_low);
        int64_t theta = c.low + (halve ? (c.high - c.low) / 2 : (int64_t)(share * (double)(c.high - c.low)));
        theta = theta > c.low ? theta : c.low + 1;
        theta = theta < c.high ? theta : c.high - 1;
        const scores_wide sum = scores_estimate(psi, cells, n, theta - center);
        if (sum < target)
            c.low = theta, c.at_low = sum;
        else
            c.high = theta, c.at_high = sum;
    }
    return c;
}

/* Marks the cells on which psi has a bend for a theta strictly between left and right, in `marked`, whose entries are 0,
 * and adds S(left) and S(left + 1) of the others to `sums`. Returns the number of records in marked cells. */
static ptrdiff_t scores_mark(const scores_psi *psi, const scores_cell *cells, ptrdiff_t n, int64_t center, int64_t left,
                             int64_t right, uint8_t *marked, scores_wide *sums)
{
    ptrdiff_t records = 0;
    for (ptrdiff_t i = 0; i < n;) {
        const ptrdiff_t index = scores_index(psi, cells[i].low + left - center);
        const ptrdiff_t end = scores_run(psi, cells, i, n, right - center, index);
        if (end > i) {
            sums[0] += scores_run_sum(psi, cells, i, end, left - center, index);
            sums[1] += scores_run_sum(psi, cells, i, end, left + 1 - center, index);
            i = end;
        } else {
            marked[cells[i].place] = 1;
            records += cells[i + 1].count - cells[i].count;
            i++;
        }
    }
    return records;
}

/* The codes of those of records start..stop-1 whose cells are marked; returns their number: `capacity`, or fewer. */
static ptrdiff_t scores_collect(const struct select_keys *keys, const dpfast_grid *grid, ptrdiff_t start,
                                ptrdiff_t stop, const uint16_t *found, const uint8_t *marked, int64_t *codes,
                                ptrdiff_t capacity)
{
    double kept[SELECT_BLOCK];
    ptrdiff_t collected = 0;
    for (ptrdiff_t i = start; i < stop; i += SELECT_BLOCK) {
        const ptrdiff_t count = stop - i < SELECT_BLOCK ? stop - i : SELECT_BLOCK;
        const ptrdiff_t some = select_marked(keys, i, count, found + i, marked, kept, capacity - collected);
        dpfast_encode_array(grid, kept, codes + collected, some);
        collected += some;
    }
    return collected;
}

/* Adds S(left) and S(left + 1) of n codes to `sums`, and moves those with a knot strictly between left and right to the
 * front. Returns their number. */
static ptrdiff_t scores_scan(const scores_psi *psi, int64_t *codes, ptrdiff_t n, int64_t left, int64_t right,
                             scores_wide *sums)
{
    ptrdiff_t bends = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const int64_t code = codes[i], d = left - code;
        const ptrdiff_t index = scores_index(psi, d);
        sums[0] += scores_value(psi, d, index);
        sums[1] += scores_value(psi, d + 1, index); /* knots are integers: none between d and d + 1 */
        codes[bends] = code;
        bends += !scores_is_linear(psi, index, right - code);
    }
    return bends;
}

#endif
