"""Choice among scored candidates; serves dpfast/mechanisms/selection.py. The passes over the scores are in choice.h.

A candidate of score s has the exponent y = rate (top - s), top the largest score: y >= 0. NaN counts as 0; a score
equal to the largest has exponent 0, infinite or not; any other has exponent inf where one of the two is infinite.

`scores` and `rate` give the exponents as doubles; ``exponents[i]`` is the exact one, a Fraction or inf, and is used
only if doubles do not decide. docs/proofs/selection.md
"""

from libc.math cimport INFINITY, isinf
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from numpy.random cimport bitgen_t

from dpfast._kernels._samplers cimport unwrap

from fractions import Fraction

import numpy as np

from dpfast._kernels._samplers import _words, next_word


cdef extern from "choice.h":
    enum: CHOICE_BLOCK
    double choice_exponent(double score, double top, double rate) noexcept nogil
    double choice_largest(const double *scores, Py_ssize_t n) noexcept nogil
    void choice_totals(const double *scores, Py_ssize_t n, double top, double rate, double *totals) noexcept nogil
    void choice_cumulative(const double *scores, Py_ssize_t count, double top, double rate, double before,
                           double *cumulative) noexcept nogil
    Py_ssize_t choice_locate(uint64_t word, const double *scores, Py_ssize_t n, double top, double rate,
                             const double *totals, double *cumulative, bint filled) noexcept nogil
    void choice_flip(const uint64_t *words, const double *scores, uint8_t *coins, Py_ssize_t n, double top,
                     double rate) noexcept nogil
    uint64_t dpfast_uniform(bitgen_t *source, uint64_t last) noexcept nogil


ctypedef fused integer:
    int64_t
    uint64_t

cdef Py_ssize_t WORDS = 2 ** 16  # words drawn at a time for the coins


cdef Py_ssize_t draw_choice(bitgen_t *source, object bit_generator, const double *scores, Py_ssize_t n,
                            double rate) except -1 nogil:
    cdef Py_ssize_t blocks = (n + CHOICE_BLOCK - 1) // CHOICE_BLOCK, chosen
    cdef double *room = <double *> malloc((blocks + CHOICE_BLOCK) * sizeof(double))
    cdef double top
    cdef uint64_t word
    try:
        if room == NULL:
            raise MemoryError
        top = choice_largest(scores, n)
        choice_totals(scores, n, top, rate, room)
        word = source.next_uint64(source.state)
        chosen = choice_locate(word, scores, n, top, rate, room, room + blocks, False)
        if chosen < 0:
            with gil:
                chosen = _choose_exactly(bit_generator, word, scores, n, top, rate)
        return chosen
    finally:
        free(room)


cdef Py_ssize_t _choose_exactly(object bit_generator, uint64_t word, const double *scores, Py_ssize_t n, double top,
                                double rate) except -1:
    from dpfast._kernels._balls import choose_exponent
    cdef Py_ssize_t i
    exact = []
    for i in range(n):
        score = scores[i] if scores[i] == scores[i] else 0.0
        if score == top:
            exact.append(Fraction(0))
        else:
            exact.append(INFINITY if isinf(score) or isinf(top) else Fraction(rate) * (Fraction(top) - Fraction(score)))
    return choose_exponent(word, lambda: next_word(bit_generator), exact)


def largest(const double[::1] scores not None):
    """The largest score, NaN counting as 0.

    **Law** deterministic. **Assumes** at least one score. **Cost** one pass.
    """
    cdef double top
    with nogil:
        top = choice_largest(&scores[0], scores.shape[0])
    return top


def below_largest(const integer[::1] scores not None):
    """The scores minus the largest one, in doubles.

    **Law** deterministic; one rounding each: the differences are exact modulo 2**64, because none is negative.
    **Assumes** at least one score.
    """
    cdef Py_ssize_t i, n = scores.shape[0]
    cdef integer top = scores[0]
    out = np.empty(n)
    cdef double[::1] view = out
    with nogil:
        for i in range(1, n):
            top = max(top, scores[i])
        for i in range(n):
            view[i] = -<double> (<uint64_t> top - <uint64_t> scores[i])
    return out


def exponents(const double[::1] scores not None, double rate):
    """The exponents of the candidates in doubles, inf from 2**60 on.

    **Law** deterministic; relative error below 2**-51. **Assumes** at least one score, 2**-900 <= rate <= 2**900.
    """
    cdef Py_ssize_t i
    cdef double top = largest(scores), y
    out = np.empty(scores.shape[0])
    cdef double[::1] view = out
    for i in range(scores.shape[0]):
        y = choice_exponent(scores[i], top, rate)
        view[i] = y if y < 2.0 ** 60 else INFINITY
    return out


