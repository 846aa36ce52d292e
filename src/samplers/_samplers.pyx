"""Exact draws and array fills; serves dpfast/noise.py, dpfast/laws/ and every mechanism.

A fill draws one word per entry, decides it in doubles where a proved bound allows (draws.h, certified.h), and passes
the other entries, about one in 2**20, to ball arithmetic (_balls.py) together with their words. ``exact=True`` sends
every entry there; for the same words the output is the same, bit for bit.

From a scale of 2**34 on doubles would leave more and more draws open. There a draw of a scale below 2**29, which is the
scale halved, is refined by one more word, in integers: docs/proofs/large-scales.md.

The number of words depends on the values drawn (further words for undecided entries, rejected words of a uniform draw),
so timing is not part of any guarantee.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from numpy.random cimport bitgen_t

from dpfast._kernels._secure cimport secure_word

import threading
from contextlib import nullcontext
from fractions import Fraction
from math import isqrt

import numpy as np

from dpfast._kernels._secure import SecureBitGenerator

# The lock of bit generators of NumPy before 2.4: a thread that holds it waits for ever if it enters it again.
ONCE = type(threading.Lock())
NOTHING = nullcontext()


cdef extern from "draws.h":
    int64_t UNDECIDED "DPFAST_UNDECIDED"
    uint64_t dpfast_uniform(bitgen_t *source, uint64_t last) noexcept nogil
    int dpfast_bernoulli(bitgen_t *source, uint64_t numerator, uint64_t denominator) noexcept nogil
    void dpfast_geometric(const uint64_t *words, int64_t *out, Py_ssize_t n, double scale) noexcept nogil
    int64_t dpfast_round_exponential(uint64_t word, double scale, double offset) noexcept nogil
    void dpfast_levels(const uint64_t *words, int64_t *out, Py_ssize_t n, double scale, double offset) noexcept nogil
    int64_t dpfast_on_level(bitgen_t *source, uint64_t word, int64_t level, uint64_t s, uint64_t r) noexcept nogil
    void dpfast_rounded_laplace(const uint64_t *words, int64_t *out, Py_ssize_t n, double scale) noexcept nogil
    int64_t dpfast_rounded_student3(uint64_t word, double scale) noexcept nogil
    double dpfast_student_tail(double c) noexcept nogil
    int64_t dpfast_below_exp_neg(uint64_t word, double gamma) noexcept nogil
    int dpfast_halvings(double scale) noexcept nogil
    double dpfast_coarse(double scale, int halvings) noexcept nogil
    bint dpfast_doubtful(uint64_t word, int64_t coarse) noexcept nogil
    Py_ssize_t dpfast_count_doubtful(const uint64_t *words, const int64_t *coarse, Py_ssize_t n) noexcept nogil
    int64_t dpfast_refined(uint64_t word, int64_t coarse, int halvings, bint symmetric) noexcept nogil
    void dpfast_refine(const uint64_t *words, int64_t *out, Py_ssize_t n, int halvings, bint symmetric) noexcept nogil
    int64_t dpfast_below_exp_neg_within(uint64_t word, double gamma, double error) noexcept nogil
    double dpfast_exp_neg(double y) noexcept nogil
    double dpfast_one_minus_exp_neg(double y) noexcept nogil
    double dpfast_neg_log_word(uint64_t word, double *two_to_minus_k) noexcept nogil

cdef extern from "normal.h":
    void dpfast_rounded_gaussian(const uint64_t *words, int64_t *out, Py_ssize_t n, double sigma) noexcept nogil
    double dpfast_normal_of_word(uint64_t word) noexcept nogil


cdef enum Law:
    GEOMETRIC, LAPLACE, GAUSSIAN


cdef int c_api_version() noexcept nogil:
    return C_API_VERSION


cdef bitgen_t *unwrap(object bit_generator) except NULL:
    return <bitgen_t *> PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")


cdef uint64_t draw_uniform(bitgen_t *source, uint64_t last) noexcept nogil:
    return dpfast_uniform(source, last)


cdef bint draw_bernoulli(bitgen_t *source, uint64_t numerator, uint64_t denominator) noexcept nogil:
    return dpfast_bernoulli(source, numerator, denominator)


cdef bint draw_bernoulli_dyadic(bitgen_t *source, uint64_t threshold) noexcept nogil:
    return source.next_uint64(source.state) < threshold


cdef int draw_bernoulli_exp(bitgen_t *source, object bit_generator, double gamma) except -1 nogil:
    cdef uint64_t word = source.next_uint64(source.state)
    cdef int64_t decision = dpfast_below_exp_neg(word, gamma)
    if decision == UNDECIDED:
        with gil:
            from dpfast._kernels._balls import below_exp_neg
            decision = below_exp_neg(word, lambda: next_word(bit_generator), gamma)
    return <int> decision


cdef int64_t draw_geometric(bitgen_t *source, object bit_generator,
                            double scale) except? -0x7FFFFFFFFFFFFFFF nogil:
    cdef int halvings = dpfast_halvings(scale)
    cdef double coarse = dpfast_coarse(scale, halvings)
    cdef uint64_t word = source.next_uint64(source.state)
    cdef int64_t out
    dpfast_geometric(&word, &out, 1, coarse)
    if out == UNDECIDED:
        with gil:
            out = _completed(bit_generator, word, coarse, False)
    return _draw_refined(source, bit_generator, GEOMETRIC, out, coarse, halvings) if halvings else out


cdef int64_t draw_rounded_laplace(bitgen_t *source, object bit_generator,
                                  double scale) except? -0x7FFFFFFFFFFFFFFF nogil:
    cdef int halvings = dpfast_halvings(scale)
    cdef double coarse = dpfast_coarse(scale, halvings)
    cdef uint64_t word = source.next_uint64(source.state)
    cdef int64_t out
    dpfast_rounded_laplace(&word, &out, 1, coarse)
    if out == UNDECIDED:
        with gil:
            out = _completed(bit_generator, word, coarse, True)
    return _draw_refined(source, bit_generator, LAPLACE, out, coarse, halvings) if halvings else out


cdef int64_t draw_rounded_gaussian(bitgen_t *source, object bit_generator,
                                   double sigma) except? -0x7FFFFFFFFFFFFFFF nogil:
    cdef int halvings = dpfast_halvings(sigma)
    cdef double coarse = dpfast_coarse(sigma, halvings)
    cdef uint64_t word = source.next_uint64(source.state)
    cdef int64_t out
    dpfast_rounded_gaussian(&word, &out, 1, coarse)
    if out == UNDECIDED:
        with gil:
            out = _completed_gaussian(bit_generator, word, coarse)
    return _draw_refined(source, bit_generator, GAUSSIAN, out, coarse, halvings) if halvings else out


cdef int64_t _draw_refined(bitgen_t *source, object bit_generator, Law law, int64_t draw, double coarse,
                           int halvings) except? -0x7FFFFFFFFFFFFFFF nogil:
    """The draw of a scale from that of `coarse`, which is the scale halved."""
    cdef uint64_t word = source.next_uint64(source.state)
    if dpfast_doubtful(word, draw):
        with gil:
            return _settled(bit_generator, law, word, draw, coarse, halvings)
    return dpfast_refined(word, draw, halvings, law != GEOMETRIC)


def fill_words(bit_generator, uint64_t[::1] out not None):
    """Fill with uniform 64-bit words, in the generator's order.

    **Law** uniform words. **Cost** one word each.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t i
    if out.shape[0] > 256 and isinstance(bit_generator, SecureBitGenerator):
        bit_generator.fill(out)  # the same words, three times as fast if they are many
        return
    with bit_generator.lock, nogil:
        for i in range(out.shape[0]):
            out[i] = source.next_uint64(source.state)


