/* The records of one block for its regression: tiles of rows, and the memory of one thread. docs/proofs/block-estimates.md
 */
#ifndef DPFAST_TILES_H
#define DPFAST_TILES_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "certified.h"
#include "clones.h"
#include "fits.h"
#include "select.h"

#define FITS_ROWS 64 /* of a tile, which then fits a first-level cache for up to 90 columns */
#define FITS_PAIR (2 * FITS_ROWS)
#define FITS_SPAN 16   /* of magnitudes in a column of floats, whose scale is that of its first tile */
#define FITS_SECANTS 5 /* steps with one Hessian from which it is improved */
#define FITS_PANEL 2   /* columns that are multiplied by others at once */

enum fits_model { FITS_LINEAR, FITS_LOGISTIC, FITS_POISSON };

typedef double fits_lanes __attribute__((vector_size(8 * FITS_LANES)));
typedef int64_t fits_places __attribute__((vector_size(8 * FITS_LANES)));
typedef double fits_rows __attribute__((vector_size(32), aligned(8), may_alias)); /* rows, each by itself */

/* Four of the eight entries of two vectors, by their indices. */
#ifdef __clang__
#define FITS_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define FITS_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (const fits_places){__VA_ARGS__})
#endif

struct fits_design {
    struct select_keys x, y; /* the first column, the response */
    ptrdiff_t column_stride; /* bytes from one column to the next */
    ptrdiff_t columns;       /* of x */
    int intercept;           /* whether a column of ones precedes them */
    enum fits_model model;
    int correct;
};

/* Memory of one thread. A tile has `padded` columns of FITS_ROWS doubles, then the response: tile t is at
 * tiles + t (padded + 1) FITS_ROWS, with the rows contiguous in every column. */
struct fits_room {
    ptrdiff_t parameters, padded; /* columns with the intercept; rounded up to a multiple of FITS_PANEL */
    ptrdiff_t count;              /* tiles */
    double *tiles;
    double *panel; /* FITS_PANEL columns of a tile, weighted */
    double *weight, *residual, *eta;
    fits_lanes *sums;                              /* padded^2 + padded: X'WX and the gradient, in lanes */
    double *hessian;                               /* padded^2: X'WX, then its factor */
    double *inverse;                               /* padded^2: the inverse of the factor, lower triangular */
    double *gradient, *step, *beta, *trial, *unit; /* padded */
    double *secants; /* 2 FITS_SECANTS padded: steps, and what they changed the gradient by */
    double *scale;   /* padded: column j of the floats was divided by scale[j], a power of two */
    float *singles;  /* the tiles as floats, in pairs: columns of 2 FITS_ROWS */
    float *narrow;   /* padded^2: the inverse as floats, for columns divided by their scales */
    float *slots;    /* (2 FITS_PANEL + 4) FITS_ROWS + padded: the panel, weights and residuals of a pair, beta */
    int single;      /* whether the Hessian is that of floats */
    double loose;    /* bound of its relative error in any direction */
    double *sizes;   /* 2 (padded + 1): greatest magnitudes in the columns and the response, of a tile and of all */
    int *exponent;   /* padded: column j was divided by 2^exponent[j] */
    double square;   /* of the residuals */
};

static ptrdiff_t fits_padded(ptrdiff_t parameters)
{
    return (parameters + FITS_PANEL - 1) / FITS_PANEL * FITS_PANEL;
}

/* Doubles that `fits_room_in` needs, for blocks of at most `rows`. */
static ptrdiff_t fits_room_size(ptrdiff_t rows, ptrdiff_t parameters)
{
    ptrdiff_t padded = fits_padded(parameters), tiles = (rows + FITS_ROWS - 1) / FITS_ROWS;
    ptrdiff_t doubles = tiles * (padded + 1) * FITS_ROWS + (FITS_PANEL + 3) * FITS_ROWS
                        + (2 + FITS_LANES) * padded * padded + (9 + 2 * FITS_SECANTS + FITS_LANES) * padded + 2
                        + 2 * FITS_LANES + 8;
    ptrdiff_t floats = (tiles + 1) * padded * FITS_ROWS + (2 * FITS_PANEL + 4) * FITS_ROWS + padded * padded + padded;
    return doubles + floats / 2;
}

