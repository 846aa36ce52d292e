/* Regressions of one block: y given the row x, by the linear predictor eta = x . beta. docs/proofs/block-estimates.md
 *
 * Newton's method on tiles of rows. As in fits.h, estimates are not certified, every iteration is capped, and sums run in
 * four lanes, in a fixed order.
 */
#ifndef DPFAST_REGRESSIONS_H
#define DPFAST_REGRESSIONS_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "certified.h"
#include "clones.h"
#include "fits.h"
#include "products.h"
#include "select.h"
#include "singles.h"
#include "tiles.h"

#define FITS_SINGULAR 0x1p-40 /* least share of a column that the others must leave unexplained */
#define FITS_FEW 16           /* parameters below which a Hessian takes no longer than a score */
#define FITS_COLLINEAR 0x1p-8 /* the same for a Hessian of floats */
#define FITS_LOOSE 0x1p-16    /* bound of the error of such a Hessian, relative to its diagonal */
/* Tolerances, in squared standard errors: */
#define FITS_CLOSE 1e-14   /* at the end */
#define FITS_NEAR 1e-2     /* where Newton's method converges quadratically */
#define FITS_KEPT 4e-3     /* where a Hessian is, as a rule, good enough for the end */
#define FITS_GRAIN 0x1p-44 /* of a score of floats, relative to the square of the coefficients */
/* Shares of a squared distance that a step leaves: */
#define FITS_GUESS 0.1     /* with the Hessian of other records, before one is known */
#define FITS_SLOW 0.25     /* above which such a Hessian is replaced */
#define FITS_SHARE 0x1p-16 /* with a Hessian that is good enough for the end, and for leverages */

/* 1 / (1 + exp(margin)), and its derivative but for the sign. */
FITS_INLINE double fits_logistic(double margin, double *slope)
{
    double e = fits_exp_neg(fabs(margin)), q = 1.0 / (1.0 + e);
    *slope = e * q * q;
    return q * (margin < 0 ? 1.0 : e); /* both values are already computed: a blend instead of a branch */
}

/* exp(eta); 0 or infinity where |eta| > 708. */
FITS_INLINE double fits_exp(double eta)
{
    double e = fits_exp_neg(fabs(eta)), rises = fits_one_if(eta > 0);
    return (rises + (1.0 - rises) * e) / (rises * e + (1.0 - rises));
}

/* From eta to residuals and weights, for each model. For labels y is 1 or -1, and y - pi = y / (1 + exp(y eta)). */
DPFAST_CLONES static void fits_weigh_linear(const double *restrict y, const double *restrict eta,
                                            double *restrict weight, double *restrict residual)
{
    for (ptrdiff_t i = 0; i < FITS_ROWS; i++)
        weight[i] = 1, residual[i] = y[i] - eta[i];
}

DPFAST_CLONES static void fits_weigh_labels(const double *restrict y, const double *restrict eta,
                                            double *restrict weight, double *restrict residual)
{
    for (ptrdiff_t i = 0; i < FITS_ROWS; i++) {
        double slope;
        residual[i] = y[i] * fits_logistic(y[i] * eta[i], &slope);
        weight[i] = slope;
    }
}

DPFAST_CLONES static void fits_weigh_counts(const double *restrict y, const double *restrict eta,
                                            double *restrict weight, double *restrict residual)
{
    for (ptrdiff_t i = 0; i < FITS_ROWS; i++) {
        weight[i] = fits_exp(eta[i]);
        residual[i] = y[i] - weight[i];
    }
}

/* For counts Newton's method starts at the fitted values y + 1/2, without a predictor; its first step is then a weighted
 * regression of residual / weight. */
DPFAST_CLONES static void fits_weigh_start(const double *restrict y, double *restrict weight, double *restrict residual)
{
    for (ptrdiff_t i = 0; i < FITS_ROWS; i++) {
        weight[i] = y[i] + 0.5;
        residual[i] = weight[i] * fits_log(weight[i]) - 0.5;
    }
}

FITS_INLINE void fits_weigh(struct fits_room *room, enum fits_model model, const double *y)
{
    if (model == FITS_LINEAR)
        fits_weigh_linear(y, room->eta, room->weight, room->residual);
    else if (model == FITS_LOGISTIC)
        fits_weigh_labels(y, room->eta, room->weight, room->residual);
    else
        fits_weigh_counts(y, room->eta, room->weight, room->residual);
}