def _words(bit_generator, Py_ssize_t n):
    words = np.empty(n, np.uint64)
    fill_words(bit_generator, words)
    return words


def in_one_piece(bit_generator):
    """The lock of a generator, to hold for all words of a release that several kernels draw.

    With a seeded generator of NumPy before 2.4, nothing is held: threads that share it may take each other's words.
    """
    lock = bit_generator.lock
    return NOTHING if type(lock) is ONCE else lock


def next_word(bit_generator):
    """One more word, for a decision that 64 bits of a uniform number do not settle; mostly with the lock held."""
    cdef bitgen_t *source
    cdef uint64_t word
    if type(bit_generator) is SecureBitGenerator:
        return secure_word(bit_generator)
    source = unwrap(bit_generator)
    with in_one_piece(bit_generator):
        word = source.next_uint64(source.state)
    return word


def fill_uniform(bit_generator, uint64_t last, uint64_t[::1] out not None):
    """Fill with integers uniform on 0..last, `last` included.

    **Law** exactly uniform. **Cost** one word each, a further one with probability below (last + 1) / 2**64.
    **Reference** Lemire 2019, algorithm 5.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t i
    with bit_generator.lock, nogil:
        for i in range(out.shape[0]):
            out[i] = dpfast_uniform(source, last)


def fill_bernoulli(bit_generator, uint64_t numerator, uint64_t denominator, uint8_t[::1] out not None):
    """Fill with 1 with probability numerator / denominator, else 0.

    **Law** exactly Bernoulli. **Assumes** 0 <= numerator <= denominator, denominator > 0. **Cost** one word each,
    a further one with probability 2**-64.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t i
    with bit_generator.lock, nogil:
        for i in range(out.shape[0]):
            out[i] = dpfast_bernoulli(source, numerator, denominator)


