/* Exact sums of clipped gradients of generalised linear models over rows in a ball. docs/proofs/glm.md
 *
 * The gradient of a record is r z. z is a vector of integers: (v, 1) times a public matrix, rounded, v the code of its
 * row. r is an integer, its residual in public units, or one for each class, with |r| |z| <= C. Doubles decide which
 * integers z and r are, and the bound by a certified margin. C is at most 2^40, so the products of 2048 rows add up to
 * at most 2^51 in doubles, exactly, in any order.
 */
#ifndef DPFAST_GLM_H
#define DPFAST_GLM_H

#include "certified.h"
#include "moments.h"

#define GLM_ROWS ROWS_GROUP
#define GLM_WIDE 2 /* columns of z computed at a time */

/* Vectors that every unit with 32 bytes keeps in one register. */
typedef float glm_floats __attribute__((vector_size(32)));
typedef double glm_doubles __attribute__((vector_size(32)));
#define GLM_FLOATS (GLM_ROWS / 8)
#define GLM_DOUBLES (GLM_ROWS / 4)

enum glm_family { GLM_LOGISTIC, GLM_POISSON, GLM_LINEAR, GLM_MULTINOMIAL };

struct glm_step {
    enum glm_family family;
    double bound;            /* of the magnitude of a residual */
    double scale;            /* 1 / unit of r, a power of two */
    double most;             /* C (1 - 2^-30) or less */
    ptrdiff_t classes;       /* residuals of a record: 1 except for GLM_MULTINOMIAL */
    ptrdiff_t length, width; /* of z, and a multiple of GLM_WIDE that is not less */
    const float *matrix;     /* by GLM_WIDE columns, of each d + 1 rows of them; zeros beyond `length` */
    const double *theta;     /* coefficients of z, of each class: `width` numbers, zeros beyond `length` */
};

/* r moved into +-bound; a NaN to -bound. */
ROWS_INLINE double glm_clipped(double r, double bound)
{
    r = r > -bound ? r : -bound;
    return r < bound ? r : bound;
}

/* 1 / (1 + exp(-t)). */
ROWS_INLINE double glm_logistic(double t)
{
    const double e = dpfast_exp_neg(__builtin_fabs(t)), q = 1.0 / (1.0 + e);
    return q * (t < 0.0 ? e : 1.0);
}

/* exp(t); for |t| above 700 that of 700. */
ROWS_INLINE double glm_exp(double t)
{
    const double size = __builtin_fabs(t), e = dpfast_exp_neg(size < 700.0 ? size : 700.0), inverse = 1.0 / e;
    return t < 0.0 ? e : inverse;
}

/* out = the block, a row after the other, by column. */
ROWS_INLINE void glm_by_column(const double *block, ptrdiff_t stride, ptrdiff_t columns, float *restrict out)
{
    for (ptrdiff_t k = 0; k < columns; k++)
        for (ptrdiff_t i = 0; i < GLM_ROWS; i++)
            out[k * GLM_ROWS + i] = (float)block[i * stride + k];
}

/* z, by column, = the rows, by column, times the matrix, rounded. Sums run in one order on every machine. */
ROWS_INLINE void glm_transform(const float *rows, ptrdiff_t columns, const float *matrix, ptrdiff_t width,
                               double *restrict z)
{
    for (ptrdiff_t j = 0; j < width; j += GLM_WIDE, matrix += columns * GLM_WIDE) {
        glm_floats sums[GLM_WIDE][GLM_FLOATS] = {{{0.0f}}};
        for (ptrdiff_t k = 0; k < columns; k++) {
            glm_floats x[GLM_FLOATS];
            memcpy(x, rows + k * GLM_ROWS, sizeof x);
            for (int b = 0; b < GLM_WIDE; b++)
                for (int h = 0; h < GLM_FLOATS; h++)
                    sums[b][h] += x[h] * matrix[k * GLM_WIDE + b];
        }
        for (int b = 0; b < GLM_WIDE; b++) {
            float values[GLM_ROWS]; /* integers from 2^23 on, so that adding and subtracting rounds them all */
            memcpy(values, sums[b], sizeof values);
            for (int i = 0; i < GLM_ROWS; i++)
                z[(j + b) * GLM_ROWS + i] = (double)values[i] + ROWS_ROUND - ROWS_ROUND;
        }
    }
}

/* t = theta . z and norm = |z|^2, for each row. */
ROWS_INLINE void glm_predict(const double *z, ptrdiff_t width, const double *theta, double *t, double *norm)
{
    glm_doubles sums[GLM_DOUBLES] = {{0.0}}, squares[GLM_DOUBLES] = {{0.0}}, x[GLM_DOUBLES];
    for (ptrdiff_t j = 0; j < width; j++) {
        memcpy(x, z + j * GLM_ROWS, sizeof x);
        for (int h = 0; h < GLM_DOUBLES; h++) {
            sums[h] += x[h] * theta[j];
            squares[h] += x[h] * x[h];
        }
    }
    memcpy(t, sums, sizeof sums);
    memcpy(norm, squares, sizeof squares);
}

