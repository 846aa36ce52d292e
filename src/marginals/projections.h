/* Nearest nonnegative tables with equal shared margins, by accelerated sweeps. docs/proofs/marginals.md, claim 6
 *
 * All numbers are in one array: the tables, then the margins of each table on sets of columns that it shares with others,
 * those of all tables on one set next to each other, then room for one table. A table is the counts plus what its margins
 * gave it so far: Dykstra's corrections are its negative cells, so that nothing else is kept.
 */
#ifndef DPFAST_PROJECTIONS_H
#define DPFAST_PROJECTIONS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "cliques.h"
#include "clones.h"

enum { PROJECTIONS_RAISE, PROJECTIONS_FOLD, PROJECTIONS_MEET, PROJECTIONS_ADD };

/* A step of a sweep, from one place of the array to another; `what` is the number of cells, of a view, or of a group. */
struct projections_step {
    int64_t kind, from, to, what;
};

/* The margins of some tables on one set of columns. `weights` has the weight of the group, then the shares of the tables;
 * `known` says that the margin is the sum of all records. */
struct projections_group {
    int64_t first, tables, cells, weights, known;
};

struct projections {
    double *values, *momentum; /* the array; how its margins moved in the last sweep */
    const struct cliques_view *views;
    const struct projections_group *groups;
    const double *weights;
    double total;
    ptrdiff_t cells, margins, count; /* of the tables, of the margins, of the groups */
};

/* to = the cells, with those below the least raised to it */
DPFAST_CLONES
static void projections_raise(const double *cells, ptrdiff_t count, double least, double *to)
{
    for (ptrdiff_t i = 0; i < count; i++)
        to[i] = cells[i] > least ? cells[i] : least;
}

/* Adds the margin, spread evenly, to the table; the largest change of a cell. */
DPFAST_CLONES
static double projections_add(const struct cliques_view *view, const double *margin, double *table)
{
    int64_t index[CLIQUES_AXES] = {0};
    ptrdiff_t length = view->shape[view->axes - 1], place = 0;
    double share = (double)view->cells / ((double)view->runs * (double)length), most = 0.0;
    int kept = view->strides[view->axes - 1] != 0;
    for (ptrdiff_t run = 0; run < view->runs; run++, table += length) {
        if (kept) {
            for (ptrdiff_t j = 0; j < length; j++)
                table[j] += share * margin[place + j];
        } else {
            double change = share * margin[place];
            for (ptrdiff_t j = 0; j < length; j++)
                table[j] += change;
        }
        place = cliques_next(view, index, place);
    }
    for (ptrdiff_t i = 0; i < view->cells; i++)
        most = fabs(margin[i]) > most ? fabs(margin[i]) : most;
    return share * most;
}

/* Replaces the margins of a group by what each lacks to their weighted mean, or to the known sum. */
DPFAST_CLONES
static void projections_meet(const struct projections_group *group, const double *weights, double total, double *values)
{
    double *margins = values + group->first;
    const double *shares = weights + group->weights + 1;
    for (ptrdiff_t j = 0; j < group->cells; j++) {
        double mean = group->known ? total : 0.0;
        for (ptrdiff_t i = 0; i < group->tables && !group->known; i++)
            mean += shares[i] * margins[i * group->cells + j];
        for (ptrdiff_t i = 0; i < group->tables; i++)
            margins[i * group->cells + j] = mean - margins[i * group->cells + j];
    }
}

/* momentum = its last value, shrunk, plus the move of each margin; the product of the two in the norm of the tables. */
DPFAST_CLONES
static double projections_push(const struct projections *all, double shrink)
{
    double product = 0.0;
    for (ptrdiff_t g = 0; g < all->count; g++) {
        const struct projections_group *group = &all->groups[g];
        const double *weights = all->weights + group->weights;
        for (ptrdiff_t i = 0; i < group->tables; i++) {
            const double *moves = all->values + group->first + i * group->cells;
            double *momentum = all->momentum + group->first - all->cells + i * group->cells, sum = 0.0;
            for (ptrdiff_t j = 0; j < group->cells; j++) {
                momentum[j] = shrink * momentum[j] + moves[j];
                sum += momentum[j] * moves[j];
            }
            product += weights[0] * weights[1 + i] * sum;
        }
    }
    return product;
}

/* Does some steps; the largest change of a cell of a table. */
static double projections_walk(const struct projections *all, const struct projections_step *steps, ptrdiff_t count,
                               double least)
{
    double *values = all->values, most = 0.0;
    for (ptrdiff_t i = 0; i < count; i++) {
        const struct projections_step *step = &steps[i];
        if (step->kind == PROJECTIONS_RAISE)
            projections_raise(values + step->from, step->what, least, values + step->to);
        else if (step->kind == PROJECTIONS_FOLD)
            cliques_fold(&all->views[step->what], values + step->from, values + step->to);
        else if (step->kind == PROJECTIONS_MEET)
            projections_meet(&all->groups[step->what], all->weights, all->total, values);
        else {
            double change = projections_add(&all->views[step->what], values + step->from, values + step->to);
            most = step->to < all->cells && change > most ? change : most;
        }
    }
    return most;
}

/* Sweeps until one moves no cell by `tolerance`; their number. The first one takes the tables as they are, the others their
 * nonnegative cells. `up` leads from the tables to the moves of their margins, `down` adds these to the tables.
 *
 * Each sweep is a step of gradient ascent of the dual problem, with Nesterov's momentum, which begins anew when it points
 * away from the step. Without it, hard tables need five to ten times as many sweeps. */
static ptrdiff_t projections_sweep(const struct projections *all, const struct projections_step *up, ptrdiff_t ups,
                                   const struct projections_step *down, ptrdiff_t downs, ptrdiff_t sweeps,
                                   double tolerance)
{
    double *moves = all->values + all->cells, time = 1.0, shrink = 0.0; /* of the momentum */
    for (ptrdiff_t sweep = 0; sweep < sweeps; sweep++) {
        projections_walk(all, up, ups, sweep ? 0.0 : -INFINITY);
        if (projections_push(all, shrink) < 0.0)
            time = 1.0;
        double next = (1.0 + sqrt(1.0 + 4.0 * time * time)) / 2.0;
        shrink = (time - 1.0) / next;
        time = next;
        for (ptrdiff_t i = 0; i < all->margins; i++)
            moves[i] += shrink * all->momentum[i];
        if (projections_walk(all, down, downs, 0.0) < tolerance && sweep)
            return sweep + 1;
    }
    return sweeps;
}

#endif