def fill_bernoulli_dyadic(bit_generator, uint64_t threshold, uint8_t[::1] out not None):
    """Fill with 1 with probability threshold / 2**64, else 0.

    **Law** exactly Bernoulli. **Cost** one word each, always.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t i
    with bit_generator.lock, nogil:
        for i in range(out.shape[0]):
            out[i] = draw_bernoulli_dyadic(source, threshold)


def fill_bernoulli_exp(bit_generator, gamma, uint8_t[::1] out not None, *, bint exact=False):
    """Fill with 1 with probability exp(-gamma), else 0.

    **Law** exactly Bernoulli; gamma a float or Fraction, with its exact value. **Assumes** gamma finite and >= 0.
    **Cost** one word each, further ones with probability 2**-64; ball arithmetic with probability below 2**-46.
    """
    cdef uint64_t[::1] words = _words(bit_generator, out.shape[0])
    cdef double rounded = float(gamma)
    cdef Py_ssize_t i, undecided = 0
    cdef int64_t decision
    with nogil:
        for i in range(out.shape[0]):
            decision = dpfast_below_exp_neg(words[i], rounded)
            undecided += decision == UNDECIDED
            out[i] = 2 if decision == UNDECIDED else decision
    if undecided or exact:
        from dpfast._kernels._balls import below_exp_neg
        for i in range(out.shape[0]):
            if exact or out[i] == 2:
                out[i] = below_exp_neg(words[i], lambda: next_word(bit_generator), gamma)


cdef object _complete(bit_generator, uint64_t[::1] words, int64_t[::1] out, scale, bint symmetric, bint exact):
    """Decide the undecided entries in ball arithmetic."""
    cdef Py_ssize_t i
    for i in range(out.shape[0]):
        if exact or out[i] == UNDECIDED:
            out[i] = _completed(bit_generator, words[i], scale, symmetric)


cdef int64_t _completed(object bit_generator, uint64_t word, object scale, bint symmetric) except? -1:
    """The value of a word, in ball arithmetic."""
    from dpfast._kernels._balls import floor_exponential
    offset = Fraction(1, 2) if symmetric else Fraction(0)
    magnitude = floor_exponential(word, lambda: next_word(bit_generator), scale, offset)
    return -magnitude if symmetric and word & 1 else magnitude


cdef int64_t _completed_gaussian(object bit_generator, uint64_t word, object sigma) except? -1:
    """The value of a word under the rounded Gaussian law, in ball arithmetic."""
    from dpfast._kernels._balls import round_gaussian
    magnitude = round_gaussian(word, lambda: next_word(bit_generator), sigma)
    return -magnitude if word & 1 else magnitude


cdef int64_t _completed_student3(object bit_generator, uint64_t word, object scale) except? -1:
    """The value of a word under the rounded law of Student's t, in ball arithmetic."""
    from dpfast._kernels._balls import round_student3
    magnitude = round_student3(word, lambda: next_word(bit_generator), scale)
    return -magnitude if word & 1 else magnitude


cdef object _coarse(object scale, int halvings):
    """An exact scale, halved: by an object, as a power of C integers would be a double, and so would the result."""
    cdef object one = 1
    return scale / (one << halvings) if halvings else scale


cdef int64_t _settled(object bit_generator, Law law, uint64_t word, int64_t draw, object coarse,
                      int halvings) except? -0x7FFFFFFFFFFFFFFF:
    """The draw that a word makes of one of a scale that is halved, in ball arithmetic."""
    from dpfast._kernels import _scale_balls
    refined = (_scale_balls.refined_geometric, _scale_balls.refined_laplace, _scale_balls.refined_gaussian)[<int> law]
    return refined(draw, word, lambda: next_word(bit_generator), coarse, halvings)


cdef int _refine(bit_generator, Law law, int64_t[::1] out, object coarse, int halvings, bint exact) except -1:
    """Refine draws of a scale that is halved by a word each."""
    cdef uint64_t[::1] words = _words(bit_generator, out.shape[0])
    cdef Py_ssize_t i, n = out.shape[0]
    cdef bint open
    if n == 0:
        return 0
    with nogil:
        open = exact or dpfast_count_doubtful(&words[0], &out[0], n) > 0
        if not open:
            dpfast_refine(&words[0], &out[0], n, halvings, law != GEOMETRIC)
    if open:
        for i in range(n):
            if exact or dpfast_doubtful(words[i], out[i]):
                out[i] = _settled(bit_generator, law, words[i], out[i], coarse, halvings)
            else:
                out[i] = dpfast_refined(words[i], out[i], halvings, law != GEOMETRIC)
    return 0


cdef Py_ssize_t _count_undecided(const int64_t[::1] out) noexcept nogil:
    cdef Py_ssize_t i, count = 0
    for i in range(out.shape[0]):
        count += out[i] == UNDECIDED
    return count


def fill_geometric(bit_generator, scale, int64_t[::1] out not None, *, bint exact=False):
    """Fill with floor(scale * E), E standard exponential: P(k) = (1 - e**(-1/scale)) e**(-k/scale), k = 0, 1, ...

    **Law** exact, saturated at 2**63 - 1; scale a float or Fraction, with its exact value. **Assumes** 0 < scale <=
    2**56. **Cost** one word each; ball arithmetic with probability about scale * 2**-47. From a scale of 2**34 on two
    words; ball arithmetic with probability about 2**-18.
    """
    cdef uint64_t[::1] words = _words(bit_generator, out.shape[0])
    cdef int halvings = dpfast_halvings(scale)
    cdef object coarse = _coarse(scale, halvings)
    cdef double rounded = coarse
    cdef Py_ssize_t undecided = 0, n = out.shape[0]
    if n:
        with nogil:
            dpfast_geometric(&words[0], &out[0], n, rounded)
            undecided = _count_undecided(out)
    if undecided or exact:
        _complete(bit_generator, words, out, coarse, False, exact)
    if halvings:
        _refine(bit_generator, GEOMETRIC, out, coarse, halvings, exact)


