"""The nested-interval law, from the window to the draw; serves dpfast/mechanisms/inverse.py and dpfast/laws/.

Law, kernel side: levels t = 0..n-1 with boxes [lower[t], upper[t]], each inside the next, and level n, anywhere in
0..last; with q = exp(-epsilon / 2), level 0 has weight (1 - q**(depth + 1)) weight(box 0), level t has weight (1 - q)
q**(t + depth) weight(box t), level n has q**(n + depth) weight(0..last); then a point of the box by the base measure,
which is uniform if `measure` is None. So P(g) is proportional to weight(g), times q**(depth + min(score(g), n)) if the
score is not 0, score(g) the least t whose box contains g. docs/proofs/nested-intervals.md, docs/proofs/base-measures.md
"""

from fractions import Fraction

cimport numpy as cnp
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

from dpfast._kernels._measures cimport Measure, choose_level_exactly, flip_level_exactly, of_measure
from dpfast._kernels._samplers cimport unwrap
from dpfast._kernels._select cimport select_records
from grid cimport dpfast_encode_array, dpfast_encode_floats, dpfast_floats, dpfast_grid
from measure cimport dpfast_draw_point, dpfast_measure, dpfast_set_uniform

import numpy as np

from dpfast._kernels._samplers import next_word

cnp.import_array()

cdef extern from "levels.h":
    double LEVEL_ERROR "DPFAST_LEVEL_ERROR"
    ctypedef struct dpfast_decay:
        const double *powers
        Py_ssize_t count
    void dpfast_set_decay(dpfast_decay *decay, double rate) noexcept nogil
    void dpfast_level_powers(double *powers, Py_ssize_t count, double rate) noexcept nogil
    void dpfast_level_cumulative(const dpfast_measure *measure, const int64_t *lower, const int64_t *upper,
                                 double *cumulative, Py_ssize_t n, Py_ssize_t depth,
                                 const dpfast_decay *decay) noexcept nogil
    void dpfast_shell_weights(const dpfast_measure *measure, const int64_t *lower, const int64_t *upper,
                              int64_t *sizes, Py_ssize_t n) noexcept nogil
    Py_ssize_t dpfast_flip(bitgen_t *source, const int64_t *sizes, uint64_t *words, Py_ssize_t n, Py_ssize_t depth,
                           double rate) noexcept nogil
    int64_t dpfast_draw_shell_point(const dpfast_measure *measure, bitgen_t *source, const int64_t *lower,
                                    const int64_t *upper, Py_ssize_t n, Py_ssize_t t, int64_t last) noexcept nogil
    Py_ssize_t dpfast_depth(const int64_t *lower, const int64_t *upper, Py_ssize_t n) noexcept nogil
    void dpfast_shifted_sums(const int64_t *low, const int64_t *high, int64_t total, int64_t corner, int64_t *lower,
                             int64_t *upper, Py_ssize_t n) noexcept nogil
    void dpfast_place_in_gap(const int64_t *low, const int64_t *high, Py_ssize_t n, int64_t code, int64_t *step,
                             int64_t *width) noexcept nogil
    int64_t UNDECIDED "DPFAST_UNDECIDED"
    int64_t dpfast_below_exp_neg(uint64_t word, double gamma) noexcept nogil
    void dpfast_difference_ranges(const int64_t *low, const int64_t *high, int64_t *lower, int64_t *upper,
                                  int64_t *scratch, Py_ssize_t n) noexcept nogil
    Py_ssize_t dpfast_choose(uint64_t word, const double *cumulative, Py_ssize_t n, double error) noexcept nogil


cdef extern from "select.h":
    Py_ssize_t select_sort_room(Py_ssize_t n) noexcept nogil
    double *select_sort(double *x, Py_ssize_t n, double *scratch) noexcept nogil

cdef extern from "ranked.h":
    ctypedef struct dpfast_ranked_size:
        int64_t levels
        int64_t first
        int64_t last_rank
        int64_t corner
        int64_t last
        int64_t radius
    ctypedef struct dpfast_huber_rest:
        int64_t below
        int64_t between
        int64_t above
        int64_t total
        int64_t least
        int64_t greatest
    void dpfast_huber_ranges(const int64_t *x, const int64_t *sums, Py_ssize_t n, int64_t k, int64_t last,
                             const dpfast_huber_rest *rest, int64_t *lower, int64_t *upper,
                             Py_ssize_t levels) noexcept nogil
    void dpfast_ranked_boxes(int kind, const dpfast_ranked_size *size, int64_t *codes, Py_ssize_t n, int64_t whole,
                             int64_t corner, int64_t *lower, int64_t *upper, int64_t *scratch) noexcept nogil
    int DPFAST_SUM, DPFAST_DIFFERENCE, DPFAST_HUBER