/* t = theta . z for each row. */
ROWS_INLINE void glm_predict_class(const double *z, ptrdiff_t width, const double *theta, double *restrict t)
{
    glm_doubles sums[GLM_DOUBLES] = {{0.0}}, x[GLM_DOUBLES];
    for (ptrdiff_t j = 0; j < width; j++) {
        memcpy(x, z + j * GLM_ROWS, sizeof x);
        for (int h = 0; h < GLM_DOUBLES; h++)
            sums[h] += x[h] * theta[j];
    }
    memcpy(t, sums, sizeof sums);
}

/* norm = |z|^2 for each row. */
ROWS_INLINE void glm_norms(const double *z, ptrdiff_t width, double *restrict norm)
{
    for (int i = 0; i < GLM_ROWS; i++)
        norm[i] = 0.0;
    for (ptrdiff_t j = 0; j < width; j++)
        for (int i = 0; i < GLM_ROWS; i++)
            norm[i] += z[j * GLM_ROWS + i] * z[j * GLM_ROWS + i];
}

/* totals += r z, summed over the rows. */
ROWS_INLINE void glm_add_products(const double *z, ptrdiff_t width, const double *r, double *restrict totals)
{
    glm_doubles weights[GLM_DOUBLES], x[GLM_DOUBLES];
    memcpy(weights, r, sizeof weights);
    for (ptrdiff_t j = 0; j < width; j++) {
        glm_doubles total = {0.0};
        memcpy(x, z + j * GLM_ROWS, sizeof x);
        for (int h = 0; h < GLM_DOUBLES; h++)
            total += weights[h] * x[h];
        totals[j] += (total[0] + total[1]) + (total[2] + total[3]);
    }
}

/* out = the mean of y at the linear predictor t, minus y, moved into +-bound. */
ROWS_INLINE void glm_residuals(enum glm_family family, double bound, const double *t, const double *y, double *out)
{
    if (family == GLM_LOGISTIC)
        for (ptrdiff_t i = 0; i < GLM_ROWS; i++)
            out[i] = glm_clipped(glm_logistic(t[i]) - (y[i] > 0.0 ? 1.0 : 0.0), bound);
    else if (family == GLM_POISSON)
        for (ptrdiff_t i = 0; i < GLM_ROWS; i++)
            out[i] = glm_clipped(glm_exp(t[i]) - (y[i] > 0.0 ? y[i] : 0.0), bound);
    else
        for (ptrdiff_t i = 0; i < GLM_ROWS; i++)
            out[i] = glm_clipped(t[i] - y[i], bound);
}

/* totals += r z over 32 rows of the block. A record without a label has r = 0, and so does each from `count` on. */
DPFAST_CLONES
static void glm_add(const struct glm_step *given, const double *block, ptrdiff_t d, const double *y, ptrdiff_t count,
                    float *restrict columns, double *restrict z, double *restrict totals)
{
    const struct glm_step step = *given;
    const ptrdiff_t width = step.width;
    double t[GLM_ROWS], r[GLM_ROWS], norm[GLM_ROWS];
    glm_by_column(block, moments_width(d), d + 1, columns);
    glm_transform(columns, d + 1, step.matrix, width, z);
    glm_predict(z, width, step.theta, t, norm);
    glm_residuals(step.family, step.bound, t, y, r);
    for (ptrdiff_t i = 0; i < GLM_ROWS; i++) {
        const double limit = __builtin_trunc(step.most / __builtin_sqrt(norm[i] > 1.0 ? norm[i] : 1.0));
        const double code = r[i] * step.scale + ROWS_ROUND - ROWS_ROUND;
        r[i] = y[i] == y[i] && i < count ? glm_clipped(code, limit) : 0.0;
    }
    glm_add_products(z, width, r, totals);
}

/* t = the residuals of each class, in place of its linear predictor, moved into +-min(bound, 1), in units of 1 / scale:
 * integers. norm = their squared norm. The residuals of a record whose label is not 0, 1, ..., classes - 1 are 0. */
ROWS_INLINE void glm_class_residuals(const struct glm_step *step, const double *y, double *restrict t,
                                     double *restrict norm)
{
    const double bound = step->bound < 1.0 ? step->bound : 1.0, scale = step->scale, last = (double)(step->classes - 1);
    double largest[GLM_ROWS], total[GLM_ROWS], used[GLM_ROWS];
    memcpy(largest, t, sizeof largest);
    for (int i = 0; i < GLM_ROWS; i++) {
        total[i] = norm[i] = 0.0;
        used[i] = y[i] >= 0.0 && y[i] <= last && y[i] == __builtin_trunc(y[i]) ? scale : 0.0;
    }
    for (ptrdiff_t k = 1; k < step->classes; k++)
        for (int i = 0; i < GLM_ROWS; i++)
            largest[i] = t[k * GLM_ROWS + i] > largest[i] ? t[k * GLM_ROWS + i] : largest[i];
    for (ptrdiff_t k = 0; k < step->classes; k++)
        for (int i = 0; i < GLM_ROWS; i++)
            total[i] += t[k * GLM_ROWS + i] = dpfast_exp_neg(largest[i] - t[k * GLM_ROWS + i]);
    for (int i = 0; i < GLM_ROWS; i++)
        total[i] = 1.0 / total[i];
    for (ptrdiff_t k = 0; k < step->classes; k++) {
        const double label = (double)k;
        for (int i = 0; i < GLM_ROWS; i++) {
            const double r = glm_clipped(t[k * GLM_ROWS + i] * total[i] - (y[i] == label ? 1.0 : 0.0), bound);
            const double code = r * used[i] + ROWS_ROUND - ROWS_ROUND;
            t[k * GLM_ROWS + i] = code;
            norm[i] += code * code;
        }
    }
}