static struct fits_room fits_room_in(double *memory, ptrdiff_t rows, ptrdiff_t parameters)
{
    ptrdiff_t padded = fits_padded(parameters), tiles = (rows + FITS_ROWS - 1) / FITS_ROWS;
    struct fits_room room = {.parameters = parameters, .padded = padded};
    uintptr_t lane = 2 * sizeof(fits_lanes); /* a line of the cache, which no vector then crosses */
    double *next = (double *)(((uintptr_t)memory + lane - 1) / lane * lane);
    room.tiles = next, next += tiles * (padded + 1) * FITS_ROWS;
    room.panel = next, next += FITS_PANEL * FITS_ROWS;
    room.weight = next, next += FITS_ROWS;
    room.residual = next, next += FITS_ROWS;
    room.eta = next, next += FITS_ROWS;
    room.sums = (fits_lanes *)next, next += FITS_LANES * (padded + 1) * padded;
    next += (lane - (uintptr_t)next % lane) % lane / sizeof *next;
    room.singles = (float *)next, next += (tiles + 1) / 2 * padded * FITS_ROWS;
    room.slots = (float *)next, next += (FITS_PANEL + 2) * FITS_ROWS + padded / 2;
    room.narrow = (float *)next, next += padded * padded / 2;
    room.scale = next, next += padded;
    room.hessian = next, next += padded * padded;
    room.inverse = next, next += padded * padded;
    room.gradient = next, next += padded;
    room.step = next, next += padded;
    room.beta = next, next += padded;
    room.trial = next, next += padded;
    room.unit = next, next += padded;
    room.secants = next, next += 2 * FITS_SECANTS * padded;
    room.sizes = next, next += 2 * (padded + 1);
    room.exponent = (int *)next;
    return room;
}

static double *fits_tile(const struct fits_room *room, ptrdiff_t tile)
{
    return room->tiles + tile * (room->padded + 1) * FITS_ROWS;
}

static float *fits_pair(const struct fits_room *room, ptrdiff_t pair)
{
    return room->singles + pair * room->padded * FITS_PAIR;
}

/* A power of two near the size of numbers up to `greatest`; 0 unless they are so large or small that their squares would
 * leave the range of doubles. */
static int fits_exponent(double greatest)
{
    int exponent = greatest > 0 ? ilogb(greatest) : 0;
    return exponent > 64 || exponent < -64 ? exponent : 0;
}

static void fits_divide(double *x, ptrdiff_t count, int exponent)
{
    for (ptrdiff_t i = 0; i < count; i++)
        x[i] = ldexp(x[i], -exponent);
}

/* Set rows with a number that is not finite to zero; returns their number. */
static ptrdiff_t fits_clear(double *x, ptrdiff_t columns, ptrdiff_t rows)
{
    ptrdiff_t cleared = 0;
    for (ptrdiff_t i = 0; i < rows; i++) {
        double zero = 0;
        for (ptrdiff_t j = 0; j < columns; j++)
            zero += 0 * x[j * FITS_ROWS + i];
        cleared += zero != 0;
        for (ptrdiff_t j = 0; zero != 0 && j < columns; j++)
            x[j * FITS_ROWS + i] = 0;
    }
    return cleared;
}

/* The greatest magnitude in a column of a tile, with infinity and then NaN as the greatest: bits have the same order. */
DPFAST_CLONES static double fits_greatest(const double *x)
{
    fits_places top[4] = {0};
    int64_t greatest = 0;
    for (ptrdiff_t i = 0; i < FITS_ROWS; i += 4 * FITS_LANES)
        for (int k = 0; k < 4; k++) {
            fits_places size, more;
            memcpy(&size, x + i + k * FITS_LANES, sizeof size);
            size &= INT64_MAX;
            more = size > top[k];
            top[k] = (size & more) | (top[k] & ~more);
        }
    for (int k = 0; k < 4; k++)
        for (int j = 0; j < FITS_LANES; j++)
            greatest = top[k][j] > greatest ? top[k][j] : greatest;
    return dpfast_double((uint64_t)greatest);
}