SUM, DIFFERENCE, HUBER = DPFAST_SUM, DPFAST_DIFFERENCE, DPFAST_HUBER

cdef enum:
    KEPT = 1024  # up to so many levels a `RankDraw` keeps the powers of their weights, 16 bytes a level


cdef inline int64_t _draw_point(bitgen_t *source, const dpfast_measure *measure, const int64_t *lower,
                                const int64_t *upper, Py_ssize_t n, Py_ssize_t level, int64_t last) noexcept nogil:
    """A point of the box of `level`, or of 0..last for level n, by the base measure."""
    if level < n:
        return dpfast_draw_point(measure, source, lower[level], upper[level])
    return dpfast_draw_point(measure, source, 0, last)


cdef int64_t _draw_level(bitgen_t *source, object bit_generator, const dpfast_measure *base, const int64_t *lower,
                         const int64_t *upper, const double *cumulative, Py_ssize_t n, double epsilon, int64_t last,
                         Py_ssize_t depth, bint exact) except -1 nogil:
    """One draw of the law above: a level by its cumulative weights, then a point of its box."""
    cdef uint64_t word = source.next_uint64(source.state)
    cdef Py_ssize_t level = dpfast_choose(word, cumulative, n + 1, LEVEL_ERROR)
    if level < 0 or exact:
        with gil:
            level = choose_level_exactly(bit_generator, word, base, lower, upper, n, depth, epsilon)
    return _draw_point(source, base, lower, upper, n, level, last)


cdef int64_t _draw_flip(bitgen_t *source, object bit_generator, const dpfast_measure *base, const int64_t *lower,
                        const int64_t *upper, const int64_t *sizes, uint64_t *words, Py_ssize_t n, double epsilon,
                        int64_t last, Py_ssize_t depth, bint exact) except -1 nogil:
    """One draw of the law of `fill_flips`: a level by the coins of its shells, then a point of its shell."""
    cdef Py_ssize_t level = dpfast_flip(source, sizes, words, n, depth, epsilon / 2)
    if level < 0 or exact:
        with gil:
            level = flip_level_exactly(bit_generator, words, sizes, n, depth, epsilon)
    return dpfast_draw_shell_point(base, source, lower, upper, n, level, last)


cdef int64_t draw_nested(bitgen_t *source, object bit_generator, const int64_t *lower, const int64_t *upper,
                         Py_ssize_t levels, double epsilon, int64_t last) except -1 nogil:
    cdef double *cumulative = <double *> malloc((levels + 1) * sizeof(double))
    cdef dpfast_measure measure
    cdef dpfast_decay decay
    try:
        if cumulative == NULL:
            raise MemoryError
        dpfast_set_uniform(&measure, last)
        dpfast_set_decay(&decay, epsilon / 2)
        dpfast_level_cumulative(&measure, lower, upper, cumulative, levels, 0, &decay)
        return _draw_level(source, bit_generator, &measure, lower, upper, cumulative, levels, epsilon, last, 0, False)
    finally:
        free(cumulative)


cdef void _prepare_interpolated(const int64_t *low, const int64_t *high, int64_t *left, int64_t *right,
                                double *cumulative, Py_ssize_t n, double epsilon, int64_t last,
                                Py_ssize_t depth) noexcept nogil:
    """The boxes left[t]..right[t] of the points whose score, rounded down, is at most t < n, and their weights."""
    cdef dpfast_measure uniform
    cdef dpfast_decay decay
    cdef Py_ssize_t t
    for t in range(n):
        left[t] = min(low[t], low[t + 1] + 1)
        right[t] = max(high[t], high[t + 1] - 1)
    dpfast_set_uniform(&uniform, last)
    dpfast_set_decay(&decay, epsilon / 2)
    dpfast_level_cumulative(&uniform, left, right, cumulative, n, depth, &decay)