/* The same as `glm_add` with a residual for each class, in `t`; |r| is the norm of all of them together. */
DPFAST_CLONES
static void glm_add_classes(const struct glm_step *given, const double *block, ptrdiff_t d, const double *y,
                            ptrdiff_t count, float *restrict columns, double *restrict z, double *restrict t,
                            double *restrict totals)
{
    const struct glm_step step = *given;
    const ptrdiff_t width = step.width;
    double squares[GLM_ROWS], norm[GLM_ROWS], factor[GLM_ROWS];
    glm_by_column(block, moments_width(d), d + 1, columns);
    glm_transform(columns, d + 1, step.matrix, width, z);
    glm_norms(z, width, squares);
    for (ptrdiff_t k = 0; k < step.classes; k++)
        glm_predict_class(z, width, step.theta + k * width, t + k * GLM_ROWS);
    glm_class_residuals(&step, y, t, norm);
    for (ptrdiff_t i = 0; i < GLM_ROWS; i++) {
        const double length = __builtin_sqrt(squares[i] > 1.0 ? squares[i] : 1.0) * __builtin_sqrt(norm[i]);
        const double share = length > step.most ? step.most / length : 1.0;
        factor[i] = i < count ? share : 0.0;
    }
    for (ptrdiff_t k = 0; k < step.classes; k++) {
        double r[GLM_ROWS];
        for (ptrdiff_t i = 0; i < GLM_ROWS; i++)
            r[i] = __builtin_trunc(t[k * GLM_ROWS + i] * factor[i]);
        glm_add_products(z, width, r, totals + k * width);
    }
}

/* Doubles of scratch: a row, the block by row and by column, the vectors z, totals, linear predictors, labels. */
static ptrdiff_t glm_scratch(ptrdiff_t d, ptrdiff_t width, ptrdiff_t classes)
{
    return moments_scratch(d) + GLM_ROWS * moments_width(d) + (GLM_ROWS + classes) * width + GLM_ROWS * classes
           + ROWS_BLOCK + GLM_ROWS;
}

/* Adds the gradients of all records to `length` sums for each class; y holds the label of each record. */
static void glm_sum(const struct rows_table *table, const struct select_keys *y, const struct rows_ball *ball,
                    const struct glm_step *step, double *room, double *scratch, const struct rows_sums *sums)
{
    const ptrdiff_t most = rows_at_once(table), d = table->d, stride_of_block = moments_width(d);
    double *row = scratch, *block = row + d, *z = block + GLM_ROWS * stride_of_block;
    double *totals = z + GLM_ROWS * step->width, *t = totals + step->classes * step->width;
    double *labels = t + GLM_ROWS * step->classes;
    float *columns = (float *)(labels + ROWS_BLOCK + GLM_ROWS);
    memset(block, 0, (size_t)(GLM_ROWS * stride_of_block) * sizeof *block);
    for (ptrdiff_t i = 0; i < GLM_ROWS; i++)
        block[i * stride_of_block + d] = 1.0;
    for (ptrdiff_t start = 0; start < table->n; start += most) {
        const ptrdiff_t loaded = table->n - start < most ? table->n - start : most;
        ptrdiff_t stride;
        const double *x = rows_load(table, start, loaded, room, &stride);
        select_load(y, start, loaded, labels);
        memset(labels + loaded, 0, GLM_ROWS * sizeof *labels);
        memset(totals, 0, (size_t)(step->classes * step->width) * sizeof *totals);
        for (ptrdiff_t i = 0; i < loaded; i += GLM_ROWS) {
            const ptrdiff_t count = loaded - i < GLM_ROWS ? loaded - i : GLM_ROWS;
            moments_encode(x + i * stride, stride, count, ball, d, row, block, stride_of_block);
            if (step->family == GLM_MULTINOMIAL)
                glm_add_classes(step, block, d, labels + i, count, columns, z, t, totals);
            else
                glm_add(step, block, d, labels + i, count, columns, z, totals);
        }
        for (ptrdiff_t k = 0; k < step->classes; k++)
            for (ptrdiff_t j = 0; j < step->length; j++)
                rows_add(sums, k * step->length + j, (int64_t)totals[k * step->width + j]);
    }
}

#endif
