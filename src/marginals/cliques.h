/* Sweeps over the tables of a junction tree: maximum entropy with noisy counts, by coordinate ascent. docs/proofs/cliques.md
 *
 * A view maps the cells of a table to those of one of its margins: both in C order, `shape` the axes of the table, and
 * `strides` how far a step along an axis moves in the margin, 0 for an axis that is summed over. Neighbouring axes that are
 * all summed, or all kept, are merged, so that the stride of the last axis is 0 or 1.
 */
#ifndef DPFAST_CLIQUES_H
#define DPFAST_CLIQUES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "certified.h"
#include "clones.h"

#define CLIQUES_AXES 32
#define CLIQUES_LANES 64       /* cells that are fitted at once */
#define CLIQUES_TOGETHER 4     /* runs that are summed at once */
#define CLIQUES_STEPS 8        /* of Newton's method for one cell */
#define CLIQUES_EMPTY -28.0    /* the logarithm of a number of records that is as good as none */
#define CLIQUES_NEAR 1e-6      /* share of the records by which the sum of a fit may differ */
#define CLIQUES_MOST 50.0      /* magnitude of a potential */
#define CLIQUES_NOTHING 1e-200 /* records that no factor brings back */

struct cliques_view {
    const int64_t *shape, *strides;
    ptrdiff_t axes;
    ptrdiff_t runs;  /* the product of the shape without its last axis */
    ptrdiff_t cells; /* of the margin */
};

/* A step of a sweep: with target >= 0, fit a table to noisy counts; else pass a message from one table to another. */
struct cliques_step {
    int64_t table, view; /* a table and the view of its margin */
    int64_t to, other;   /* of a message: the table that gets it, and its view of the same margin */
    int64_t target;      /* of the noisy counts and their potentials, or -1 */
    int64_t separator;   /* of the margin that both tables had, for a message */
};

/* Masks, all ones or 0, instead of ?:, which compilers turn into jumps around what the result does not need: loops with jumps
 * do not vectorise. */
static inline double cliques_where(uint64_t mask, double yes, double no)
{
    return dpfast_double((dpfast_bits(yes) & mask) | (dpfast_bits(no) & ~mask));
}

static inline double cliques_lesser(double x, double y)
{
    return cliques_where(dpfast_negative(x - y), x, y);
}

static inline double cliques_greater(double x, double y)
{
    return cliques_where(dpfast_negative(y - x), x, y);
}

/* exp(x), without libm, whose results differ between systems; both cases are computed, so that loops vectorise. */
static inline double cliques_exp(double x)
{
    double small = dpfast_exp_neg(fabs(x)), large = 1.0 / small;
    return cliques_where(dpfast_negative(x), small, large);
}

/* log(x) of a number of records, which is at least CLIQUES_NOTHING. */
static inline double cliques_log(double x)
{
    return dpfast_log(cliques_greater(x, CLIQUES_NOTHING));
}

/* Moves to the next run of cells; the place in the margin. */
static inline ptrdiff_t cliques_next(const struct cliques_view *view, int64_t *index, ptrdiff_t place)
{
    for (ptrdiff_t axis = view->axes - 2; axis >= 0; axis--) {
        place += view->strides[axis];
        if (++index[axis] < view->shape[axis])
            return place;
        index[axis] = 0;
        place -= view->strides[axis] * view->shape[axis];
    }
    return place;
}

/* margin = the sums of the table. Where runs are summed, CLIQUES_TOGETHER at a time, each in order, as one sum waits for its
 * last addition. */
DPFAST_CLONES
static void cliques_fold(const struct cliques_view *view, const double *table, double *margin)
{
    int64_t index[CLIQUES_AXES] = {0};
    ptrdiff_t length = view->shape[view->axes - 1], place = 0, run = 0;
    memset(margin, 0, (size_t)view->cells * sizeof *margin);
    if (view->strides[view->axes - 1] != 0) {
        for (; run < view->runs; run++, table += length) {
            for (ptrdiff_t j = 0; j < length; j++)
                margin[place + j] += table[j];
            place = cliques_next(view, index, place);
        }
        return;
    }
    for (; run + CLIQUES_TOGETHER <= view->runs; run += CLIQUES_TOGETHER, table += CLIQUES_TOGETHER * length) {
        double sums[CLIQUES_TOGETHER] = {0.0};
        for (ptrdiff_t j = 0; j < length; j++)
            for (int k = 0; k < CLIQUES_TOGETHER; k++)
                sums[k] += table[k * length + j];
        for (int k = 0; k < CLIQUES_TOGETHER; k++) {
            margin[place] += sums[k];
            place = cliques_next(view, index, place);
        }
    }
    for (; run < view->runs; run++, table += length) {
        double sum = 0.0;
        for (ptrdiff_t j = 0; j < length; j++)
            sum += table[j];
        margin[place] += sum;
        place = cliques_next(view, index, place);
    }
}