cdef int64_t _draw_interpolated(bitgen_t *source, object bit_generator, const int64_t *low, const int64_t *high,
                                const int64_t *left, const int64_t *right, const double *cumulative, Py_ssize_t n,
                                double epsilon, int64_t last, Py_ssize_t depth, bint exact) except -1 nogil:
    """One draw of the law of `fill_interpolated`: points of the boxes are proposed until a coin accepts one."""
    cdef dpfast_measure uniform
    cdef Py_ssize_t level
    cdef int64_t code, step, width, accepted
    cdef uint64_t word
    dpfast_set_uniform(&uniform, last)
    while True:
        word = source.next_uint64(source.state)
        level = dpfast_choose(word, cumulative, n + 1, LEVEL_ERROR)
        if level < 0 or exact:
            with gil:
                level = choose_level_exactly(bit_generator, word, &uniform, left, right, n, depth, epsilon)
        code = _draw_point(source, &uniform, left, right, n, level, last)
        dpfast_place_in_gap(low, high, n, code, &step, &width)
        word = source.next_uint64(source.state)
        accepted = dpfast_below_exp_neg(word, epsilon / 2 * (<double> step / <double> width))
        if accepted == UNDECIDED or exact:
            with gil:
                accepted = _accepts_exactly(bit_generator, word, epsilon, step, width)
        if accepted:
            return code


cdef bint _accepts_exactly(object bit_generator, uint64_t word, double epsilon, int64_t step, int64_t width) except -1:
    from dpfast._kernels._balls import below_exp_neg
    return below_exp_neg(word, lambda: next_word(bit_generator), Fraction(epsilon) / 2 * Fraction(step, width))