/* The greatest magnitude of every column; returns whether all are finite. */
static int fits_sizes(const double *x, ptrdiff_t columns, double *sizes)
{
    int finite = 1;
    for (ptrdiff_t j = 0; j < columns; j++) {
        sizes[j] = fits_greatest(x + j * FITS_ROWS);
        finite &= sizes[j] <= DBL_MAX;
    }
    return finite;
}

/* Transpose rows of doubles into columns of a tile, in 4 x 4 blocks; four rows are fetched while the ones before the last
 * four are moved. */
DPFAST_CLONES static void fits_transpose(const char *data, ptrdiff_t stride, ptrdiff_t rows, ptrdiff_t columns,
                                         double *restrict out)
{
    ptrdiff_t i = 0;
    for (; i + FITS_LANES <= rows && columns >= FITS_LANES; i += FITS_LANES) {
        for (ptrdiff_t row = i + 8; row < i + 12; row++)
            for (ptrdiff_t j = 0; j < columns; j += 8)
                __builtin_prefetch(data + row * stride + 8 * j);
        for (ptrdiff_t j = 0;; j = j + 2 * FITS_LANES <= columns ? j + FITS_LANES : columns - FITS_LANES) {
            fits_lanes a, b, c, d;
            memcpy(&a, data + i * stride + 8 * j, sizeof a);
            memcpy(&b, data + (i + 1) * stride + 8 * j, sizeof b);
            memcpy(&c, data + (i + 2) * stride + 8 * j, sizeof c);
            memcpy(&d, data + (i + 3) * stride + 8 * j, sizeof d);
            fits_lanes ab = FITS_SHUFFLE(a, b, 0, 4, 2, 6), cd = FITS_SHUFFLE(c, d, 0, 4, 2, 6);
            fits_lanes ba = FITS_SHUFFLE(a, b, 1, 5, 3, 7), dc = FITS_SHUFFLE(c, d, 1, 5, 3, 7);
            double *to = out + j * FITS_ROWS + i;
            *(fits_lanes *)to = FITS_SHUFFLE(ab, cd, 0, 1, 4, 5);
            *(fits_lanes *)(to + FITS_ROWS) = FITS_SHUFFLE(ba, dc, 0, 1, 4, 5);
            *(fits_lanes *)(to + 2 * FITS_ROWS) = FITS_SHUFFLE(ab, cd, 2, 3, 6, 7);
            *(fits_lanes *)(to + 3 * FITS_ROWS) = FITS_SHUFFLE(ba, dc, 2, 3, 6, 7);
            if (j + FITS_LANES == columns)
                break;
        }
    }
    for (; i < rows; i++)
        for (ptrdiff_t j = 0; j < columns; j++)
            memcpy(out + j * FITS_ROWS + i, data + i * stride + 8 * j, sizeof *out);
}

/* Fetch rows start..stop - 1, as far as there are so many, into the second-level cache. */
static void fits_fetch_rows(const struct fits_design *design, ptrdiff_t start, ptrdiff_t stop)
{
    if (design->x.kind != SELECT_FLOAT64 || design->column_stride != sizeof(double))
        return;
    stop = stop < design->x.n ? stop : design->x.n;
    for (ptrdiff_t row = start; row < stop; row++)
        for (ptrdiff_t j = 0; j < design->columns; j += 8)
            __builtin_prefetch(design->x.data + row * design->x.stride + 8 * j, 0, 2);
}

/* Labels become twice the residual at beta = 0: 1 or -1. */
DPFAST_CLONES static void fits_labels(double *y, ptrdiff_t rows)
{
    for (ptrdiff_t i = 0; i < rows; i++)
        y[i] = y[i] > 0 ? 1.0 : y[i] <= 0 ? -1.0 : NAN;
}

/* The power of two above numbers up to `greatest`, after division by 2^exponent. */
static double fits_scale(double greatest, int exponent)
{
    return greatest > 0 ? ldexp(1.0, ilogb(greatest) + 1 - exponent) : 1.0;
}

DPFAST_CLONES static void fits_narrow(const double *restrict x, double factor, ptrdiff_t count, float *restrict out)
{
    for (ptrdiff_t i = 0; i < count; i++)
        out[i] = (float)(x[i] * factor);
}