def fill_rounded_laplace(bit_generator, scale, int64_t[::1] out not None, *, bint exact=False):
    """Fill with round(scale * L), L standard Laplace: P(0) = 1 - e**(-1/2s), P(z) = e**(-|z|/s) sinh(1/2s), s = scale.

    **Law** exact, saturated at +-(2**63 - 1); scale a float or Fraction, with its exact value. **Assumes** 0 <
    scale <= 2**56. **Cost** as `fill_geometric`. **Reference** docs/proofs/rounded-laplace.md,
    docs/proofs/large-scales.md.
    """
    cdef uint64_t[::1] words = _words(bit_generator, out.shape[0])
    cdef int halvings = dpfast_halvings(scale)
    cdef object coarse = _coarse(scale, halvings)
    cdef double rounded = coarse
    cdef Py_ssize_t undecided = 0, n = out.shape[0]
    if n:
        with nogil:
            dpfast_rounded_laplace(&words[0], &out[0], n, rounded)
            undecided = _count_undecided(out)
    if undecided or exact:
        _complete(bit_generator, words, out, coarse, True, exact)
    if halvings:
        _refine(bit_generator, LAPLACE, out, coarse, halvings, exact)


def fill_rounded_student3(bit_generator, scale, int64_t[::1] out not None, *, bint exact=False):
    """Fill with round(scale * T), T Student's t with 3 degrees of freedom.

    P(|T| > t) = 1 - (2 / pi) (a + sin a cos a), tan a = t / sqrt(3); P(|Z| >= k) = P(|T| > (k - 1/2) / scale).

    **Law** exact, saturated at +-(2**63 - 1); scale a float or Fraction, with its exact value. **Assumes** 0 <
    scale <= 2**56. **Cost** one word each; ball arithmetic with probability about scale * 2**-42.
    **Reference** docs/proofs/rounded-student.md.
    """
    cdef uint64_t[::1] words = _words(bit_generator, out.shape[0])
    cdef double rounded = float(scale)
    cdef Py_ssize_t i, undecided
    with nogil:
        for i in range(out.shape[0]):
            out[i] = dpfast_rounded_student3(words[i], rounded)
        undecided = _count_undecided(out)
    if undecided or exact:
        for i in range(out.shape[0]):
            if exact or out[i] == UNDECIDED:
                out[i] = _completed_student3(bit_generator, words[i], scale)


def fill_rounded_gaussian(bit_generator, sigma, int64_t[::1] out not None, *, bint exact=False):
    """Fill with round(sigma * Z), Z standard normal: P(|K| >= k) = P(|Z| > (k - 1/2) / sigma), k >= 1.

    **Law** exact, saturated at +-(2**63 - 1); sigma a float or Fraction, with its exact value. **Assumes** 0 < sigma
    <= 2**56. **Cost** one word each; ball arithmetic with probability about sigma * 2**-48. From a sigma of 2**34 on
    two words; ball arithmetic with probability about 2**-19. **Reference** docs/proofs/rounded-gaussian.md,
    docs/proofs/large-scales.md.
    """
    cdef uint64_t[::1] words = _words(bit_generator, out.shape[0])
    cdef int halvings = dpfast_halvings(sigma)
    cdef object coarse = _coarse(sigma, halvings)
    cdef double rounded = coarse
    cdef Py_ssize_t i, undecided = 0, n = out.shape[0]
    if n:
        with nogil:
            dpfast_rounded_gaussian(&words[0], &out[0], n, rounded)
            undecided = _count_undecided(out)
    if undecided or exact:
        for i in range(n):
            if exact or out[i] == UNDECIDED:
                out[i] = _completed_gaussian(bit_generator, words[i], coarse)
    if halvings:
        _refine(bit_generator, GAUSSIAN, out, coarse, halvings, exact)


def fill_rounded_gaussians(bit_generator, sigmas, int64_t[:, ::1] out not None, *, bint exact=False):
    """Fill each row with independent rounded Gaussians, by `fill_rounded_gaussian`, entry j with sigmas[j].

    **Law** exact; sigmas a sequence. **Assumes**, **Cost** and **Reference** as `fill_rounded_gaussian`; the words that
    refine come at the end, column by column.
    """
    cdef Py_ssize_t i, j, n = out.shape[0], d = out.shape[1], undecided = 0
    cdef uint64_t[::1] words = _words(bit_generator, n * d)
    cdef list halvings = [dpfast_halvings(sigma) for sigma in sigmas]
    cdef list coarse = [_coarse(sigma, times) for sigma, times in zip(sigmas, halvings, strict=True)]
    cdef double[::1] rounded = np.array([float(sigma) for sigma in coarse])
    cdef uint64_t[::1] column = np.empty(n, np.uint64)
    cdef int64_t[::1] drawn = np.empty(n, np.int64)
    if rounded.shape[0] != d:
        raise ValueError("a sigma for each entry of a row")
    if n:
        with nogil:
            for j in range(d):
                for i in range(n):
                    column[i] = words[i * d + j]
                dpfast_rounded_gaussian(&column[0], &drawn[0], n, rounded[j])
                for i in range(n):
                    out[i, j] = drawn[i]
                    undecided += drawn[i] == UNDECIDED
    if undecided or exact:
        for i in range(n):
            for j in range(d):
                if exact or out[i, j] == UNDECIDED:
                    out[i, j] = _completed_gaussian(bit_generator, words[i * d + j], coarse[j])
    for j in range(d):
        if halvings[j]:
            drawn[:] = out[:, j]
            _refine(bit_generator, GAUSSIAN, drawn, coarse[j], halvings[j], exact)
            out[:, j] = drawn