cdef class RankDraw:
    """Draws of the code of x_(L) + ... + x_(H) + corner (x_(L) + x_(H)), H = L + records - 1, by public parameters.

    For one record and no corner it is the order statistic x_(L).

    **Law** above, or that of `fill_flips` if `flips`, or that of `fill_interpolated` for n - 1 levels if
    `interpolates`, which takes one record, without radius, corner or measure; with lower[t] and upper[t] the same sum t
    ranks below and above, less and plus the radius, kept inside 0..last; depth is the greatest t < n with lower[t] =
    upper[t] before the radius, or 0 unless `deep`.
    The grid is that of the codes: of the records themselves, or of their codes on floats, which `release` finds if
    `floats` has the arguments of `_grid.encode_floats`.
    **Assumes** a valid grid; epsilon > 0; 0 <= radius <= last, the greatest sum; the measure None or on 0..last.
    **Cost** O(n) times the parts of the measure, less if n is at most `levels`, for which it keeps 16 bytes each; one
    word for the level and one for the point, further ones with small probability; ball arithmetic with probability
    below n * 2**-38. With `flips` that of `fill_flips`.
    **Reference** docs/proofs/nested-intervals.md, docs/proofs/monotone-statistics.md, docs/proofs/permute-and-flip.md.
    """

    cdef dpfast_grid _grid
    cdef dpfast_floats _floats
    cdef dpfast_measure _uniform
    cdef const dpfast_measure *_base
    cdef Measure _measure
    cdef dpfast_decay _decay
    cdef double *_powers
    cdef double _epsilon
    cdef int64_t _radius, _last, _corner
    cdef Py_ssize_t _records
    cdef bint _flips, _interpolates, _of_floats, _deep

    def __init__(self, double epsilon, int64_t radius, double lower, double upper, double step, double first,
                 int64_t last, Measure measure=None, *, Py_ssize_t levels=0, Py_ssize_t records=1, int64_t corner=0,
                 bint flips=False, bint interpolates=False, bint deep=True, dict floats=None):
        self._grid = dpfast_grid(lower, upper, step, lower, first, 0)
        self._of_floats = floats is not None
        if floats is not None:
            self._floats = dpfast_floats(
                floats["lower"], floats["upper"], floats["missing"], floats["resolution"], floats["unit"],
                floats["origin"], floats["first"], floats["shift"],
            )
        self._measure = measure  # kept alive: `_base` points into it
        self._base = of_measure(measure, &self._uniform, last)
        self._epsilon, self._radius, self._last = epsilon, radius, last
        self._records, self._corner, self._flips, self._interpolates = records, corner, flips, interpolates
        self._deep = deep
        dpfast_set_decay(&self._decay, epsilon / 2)
        free(self._powers)
        self._powers = NULL
        if 0 < levels <= KEPT and not (flips or interpolates):
            self._powers = <double *> malloc(2 * levels * sizeof(double))
            if self._powers == NULL:
                raise MemoryError
            dpfast_level_powers(self._powers, 2 * levels, epsilon / 2)
            self._decay.powers, self._decay.count = self._powers, 2 * levels

    def __dealloc__(self):
        free(self._powers)

    def draw(self, bit_generator, const double[::1] window not None, *, bint exact=False):
        """One draw, from the raw values x_(L-n+1) .. x_(H+n-1).

        **Assumes** `window` sorted, free of NaN, of length 2n + records - 2, with -inf and inf for ranks outside 1..N.
        """
        return self._draw(bit_generator, &window[0], window.shape[0], exact)

    def release(self, bit_generator, object values, Py_ssize_t first, Py_ssize_t last, double missing,
                Py_ssize_t workers):
        """One draw from the records: `draw` from their `_select.window` of the ranks first..last.

        If `missing` is NaN and k > 0 records are, it is -k, and nothing is drawn.
        """
        cdef Py_ssize_t size = last - first + 1, absent
        cdef double *window = <double *> malloc(size * sizeof(double))
        if window == NULL:
            raise MemoryError
        try:
            absent = self._select(values, first, last, missing, window, workers)
            return -absent if absent else self._draw(bit_generator, window, size, False)
        finally:
            free(window)

    def release_between(self, bit_generator, object values, const int64_t[::1] low not None,
                        const int64_t[::1] high not None, Py_ssize_t absent, double missing, Py_ssize_t workers):
        """One draw from the boxes x_(low[t])..x_(high[t]), less and plus the radius, of the records but the `absent`
        least.

        `missing` is as in `release`. **Law** that of the class but for the boxes; depth 0 unless `deep`. **Assumes**
        one record, no corner, no interpolation; `low` nonincreasing, `high` nondecreasing, of equal length, at least 1;
        ranks outside of 1..N stand for the ends of the grid.
        """
        cdef Py_ssize_t levels = low.shape[0], n = len(values) - absent, t
        cdef Py_ssize_t start = min(max(low[levels - 1], 0), n), stop = max(min(high[levels - 1], n + 1), 1)
        cdef Py_ssize_t size = stop - start + 1, missed
        cdef double *window = <double *> malloc(size * sizeof(double))
        # One piece of memory: the codes of the window, with room for `levels` + 1 shells, the ends of the boxes, and
        # `levels` + 1 numbers for each law.
        cdef Py_ssize_t room = max(size, levels + 1)
        cdef int64_t *codes = <int64_t *> malloc((room + 3 * levels + 1) * sizeof(int64_t))
        cdef int64_t *left = codes + room
        cdef int64_t *right = left + levels
        cdef bitgen_t *source = unwrap(bit_generator)
        cdef int64_t code = 0
        try:
            if window == NULL or codes == NULL:
                raise MemoryError
            missed = self._select(values, start + absent, stop + absent, missing, window, workers)
            if missed:
                return -missed
            with bit_generator.lock, nogil:
                dpfast_encode_array(&self._grid, window, codes, size)
                for t in range(levels):
                    left[t] = codes[min(max(low[t], start), stop) - start]
                    right[t] = codes[min(max(high[t], start), stop) - start]
                code = self._nested(source, bit_generator, codes, left, right, right + levels, levels, False)
            return code
        finally:
            free(window)
            free(codes)

    cdef Py_ssize_t _select(self, object values, Py_ssize_t first, Py_ssize_t last, double missing, double *window,
                            Py_ssize_t workers) except -1:
        """Fill the window with the order statistics of these ranks; the number of NaN instead, if `missing` is NaN."""
        cdef const dpfast_grid *grid = &self._grid
        cdef bint told
        if self._of_floats:
            told = select_records(values, first, last, self._floats.lower, self._floats.upper, 0.0, missing, window,
                                  workers)
        else:
            told = select_records(values, first, last, grid.lower, grid.upper, grid.step, missing, window, workers)
        if told:
            return <Py_ssize_t> window[0]
        if self._of_floats:
            dpfast_encode_floats(&self._floats, window, window, last - first + 1)
        return 0

    cdef int64_t _draw(self, object bit_generator, const double *window, Py_ssize_t size, bint exact) except -1:
        """One draw, with the lock held from its first word to the last: a release takes its words in one piece."""
        cdef bitgen_t *source = unwrap(bit_generator)
        cdef Py_ssize_t n = (size - self._records) // 2 + 1
        # One piece of memory: the codes of the window, the ends of the boxes, and n + 1 numbers for each law.
        cdef int64_t *codes = <int64_t *> malloc((size + 1 + 3 * n + n + 1) * sizeof(int64_t))
        cdef int64_t *middle = codes + n - 1
        cdef int64_t *left = codes + size + 1
        cdef int64_t *right = left + n
        cdef int64_t *rest = right + n
        cdef int64_t total = 0
        cdef Py_ssize_t t
        try:
            if codes == NULL:
                raise MemoryError
            with bit_generator.lock, nogil:
                dpfast_encode_array(&self._grid, window, codes, size)
                for t in range(self._records):
                    total += middle[t]
                dpfast_shifted_sums(middle, middle + self._records - 1, total, self._corner, left, right, n)
                if self._interpolates:
                    return self._interpolated(source, bit_generator, middle, left, right, rest, n, exact)
                return self._nested(source, bit_generator, codes, left, right, rest, n, exact)
        finally:
            free(codes)

    cdef int64_t _nested(self, bitgen_t *source, object bit_generator, int64_t *codes, int64_t *left, int64_t *right,
                         int64_t *rest, Py_ssize_t n, bint exact) except -1 nogil:
        """One draw by the boxes, widened by the radius. The codes are no longer needed: with `flips` the sizes of the
        n + 1 shells take their place.
        """
        cdef Py_ssize_t depth = dpfast_depth(left, right, n) if self._deep else 0, t
        cdef double *cumulative = <double *> rest
        cdef uint64_t *words = <uint64_t *> rest
        for t in range(n):
            left[t] = max(left[t] - self._radius, 0)
            right[t] = right[t] + min(self._last - right[t], self._radius)  # the sum may not fit into 64 bits
        if self._flips:
            dpfast_shell_weights(self._base, left, right, codes, n)
            return _draw_flip(source, bit_generator, self._base, left, right, codes, words, n, self._epsilon,
                              self._last, depth, exact)
        dpfast_level_cumulative(self._base, left, right, cumulative, n, depth, &self._decay)
        return _draw_level(source, bit_generator, self._base, left, right, cumulative, n, self._epsilon, self._last,
                           depth, exact)

    cdef int64_t _interpolated(self, bitgen_t *source, object bit_generator, const int64_t *middle, int64_t *left,
                               int64_t *right, int64_t *rest, Py_ssize_t n, bint exact) except -1 nogil:
        """One draw of n - 1 levels between order statistics: `left` becomes the codes up to the middle one."""
        cdef Py_ssize_t depth = dpfast_depth(left, right, n - 1)
        cdef double *cumulative = <double *> (rest + n)
        memcpy(rest, left, n * sizeof(int64_t))
        _prepare_interpolated(rest, middle, left, right, cumulative, n - 1, self._epsilon, self._last, depth)
        return _draw_interpolated(source, bit_generator, rest, middle, left, right, cumulative, n - 1, self._epsilon,
                                  self._last, depth, exact)