/* The gradient, the sum of squares of the residuals, and with `curved` the Hessian, at beta (NULL: at the start). */
DPFAST_CLONES static void fits_pass(struct fits_room *room, enum fits_model model, const double *beta, int curved)
{
    const ptrdiff_t padded = room->padded;
    fits_lanes square = {0}, *gradient = room->sums + padded * padded;
    memset(curved ? room->sums : gradient, 0, (curved ? padded + 1 : 1) * padded * sizeof(fits_lanes));
    for (ptrdiff_t t = 0; t < room->count; t++) {
        const double *tile = fits_tile(room, t), *y = tile + padded * FITS_ROWS;
        if (beta) {
            fits_predictor(tile, beta, padded, room->eta);
            fits_weigh(room, model, y);
        } else
            fits_weigh_start(y, room->weight, room->residual);
        for (ptrdiff_t i = 0; i < FITS_ROWS; i += FITS_LANES)
            square += *(fits_lanes *)(room->residual + i) * *(fits_lanes *)(room->residual + i);
        fits_add_products(room->residual, 1, tile, padded, gradient, padded);
        if (curved)
            fits_add_hessian(tile, room->weight, padded, room->panel, room->sums);
    }
    for (ptrdiff_t j = 0; j < padded; j++)
        room->gradient[j] = fits_across(&gradient[j]);
    for (ptrdiff_t i = 0; curved && i < padded * padded; i++)
        room->hessian[i] = fits_across(&room->sums[i]);
    room->square = fits_across(&square);
}

/* The same at beta for labels: in floats, but for the gradient if `fine`. */
DPFAST_CLONES static void fits_pass_single(struct fits_room *room, const double *beta, int curved, int fine)
{
    const ptrdiff_t padded = room->padded, square = padded * padded, pairs = (room->count + 1) / 2;
    float *weight = room->slots, *residual = weight + FITS_PAIR, *panel = residual + FITS_PAIR;
    float *narrow = panel + FITS_PANEL * FITS_PAIR;
    fits_floats *sums = (fits_floats *)room->sums, *gradient = sums + square; /* as large as the lanes of doubles */
    fits_lanes *exact = room->sums + square;
    memset(curved ? sums : gradient, 0, (curved ? padded + 1 : 1) * padded * sizeof *sums);
    memset(room->gradient, 0, padded * sizeof(double));
    if (curved)
        memset(room->hessian, 0, square * sizeof(double));
    for (ptrdiff_t j = 0; j < padded; j++)
        narrow[j] = j < room->parameters ? (float)(beta[j] * room->scale[j]) : 0;
    memset(weight, 0, 2 * FITS_PAIR * sizeof *weight);
    for (ptrdiff_t pair = 0; pair < pairs; pair++) {
        const float *singles = fits_pair(room, pair);
        for (ptrdiff_t t = 2 * pair; t < 2 * pair + 2; t++) {
            const ptrdiff_t first = t % 2 * FITS_ROWS;
            if (t == room->count) {
                memset(weight + first, 0, FITS_ROWS * sizeof *weight);
                memset(residual + first, 0, FITS_ROWS * sizeof *residual);
                break;
            }
            const double *tile = fits_tile(room, t);
            if (fine)
                fits_predictor(tile, beta, padded, room->eta);
            else
                fits_single_predictor(singles + first, narrow, padded, room->eta);
            fits_weigh_labels(tile + padded * FITS_ROWS, room->eta, room->weight, room->residual);
            fits_narrow(room->weight, 1, FITS_ROWS, weight + first);
            if (fine)
                fits_add_products(room->residual, 1, tile, padded, exact, padded);
            else
                fits_narrow(room->residual, 1, FITS_ROWS, residual + first);
        }
        if (!fine)
            fits_add_singles(residual, 1, singles, padded, gradient, padded);
        if (curved)
            fits_add_single_hessian(singles, weight, padded, panel, sums);
        if (pair % FITS_FLUSH == FITS_FLUSH - 1 || pair == pairs - 1) {
            for (ptrdiff_t j = 0; curved && j < padded; j++)
                fits_flush(sums + j * padded + j, padded - j, room->hessian + j * padded + j);
            if (!fine)
                fits_flush(gradient, padded, room->gradient);
        }
    }
    for (ptrdiff_t j = 0; j < padded; j++)
        room->gradient[j] = fine ? fits_across(&exact[j]) : room->gradient[j] * room->scale[j];
    for (ptrdiff_t j = 0; curved && j < padded; j++) {
        double *row = room->hessian + j * padded;
        if (!(row[j] > FITS_LEAST))
            row[j] = 0; /* which fits_factor refuses */
        for (ptrdiff_t k = j; k < padded; k++)
            row[k] *= room->scale[j] * room->scale[k];
    }
}