def fill_choice(bit_generator, const double[::1] scores not None, double rate, exponents, int64_t[::1] out not None, *,
                bint exact=False):
    """Fill with independent choices of the exponential mechanism: P(i) = exp(-y_i) / sum_j exp(-y_j).

    **Law** exact. **Assumes** at least one score, 2**-900 <= rate <= 2**900, `scores` and `rate` right to 2**-53,
    relative to each exponent. **Cost** one word each; one pass for the largest score and one for the exponentials,
    whose results are kept (8 bytes per candidate) if there is more than one choice to fill; ball arithmetic on all
    candidates with probability below len(scores) * 2**-38. **Reference** McSherry and Talwar 2007.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t n = scores.shape[0], blocks = (n + CHOICE_BLOCK - 1) // CHOICE_BLOCK, i, b, start
    cdef Py_ssize_t draws = out.shape[0], undecided = 0
    cdef bint many = draws > 1
    cdef double[::1] room = np.empty(blocks + (n if many else min(n, <Py_ssize_t> CHOICE_BLOCK)))
    cdef double *totals = &room[0]
    cdef double *cumulative = &room[blocks]
    cdef uint64_t[::1] words = np.empty(draws, np.uint64)
    cdef double top
    if draws == 0:
        return
    with nogil:
        top = choice_largest(&scores[0], n)
        choice_totals(&scores[0], n, top, rate, totals)
        if many:
            for b in range(blocks):
                start = b * CHOICE_BLOCK
                choice_cumulative(&scores[start], min(n - start, <Py_ssize_t> CHOICE_BLOCK), top, rate,
                                  totals[b - 1] if b else 0.0, &cumulative[start])
    with bit_generator.lock, nogil:
        for i in range(draws):
            words[i] = source.next_uint64(source.state)
    with nogil:
        for i in range(draws):
            out[i] = choice_locate(words[i], &scores[0], n, top, rate, totals, cumulative, many)
            undecided += out[i] < 0
    if undecided or exact:
        from dpfast._kernels._balls import choose_exponent
        for i in range(draws):
            if exact or out[i] < 0:
                out[i] = choose_exponent(words[i], lambda: next_word(bit_generator), exponents)


def fill_permute_and_flip(bit_generator, const double[::1] scores not None, double rate, exponents,
                          int64_t[::1] out not None, *, bint exact=False):
    """Fill with independent choices of permute-and-flip: uniform among the candidates whose exp(-y_i) coin is 1.

    **Law** exact: coins do not depend on the order in which they are flipped, so the first 1 in a random order is
    uniform among all ones. **Assumes** as `fill_choice`. **Cost** a pass for the largest score; for each choice a pass
    with one word for each candidate, in order, and one word at the end, further ones with small probability; ball
    arithmetic on one candidate with probability below len(scores) * 2**-46. **Reference** McKenna and Sheldon 2020,
    algorithm 1.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t n = scores.shape[0], i, j = 0, start, count, undecided
    cdef uint8_t[::1] coins = np.empty(n, np.uint8)
    cdef uint64_t[::1] words
    cdef uint64_t chosen
    cdef double top
    cdef int64_t heads
    with nogil:
        top = choice_largest(&scores[0], n)
    for i in range(out.shape[0]):
        heads = 0
        for start in range(0, n, WORDS):
            count = min(n - start, WORDS)
            words, undecided = _words(bit_generator, count), 0
            with nogil:
                choice_flip(&words[0], &scores[start], &coins[start], count, top, rate)
                for j in range(start, start + count):
                    heads += coins[j] & 1
                    undecided += coins[j] >> 1
            if undecided or exact:
                heads += _complete(bit_generator, words, exponents, coins[start:start + count], start, exact)
        with bit_generator.lock, nogil:
            chosen = dpfast_uniform(source, <uint64_t> heads - 1)
        with nogil:
            for j in range(n):
                if coins[j]:
                    if chosen == 0:
                        break
                    chosen -= 1
        out[i] = j


cdef Py_ssize_t _complete(object bit_generator, uint64_t[::1] words, object exponents, uint8_t[::1] coins,
                          Py_ssize_t start, bint exact) except? -1:
    """Decide the undecided coins, or all coins, in ball arithmetic; returns the number of new ones."""
    from dpfast._kernels._balls import below_exp_neg
    cdef Py_ssize_t i, more = 0
    for i in range(coins.shape[0]):
        if exact or coins[i] == 2:
            more -= coins[i] & 1
            coins[i] = below_exp_neg(words[i], lambda: next_word(bit_generator), exponents[start + i])
            more += coins[i]
    return more