def fill(bit_generator, lower not None, upper not None, double epsilon, int64_t last, int64_t[::1] out not None,
         Measure measure=None, Py_ssize_t depth=0, *, bint exact=False):
    """Fill with independent draws of the law above.

    **Law** exact. **Assumes** boxes nested inside 0..last, depth >= 0, epsilon > 0, 0 <= last < 2**63 - 1, the measure
    None or on 0..last. **Cost** O(n) times the parts of the measure once, then a binary search and two words each; the
    words that choose levels come first, then those of the points.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef dpfast_measure uniform
    cdef const dpfast_measure *base = of_measure(measure, &uniform, last)
    cdef const int64_t[::1] left = np.ascontiguousarray(lower)
    cdef const int64_t[::1] right = np.ascontiguousarray(upper)
    cdef Py_ssize_t n = left.shape[0], i, undecided = 0
    cdef dpfast_decay decay
    cdef double[::1] cumulative = np.empty(n + 1)
    cdef uint64_t[::1] words = np.empty(out.shape[0], np.uint64)
    with bit_generator.lock:  # until the end: a release takes its words in one piece
        with nogil:
            dpfast_set_decay(&decay, epsilon / 2)
            dpfast_level_cumulative(base, &left[0], &right[0], &cumulative[0], n, depth, &decay)
            for i in range(out.shape[0]):
                words[i] = source.next_uint64(source.state)
                out[i] = dpfast_choose(words[i], &cumulative[0], n + 1, LEVEL_ERROR)
                undecided += out[i] < 0
        if undecided or exact:
            for i in range(out.shape[0]):
                if exact or out[i] < 0:
                    out[i] = choose_level_exactly(bit_generator, words[i], base, &left[0], &right[0], n, depth,
                                                  epsilon)
        with nogil:
            for i in range(out.shape[0]):
                out[i] = _draw_point(source, base, &left[0], &right[0], n, <Py_ssize_t> out[i], last)


def fill_flips(bit_generator, lower not None, upper not None, double epsilon, int64_t last, int64_t[::1] out not None,
               Measure measure=None, Py_ssize_t depth=0, *, bint exact=False):
    """Fill with independent draws of permute-and-flip on the points of 0..last, each as often as it weighs.

    **Law** exact: uniform among the points whose coin of probability exp(-epsilon / 2 * exponent) shows heads, exponent
    0 in the first box, depth + score elsewhere, at most depth + n. **Assumes** as `fill`. **Cost** a word for each
    level, empty or not, and one for the point, further ones with small probability; ball arithmetic with probability
    below n * 2**-30. **Reference** McKenna and Sheldon 2020; docs/proofs/permute-and-flip.md.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef dpfast_measure uniform
    cdef const dpfast_measure *base = of_measure(measure, &uniform, last)
    cdef const int64_t[::1] left = np.ascontiguousarray(lower)
    cdef const int64_t[::1] right = np.ascontiguousarray(upper)
    cdef Py_ssize_t n = left.shape[0], i
    cdef int64_t[::1] sizes = np.empty(n + 1, np.int64)
    cdef uint64_t[::1] words = np.empty(n + 1, np.uint64)
    with bit_generator.lock:  # until the end: a release takes its words in one piece
        dpfast_shell_weights(base, &left[0], &right[0], &sizes[0], n)
        for i in range(out.shape[0]):
            with nogil:
                out[i] = _draw_flip(source, bit_generator, base, &left[0], &right[0], &sizes[0], &words[0], n, epsilon,
                                    last, depth, exact)