/* A pass of Newton's method: doubles throughout, or floats. */
static void fits_step_pass(struct fits_room *room, enum fits_model model, const double *beta, int curved, int fine)
{
    if (room->single)
        fits_pass_single(room, beta, curved, fine);
    else
        fits_pass(room, model, beta, curved);
}

/* Subtract factor * x from y. */
FITS_INLINE void fits_subtract(double factor, const double *restrict x, ptrdiff_t count, double *restrict y)
{
    for (ptrdiff_t i = 0; i < count; i++)
        y[i] -= factor * x[i];
}

/* Cholesky's factor U, U'U the Hessian scaled to a unit diagonal, in its upper triangle; the scales go to `unit`.
 * Returns 0 if a column is, up to rounding, a combination of the previous ones. */
DPFAST_CLONES static int fits_factor(struct fits_room *room)
{
    const ptrdiff_t p = room->parameters, padded = room->padded;
    const double least = room->single ? FITS_COLLINEAR : FITS_SINGULAR;
    double *h = room->hessian, smallest = 1;
    for (ptrdiff_t j = 0; j < p; j++) {
        double diagonal = h[j * padded + j];
        if (!(diagonal > 0 && diagonal <= DBL_MAX))
            return 0;
        room->unit[j] = 1 / sqrt(diagonal);
    }
    for (ptrdiff_t j = 0; j < p; j++) {
        double *row = h + j * padded;
        for (ptrdiff_t k = j; k < p; k++)
            row[k] = row[k] * room->unit[j] * room->unit[k];
        row[j] = 1.0;
        for (ptrdiff_t i = 0; i < j; i++)
            fits_subtract(h[i * padded + j], h + i * padded + j, p - j, row + j);
        if (!(row[j] > least))
            return 0;
        smallest = row[j] < smallest ? row[j] : smallest;
        double pivot = sqrt(row[j]);
        for (ptrdiff_t k = j; k < p; k++)
            row[k] /= pivot;
        row[j] = pivot;
    }
    room->loose = room->single ? FITS_LOOSE / smallest : 0;
    return 1;
}

/* out = H^-1 v; v . H^-1 v is returned. */
DPFAST_CLONES static double fits_solve(const struct fits_room *room, const double *v, double *out)
{
    const ptrdiff_t p = room->parameters, padded = room->padded;
    const double *u = room->hessian;
    double square = 0;
    for (ptrdiff_t j = 0; j < p; j++)
        out[j] = v[j] * room->unit[j];
    for (ptrdiff_t j = 0; j < p; j++) {
        out[j] /= u[j * padded + j];
        square += out[j] * out[j];
        fits_subtract(out[j], u + j * padded + j + 1, p - j - 1, out + j + 1);
    }
    for (ptrdiff_t j = p - 1; j >= 0; j--) {
        double sum = out[j];
        for (ptrdiff_t i = j + 1; i < p; i++)
            sum -= u[j * padded + i] * out[i];
        out[j] = sum / u[j * padded + j];
    }
    for (ptrdiff_t j = 0; j < p; j++)
        out[j] *= room->unit[j];
    return square;
}

/* The inverse of the transposed factor times the divisors: x . H^-1 x is the square of its product with x. */
DPFAST_CLONES static void fits_invert(struct fits_room *room)
{
    const ptrdiff_t p = room->parameters, padded = room->padded;
    const double *u = room->hessian;
    double *inverse = room->inverse;
    memset(inverse, 0, padded * padded * sizeof *inverse);
    for (ptrdiff_t j = 0; j < p; j++) {
        double *row = inverse + j * padded;
        row[j] = room->unit[j];
        for (ptrdiff_t i = 0; i < j; i++)
            fits_subtract(u[i * padded + j], inverse + i * padded, i + 1, row);
        for (ptrdiff_t k = 0; k <= j; k++)
            row[k] /= u[j * padded + j];
    }
}