def fill_discrete_laplace(bit_generator, scale, int64_t[::1] out not None, *, bint exact=False):
    """Fill with the difference of two geometrics: P(z) = tanh(1/2s) e**(-|z|/s), s = scale.

    **Law** exact, each geometric saturated at 2**63 - 1. **Assumes** 0 < scale <= 2**56. **Cost** twice that of
    `fill_geometric`. **Reference** docs/proofs/discrete-laplace.md.
    """
    cdef int64_t[::1] second = np.empty(out.shape[0], np.int64)
    cdef Py_ssize_t i
    fill_geometric(bit_generator, scale, out, exact=exact)
    fill_geometric(bit_generator, scale, second, exact=exact)
    with nogil:
        for i in range(out.shape[0]):
            out[i] -= second[i]


def fill_discrete_gaussian(bit_generator, variance, int64_t[::1] out not None, *, bint exact=False):
    """Fill with P(z) proportional to exp(-z**2 / (2 variance)) on the integers.

    A discrete Laplace draw z of scale t = floor(sqrt(variance)) + 1 is kept with probability exp(-gamma), where gamma
    is (|z| - variance / t)**2 / (2 variance).

    **Law** exact; variance an int or Fraction. **Assumes** 0 < variance <= 2**80. **Cost** about five words each; ball
    arithmetic with probability about sqrt(variance) * 2**-46.
    **Reference** Canonne, Kamath and Steinke 2020, algorithm 3; docs/proofs/secure-aggregation.md.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef object ratio = Fraction(variance)
    cdef object level = isqrt(ratio.numerator // ratio.denominator) + 1
    cdef double t = float(level), middle = float(ratio / level), inverse = float(1 / (2 * ratio)), gamma
    cdef int64_t z, decision
    cdef uint64_t word
    cdef Py_ssize_t i
    with bit_generator.lock, nogil:
        for i in range(out.shape[0]):
            while True:
                z = draw_geometric(source, bit_generator, t) - draw_geometric(source, bit_generator, t)
                word = source.next_uint64(source.state)
                gamma = <double> (z if z > 0 else -z) - middle
                gamma = gamma * gamma * inverse
                # (1 + gamma) 2**-50 bounds the absolute error of the difference, which loses digits near the middle
                decision = UNDECIDED if exact else dpfast_below_exp_neg_within(word, gamma, (1.0 + gamma) * 2.0**-50)
                if decision == UNDECIDED:
                    with gil:
                        decision = _keeps_gaussian(bit_generator, word, z, ratio, level)
                if decision:
                    break
            out[i] = z


cdef int64_t _keeps_gaussian(object bit_generator, uint64_t word, int64_t z, object variance, object t) except -1:
    """Whether a word keeps the proposal z of a discrete Gaussian, in ball arithmetic."""
    from dpfast._kernels._balls import below_exp_neg
    return below_exp_neg(word, lambda: next_word(bit_generator), (abs(z) - variance / t) ** 2 / (2 * variance))


def one_discrete_laplace(bit_generator, scale, rounded=None):
    """One draw of `fill_discrete_laplace`, from the same words, without arrays; `rounded` is float(scale), if known.

    **Law**, **Assumes**: as there. **Cost** 0.2 us.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef int64_t pair[2]
    cdef double near = float(scale) if rounded is None else rounded
    with bit_generator.lock:  # until the end: a release takes its words in one piece
        pair[0] = _geometric_of(source, bit_generator, scale, near)
        pair[1] = _geometric_of(source, bit_generator, scale, near)
        return pair[0] - pair[1]