/* table *= the factor of each cell of the margin */
DPFAST_CLONES
static void cliques_scale(const struct cliques_view *view, double *table, const double *factors)
{
    int64_t index[CLIQUES_AXES] = {0};
    ptrdiff_t length = view->shape[view->axes - 1], place = 0;
    int kept = view->strides[view->axes - 1] != 0;
    for (ptrdiff_t run = 0; run < view->runs; run++, table += length) {
        if (kept) {
            for (ptrdiff_t j = 0; j < length; j++)
                table[j] *= factors[place + j];
        } else {
            double factor = factors[place];
            for (ptrdiff_t j = 0; j < length; j++)
                table[j] *= factor;
        }
        place = cliques_next(view, index, place);
    }
}

/* For each of `count` cells, at most CLIQUES_LANES: the t with exp(t) + spread t = noisy - shift + spread base, nearly, by
 * Newton's method from a start, in `fitted`, between bounds that hold for the solution; `base` is the logarithm `log` of the
 * margin without the potential. `records` are exp(t). A cell rests when it has moved little, as if it were alone. */
DPFAST_CLONES
static void cliques_solve(const double *logs, const double *potentials, const double *noisy, double shift,
                          double spread, ptrdiff_t count, double *fitted, double *records)
{
    double low[CLIQUES_LANES], high[CLIQUES_LANES], goal[CLIQUES_LANES];
    uint64_t moving[CLIQUES_LANES], any = 1;
    for (ptrdiff_t i = 0; i < count; i++) {
        double base = logs[i] - potentials[i], y = noisy[i] - shift, expected = cliques_exp(base);
        double above = cliques_log(y), below = base + (y - expected) / spread;
        double other = cliques_where(dpfast_negative(expected - y), above, below);
        double least = cliques_greater(cliques_lesser(base, CLIQUES_EMPTY), base - CLIQUES_MOST);
        low[i] = cliques_greater(cliques_lesser(base, other), least);
        high[i] = cliques_lesser(cliques_greater(base, other), base + CLIQUES_MOST);
        goal[i] = y + spread * base;
        fitted[i] = cliques_greater(cliques_lesser(fitted[i], high[i]), low[i]);
        moving[i] = -UINT64_C(1);
    }
    for (int round = 0; round < CLIQUES_STEPS && any; round++) {
        any = 0;
        for (ptrdiff_t i = 0; i < count; i++) {
            double e = cliques_exp(fitted[i]), step = (goal[i] - e - spread * fitted[i]) / (e + spread);
            double t = cliques_greater(cliques_lesser(fitted[i] + step, high[i]), low[i]);
            fitted[i] = cliques_where(moving[i], t, fitted[i]);
            moving[i] &= ~dpfast_negative(fabs(step) - 1e-9);
            any |= moving[i];
        }
    }
    for (ptrdiff_t i = 0; i < count; i++)
        records[i] = cliques_exp(fitted[i]);
}

/* Fits a table to noisy counts of a margin, whose potentials are those of earlier fits, and returns by how many records
 * the margin changes. `shift`, kept from fit to fit, is what the counts exceed the margin by because the sum is given.
 * `room` has four numbers a cell. */
static double cliques_fit(const struct cliques_view *view, double *table, const double *noisy, double *potentials,
                          double *shift, double spread, double total, double *room)
{
    ptrdiff_t cells = view->cells;
    double *margin = room, *factors = room + cells, *fitted = room + 2 * cells, *records = room + 3 * cells;
    double sum = 0.0, change = 0.0;
    cliques_fold(view, table, margin);
    for (ptrdiff_t i = 0; i < cells; i++) {
        factors[i] = cliques_log(margin[i]);
        fitted[i] = factors[i];
    }
    for (int step = 0; step < CLIQUES_STEPS; step++) {
        double slope = 0.0;
        sum = 0.0;
        for (ptrdiff_t i = 0; i < cells; i += CLIQUES_LANES)
            cliques_solve(factors + i, potentials + i, noisy + i, *shift, spread,
                          cells - i < CLIQUES_LANES ? cells - i : CLIQUES_LANES, fitted + i, records + i);
        for (ptrdiff_t i = 0; i < cells; i++) {
            sum += records[i];
            slope += records[i] / (records[i] + spread);
        }
        if (fabs(sum - total) < CLIQUES_NEAR * total)
            break;
        *shift += (sum - total) / slope;
    }
    for (ptrdiff_t i = 0; i < cells; i++) {
        potentials[i] += fitted[i] - factors[i];
        factors[i] = margin[i] > CLIQUES_NOTHING ? records[i] / margin[i] * (total / sum) : 1.0;
        change += fabs(margin[i] * (factors[i] - 1.0));
    }
    cliques_scale(view, table, factors);
    return change;
}

/* Gives a table the margin that another one has. */
static void cliques_pass(const struct cliques_view *view, const struct cliques_view *other, const double *table,
                         double *to, double *separator, double *room)
{
    double *margin = room, *factors = room + view->cells;
    cliques_fold(view, table, margin);
    for (ptrdiff_t i = 0; i < view->cells; i++)
        factors[i] = separator[i] > CLIQUES_NOTHING ? margin[i] / separator[i] : 0.0;
    memcpy(separator, margin, (size_t)view->cells * sizeof *margin);
    cliques_scale(other, to, factors);
}

#endif
