"""Private gradient descent for generalised linear models; serves dpfast/local/regression.py.

Each person computes a gradient at the coefficients after the previous reports, and reports it with the same words as
the randomisers of ``_directions`` or ``_bits``; the coefficients then move by a public step against the report. The
inner functions are in ``gradient.h``, the proof in docs/proofs/local-glm.md. Words are drawn one report after the
other, so results do not depend on how records are divided into calls. Coefficients are in units of 1 / radius.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport int64_t, uint64_t
from numpy.random cimport bitgen_t

from dpfast._kernels._samplers cimport unwrap

import numpy as np

from dpfast._kernels._bits import decide_ones, digits


cdef extern from "gradient.h" nogil:
    double dpfast_direction(uint64_t seed, double *out, Py_ssize_t d)
    double dpfast_dot(const double *a, const double *b, Py_ssize_t n)
    int dpfast_own_side(uint64_t word, double length)
    double dpfast_residual(int model, double t, double y, double clip)
    double dpfast_meant(const double *x, Py_ssize_t n, double inverse, double *room, const double **row, double *length)
    void dpfast_clamp(const double *x, double inverse, double *out, Py_ssize_t n)
    void dpfast_add_step(double *theta, double *total, const double *u, double factor, Py_ssize_t d)
    void dpfast_add_to(double *total, const double *theta, Py_ssize_t d)
    void dpfast_project(double *theta, double bound, Py_ssize_t d)

cdef extern from "bits.h" nogil:
    void dpfast_round_bits(bitgen_t *source, const double *x, Py_ssize_t n, double inverse, const uint64_t *words,
                           const uint64_t *one, uint64_t *out)
    void dpfast_flip_minority(bitgen_t *source, uint64_t *words, Py_ssize_t d, uint64_t threshold, uint64_t *out)
    Py_ssize_t dpfast_ones(const uint64_t *words, uint64_t threshold, const uint64_t *few, Py_ssize_t favoured,
                           const uint64_t *many, Py_ssize_t others)
    void dpfast_flip_weight(bitgen_t *source, uint64_t *mask, Py_ssize_t k, Py_ssize_t ones, uint64_t *out)
    void dpfast_subset(uint64_t seed, Py_ssize_t d, Py_ssize_t k, uint64_t *taken, int64_t *out)


cdef inline uint64_t _next(bitgen_t *source) noexcept nogil:
    return source.next_uint64(source.state)


cdef inline void _step_along(double *theta, double *total, const double *u, double norm, bint positive, double push,
                             double bound, Py_ssize_t d) noexcept nogil:
    """Add theta to total, move it by push against +u or -u, and project it to the ball."""
    dpfast_add_step(theta, total, u, -push / norm if positive else push / norm, d)
    dpfast_project(theta, bound, d)


cdef inline void _step_signs(double *theta, double *total, const int64_t *subset, const uint64_t *signs, Py_ssize_t k,
                             double push, double bound, Py_ssize_t d) noexcept nogil:
    """The same against k signs, of as many coordinates."""
    cdef Py_ssize_t j
    dpfast_add_to(total, theta, d)
    for j in range(k):
        theta[subset[j]] += -push if signs[j >> 6] >> (j & 63) & 1 else push
    dpfast_project(theta, bound, d)


def descend_halfspace(bit_generator, uint64_t threshold, int model, double clip, double inverse, double bound,
                      const double[:, ::1] x not None, const double[::1] y not None, const double[::1] push not None,
                      double[:, ::1] theta not None, double[:, ::1] total not None, uint64_t[::1] reports not None):
    """Move each row of theta by one private bit per person, in order; add theta to total before each move.

    **Law** over uniform words, three per person and repetition: a seed, which defines a direction u; a coin, which
    keeps with probability threshold 2**-64, exactly; one for rounding. All else is independent of x and y. The
    gradient, ``residual * row``, is rounded to the sphere of radius clip, and theta moves by `push` against the side of
    u on which it lies, kept or flipped; then theta is projected to the ball of radius `bound`. **Assumes** one column
    more of theta than of x with an intercept, as many without; consistent sizes; clip, bound and pushes between 2**-256
    and 2**256. `reports`, if not empty, receives those of ``_directions.randomize_halfspace``, in the order of people,
    then repetitions. **Cost** d normals, three products and four passes of d. **Reference** docs/proofs/local-glm.md.
    """
    cdef Py_ssize_t n = x.shape[0], features = x.shape[1], runs = theta.shape[0], d = theta.shape[1], i, r
    cdef bint intercept = d > features, keep_reports = reports.shape[0] > 0, side
    cdef double[::1] room = np.empty(features), u = np.empty(d + 1)
    cdef const double *row = NULL
    cdef double length, factor, norm, inner, predictor, residual
    cdef uint64_t seed, coin, rounding
    cdef bitgen_t *source = unwrap(bit_generator)
    if n == 0 or runs == 0:
        return
    with bit_generator.lock, nogil:
        for i in range(n):
            factor = dpfast_meant(&x[i, 0], features, inverse, &room[0], &row, &length)
            if intercept:
                length = sqrt((length * length + 1.0) / 2.0)
            for r in range(runs):
                seed, coin, rounding = _next(source), _next(source), _next(source)
                norm = dpfast_direction(seed >> 1, &u[0], d)
                inner = factor * dpfast_dot(&u[0], row, features)
                predictor = factor * dpfast_dot(&theta[r, 0], row, features)
                if intercept:
                    inner += u[features]
                    predictor += theta[r, features]
                residual = dpfast_residual(model, predictor, y[i], clip)
                inner *= residual
                side = inner >= 0.0 if dpfast_own_side(rounding, fabs(residual) * length) else inner <= 0.0
                side = side == (coin < threshold)
                if keep_reports:
                    reports[i * runs + r] = (seed & ~<uint64_t> 1) | <uint64_t> side
                _step_along(&theta[r, 0], &total[r, 0], &u[0], norm, side, push[i], bound, d)


def follow_directions(const uint64_t[:] reports not None, const double[::1] push not None, double bound,
                      double[::1] theta not None, double[::1] total not None):
    """The server's computation from the reports of `descend_halfspace`: the same theta and total, bit for bit."""
    cdef Py_ssize_t i, d = theta.shape[0]
    cdef double[::1] u = np.empty(d + 1)
    cdef double norm
    with nogil:
        for i in range(reports.shape[0]):
            norm = dpfast_direction(reports[i] >> 1, &u[0], d)
            _step_along(&theta[0], &total[0], &u[0], norm, reports[i] & 1, push[i], bound, d)