def one_geometric(bit_generator, scale):
    """One draw of `fill_geometric`, from the same words, without arrays.

    **Law**, **Assumes**: as there. **Cost** 0.1 us.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    with bit_generator.lock:
        return _geometric_of(source, bit_generator, scale, float(scale))


cdef int64_t _geometric_of(bitgen_t *source, object bit_generator, object scale,
                           double rounded) except? -0x7FFFFFFFFFFFFFFF:
    """A geometric draw; `rounded` is float(scale)."""
    cdef int halvings = dpfast_halvings(rounded)
    cdef uint64_t word = source.next_uint64(source.state)
    cdef int64_t out
    dpfast_geometric(&word, &out, 1, dpfast_coarse(rounded, halvings))
    if out == UNDECIDED:
        out = _completed(bit_generator, word, _coarse(scale, halvings), False)
    if halvings:
        out = _refined(source.next_uint64(source.state), bit_generator, GEOMETRIC, out, scale, halvings)
    return out


cdef int64_t _refined(uint64_t word, object bit_generator, Law law, int64_t draw, object scale,
                      int halvings) except? -0x7FFFFFFFFFFFFFFF:
    """The draw that a word makes of one of a scale that is halved."""
    if dpfast_doubtful(word, draw):
        return _settled(bit_generator, law, word, draw, _coarse(scale, halvings), halvings)
    return dpfast_refined(word, draw, halvings, law != GEOMETRIC)


def fill_zero_sums(bit_generator, scale, Py_ssize_t rows, int64_t most, int64_t[:, ::1] out not None):
    """Fill rows with k integers of sum 0, P(z) ~ exp(-sum |z| / scale), by `rows` proposals; return how many fit.

    A proposal is k - 1 differences of two geometric draws and the integer that completes their sum to 0; it is accepted
    if one more draw is at least its magnitude. All words of the proposals are drawn at first; those after the last
    proposal that fits are not read.

    **Law** exact, saturated at +-(2**63 - 1); draws of `most` or above, of which k may overflow, in Python's integers.
    **Assumes** 0 < scale <= 2**56, k = out.shape[1] >= 1, k most <= 2**62. **Cost** 2 k - 1 words for each proposal.
    **Reference** docs/proofs/perturbed-histogram.md.
    """
    cdef Py_ssize_t k = out.shape[1], width = 2 * k - 1, filled = 0, i, j
    cdef uint64_t[::1] words = _words(bit_generator, rows * width)
    cdef int64_t[::1] draws = np.empty(width, np.int64)
    cdef double rounded = float(scale)
    cdef int64_t last, greatest
    for i in range(rows):
        if filled == out.shape[0]:
            break
        with nogil:
            dpfast_geometric(&words[i * width], &draws[0], width, rounded)
        greatest = last = 0
        for j in range(width):
            if draws[j] == UNDECIDED:
                draws[j] = _completed(bit_generator, words[i * width + j], scale, False)
            greatest = max(greatest, draws[j])
        if greatest >= most:
            filled += _accepts_far(bit_generator, scale, most, draws, out[filled])
            continue
        for j in range(k - 1):
            out[filled, j] = draws[j] - draws[k - 1 + j]
            last -= out[filled, j]
        out[filled, k - 1] = last
        filled += draws[width - 1] >= abs(last)
    return filled


cdef bint _accepts_far(object bit_generator, object scale, int64_t most, int64_t[::1] draws,
                       int64_t[::1] out) except -1:
    """A proposal of `fill_zero_sums` in Python's integers."""
    cdef Py_ssize_t k = out.shape[0], j
    exact = [_beyond(bit_generator, scale, most, draws[j]) for j in range(2 * k - 1)]
    row = [exact[j] - exact[k - 1 + j] for j in range(k - 1)]
    row.append(-sum(row))
    for j in range(k):
        out[j] = min(max(row[j], -0x7FFFFFFFFFFFFFFF), 0x7FFFFFFFFFFFFFFF)
    return exact[2 * k - 2] >= abs(row[k - 1])


cdef object _beyond(object bit_generator, object scale, int64_t most, int64_t draw):
    """A geometric draw, which has no memory: one of `most` or above is `most` plus a new one."""
    cdef int64_t[::1] more = np.array([draw])
    total = 0
    while more[0] >= most:
        total += most
        fill_geometric(bit_generator, scale, more)
    return total + more[0]


def one_rounded_laplace(bit_generator, scale):
    """One draw of `fill_rounded_laplace`, from the same words, without arrays.

    **Law**, **Assumes**: as there. **Cost** 0.1 us.
    """
    return _one_rounded(bit_generator, LAPLACE, scale)


def one_rounded_gaussian(bit_generator, sigma):
    """One draw of `fill_rounded_gaussian`, from the same words, without arrays.

    **Law**, **Assumes**: as there. **Cost** 0.2 us.
    """
    return _one_rounded(bit_generator, GAUSSIAN, sigma)


cdef int64_t _one_rounded(object bit_generator, Law law, object scale) except? -0x7FFFFFFFFFFFFFFF:
    cdef bitgen_t *source
    cdef int halvings = dpfast_halvings(scale)
    cdef int64_t out
    if not halvings and type(bit_generator) is SecureBitGenerator:
        return _rounded_of(secure_word(bit_generator), bit_generator, law, scale)
    source = unwrap(bit_generator)
    with bit_generator.lock:  # until the end: a release takes its words in one piece
        out = _rounded_of(source.next_uint64(source.state), bit_generator, law, _coarse(scale, halvings))
        if halvings:
            out = _refined(source.next_uint64(source.state), bit_generator, law, out, scale, halvings)
        return out


cdef int64_t _rounded_of(uint64_t word, object bit_generator, Law law, object scale) except? -0x7FFFFFFFFFFFFFFF:
    """The draw of a word, with further ones where it leaves a doubt."""
    cdef int64_t out
    if law == GAUSSIAN:
        dpfast_rounded_gaussian(&word, &out, 1, float(scale))
        return _completed_gaussian(bit_generator, word, scale) if out == UNDECIDED else out
    dpfast_rounded_laplace(&word, &out, 1, float(scale))
    return _completed(bit_generator, word, scale, True) if out == UNDECIDED else out


