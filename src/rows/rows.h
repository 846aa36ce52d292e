/* Exact sums, by column, of the codes of records in rows: of a grid for each column, or of a ball. docs/proofs/rows.md
 *
 * Rows of contiguous doubles are read where they are, others through a buffer. A sum is a pair of 64-bit integers, high
 * 2^52 + low with 0 <= low < 2^52: enough for 2^62 records of any code below 2^52 in magnitude.
 */
#ifndef DPFAST_ROWS_H
#define DPFAST_ROWS_H

#include "grid.h"
#include "select.h"

#define ROWS_LANES 8
#define ROWS_BLOCK 2048     /* rows whose codes are summed in one word or double */
#define ROWS_BUFFER 4096    /* doubles in a buffer of several rows */
#define ROWS_STRIP 512      /* columns of a grid summed at a time */
#define ROWS_ROUND 0x1.8p52 /* adding it rounds a double of up to 2^51 to an integer, half to even */
#define ROWS_INLINE static inline __attribute__((always_inline))

/* ---- records ---- */

/* A grid for each column, as arrays of its numbers in a `dpfast_grid`. */
struct rows_grids {
    const double *lower, *upper, *step, *missing, *first;
};

struct rows_table {
    struct select_keys column, row; /* how to read the first column and the first row */
    ptrdiff_t n, d;
    int in_place;                   /* rows of contiguous, aligned doubles */
    int by_row;                     /* load rows, whose numbers are closer together than those of a column */
    const struct rows_grids *grids; /* for 64-bit integers, which are rounded to steps before they become doubles */
};

/* Rows that are loaded at a time. */
static ptrdiff_t rows_at_once(const struct rows_table *table)
{
    const ptrdiff_t rows = table->in_place ? ROWS_BLOCK : ROWS_BUFFER / table->d;
    return rows > ROWS_BLOCK ? ROWS_BLOCK : rows < 1 ? 1 : rows;
}

/* Doubles of room that `rows_load` needs. */
static ptrdiff_t rows_room(const struct rows_table *table)
{
    return table->in_place ? 0 : table->d * rows_at_once(table);
}

/* Where rows start..start+count-1 are, as doubles at a distance of `stride`: in place or in the room. */
static const double *rows_load(const struct rows_table *table, ptrdiff_t start, ptrdiff_t count, double *room,
                               ptrdiff_t *stride)
{
    const ptrdiff_t d = table->d, distance = table->column.stride;
    const struct rows_grids *grids = table->grids;
    struct select_keys row = table->row, column = table->column;
    double keys[ROWS_BLOCK];
    row.data += start * distance;
    *stride = d;
    if (table->in_place) {
        *stride = distance / (ptrdiff_t)sizeof *room;
        return (const double *)row.data;
    }
    if (table->by_row) {
        for (ptrdiff_t i = 0; i < count; i++, row.data += distance)
            select_load(&row, 0, d, room + i * d);
        return room;
    }
    for (ptrdiff_t j = 0; j < d; j++, column.data += row.stride) {
        if (grids)
            select_set_grid(&column, grids->lower[j], grids->upper[j], grids->step[j], grids->missing[j]);
        select_load(&column, start, count, keys);
        for (ptrdiff_t i = 0; i < count; i++)
            room[i * d + j] = keys[i];
    }
    return room;
}

/* ---- sums ---- */

struct rows_sums {
    int64_t *high, *low;
};

/* Adds `value`, within +-2^63, to the sum of column j. */
static inline void rows_add(const struct rows_sums *sums, ptrdiff_t j, int64_t value)
{
    const int64_t low = sums->low[j] + (value & (((int64_t)1 << 52) - 1));
    sums->high[j] += (value >> 52) + (low >> 52);
    sums->low[j] = low & (((int64_t)1 << 52) - 1);
}

/* ---- a grid for each column ---- */