def fill_interpolated(bit_generator, const int64_t[:] low not None, const int64_t[:] high not None, double epsilon,
                      int64_t last, int64_t[::1] out not None, Py_ssize_t depth=0, *, bint exact=False):
    """Fill with independent draws of a law whose score rises linearly from each order statistic to the next.

    **Law** P(g) proportional to exp(-epsilon / 2 * exponent(g)), exact: low[t] and high[t] have score t (the least such
    t), a point between low[t + 1] and low[t] or between high[t] and high[t + 1] has the score t plus its share of the
    way, points beyond low[n] and high[n] have the score n; the exponent is score + depth, and 0 for low[0] = high[0].
    **Assumes** `low` nonincreasing and `high` nondecreasing, of length n + 1 >= 2, inside 0..last < 2**53; depth 0, or
    the greatest t < n with low[t] = high[t]; 0 < epsilon <= 2**10. **Cost** that of `fill`, and a word for the coin of
    each proposed point: at most 1 + epsilon / 2 proposals on average. **Reference** docs/proofs/interpolation.md.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t n = low.shape[0] - 1, i
    cdef const int64_t[::1] below = np.ascontiguousarray(low)
    cdef const int64_t[::1] above = np.ascontiguousarray(high)
    cdef int64_t[::1] left = np.empty(n, np.int64)
    cdef int64_t[::1] right = np.empty(n, np.int64)
    cdef double[::1] cumulative = np.empty(n + 1)
    with bit_generator.lock:  # until the end: a release takes its words in one piece
        with nogil:
            _prepare_interpolated(&below[0], &above[0], &left[0], &right[0], &cumulative[0], n, epsilon, last, depth)
            for i in range(out.shape[0]):
                out[i] = _draw_interpolated(source, bit_generator, &below[0], &above[0], &left[0], &right[0],
                                            &cumulative[0], n, epsilon, last, depth, exact)


def draw_coin(bit_generator, exponent, *, bint exact=False):
    """Whether a coin of probability exp(-exponent) shows heads, for a fraction that is at least 0.

    **Law** exact. **Cost** one word, further ones and ball arithmetic with probability below 2**-46.
    **Reference** docs/proofs/certified-doubles.md.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef uint64_t word
    cdef int64_t heads
    cdef double rounded = float(exponent)
    with bit_generator.lock, nogil:
        word = source.next_uint64(source.state)
        heads = dpfast_below_exp_neg(word, rounded)
    if heads == UNDECIDED or exact:
        from dpfast._kernels._balls import below_exp_neg
        return below_exp_neg(word, lambda: next_word(bit_generator), exponent)
    return bool(heads)


def shifted_sums(const int64_t[::1] low not None, const int64_t[::1] high not None, int64_t total, int64_t corner,
                 int64_t[::1] lower not None, int64_t[::1] upper not None):
    """Fill with the attack range of x_(L) + ... + x_(H) + corner (x_(L) + x_(H)), from the codes around both ranks.

    **Law** deterministic: upper[t] and lower[t] are the sum t ranks above and below; `total` is x_(L) + ... + x_(H).
    **Assumes** `low` and `high` of length 2n - 1; `lower`, `upper` of length n >= 1; sums below 2**63. **Cost** 4n
    sums. **Reference** docs/proofs/monotone-statistics.md.
    """
    cdef Py_ssize_t n = lower.shape[0]
    with nogil:
        dpfast_shifted_sums(&low[n - 1], &high[n - 1], total, corner, &lower[0], &upper[0], n)