/* h = x . H^-1 x of the rows of a tile. */
FITS_INLINE void fits_leverages(const double *tile, const double *inverse, ptrdiff_t padded, double *h)
{
    for (ptrdiff_t i = 0; i < FITS_ROWS; i += 16) {
        fits_rows squares[4] = {0};
        for (ptrdiff_t j = 0; j < padded; j += FITS_PANEL) {
            const double *row = inverse + j * padded;
            fits_rows a[4] = {0}, b[4] = {0};
            for (ptrdiff_t k = 0; k < j + FITS_PANEL; k++)
                for (int l = 0; l < 4; l++) {
                    fits_rows x = *(const fits_rows *)(tile + k * FITS_ROWS + i + 4 * l);
                    a[l] += row[k] * x, b[l] += row[padded + k] * x;
                }
            for (int l = 0; l < 4; l++)
                squares[l] += a[l] * a[l] + b[l] * b[l];
        }
        memcpy(h + i, squares, sizeof squares);
    }
}

/* residual += w h (1/2 - pi) or w h / 2. For labels 1/2 - pi = residual - y / 2. */
DPFAST_CLONES static void fits_tilt_residuals(const double *restrict h, const double *restrict weight,
                                              const double *restrict y, double constant, double slope, double half,
                                              double *restrict residual)
{
    for (ptrdiff_t i = 0; i < FITS_ROWS; i++)
        residual[i] += h[i] * weight[i] * (constant + slope * residual[i] - half * y[i]);
}

/* gradient = X'(residual + r) at beta, r = w h (1/2 - pi) or w h / 2: r gives the first-order bias of the score,
 * w h being the leverage of a row. H^-1 X'r is then the correction of the maximum (Cox and Snell 1968, Firth 1993). Without
 * `correct`, r = 0. Meanwhile the rows from `next` are fetched, which the next block begins with. */
DPFAST_CLONES static void fits_pass_last(struct fits_room *room, const struct fits_design *design, ptrdiff_t next)
{
    const ptrdiff_t padded = room->padded;
    const int labels = design->model == FITS_LOGISTIC, correct = design->correct;
    const int single = correct && room->single && fits_narrow_inverse(room);
    double *h = room->panel;
    fits_lanes *gradient = room->sums;
    memset(gradient, 0, padded * sizeof *gradient);
    for (ptrdiff_t t = 0; t < room->count; t++) {
        const double *tile = fits_tile(room, t), *y = tile + padded * FITS_ROWS;
        fits_fetch_rows(design, next + t * FITS_ROWS, next + (t + 1) * FITS_ROWS);
        fits_predictor(tile, room->beta, padded, room->eta);
        fits_weigh(room, design->model, y);
        if (correct) {
            if (single)
                fits_single_leverages(fits_pair(room, t / 2) + t % 2 * FITS_ROWS, room->narrow, padded, h);
            else
                fits_leverages(tile, room->inverse, padded, h);
            fits_tilt_residuals(h, room->weight, y, labels ? 0 : 0.5, labels ? 1 : 0, labels ? 0.5 : 0, room->residual);
        }
        fits_add_products(room->residual, 1, tile, padded, gradient, padded);
    }
    for (ptrdiff_t j = 0; j < padded; j++)
        room->gradient[j] = fits_across(&gradient[j]);
}

static double fits_dot(const double *a, const double *b, ptrdiff_t count)
{
    double sum = 0;
    for (ptrdiff_t j = 0; j < count; j++)
        sum += a[j] * b[j];
    return sum;
}

/* The next step, H^-1 gradient with `count` updates of H by secants (Broyden, Fletcher, Goldfarb and Shanno; Nocedal 1980);
 * returns its decrement. */
static double fits_secant_step(struct fits_room *room, int count)
{
    const ptrdiff_t p = room->parameters, padded = room->padded;
    double *v = room->trial, *step = room->step, parts[FITS_SECANTS];
    if (!count)
        return fits_solve(room, room->gradient, step);
    memcpy(v, room->gradient, padded * sizeof *v);
    for (int i = count - 1; i >= 0; i--) {
        const double *s = room->secants + 2 * i * padded, *y = s + padded;
        parts[i] = fits_dot(s, v, p) / fits_dot(s, y, p);
        fits_subtract(parts[i], y, p, v);
    }
    fits_solve(room, v, step);
    for (int i = 0; i < count; i++) {
        const double *s = room->secants + 2 * i * padded, *y = s + padded;
        fits_subtract(fits_dot(y, step, p) / fits_dot(s, y, p) - parts[i], s, p, step);
    }
    return fits_dot(step, room->gradient, p);
}