/* The floats of one tile. */
static void fits_narrow_tile(struct fits_room *room, ptrdiff_t t)
{
    float *out = fits_pair(room, t / 2) + t % 2 * FITS_ROWS;
    for (ptrdiff_t j = 0; j < room->padded; j++)
        fits_narrow(fits_tile(room, t) + j * FITS_ROWS, 1 / room->scale[j], FITS_ROWS, out + j * FITS_PAIR);
}

/* Load rows start..stop - 1 into tiles, and with `single` also as floats; a row with a number that is not finite, or a
 * negative count, becomes zero and so does not change any sum. Returns the number of other rows; the exponent of the
 * response goes to `response`. */
static ptrdiff_t fits_load_rows(struct fits_room *room, const struct fits_design *design, ptrdiff_t start,
                                ptrdiff_t stop, int *response)
{
    const ptrdiff_t padded = room->padded, parameters = room->parameters;
    double *sizes = room->sizes, *greatest = sizes + padded + 1;
    ptrdiff_t used = 0;
    room->count = (stop - start + FITS_ROWS - 1) / FITS_ROWS;
    for (ptrdiff_t j = 0; j <= padded; j++)
        greatest[j] = 0;
    for (ptrdiff_t t = 0; t < room->count; t++) {
        double *tile = fits_tile(room, t), *y = tile + padded * FITS_ROWS;
        ptrdiff_t first = start + t * FITS_ROWS, rows = stop - first < FITS_ROWS ? stop - first : FITS_ROWS;
        ptrdiff_t filled = rows < FITS_ROWS ? 0 : parameters; /* columns without padding */
        memset(tile + filled * FITS_ROWS, 0, (padded + 1 - filled) * FITS_ROWS * sizeof *tile);
        select_load(&design->y, first, rows, y);
        if (design->intercept)
            for (ptrdiff_t i = 0; i < rows; i++)
                tile[i] = 1;
        if (design->x.kind == SELECT_FLOAT64 && design->column_stride == sizeof(double))
            fits_transpose(design->x.data + first * design->x.stride, design->x.stride, rows, design->columns,
                           tile + design->intercept * FITS_ROWS);
        else
            for (ptrdiff_t j = 0; j < design->columns; j++) {
                struct select_keys keys = design->x;
                keys.data += j * design->column_stride;
                select_load(&keys, first, rows, tile + (design->intercept + j) * FITS_ROWS);
            }
        if (design->model == FITS_LOGISTIC)
            fits_labels(y, rows);
        if (design->model == FITS_POISSON)
            for (ptrdiff_t i = 0; i < rows; i++)
                y[i] = y[i] >= 0 ? y[i] : NAN;
        used += rows;
        if (!fits_sizes(tile, padded + 1, sizes)) {
            used -= fits_clear(tile, padded + 1, rows);
            fits_sizes(tile, padded + 1, sizes);
        }
        for (ptrdiff_t j = 0; j <= padded; j++)
            greatest[j] = sizes[j] > greatest[j] ? sizes[j] : greatest[j];
        for (ptrdiff_t j = 0; t == 0 && j < padded; j++)
            room->scale[j] = fits_scale(sizes[j], 0);
        if (room->single)
            fits_narrow_tile(room, t);
    }
    for (ptrdiff_t j = 0; room->single && room->count % 2 && j < padded; j++)
        memset(fits_pair(room, room->count / 2) + j * FITS_PAIR + FITS_ROWS, 0, FITS_ROWS * sizeof(float));
    for (ptrdiff_t j = 0; j < parameters; j++) {
        room->exponent[j] = fits_exponent(greatest[j]);
        for (ptrdiff_t t = 0; room->exponent[j] && t < room->count; t++)
            fits_divide(fits_tile(room, t) + j * FITS_ROWS, FITS_ROWS, room->exponent[j]);
    }
    *response = design->model == FITS_LINEAR ? fits_exponent(greatest[padded]) : 0;
    for (ptrdiff_t t = 0; *response && t < room->count; t++)
        fits_divide(fits_tile(room, t) + padded * FITS_ROWS, FITS_ROWS, *response);
    return used;
}

#endif