def descend_hypercube(bit_generator, uint64_t threshold, Py_ssize_t k, inside, outside, int model, double clip,
                      double inverse, double bound, const double[:, ::1] x not None, const double[::1] y not None,
                      const double[::1] push not None, double[:, ::1] theta not None, double[:, ::1] total not None,
                      uint64_t[:, ::1] reports not None):
    """Like `descend_halfspace`, with signs of k random coordinates of the gradient, in the cube of radius clip.

    **Law** that of ``_bits.randomize_threshold``, or of ``_bits.randomize_majority`` if `inside` is empty (then k =
    d), for the reports; each reported coordinate moves by `push` against its sign. **Assumes** as there and in
    `descend_halfspace`. `reports`, if not empty, receives them. **Cost** ceil(k / 4) + ceil(k / 64) + 1 to 3 words,
    further ones as there, and five passes of d. **Reference** docs/proofs/local-glm.md.
    """
    cdef Py_ssize_t n = x.shape[0], features = x.shape[1], runs = theta.shape[0], d = theta.shape[1], i, r, j, ones
    cdef bint keep_reports = reports.shape[0] > 0, majority = len(inside) == 0
    cdef Py_ssize_t seeds = k < d, lanes = (k + 3) // 4, length = (k + 63) // 64
    cdef Py_ssize_t width = seeds + lanes + 1 + (not majority) + length
    cdef double[::1] row = np.ones(d), chosen = np.empty(k)
    cdef double residual
    cdef const uint64_t[::1] one = np.uint64(1) << np.arange(64, dtype=np.uint64)
    cdef const uint64_t[::1] few = digits(inside or (1,)), many = digits(outside or (1,))
    cdef const uint64_t *few_digits = &few[0] if few.shape[0] else NULL
    cdef const uint64_t *many_digits = &many[0] if many.shape[0] else NULL
    cdef uint64_t[::1] words = np.empty(width, np.uint64), signs = np.empty(length, np.uint64)
    cdef uint64_t[::1] taken = np.zeros((d + 63) // 64, np.uint64)
    cdef int64_t[::1] subset = np.arange(k)
    cdef uint64_t *w
    cdef bitgen_t *source = unwrap(bit_generator)
    if n == 0 or runs == 0:
        return
    with bit_generator.lock, nogil:
        for i in range(n):
            dpfast_clamp(&x[i, 0], inverse, &row[0], features)
            for r in range(runs):
                for j in range(width):
                    words[j] = _next(source)
                residual = dpfast_residual(model, dpfast_dot(&theta[r, 0], &row[0], d), y[i], clip)
                if seeds:
                    dpfast_subset(words[0], d, k, &taken[0], &subset[0])
                for j in range(k):
                    chosen[j] = residual * row[subset[j]]
                w = &words[seeds]
                dpfast_round_bits(source, &chosen[0], k, 1.0, w, &one[0], &signs[0])
                w += lanes
                if majority:
                    dpfast_flip_minority(source, w, d, threshold, &signs[0])
                else:
                    ones = dpfast_ones(w, threshold, few_digits, few.shape[0], many_digits, many.shape[0])
                    if ones < 0:
                        with gil:
                            ones = decide_ones(bit_generator, w[0] < threshold, w[1], inside, outside)
                    dpfast_flip_weight(source, w + 2, k, ones, &signs[0])
                if keep_reports:
                    if seeds:
                        reports[i * runs + r, 0] = words[0]
                    for j in range(length):
                        reports[i * runs + r, seeds + j] = signs[j]
                _step_signs(&theta[r, 0], &total[r, 0], &subset[0], &signs[0], k, push[i], bound, d)


def follow_signs(const uint64_t[:, ::1] reports not None, Py_ssize_t k, const double[::1] push not None, double bound,
                 double[::1] theta not None, double[::1] total not None):
    """The server's computation from the reports of `descend_hypercube`: the same theta and total, bit for bit."""
    cdef Py_ssize_t i, d = theta.shape[0], seeds = k < d
    cdef uint64_t[::1] taken = np.zeros((d + 63) // 64, np.uint64)
    cdef int64_t[::1] subset = np.arange(k)
    with nogil:
        for i in range(reports.shape[0]):
            if seeds:
                dpfast_subset(reports[i, 0], d, k, &taken[0], &subset[0])
            _step_signs(&theta[0], &total[0], &subset[0], &reports[i, seeds], k, push[i], bound, d)