/* Adds the codes of `count` rows to the words of d columns. The bits of 2^52 + code are those of 2^52 plus code. */
DPFAST_CLONES
static void rows_sum_strip(const double *x, ptrdiff_t stride, ptrdiff_t count, ptrdiff_t d,
                           const double *restrict lower, const double *restrict upper, const double *restrict step,
                           const double *restrict missing, const double *restrict first, uint64_t *restrict words)
{
    ptrdiff_t i = 0;
#define ROWS_CODE(row) dpfast_bits(dpfast_code((row)[j], lower[j], upper[j], step[j], missing[j], first[j]) + 0x1p52)
    for (; i + 4 <= count; i += 4) {
        const double *a = x + i * stride, *b = a + stride, *c = b + stride, *e = c + stride;
        for (ptrdiff_t j = 0; j < d; j++)
            words[j] += (ROWS_CODE(a) + ROWS_CODE(b)) + (ROWS_CODE(c) + ROWS_CODE(e));
    }
    for (; i < count; i++) {
        const double *a = x + i * stride;
        for (ptrdiff_t j = 0; j < d; j++)
            words[j] += ROWS_CODE(a);
    }
#undef ROWS_CODE
}

/* Adds the codes of rows start..stop-1 to the sums. */
static void rows_sum_grids(const struct rows_table *table, ptrdiff_t start, ptrdiff_t stop,
                           const struct rows_grids *grids, double *room, const struct rows_sums *sums)
{
    const ptrdiff_t block = rows_at_once(table);
    uint64_t words[ROWS_STRIP];
    for (ptrdiff_t i = start; i < stop; i += block) {
        const ptrdiff_t count = stop - i < block ? stop - i : block;
        ptrdiff_t stride;
        const double *x = rows_load(table, i, count, room, &stride);
        for (ptrdiff_t j = 0; j < table->d; j += ROWS_STRIP) {
            const ptrdiff_t width = table->d - j < ROWS_STRIP ? table->d - j : ROWS_STRIP;
            memset(words, 0, (size_t)width * sizeof *words);
            rows_sum_strip(x + j, stride, count, width, grids->lower + j, grids->upper + j, grids->step + j,
                           grids->missing + j, grids->first + j, words);
            for (ptrdiff_t k = 0; k < width; k++)
                rows_add(sums, j + k, (int64_t)(words[k] - (uint64_t)count * dpfast_bits(0x1p52)));
        }
    }
}

/* ---- a ball ---- */

/* Codes of the ball are the vectors of integers with a squared norm of at most `most`, centered at 0. */
struct rows_ball {
    const double *center;
    double inverse; /* 1 / step, a power of two */
    double radius;  /* in steps, at most 2^26 */
    double most;    /* floor(radius^2), so that squared norms up to it are exact in double */
};

/* Of the radius: where rows beyond are moved to, so that rounding rarely moves them out of the ball again. */
#define ROWS_SHRUNK (1.0 - 0x1p-24)

/* Some doubles of a row: of one number on every machine, so that sums of squares have one order. They are two vectors that
 * every unit with 32 bytes keeps in registers: one of 64 bytes went through memory there, in ten times the time. */
typedef double rows_half __attribute__((vector_size(4 * ROWS_LANES)));
struct rows_vector {
    rows_half low, high;
};

ROWS_INLINE struct rows_vector rows_get(const double *x)
{
    struct rows_vector out;
    memcpy(&out.low, x, sizeof out.low);
    memcpy(&out.high, x + ROWS_LANES / 2, sizeof out.high);
    return out;
}

ROWS_INLINE void rows_put(const struct rows_vector *from, double *out)
{
    memcpy(out, &from->low, sizeof from->low);
    memcpy(out + ROWS_LANES / 2, &from->high, sizeof from->high);
}

ROWS_INLINE void rows_add_squares(const struct rows_vector *x, struct rows_vector *total)
{
    total->low += x->low * x->low;
    total->high += x->high * x->high;
}