def difference_ranges(const int64_t[::1] low not None, const int64_t[::1] high not None, int64_t[::1] lower not None,
                      int64_t[::1] upper not None):
    """Fill with the attack range of x_(k2) - x_(k1), from the sorted codes around both ranks.

    **Law** deterministic: upper[t] = max(x_(k2+a) - x_(k1-b)), lower[t] = min(max(0, x_(k2-a) - x_(k1+b))) over
    a + b = t, a, b >= 0. **Assumes** `low` and `high` sorted, of length 2n - 1, codes below 2**52; `lower`, `upper` of
    length n. **Cost** n**2 subtractions, about 0.5 ns each, without the GIL.
    **Reference** docs/proofs/monotone-statistics.md.
    """
    cdef Py_ssize_t n = lower.shape[0]
    cdef int64_t[::1] scratch = np.empty(n, np.int64)
    with nogil:
        dpfast_difference_ranges(&low[n - 1], &high[n - 1], &lower[0], &upper[0], &scratch[0], n)


def huber_ranges(const int64_t[::1] codes not None, int64_t corner, int64_t last, int64_t[::1] lower not None,
                 int64_t[::1] upper not None, rest=None):
    """Fill with the attack range of Huber's estimate, from all sorted codes of 0..last, or those near its corners.

    **Law** deterministic: lower[t] and upper[t] are the least theta in 0..last with sum(clip(theta - x, -corner,
    corner)) >= 0 after the t greatest codes became 0, and after the t least became `last`. **Assumes** `lower` and
    `upper` of equal length, at most n; 1 <= corner <= last < 2**53, n last < 2**63; `rest` as `near_corners` returns
    it. **Cost** O(n). **Reference** docs/proofs/monotone-statistics.md.
    """
    cdef Py_ssize_t n = codes.shape[0], levels = lower.shape[0]
    cdef int64_t[::1] sums = np.zeros(n + 1, np.int64)
    cdef dpfast_huber_rest others = dpfast_huber_rest(0, 0, 0, 0, 0, last)
    if rest is not None:
        others.below, others.between, others.above, others.total, others.least, others.greatest = rest
    np.cumsum(codes, out=np.asarray(sums)[1:])
    with nogil:
        dpfast_huber_ranges(&codes[0] if n else NULL, &sums[0], n, corner, last, &others, &lower[0], &upper[0], levels)


def count_cells(const int64_t[:] codes not None, int shift, int64_t[::1] counts not None):
    """Add to counts[i] the number of codes of i * 2**shift .. (i + 1) * 2**shift - 1.

    **Law** exact. **Assumes** codes >> shift below len(counts). **Cost** 1 ns each.
    """
    cdef Py_ssize_t i
    with nogil:
        for i in range(codes.shape[0]):
            counts[codes[i] >> shift] += 1


def near_corners(const int64_t[:] codes not None, int64_t corner, int64_t least, int64_t greatest):
    """The sorted codes from least - corner to greatest - corner and from least + corner to greatest + corner, and
    what `huber_ranges` takes of the others: the numbers below, between and above, the sum of those between, and
    least and greatest.

    **Law** exact. **Assumes** greatest - corner < least + corner, a sum of all codes below 2**63. **Cost** two passes
    of 1 ns each.
    """
    cdef int64_t low = least - corner, high = least + corner, width = greatest - least, code
    cdef int64_t below = 0, between = 0, above = 0, total = 0, is_between
    cdef Py_ssize_t i, found = 0
    cdef int64_t[::1] kept
    with nogil:
        for i in range(codes.shape[0]):
            code = codes[i]
            is_between = (code > low + width) & (code < high)
            below += code < low
            between += is_between
            total += code & -is_between
            above += code > high + width
    kept = np.empty(codes.shape[0] - below - between - above, np.int64)
    with nogil:
        for i in range(codes.shape[0]):
            code = codes[i]
            if (<uint64_t> (code - low) <= <uint64_t> width) | (<uint64_t> (code - high) <= <uint64_t> width):
                kept[found] = code
                found += 1
    return np.sort(kept), (below, between, above, total, least, greatest)