/* What fits_newton knows of its place. Decrements are squared distances to the maximum, in standard errors. */
struct fits_place {
    double decrement, before; /* here; where the step to here began, 0 if that step was not a full one */
    double share;             /* of the decrement that the next step leaves, as far as known, else 1 */
    int age;                  /* steps since the Hessian was taken, -1 where it is that of other records */
    double grain;             /* decrements that errors of the score may cause */
};

/* The share that the next step leaves. With a and b for the square roots of `before` and
 * `decrement`, b = c a^2: a step with the Hessian of its beginning, at b, leaves c b^2, and one with the Hessian of a
 * point at distance d the share 2 c d. Each also leaves a share `loose` of the distance. */
static void fits_expect(struct fits_place *at, double loose)
{
    double ratio = at->before > 0 ? at->decrement / at->before : 1;
    double root = at->age > 0 ? 2 * sqrt(ratio) : ratio;
    if (at->age < 0)
        at->share = at->before > 0 ? ratio : FITS_GUESS;
    else if (at->age < 2)
        at->share = (root + loose) * (root + loose);
}

/* Whether the next step, followed by a step with the same Hessian, is close enough to the maximum. */
static int fits_is_near(const struct fits_place *at)
{
    double second = at->age > 0 ? at->share : 4 * at->share;
    return (at->grain == 0 && at->decrement <= FITS_CLOSE)
           || (at->age >= 0 && at->decrement <= FITS_NEAR && second <= FITS_SHARE
               && fmax(at->decrement * at->share, at->grain) * second <= FITS_CLOSE);
}

/* Whether to take the Hessian after the next step: for few parameters always; that of other records is kept while steps
 * converge well and end far from the maximum, one of these records as soon as it is good enough for the end. */
static int fits_is_curved(const struct fits_place *at, ptrdiff_t parameters)
{
    if (parameters < FITS_FEW)
        return 1;
    if (at->age < 0)
        return at->share > FITS_SLOW || at->share * at->decrement <= FITS_KEPT;
    return at->age > 0 ? at->share > FITS_SHARE : at->decrement > 4 * FITS_KEPT;
}

/* Newton's method on a concave log-likelihood. It begins at `beta` with the factor of another Hessian if `warm`, else at 0,
 * or at the start for counts. A step is halved while the likelihood decreases at its end at least half as steeply as it
 * increases at its beginning. Returns 1 after the step from which `fits_pass_last` can finish, or after one whose decrement
 * is at most `rough`. Otherwise `beta` is where it stopped, NaN if the design is singular. */
static int fits_newton(struct fits_room *room, enum fits_model model, int warm, double rough, int passes)
{
    const ptrdiff_t p = room->parameters;
    double *beta = room->beta, *step = room->step, length = 1;
    struct fits_place at = {.age = warm ? -1 : 0};
    int fine = !room->single, secants = 0;
    memset(step, 0, room->padded * sizeof *step);
    memset(room->trial, 0, room->padded * sizeof *beta);
    if (!warm)
        memset(beta, 0, room->padded * sizeof *beta);
    fits_step_pass(room, model, !warm && model == FITS_POISSON ? NULL : beta, !warm, fine);
    if (!warm && !fits_factor(room)) {
        for (ptrdiff_t j = 0; j < p; j++)
            beta[j] = NAN;
        return 0;
    }
    at.decrement = fits_solve(room, room->gradient, step);
    if (!warm && model == FITS_POISSON) {
        memcpy(beta, step, p * sizeof *beta);
        fits_pass(room, model, beta, 1);
        if (!fits_factor(room))
            return 0;
        at.decrement = fits_solve(room, room->gradient, step);
    }
    for (int pass = 0; pass < passes; pass++) {
        double moved = 0, size = 0;
        for (ptrdiff_t j = 0; j < p; j++) {
            double change = length * step[j] / room->unit[j], value = beta[j] / room->unit[j];
            room->trial[j] = beta[j] + length * step[j];
            moved += change * change, size += value * value;
        }
        at.grain = fine ? 0 : FITS_GRAIN * (size + (double)p);
        fits_expect(&at, room->loose);
        int near = rough > 0 ? at.decrement <= rough : fits_is_near(&at);
        if (length == 1 && (near || moved <= 0x1p-90 * size)) {
            memcpy(beta, room->trial, p * sizeof *beta);
            return 1;
        }
        fine = !room->single || at.share * at.decrement <= at.grain;
        const int curved = rough > 0 || length < 1 || secants == FITS_SECANTS || fits_is_curved(&at, p);
        double *secant = room->secants + 2 * secants * room->padded;
        for (ptrdiff_t j = 0; !curved && j < p; j++)
            secant[j] = step[j], secant[j + room->padded] = room->gradient[j];
        fits_step_pass(room, model, room->trial, curved, fine);
        if (!(fits_dot(step, room->gradient, p) >= (at.age < 0 ? -1 : -0.5) * at.decrement)) {
            length /= 2;
            continue;
        }
        memcpy(beta, room->trial, p * sizeof *beta);
        at.before = (at.age == 0 || !curved) && length == 1 ? at.decrement : 0;
        at.age = curved ? 0 : at.age < 0 ? -1 : at.age + 1;
        length = 1;
        if (curved && !fits_factor(room))
            return 0;
        if (!curved)
            fits_subtract(1, room->gradient, p, secant + room->padded);
        secants = curved ? 0 : secants + (fits_dot(secant, secant + room->padded, p) > 0);
        at.decrement = fits_secant_step(room, secants);
    }
    return 0;
}

