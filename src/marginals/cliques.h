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

/* exp(x), without libm, whose results differ between systems. */
static inline double cliques_exp(double x)
{
    return x < 0.0 ? dpfast_exp_neg(-x) : 1.0 / dpfast_exp_neg(x);
}

/* log(x) of a number of records, which is at least CLIQUES_NOTHING. */
static inline double cliques_log(double x)
{
    return dpfast_log(x > CLIQUES_NOTHING ? x : CLIQUES_NOTHING);
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

/* The t with exp(t) + spread t = noisy + spread base, nearly, from a start; between bounds that hold for the solution. */
static inline double cliques_solve(double start, double base, double noisy, double spread)
{
    double expected = cliques_exp(base), goal = noisy + spread * base, other;
    other = noisy > expected ? cliques_log(noisy) : base + (noisy - expected) / spread;
    double low = base < other ? base : other, high = base < other ? other : base;
    double least = base < CLIQUES_EMPTY ? base : CLIQUES_EMPTY;
    low = low > least ? low : least;
    low = low > base - CLIQUES_MOST ? low : base - CLIQUES_MOST;
    high = high < base + CLIQUES_MOST ? high : base + CLIQUES_MOST;
    double t = start < low ? low : start > high ? high : start;
    for (int i = 0; i < CLIQUES_STEPS; i++) {
        double e = cliques_exp(t), step = (goal - e - spread * t) / (e + spread);
        t += step;
        t = t < low ? low : t > high ? high : t;
        if (fabs(step) < 1e-9)
            break;
    }
    return t;
}

/* Fits a table to noisy counts of a margin, whose potentials are those of earlier fits, and returns by how many records
 * the margin changes. `shift`, kept from fit to fit, is what the counts exceed the margin by because the sum is given.
 * `room` has three numbers a cell. */
static double cliques_fit(const struct cliques_view *view, double *table, const double *noisy, double *potentials,
                          double *shift, double spread, double total, double *room)
{
    ptrdiff_t cells = view->cells;
    double *margin = room, *factors = room + cells, *fitted = room + 2 * cells, sum = 0.0, change = 0.0;
    cliques_fold(view, table, margin);
    for (ptrdiff_t i = 0; i < cells; i++) {
        factors[i] = cliques_log(margin[i]);
        fitted[i] = factors[i];
    }
    for (int step = 0; step < CLIQUES_STEPS; step++) {
        double slope = 0.0;
        sum = 0.0;
        for (ptrdiff_t i = 0; i < cells; i++) {
            fitted[i] = cliques_solve(fitted[i], factors[i] - potentials[i], noisy[i] - *shift, spread);
            double records = cliques_exp(fitted[i]);
            sum += records;
            slope += records / (records + spread);
        }
        if (fabs(sum - total) < CLIQUES_NEAR * total)
            break;
        *shift += (sum - total) / slope;
    }
    for (ptrdiff_t i = 0; i < cells; i++) {
        potentials[i] += fitted[i] - factors[i];
        factors[i] = margin[i] > CLIQUES_NOTHING ? cliques_exp(fitted[i]) / margin[i] * (total / sum) : 1.0;
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