def one_rounded_student3(bit_generator, scale):
    """One draw of `fill_rounded_student3`, from the same word, without arrays.

    **Law**, **Assumes**: as there. **Cost** 0.3 us.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef uint64_t word
    cdef int64_t out
    with bit_generator.lock:
        word = source.next_uint64(source.state)
        out = dpfast_rounded_student3(word, scale)
        if out == UNDECIDED:
            out = _completed_student3(bit_generator, word, scale)
    return out


def fill_staircase(bit_generator, scale, uint64_t s, uint64_t r, int64_t[::1] out not None, *, bint exact=False):
    """Fill with staircase noise: P(z) proportional to e**(-epsilon level), level = floor((|z| - r) / s) + 1.

    epsilon = s / scale. The level is floor(E / epsilon + offset), E standard exponential; z is uniform on its level. If
    1 / epsilon is 2**34 or more, it is floor(E / epsilon) or one more, with a probability that is public.

    **Law** exact, saturated at +-(2**63 - 1); scale a float or Fraction, with its exact value. **Assumes** 0 < scale
    <= 2**56, 1 <= r <= s <= 2**56. **Cost** two words each, of a rate from 2**34 on four, a further one with
    probability below s * 2**-63; ball arithmetic with probability about scale / s * 2**-48, at most 2**-13.
    **Reference** Geng and Viswanath 2016; docs/proofs/staircase.md.
    """
    cdef object rate = Fraction(scale) / s  # of the levels: 1 / epsilon
    cdef Py_ssize_t i, n = out.shape[0]
    cdef uint64_t[::1] words
    cdef bitgen_t *source = unwrap(bit_generator)
    if n == 0:
        return
    if dpfast_halvings(rate):
        _fill_many_levels(bit_generator, rate, s, r, out, exact)
    else:
        _fill_levels(bit_generator, rate, s, r, out, exact)
    words = _words(bit_generator, n)
    with bit_generator.lock, nogil:
        for i in range(n):
            out[i] = dpfast_on_level(source, words[i], out[i], s, r)


cdef int _fill_levels(bit_generator, object rate, uint64_t s, uint64_t r, int64_t[::1] out, bint exact) except -1:
    """Levels floor(E / epsilon + offset)."""
    from dpfast._kernels._balls import staircase_level, staircase_offset
    cdef uint64_t[::1] words = _words(bit_generator, out.shape[0])
    cdef double rounded = float(rate), offset = staircase_offset(rate, s, r)
    cdef Py_ssize_t i, undecided, n = out.shape[0]
    with nogil:
        dpfast_levels(&words[0], &out[0], n, rounded, offset)
        undecided = _count_undecided(out)
    if undecided or exact:
        for i in range(n):
            if exact or out[i] == UNDECIDED:
                out[i] = staircase_level(words[i], lambda: next_word(bit_generator), rate, s, r)
    return 0


cdef int _fill_many_levels(bit_generator, object rate, uint64_t s, uint64_t r, int64_t[::1] out, bint exact) except -1:
    """Levels floor(E / epsilon) or one more, of a rate that is halved: a geometric draw has no offset to halve."""
    from dpfast._kernels._scale_balls import staircase_further, staircase_threshold
    cdef uint64_t[::1] words
    cdef uint64_t threshold = staircase_threshold(rate, s, r)
    cdef Py_ssize_t i, n = out.shape[0]
    fill_geometric(bit_generator, rate, out, exact=exact)
    words = _words(bit_generator, n)
    for i in range(n):
        if exact or words[i] == threshold:
            words[i] = 0 if staircase_further(words[i], lambda: next_word(bit_generator), rate, s, r) else threshold
        out[i] += words[i] < threshold and out[i] < INT64_MAX
    return 0


def add_discrete_laplace(bit_generator, const int64_t[:] sensitivities not None, epsilon,
                         const int64_t[:] lasts not None, uint64_t whole, int64_t[::1] out not None, *,
                         bint exact=False):
    """Add noise of scale sensitivity / epsilon to each integer of 0..last, one after the other, clamped to 0..last.

    A constant, of last = 0, stays; last < 0 stands for an empty group, which becomes any integer of 0..whole.

    **Law** of `one_discrete_laplace`, from the same words; of `dpfast.laws.anywhere` for last < 0, two words. epsilon a
    double, the scale exact. **Assumes** sensitivities of 1 to 2**53 where last > 0, scales of at most 2**56.
    **Cost** two words each, from a scale of 2**34 on four.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef double loss = epsilon
    cdef int64_t draw
    cdef Py_ssize_t i
    with bit_generator.lock, nogil:
        for i in range(out.shape[0]):
            if lasts[i] > 0:
                draw = _geometric_ratio(source, bit_generator, sensitivities[i], loss, exact)
                draw -= _geometric_ratio(source, bit_generator, sensitivities[i], loss, exact)
                out[i] = _clamped_sum(out[i], draw, lasts[i])
            elif lasts[i] < 0:
                out[i] = _any_of(source, whole)