ROWS_INLINE double rows_total(const struct rows_vector *vector)
{
    const rows_half lanes = vector->low + vector->high;
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

/* The last vector of a row of d numbers overlaps the one before it: 0 for the numbers that both have, else 1. */
ROWS_INLINE struct rows_vector rows_rest(ptrdiff_t d)
{
    static const double marks[2 * ROWS_LANES] = {[ROWS_LANES] = 1, 1, 1, 1, 1, 1, 1, 1};
    return rows_get(marks + d % ROWS_LANES);
}

ROWS_INLINE void rows_multiply(struct rows_vector *x, const struct rows_vector *factors)
{
    x->low *= factors->low;
    x->high *= factors->high;
}

ROWS_INLINE struct rows_vector rows_centered(const double *x, const double *center, double scale)
{
    const struct rows_vector shift = rows_get(center);
    struct rows_vector y = rows_get(x);
    y.low = (y.low - shift.low) * scale;
    y.high = (y.high - shift.high) * scale;
    return y;
}

ROWS_INLINE void rows_round_to_codes(struct rows_vector *x, double factor)
{
    x->low = x->low * factor + ROWS_ROUND - ROWS_ROUND;
    x->high = x->high * factor + ROWS_ROUND - ROWS_ROUND;
}

/* out = (x - center) scale; returns the squared norm, which is no finite number if any of out is not. */
ROWS_INLINE double rows_center(const double *x, const double *center, double scale, double *out, ptrdiff_t d,
                               const struct rows_vector *rest)
{
    const ptrdiff_t last = d - ROWS_LANES;
    double norm = 0.0;
    struct rows_vector total = {{0.0}, {0.0}}, y;
    if (last < 0) {
        for (ptrdiff_t j = 0; j < d; j++) {
            out[j] = (x[j] - center[j]) * scale;
            norm += out[j] * out[j];
        }
        return norm;
    }
    for (ptrdiff_t j = 0; j <= last; j += ROWS_LANES) {
        y = rows_centered(x + j, center + j, scale);
        rows_put(&y, out + j);
        rows_add_squares(&y, &total);
    }
    if (d % ROWS_LANES) {
        y = rows_centered(x + last, center + last, scale);
        rows_put(&y, out + last);
        rows_multiply(&y, rest);
        rows_add_squares(&y, &total);
    }
    return rows_total(&total);
}

/* out = round(x factor), also in place; returns the squared norm: exact up to 2^53, else a number above. */
ROWS_INLINE double rows_round(const double *x, double factor, double *out, ptrdiff_t d, const struct rows_vector *rest)
{
    const ptrdiff_t last = d - ROWS_LANES;
    double norm = 0.0;
    struct rows_vector total = {{0.0}, {0.0}}, code, end;
    if (last < 0) {
        for (ptrdiff_t j = 0; j < d; j++) {
            out[j] = x[j] * factor + ROWS_ROUND - ROWS_ROUND;
            norm += out[j] * out[j];
        }
        return norm;
    }
    end = rows_get(x + last); /* before it is overwritten in place */
    for (ptrdiff_t j = 0; j <= last; j += ROWS_LANES) {
        code = rows_get(x + j);
        rows_round_to_codes(&code, factor);
        rows_put(&code, out + j);
        rows_add_squares(&code, &total);
    }
    if (d % ROWS_LANES) {
        rows_round_to_codes(&end, factor);
        rows_put(&end, out + last);
        rows_multiply(&end, rest);
        rows_add_squares(&end, &total);
    }
    return rows_total(&total);
}

/* The same by truncation. */
static double rows_truncate(const double *x, double factor, double *out, ptrdiff_t d)
{
    double norm = 0.0;
    for (ptrdiff_t j = 0; j < d; j++) {
        out[j] = __builtin_trunc(x[j] * factor);
        norm += out[j] * out[j];
    }
    return norm;
}

/* A row whose squared norm is not a finite double: out = 0 for a row with NaN or infinity, else the row centered and
 * scaled so that the largest of its numbers is in [1, 2). Returns the squared norm. */
static double rows_extreme(const double *x, const double *center, double *out, ptrdiff_t d)
{
    double largest = 0.0, norm = 0.0;
    for (ptrdiff_t j = 0; j < d; j++) {
        if (!(__builtin_fabs(x[j]) < INFINITY)) {
            memset(out, 0, (size_t)d * sizeof *out);
            return 0.0;
        }
        out[j] = 0.5 * x[j] - 0.5 * center[j]; /* half the difference is finite, and not 0 for the largest */
        const double size = __builtin_fabs(out[j]);
        largest = size > largest ? size : largest;
    }
    const int exponent = -ilogb(largest);
    for (ptrdiff_t j = 0; j < d; j++) {
        out[j] = ldexp(out[j], exponent);
        norm += out[j] * out[j];
    }
    return norm;
}

/* The code of a row, as d doubles; `y` is scratch of d doubles. Projection and rounding decide which of the codes, the
 * exact comparison that it is one. */
ROWS_INLINE void rows_encode(const double *x, const struct rows_ball *ball, double *y, double *codes, ptrdiff_t d)
{
    const double radius = ball->radius * ROWS_SHRUNK;
    const struct rows_vector rest = rows_rest(d);
    double norm = rows_center(x, ball->center, ball->inverse, y, d, &rest), limit = radius * radius;
    if (__builtin_expect(!(norm < INFINITY), 0)) {
        norm = rows_extreme(x, ball->center, y, d);
        limit = 0.0;
    }
    double factor = norm > limit ? radius / __builtin_sqrt(norm) : 1.0;
    norm = rows_round(y, factor, codes, d, &rest);
    if (__builtin_expect(norm > ball->most, 0))
        while (rows_truncate(y, factor, codes, d) > ball->most)
            factor *= ROWS_SHRUNK;
}

#define ROWS_GROUP 32  /* rows encoded together, */
#define ROWS_TILE 2048 /* if they have at most that many numbers */

static ptrdiff_t rows_in_group(ptrdiff_t d)
{
    const ptrdiff_t rows = ROWS_TILE / d;
    return rows > ROWS_GROUP ? ROWS_GROUP : rows < 1 ? 1 : rows;
}

/* The codes of a group of rows, those of `rows_encode`, by one step of all rows after another; `width` doubles apart. */
ROWS_INLINE void rows_encode_group(const double *x, ptrdiff_t stride, ptrdiff_t count, const struct rows_ball *ball,
                                   double *y, double *codes, ptrdiff_t width, ptrdiff_t d)
{
    const double radius = ball->radius * ROWS_SHRUNK, limit = radius * radius;
    double norms[ROWS_GROUP] = {0.0}, factors[ROWS_GROUP];
    int others = 0; /* whether any row takes another path */
    const struct rows_vector rest = rows_rest(d);
    for (ptrdiff_t i = 0; i < count; i++)
        norms[i] = rows_center(x + i * stride, ball->center, ball->inverse, codes + i * width, d, &rest);
    for (ptrdiff_t i = 0; i < ROWS_GROUP; i++) {
        const double factor = radius / __builtin_sqrt(norms[i]);
        factors[i] = norms[i] > limit ? factor : 1.0;
        others |= !(norms[i] < INFINITY);
    }
    for (ptrdiff_t i = 0; i < count && !others; i++)
        norms[i] = rows_round(codes + i * width, factors[i], codes + i * width, d, &rest);
    for (ptrdiff_t i = 0; i < ROWS_GROUP; i++)
        others |= !(norms[i] <= ball->most);
    if (__builtin_expect(others, 0))
        for (ptrdiff_t i = 0; i < count; i++)
            rows_encode(x + i * stride, ball, y, codes + i * width, d);
}

/* Adds the codes of `count` rows to d doubles, exactly: they are at most 2^26 in magnitude. */
DPFAST_CLONES
static void rows_sum_block(const double *x, ptrdiff_t stride, ptrdiff_t count, const struct rows_ball *given,
                           ptrdiff_t d, double *restrict y, double *restrict codes, double *restrict totals)
{
    const struct rows_ball ball = *given;
    const ptrdiff_t group = rows_in_group(d);
    for (ptrdiff_t i = 0; i < count; i += group) {
        const ptrdiff_t rows = count - i < group ? count - i : group;
        rows_encode_group(x + i * stride, stride, rows, &ball, y, codes, d, d);
        ptrdiff_t k = 0;
        for (; k + 4 <= rows; k += 4) {
            const double *a = codes + k * d, *b = a + d, *c = b + d, *e = c + d;
            for (ptrdiff_t j = 0; j < d; j++)
                totals[j] += (a[j] + b[j]) + (c[j] + e[j]);
        }
        for (; k < rows; k++)
            for (ptrdiff_t j = 0; j < d; j++)
                totals[j] += codes[k * d + j];
    }
}

/* Doubles of scratch for `rows_sum_ball`. */
static ptrdiff_t rows_scratch(ptrdiff_t d)
{
    return (2 + rows_in_group(d)) * d;
}

/* Adds the codes of rows start..stop-1 to the sums. */
static void rows_sum_ball(const struct rows_table *table, ptrdiff_t start, ptrdiff_t stop, const struct rows_ball *ball,
                          double *room, double *scratch, const struct rows_sums *sums)
{
    const ptrdiff_t block = rows_at_once(table), d = table->d;
    double *y = scratch, *totals = y + d, *codes = totals + d;
    for (ptrdiff_t i = start; i < stop; i += block) {
        const ptrdiff_t count = stop - i < block ? stop - i : block;
        ptrdiff_t stride;
        const double *x = rows_load(table, i, count, room, &stride);
        memset(totals, 0, (size_t)d * sizeof *totals);
        rows_sum_block(x, stride, count, ball, d, y, codes, totals);
        for (ptrdiff_t j = 0; j < d; j++)
            rows_add(sums, j, (int64_t)totals[j]);
    }
}

/* The codes of `count` rows, as integers: they are at most 2^26 in magnitude. */
DPFAST_CLONES
static void rows_encode_block(const double *x, ptrdiff_t stride, ptrdiff_t count, const struct rows_ball *given,
                              ptrdiff_t d, double *restrict y, double *restrict codes, int64_t *restrict out)
{
    const struct rows_ball ball = *given;
    const ptrdiff_t group = rows_in_group(d);
    for (ptrdiff_t i = 0; i < count; i += group) {
        const ptrdiff_t rows = count - i < group ? count - i : group;
        rows_encode_group(x + i * stride, stride, rows, &ball, y, codes, d, d);
        for (ptrdiff_t j = 0; j < rows * d; j++)
            *out++ = (int64_t)(dpfast_bits(codes[j] + ROWS_ROUND) - dpfast_bits(ROWS_ROUND));
    }
}

/* The codes of all rows; `scratch` is as for `rows_sum_ball`. */
static void rows_encode_ball(const struct rows_table *table, const struct rows_ball *ball, double *room,
                             double *scratch, int64_t *out)
{
    const ptrdiff_t block = rows_at_once(table), d = table->d;
    for (ptrdiff_t start = 0; start < table->n; start += block) {
        const ptrdiff_t count = table->n - start < block ? table->n - start : block;
        ptrdiff_t stride;
        const double *x = rows_load(table, start, count, room, &stride);
        rows_encode_block(x, stride, count, ball, d, scratch, scratch + d, out + start * d);
    }
}

/* Replaces `count` labels by their distances from a predictor, sum_j code_j slopes_j, which is subtracted one column
 * after another: no bit depends on other rows. NaN becomes 0. */
DPFAST_CLONES
static void rows_residuals_block(const double *x, ptrdiff_t stride, ptrdiff_t count, const struct rows_ball *given,
                                 ptrdiff_t d, const double *slopes, double *restrict y, double *restrict codes,
                                 double *restrict labels)
{
    const struct rows_ball ball = *given;
    const ptrdiff_t group = rows_in_group(d);
    for (ptrdiff_t i = 0; i < count; i += group, labels += group) {
        const ptrdiff_t rows = count - i < group ? count - i : group;
        rows_encode_group(x + i * stride, stride, rows, &ball, y, codes, d, d);
        for (ptrdiff_t j = 0; j < d; j++)
            for (ptrdiff_t k = 0; k < rows; k++)
                labels[k] -= codes[k * d + j] * slopes[j];
        for (ptrdiff_t k = 0; k < rows; k++)
            labels[k] = labels[k] == labels[k] ? __builtin_fabs(labels[k]) : 0.0;
    }
}

/* The same for all rows; `scratch` is as for `rows_sum_ball`. */
static void rows_residuals(const struct rows_table *table, const struct rows_ball *ball, const double *slopes,
                           double *room, double *scratch, double *labels)
{
    const ptrdiff_t block = rows_at_once(table), d = table->d;
    for (ptrdiff_t start = 0; start < table->n; start += block) {
        const ptrdiff_t count = table->n - start < block ? table->n - start : block;
        ptrdiff_t stride;
        const double *x = rows_load(table, start, count, room, &stride);
        rows_residuals_block(x, stride, count, ball, d, slopes, scratch, scratch + d, labels + start);
    }
}

#endif