def draw_groups(bit_generator, const double[::1] values not None, const int64_t[::1] offsets not None, Py_ssize_t start,
                int64_t[::1] out not None, *, int kind, const int64_t[:, ::1] sizes not None, double epsilon,
                int64_t corner, double lower, double upper, double step, double first, int64_t whole,
                Measure measure=None, bint flips=False, bint exact=False):
    """Draw a code for each of the groups start, start + 1, ... into out[start], ... until a group is too large.

    **Law** of `fill`, or `fill_flips` if `flips`, with the boxes of the statistic for group g, the records
    values[offsets[g]:offsets[g + 1]], from the same words: `shifted_sums` for `SUM`, `difference_ranges` for
    `DIFFERENCE`, `huber_ranges` with this corner for `HUBER`. Row n of `sizes` has what is public of a group of n
    records: the number of levels, the first and last rank, the corner of sums, the largest code, the radius. An empty
    group draws an integer of 0..whole by the measure, from two words. Returns the first group of more records than
    `sizes` has rows for, which is not drawn, or the number of groups.
    **Assumes** values free of NaN, offsets in order, a valid grid of whole + 1 points, epsilon > 0, levels from 1 to n,
    the measure None or on 0..whole; for sums and with `HUBER` what these assume. **Cost** a sort of each group and its
    levels; those of a difference squared.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t groups = out.shape[0], largest = sizes.shape[0] - 1, room = select_sort_room(largest), g = start, n
    cdef const double *records = &values[0] if values.shape[0] else NULL
    cdef double *sorting = <double *> malloc(2 * (room + 1) * sizeof(double))
    cdef double *powers = <double *> malloc(2 * (largest + 1) * sizeof(double))
    cdef int64_t *codes = <int64_t *> malloc(7 * (largest + 2) * sizeof(int64_t))
    cdef int64_t *left = codes + 3 * (largest + 2)
    cdef int64_t *right = left + largest + 2
    cdef int64_t *rest = right + largest + 2
    cdef int64_t *shells = rest + largest + 2
    cdef dpfast_grid grid = dpfast_grid(lower, upper, step, lower, first, 0)
    cdef dpfast_decay decay
    cdef dpfast_measure uniform
    cdef const dpfast_measure *base = of_measure(measure, &uniform, whole)
    cdef const dpfast_ranked_size *size
    try:
        if sorting == NULL or powers == NULL or codes == NULL:
            raise MemoryError
        with bit_generator.lock, nogil:
            dpfast_set_decay(&decay, epsilon / 2)
            dpfast_level_powers(powers, 2 * largest + 2, epsilon / 2)
            decay.powers, decay.count = powers, 2 * largest + 2
            while g < groups:
                n = offsets[g + 1] - offsets[g]
                if n > largest:
                    break
                if n == 0:
                    if measure is None:
                        dpfast_set_uniform(&uniform, whole)
                    source.next_uint64(source.state)  # which would choose a box, all being the whole
                    out[g] = dpfast_draw_point(base, source, 0, whole)
                else:
                    memcpy(sorting, records + offsets[g], n * sizeof(double))
                    dpfast_encode_array(&grid, select_sort(sorting, n, sorting + room), codes + largest + 1, n)
                    size = <const dpfast_ranked_size *> &sizes[n, 0]
                    if measure is None:
                        dpfast_set_uniform(&uniform, size.last)
                    dpfast_ranked_boxes(kind, size, codes + largest + 1, n, whole, corner, left, right, rest)
                    out[g] = _draw_ranked(source, bit_generator, base, size, left, right, rest, shells, &decay, epsilon,
                                          flips, exact)
                g += 1
        return g
    finally:
        free(sorting)
        free(powers)
        free(codes)


cdef int64_t _draw_ranked(bitgen_t *source, object bit_generator, const dpfast_measure *base,
                          const dpfast_ranked_size *size, int64_t *left, int64_t *right, int64_t *rest, int64_t *shells,
                          const dpfast_decay *decay, double epsilon, bint flips, bint exact) except -1 nogil:
    """One draw by the boxes, widened by the radius."""
    cdef Py_ssize_t n = size.levels, depth = dpfast_depth(left, right, n), t
    for t in range(n if size.radius else 0):
        left[t] = max(left[t] - size.radius, 0)
        right[t] = right[t] + min(size.last - right[t], size.radius)
    if flips:
        dpfast_shell_weights(base, left, right, shells, n)
        return _draw_flip(source, bit_generator, base, left, right, shells, <uint64_t *> rest, n, epsilon, size.last,
                          depth, exact)
    dpfast_level_cumulative(base, left, right, <double *> rest, n, depth, decay)
    return _draw_level(source, bit_generator, base, left, right, <double *> rest, n, epsilon, size.last, depth, exact)