/* For a long block, first fit an eighth of it, or more if that has few records per parameter: this gives a start for the
 * whole block, and a Hessian for its first step, at an eighth of the cost. In pairs of tiles. */
static int fits_maximum(struct fits_room *room, enum fits_model model)
{
    const ptrdiff_t whole = room->count, count = (whole + 1) / 2, pair = 2 * FITS_ROWS;
    const ptrdiff_t least = (24 * room->parameters + pair - 1) / pair;
    const ptrdiff_t part = count / 8 > least ? count / 8 : least;
    /* decrements near the sampling error of the part's Hessian, p^2 / rows, do not matter */
    const double rough = fmax(18.0 * room->parameters * room->parameters / (part * pair), 1);
    if (room->single)
        fits_narrow_tiles(room);
    for (;; room->single = 0) {
        const int split = part <= count / 3;
        int warm = 0;
        if (split) {
            room->count = 2 * part;
            warm = fits_newton(room, model, 0, room->single ? rough : 1, 6);
            room->count = whole;
            for (ptrdiff_t j = 0; j < room->parameters; j++)
                room->unit[j] *= sqrt((double)part / (double)count);
        }
        if (warm && fits_newton(room, model, 1, 0, FITS_PASSES))
            return 1;
        /* floats that did not do for a part do not do for the whole, either */
        if (!(split && room->single) && fits_newton(room, model, 0, 0, FITS_PASSES))
            return 1;
        if (!room->single)
            return 0;
    }
}

/* One block: the parameters to out, and for the linear model the standard deviation of the noise after them.
 * Returns the rows used. */
static ptrdiff_t fits_regression(struct fits_room *room, const struct fits_design *design, ptrdiff_t start,
                                 ptrdiff_t stop, double *out)
{
    const ptrdiff_t p = room->parameters;
    int response;
    room->single = design->model == FITS_LOGISTIC;
    ptrdiff_t used = fits_load_rows(room, design, start, stop, &response);
    for (ptrdiff_t j = 0; j < p + (design->model == FITS_LINEAR); j++)
        out[j] = NAN;
    if (used < p)
        return used;
    if (design->model == FITS_LINEAR) {
        memset(room->beta, 0, room->padded * sizeof(double));
        fits_pass(room, FITS_LINEAR, room->beta, 1);
        if (!fits_factor(room))
            return used;
        fits_solve(room, room->gradient, room->beta);
        /* once more on the residuals: as accurate as an orthogonal factorisation */
        fits_pass(room, FITS_LINEAR, room->beta, 0);
        fits_solve(room, room->gradient, room->step);
        for (ptrdiff_t j = 0; j < p; j++)
            room->beta[j] += room->step[j];
        if (used > p)
            out[p] = ldexp(sqrt(room->square / (design->correct ? used - p : used)), response);
    } else if (fits_maximum(room, design->model)) {
        if (design->correct)
            fits_invert(room);
        fits_pass_last(room, design, stop);
        /* no correction beyond the standard errors: such a block is separated, with all leverages 1 */
        if (fits_solve(room, room->gradient, room->step) <= p)
            for (ptrdiff_t j = 0; j < p; j++)
                room->beta[j] += room->step[j];
    }
    for (ptrdiff_t j = 0; j < p; j++)
        out[j] = ldexp(room->beta[j], response - room->exponent[j]);
    return used;
}

#endif