def add_staircase(bit_generator, const int64_t[:] places not None, epsilon, periods, widths,
                  const int64_t[:] lasts not None, uint64_t whole, int64_t[::1] out not None, *, bint exact=False):
    """The same with staircase noise, that of periods[places[i]] and widths[places[i]] for integer i.

    **Law** of one entry of `fill_staircase`, from the same words. **Assumes** as there, scale = period / epsilon, and
    1 / epsilon < 2**34. **Cost** two words each.
    """
    from dpfast._kernels._balls import staircase_level, staircase_offset
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef object rate = 1 / Fraction(epsilon)
    cdef double rounded = float(rate)
    cdef uint64_t[::1] s = np.array(periods, np.uint64)
    cdef uint64_t[::1] r = np.array(widths, np.uint64)
    cdef double[::1] offsets = np.array([staircase_offset(rate, *pair) for pair in zip(periods, widths)])
    cdef int64_t level
    cdef uint64_t word
    cdef Py_ssize_t i, k
    with bit_generator.lock, nogil:
        for i in range(out.shape[0]):
            if lasts[i] > 0:
                k, word = places[i], source.next_uint64(source.state)
                level = UNDECIDED if exact else dpfast_round_exponential(word, rounded, offsets[k] - 0.5)
                if level == UNDECIDED:
                    with gil:
                        level = staircase_level(word, lambda: next_word(bit_generator), rate, s[k], r[k])
                word = source.next_uint64(source.state)
                out[i] = _clamped_sum(out[i], dpfast_on_level(source, word, level, s[k], r[k]), lasts[i])
            elif lasts[i] < 0:
                out[i] = _any_of(source, whole)


cdef inline int64_t _clamped_sum(int64_t code, int64_t draw, int64_t last) noexcept nogil:
    """code + draw, clamped to 0..last; the noise first, so that the sum cannot overflow."""
    return code + min(max(draw, -code), last - code)


cdef inline int64_t _any_of(bitgen_t *source, uint64_t last) noexcept nogil:
    """An integer of 0..last, by the words of the law of boxes that are all the whole: the first would choose a box."""
    source.next_uint64(source.state)
    return <int64_t> dpfast_uniform(source, last)


cdef int64_t _geometric_ratio(bitgen_t *source, object bit_generator, int64_t sensitivity, double epsilon,
                              bint exact) except? -0x7FFFFFFFFFFFFFFF nogil:
    """`_geometric_of` for the exact scale sensitivity / epsilon, which is made where doubles leave a doubt."""
    cdef double rounded = <double> sensitivity / epsilon  # rounded once, as float(scale)
    cdef int halvings = dpfast_halvings(rounded)
    cdef uint64_t word = source.next_uint64(source.state)
    cdef int64_t out = dpfast_round_exponential(word, dpfast_coarse(rounded, halvings), -0.5)
    if out == UNDECIDED or exact:
        with gil:
            out = _completed(bit_generator, word, _coarse(_scale(sensitivity, epsilon), halvings), False)
    if halvings:
        word = source.next_uint64(source.state)
        if exact or dpfast_doubtful(word, out):
            with gil:
                return _settled(bit_generator, GEOMETRIC, word, out, _coarse(_scale(sensitivity, epsilon), halvings),
                                halvings)
        out = dpfast_refined(word, out, halvings, False)
    return out


cdef object _scale(int64_t sensitivity, double epsilon):
    return Fraction(sensitivity) / Fraction(epsilon)


def neg_log_words(const uint64_t[::1] words not None):
    """-log(w 2**-64) as the samplers compute it, for the test of its bound 2**-50 (1 + value)."""
    cdef Py_ssize_t i
    cdef double unused
    out = np.empty(words.shape[0])
    cdef double[::1] view = out
    for i in range(words.shape[0]):
        view[i] = dpfast_neg_log_word(words[i], &unused)
    return out


def exp_negs(const double[::1] y not None):
    """exp(-y) as the samplers compute it: elementwise, with a relative error of at most 2**-50 (1 + y)."""
    cdef Py_ssize_t i
    out = np.empty(y.shape[0])
    cdef double[::1] view = out
    for i in range(y.shape[0]):
        view[i] = dpfast_exp_neg(y[i])
    return out


def one_minus_exp_negs(const double[::1] y not None):
    """1 - exp(-y) as the nested-interval law computes it, for the test of its relative bound 2**-47."""
    cdef Py_ssize_t i
    out = np.empty(y.shape[0])
    cdef double[::1] view = out
    for i in range(y.shape[0]):
        view[i] = dpfast_one_minus_exp_neg(y[i])
    return out


def student_tails(const double[::1] c not None):
    """P(|T| > c sqrt(3)) as the sampler computes it, for the test of its relative bound 2**-44."""
    cdef Py_ssize_t i
    out = np.empty(c.shape[0])
    cdef double[::1] view = out
    for i in range(c.shape[0]):
        view[i] = dpfast_student_tail(c[i])
    return out


def normal_of_words(const uint64_t[::1] words not None):
    """The z with P(|Z| > z) = (w | 1) 2**-64 as the sampler computes it, w >= 2**12, for the test of its bound."""
    cdef Py_ssize_t i
    out = np.empty(words.shape[0])
    cdef double[::1] view = out
    for i in range(words.shape[0]):
        view[i] = dpfast_normal_of_word(words[i])
    return out
