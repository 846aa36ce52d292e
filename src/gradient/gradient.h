/* The report of one person in gradient descent for a generalised linear model. docs/proofs/local-glm.md
 *
 * This file decides no privacy event: the record enters only through a sign, which an exact coin keeps or flips, or through
 * signs that an exact mask flips. Only + - * / and square roots in a fixed order, so every machine computes the same bits.
 */
#ifndef DPFAST_GRADIENT_H
#define DPFAST_GRADIENT_H

#include "clones.h"
#include "directions.h"

enum { DPFAST_LOGISTIC, DPFAST_LINEAR, DPFAST_POISSON };

/* A' of the linear predictor t minus the label of y, clipped, in units of the clip: in [-1, 1] for any y.
 * Assumes t finite. */
static inline double dpfast_residual(int model, double t, double y, double clip)
{
    double tail = dpfast_exp_neg(__builtin_fabs(t) < 700.0 ? __builtin_fabs(t) : 700.0), residual;
    y = y == y ? y : 0.0;
    if (model == DPFAST_LOGISTIC)
        residual = (t < 0.0 ? tail : 1.0) / (1.0 + tail) - (y > 0.0 ? 1.0 : 0.0);
    else if (model == DPFAST_LINEAR)
        residual = t - y;
    else
        residual = (t < 0.0 ? tail : 1.0 / tail) - (y > 0.0 ? y : 0.0);
    residual /= clip;
    residual = residual > -1.0 ? residual : -1.0;
    return residual < 1.0 ? residual : 1.0;
}

/* The features of a row, in units of the radius, are the result times *row, which is x or `room`; their Euclidean norm, at
 * most 1, is *length. */
static inline double dpfast_meant(const double *x, ptrdiff_t n, double inverse, double *room, const double **row,
                                  double *length)
{
    double square = dpfast_dot(x, x, n), size = __builtin_sqrt(square);
    if (square > 0x1p-600 && square < 0x1p600) {
        double norm = size * inverse;
        *row = x;
        *length = norm < 1.0 ? norm : 1.0;
        return norm < 1.0 ? inverse : 1.0 / size;
    }
    *row = room;
    *length = dpfast_record(x, n, inverse, room);
    size = __builtin_sqrt(dpfast_dot(room, room, n));
    return size > 0.0 ? *length / size : 0.0;
}

/* Each number of a row in units of the radius, in [-1, 1]; a NaN is 0. */
DPFAST_CLONES static void dpfast_clamp(const double *x, double inverse, double *out, ptrdiff_t n)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        double v = x[j] * inverse;
        v = v == v ? v : 0.0;
        v = v > -1.0 ? v : -1.0;
        out[j] = v < 1.0 ? v : 1.0;
    }
}

/* total += theta, theta += factor * u. */
DPFAST_CLONES static void dpfast_add_step(double *theta, double *total, const double *u, double factor, ptrdiff_t d)
{
    for (ptrdiff_t j = 0; j < d; j++) {
        total[j] += theta[j];
        theta[j] += factor * u[j];
    }
}

DPFAST_CLONES static void dpfast_add_to(double *total, const double *theta, ptrdiff_t d)
{
    for (ptrdiff_t j = 0; j < d; j++)
        total[j] += theta[j];
}

/* The nearest point of the ball of radius `bound`. */
static inline void dpfast_project(double *theta, double bound, ptrdiff_t d)
{
    double square = dpfast_dot(theta, theta, d);
    if (square > bound * bound)
        dpfast_scale(theta, bound / __builtin_sqrt(square), theta, d);
}

#endif
