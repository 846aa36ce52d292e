"""The chain of the joint inverse sensitivity of several order statistics; serves dpfast/mechanisms/quantiles.py.

The states, the weights and the loops over them are in ``chain.h`` and ``wide_chain.h``, the proofs in
docs/proofs/joint-quantiles.md. This module has the forward pass, which computes all messages, and the backward walk,
which draws one output from them.
"""

from libc.math cimport fmin
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from numpy.random cimport bitgen_t

from dpfast._kernels._measures cimport Measure
from dpfast._kernels._samplers cimport unwrap
from measure cimport dpfast_draw_point, dpfast_measure

import numpy as np

from dpfast._kernels._samplers import next_word


cdef extern from "wide.h" nogil:
    ctypedef struct dpfast_wide:
        double mantissa
        int64_t exponent
    dpfast_wide WIDE_ZERO "DPFAST_WIDE_ZERO"
    dpfast_wide dpfast_wide_of(double x)
    dpfast_wide dpfast_wide_times(dpfast_wide x, dpfast_wide y)
    dpfast_wide dpfast_wide_exp_neg(double y)
    void dpfast_wide_scaled(const dpfast_wide *numbers, Py_ssize_t n, double least, double *doubles)


cdef extern from "chain.h" nogil:
    double STATE_FLOOR "DPFAST_STATE_FLOOR"
    double ARRIVAL_FLOOR "DPFAST_ARRIVAL_FLOOR"
    double CHOICE_FLOOR "DPFAST_CHOICE_FLOOR"
    enum: DPFAST_MOST_FREE
    ctypedef struct dpfast_wide_state:
        dpfast_wide value
        dpfast_wide gap
        dpfast_wide arrival
    ctypedef struct dpfast_target:
        Py_ssize_t rank
        Py_ssize_t first
        Py_ssize_t last
        int64_t lower
        int64_t upper
        const int64_t *x
        double *value
        double *gap
        double *arrival
        int64_t exponent
        dpfast_wide_state *wide
        const dpfast_measure *measure
        Py_ssize_t free
    double dpfast_exp_neg(double y)
    int64_t dpfast_gap(const dpfast_target *t, Py_ssize_t i, int64_t *start)
    void dpfast_step(dpfast_target *t, double a, const double *power, double *scratch)
    double dpfast_weight(double mass, double power)
    Py_ssize_t dpfast_sources(const dpfast_target *t, Py_ssize_t i, bint is_gap, double a, const double *power,
                              double *weights, Py_ssize_t *source, bint *only_value)
    Py_ssize_t dpfast_most_runs(const dpfast_target *t, Py_ssize_t i)
    Py_ssize_t dpfast_runs(const dpfast_target *t, Py_ssize_t i, const double *power, int64_t unit, double *terms)
    void dpfast_narrow(dpfast_target *t)
    int64_t dpfast_score(const dpfast_target *t, Py_ssize_t m, const int64_t *o, int64_t most)
    Py_ssize_t dpfast_choose_weight(uint64_t word, const double *weights, Py_ssize_t n, double *cumulative)
    uint64_t dpfast_uniform(bitgen_t *source, uint64_t last)


cdef extern from "wide_chain.h" nogil:
    double MOST_RATE "DPFAST_MOST_RATE"
    void dpfast_wide_step(dpfast_target *t, const dpfast_wide *power, dpfast_wide *scratch)
    dpfast_wide dpfast_wide_ends(const dpfast_target *t, const dpfast_wide *power, dpfast_wide *weights)
    void dpfast_wide_runs(const dpfast_target *t, Py_ssize_t i, const dpfast_wide *power, Py_ssize_t runs,
                          dpfast_wide *terms)
    Py_ssize_t dpfast_wide_sources(const dpfast_target *t, Py_ssize_t i, bint is_gap, const dpfast_wide *power,
                                   dpfast_wide *weights, Py_ssize_t *source, bint *only_value)


MOST_FREE = DPFAST_MOST_FREE  # targets between pins, with a base measure


def fill_multiset(bit_generator, int64_t start, int64_t width, int64_t[::1] out not None):
    """Fill with a uniform sorted vector of entries in start..start + width - 1, repetition allowed.

    **Law** exactly uniform on the C(width + r - 1, r) nondecreasing vectors of length r: r distinct numbers below
    width + r - 1, sorted, minus 0..r - 1. **Assumes** width >= 1, width + r < 2**63. **Cost** O(r log r), r words.
    **Reference** R. W. Floyd, in Bentley, Programming pearls, Comm. ACM 30 (1987).
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t r = out.shape[0], j
    chosen = set()
    for j in range(r):
        with bit_generator.lock, nogil:
            out[j] = <int64_t> dpfast_uniform(source, <uint64_t> (width - 1 + j))
        chosen.add(width - 1 + j if out[j] in chosen else out[j])
    for j, place in enumerate(sorted(chosen)):
        out[j] = start + <int64_t> place - j


cdef class Chain:
    """All weighted walks through the windows of the targets: the total weight, and draws of an output.

    **Law** of a draw: output o with probability weight(o) / total, where each weight is a product of doubles that
    differs from a**cost(o) times the weights of its entries in the measure by a factor in [1 - margin, 1 + margin] for
    a `certain` draw, and is never less than 1 - margin times that. a = exp(-rate). The exact probability is `odds`.
    None, a dead end, with negligible probability.

    **Assumes** ranks increasing, in 1..n; windows firsts..lasts of indices inside 0..n, within `reach` of the ranks,
    from which those that no code from lower to upper can have are left out;
    ``codes[bases[j] + i]`` is x_i, i = firsts[j] - 1 .. lasts[j] + 1, where x_0 = -1, x_(n+1) is beyond the grid, and
    x_(-1) is below -1; lowers, uppers nondecreasing and equal between two pins (lower = upper); with a measure at most
    `MOST_FREE` targets between pins.

    **Cost** O(states) for the forward pass and O(states) for a draw; 24 bytes for each state, or with more than `held`
    states for those between two pins, whose messages a draw computes again when it comes back to them.

    **Reference** Gillenwater, Joseph and Kulesza 2021 for the chain of quantiles.
    """

    cdef readonly double total
    cdef readonly int64_t exponent
    cdef readonly double margin
    cdef readonly bint certain
    cdef object _codes, _messages
    cdef Measure _measure
    cdef dpfast_target *_targets
    cdef Py_ssize_t _m, _reach
    cdef double _a
    cdef double[::1] _power, _weights, _cumulative, _scratch
    cdef int64_t[::1] _begins  # the first target of the block that ends with a target: after a pin, up to the next one
    cdef Py_ssize_t _held      # the first target of the block whose messages are in memory
    cdef Py_ssize_t _doubles   # for the message of a state
    cdef object _bits
    cdef bint _exact
    cdef list _path, _odds, _places

    def __cinit__(self):
        self._targets = NULL

    def __dealloc__(self):
        free(self._targets)

    def __init__(self, const int64_t[::1] codes not None, const int64_t[::1] bases not None,
                 const int64_t[::1] ranks not None, const int64_t[::1] firsts not None,
                 const int64_t[::1] lasts not None, const int64_t[::1] lowers not None,
                 const int64_t[::1] uppers not None, double rate, Py_ssize_t reach, Measure measure=None, *,
                 Py_ssize_t held=1 << 22):
        cdef Py_ssize_t m = ranks.shape[0], kept = 1, most = 0, block = 0, states = 0, width, j, size = 2 * reach + 1
        cdef dpfast_target *t
        cdef double[::1] pinned, between
        cdef double *room
        self._m, self._reach = m, reach
        self.margin = fmin(0.25, (m + 1) * (size + 64.0) * (1.0 + rate) * 2.0 ** -46)
        self._targets = <dpfast_target *> malloc((m + 1) * sizeof(dpfast_target))
        if self._targets == NULL:
            raise MemoryError
        for j in range(m + 1):
            t = self._targets + j
            t.measure = NULL if measure is None else &measure.measure
            if j == 0:  # the start: index 0, no output yet
                t.rank = t.first = t.last = t.free = 0
                t.lower = t.upper = t.exponent = 0
                continue
            t.rank, t.first, t.last = ranks[j - 1], firsts[j - 1], lasts[j - 1]
            t.lower, t.upper = lowers[j - 1], uppers[j - 1]
            t.x = &codes[bases[j - 1] + t.first - 1]
            t.free = 0 if t.lower == t.upper else (t - 1).free + 1
            dpfast_narrow(t)
            width = t.last - t.first + 1
            if t.free == 0:
                kept += width
                block = 0
            else:
                block += width
                most = max(most, block)
                states += width
        cdef bint whole = states <= held
        most = states if whole else most
        self._measure = measure
        self._codes = codes  # kept alive: the targets point into it
        self._set_powers(rate, size + 2)
        pinned, between = np.empty(self._doubles * kept), np.empty(self._doubles * most)
        self._messages = pinned, between
        self._scratch = np.empty(self._doubles * (3 * size + 2 * m + 1))
        self._weights = np.empty(size + m + 2)
        self._cumulative = np.empty(size + m + 2)
        self._begins = np.ones(m + 1, np.int64)
        kept = block = 0
        for j in range(m + 1):
            t = self._targets + j
            if j:
                self._begins[j] = self._begins[j - 1] if whole or (t - 1).free else j
            width = t.last - t.first + 1
            if t.free:
                block = block if whole or t.free > 1 else 0
                room = &between[self._doubles * block]
                block += width
            else:
                room = &pinned[self._doubles * kept]
                kept += width
            self._place(t, room)
        self._start(self._targets)
        with nogil:
            for j in range(1, m + 1):
                self._step(self._targets + j)
        self._held = self._begins[m]
        self.exponent = self._targets[m].exponent
        self.total = self._weigh_ends()

    cdef _set_powers(self, double rate, Py_ssize_t count):
        """The powers of a, and the memory of a state."""
        cdef double[::1] power = np.empty(count)
        cdef Py_ssize_t j
        self._a = dpfast_exp_neg(rate)
        power[0] = 1.0
        for j in range(1, count):
            power[j] = power[j - 1] * self._a
        self._power = power
        self._doubles = 3

    cdef void _place(self, dpfast_target *t, double *room) noexcept:
        """Put the message of a target into a room."""
        cdef Py_ssize_t width = t.last - t.first + 1
        t.value, t.gap, t.arrival = room, room + width, room + 2 * width

    cdef void _start(self, dpfast_target *t) noexcept:
        """The message before the first target."""
        t.value[0], t.gap[0], t.arrival[0] = 1.0, 0.0, 0.0

    cdef void _step(self, dpfast_target *t) noexcept nogil:
        """The message of a target from those before."""
        dpfast_step(t, self._a, &self._power[0], &self._scratch[0])

    cdef void _recall(self, Py_ssize_t j) noexcept nogil:
        """Hold the messages of the block that ends with target j, and of its sources."""
        cdef Py_ssize_t i = self._begins[j]
        if i != self._held:
            self._held = i
            while i <= self._m and self._targets[i].free:
                self._step(self._targets + i)
                i += 1

    cdef double _weigh_ends(self) noexcept:
        """The weights of the states of the last target, including the step to its rank; returns their sum."""
        cdef const dpfast_target *t = self._targets + self._m
        cdef Py_ssize_t i
        cdef double total = 0.0
        for i in range(t.first, t.last + 1):
            self._weights[i - t.first] = dpfast_weight(t.value[i - t.first] + t.gap[i - t.first],
                                                       self._power[abs(i - t.rank)])
            total += self._weights[i - t.first]
        return total

    cdef void _weigh_kinds(self, const dpfast_target *t, Py_ssize_t i, bint only_value) noexcept:
        """The weights of value and gap at an index."""
        self._weights[0] = t.value[i - t.first]
        self._weights[1] = 0.0 if only_value else t.gap[i - t.first]

    cdef Py_ssize_t _weigh_runs(self, const dpfast_target *t, Py_ssize_t i) noexcept:
        """The weights of the runs in a gap; returns their number."""
        cdef Py_ssize_t r, n = dpfast_runs(t, i, &self._power[0], t.exponent, &self._weights[0])
        for r in range(n):
            self._weights[r] = max(self._weights[r], CHOICE_FLOOR)
        return n

    cdef Py_ssize_t _weigh_sources(self, const dpfast_target *t, Py_ssize_t i, bint is_gap, Py_ssize_t *source,
                                   bint *only_value) noexcept:
        """The weights of the sources of a state; returns their number."""
        return dpfast_sources(t, i, is_gap, self._a, &self._power[0], &self._weights[0], source, only_value)

    cdef bint _is_raised(self, const dpfast_target *t, Py_ssize_t i, bint is_gap) noexcept:
        """Whether the message of a state may be a floor."""
        return (t.gap if is_gap else t.value)[i - t.first] <= 2 * STATE_FLOOR

    cdef bint _arrival_is_raised(self, const dpfast_target *t, Py_ssize_t i) noexcept:
        return t.arrival[i - t.first] <= 2 * ARRIVAL_FLOOR

    cdef Py_ssize_t _choose(self, Py_ssize_t n) except -2:
        """Choose one of the n weights, or -1 if all are zero; a replay repeats the choices and keeps their odds."""
        cdef Py_ssize_t chosen = -1, j
        cdef uint64_t word
        cdef double largest = 0.0
        cdef bitgen_t *source
        for j in range(n):
            largest = max(largest, self._weights[j])
        if largest == 0.0:
            return -1
        if self._odds is not None:
            chosen = <Py_ssize_t> self._path[<Py_ssize_t> len(self._odds)]
            self._odds.append((self._weights[chosen], np.array(self._weights[:n])))
            return chosen
        source = unwrap(self._bits)
        with self._bits.lock, nogil:
            word = source.next_uint64(source.state)
            chosen = dpfast_choose_weight(word, &self._weights[0], n, &self._cumulative[0])
        if self._exact or chosen < 0:
            from dpfast._kernels._balls import choose_weight
            chosen = choose_weight(word, lambda: next_word(self._bits), np.asarray(self._weights[:n]))
        self.certain &= self._weights[chosen] > CHOICE_FLOOR
        self._path.append(chosen)
        return chosen

    cdef _fill_run(self, int64_t start, int64_t width, int64_t[::1] out):
        """Fill with a sorted vector of entries in start..start + width - 1, by the product of their weights."""
        cdef bitgen_t *source = unwrap(self._bits)
        if self._measure is None:
            fill_multiset(self._bits, start, width, out)
        elif out.shape[0] == 1:
            with self._bits.lock, nogil:
                out[0] = dpfast_draw_point(&self._measure.measure, source, start, start + width - 1)
        else:
            from dpfast._kernels._multisets import draw
            run = draw(self._measure, start, start + width - 1, out.shape[0], lambda: next_word(self._bits))
            np.asarray(out)[:] = run

    cdef bint _walk(self, int64_t[::1] out) except -1:
        """Walk back from the last target to the start, one choice at a time; False at a dead end."""
        cdef Py_ssize_t j = self._m, i, r, n, first = 0
        cdef bint only_value = False, is_gap
        cdef int64_t width, start
        cdef dpfast_target *t = self._targets + j
        self._recall(j)
        self._weigh_ends()
        i = self._choose(t.last - t.first + 1)
        if i < 0:
            return False
        i += t.first
        while j > 0:
            t = self._targets + j
            with nogil:
                self._recall(j)
            self._weigh_kinds(t, i, only_value)
            is_gap = self._choose(2) == 1
            self.certain &= not self._is_raised(t, i, is_gap)
            r = 1
            if is_gap:
                width = dpfast_gap(t, i, &start)
                r = self._choose(self._weigh_runs(t, i)) + 1
                if self._odds is None:
                    self._fill_run(start, width, out[j - r:j])
                else:
                    self._places.append((start, width, r))
                t -= r - 1
                self.certain &= not self._arrival_is_raised(t, i)
            else:
                out[j - 1] = t.x[i - t.first + 1]
                if self._odds is not None and self._measure is not None:
                    self._places.append((out[j - 1], 1, 1))
            n = self._choose(self._weigh_sources(t, i, is_gap, &first, &only_value))
            if n < 0:
                return False
            only_value = only_value and first + n == i
            i = first + n
            j -= r
        return True

    def score(self, const int64_t[::1] o not None):
        """min(S(o), reach + 1) for an output o.

        **Law** deterministic. **Assumes** o nondecreasing, with the pinned values. **Cost** two binary searches for
        each target. **Reference** docs/proofs/joint-quantiles.md.
        """
        return dpfast_score(self._targets, self._m, &o[0], self._reach + 1)

    def draw(self, bit_generator, *, bint exact=False):
        """One output, or None at a dead end; `certain` tells whether the margin holds for it.

        **Law** that of the class. **Cost** O(states); two or three words for each target, one for each output in a gap.
        """
        out = np.empty(self._m, np.int64)
        self._bits, self._exact, self.certain, self._path = bit_generator, exact, True, []
        return out if self._walk(out) else None

    def odds(self):
        """The choices of the last output, (weight chosen, all weights), and (start, width, length) of each run.

        The probability of the output is the product of the quotients of weight and sum, times, for each run, the weight
        of its entries relative to that of all sorted vectors of that length. With a measure, an entry that is the value
        of a record counts as a run of its own.
        """
        cdef int64_t[::1] unused = np.empty(self._m, np.int64)
        self._odds, self._places = [], []
        self._walk(unused)
        odds, self._odds = self._odds, None
        return odds, self._places


cdef class WideChain(Chain):
    """The chain with messages of any size: no weight is raised, but in a choice to 2**-1020 of the largest.

    **Law**, **Assumes**, **Reference** as for `Chain`. The total is right to `margin` for all data, and a draw is
    `certain` but with negligible probability. **Cost** about ten times that of `Chain`, and O(1) for each two targets
    between pins in each gap between two records; 48 bytes for each state.
    """

    cdef double[::1] _powers, _sources  # wide numbers, of two words each

    cdef _set_powers(self, double rate, Py_ssize_t count):
        cdef Py_ssize_t j
        cdef dpfast_wide *power
        cdef dpfast_wide a = dpfast_wide_exp_neg(fmin(rate, MOST_RATE))
        self._powers, self._sources = np.empty(2 * count), np.empty(2 * (count + self._m))
        power = self._power_table()
        power[0] = dpfast_wide_of(1.0)
        for j in range(1, count):
            power[j] = dpfast_wide_times(power[j - 1], a)
        self._doubles = sizeof(dpfast_wide_state) // sizeof(double)

    cdef inline dpfast_wide *_power_table(self) noexcept nogil:
        return <dpfast_wide *> &self._powers[0]

    cdef inline dpfast_wide *_choices(self) noexcept nogil:
        return <dpfast_wide *> &self._sources[0]

    cdef Py_ssize_t _scale(self, Py_ssize_t n) noexcept:
        """The weights of n choices in units of the largest."""
        dpfast_wide_scaled(self._choices(), n, CHOICE_FLOOR, &self._weights[0])
        return n

    cdef void _place(self, dpfast_target *t, double *room) noexcept:
        t.wide = <dpfast_wide_state *> room

    cdef void _start(self, dpfast_target *t) noexcept:
        t.wide[0].value, t.wide[0].gap, t.wide[0].arrival = dpfast_wide_of(1.0), WIDE_ZERO, WIDE_ZERO

    cdef void _step(self, dpfast_target *t) noexcept nogil:
        t.exponent = 0
        dpfast_wide_step(t, self._power_table(), <dpfast_wide *> &self._scratch[0])

    cdef double _weigh_ends(self) noexcept:
        cdef const dpfast_target *t = self._targets + self._m
        cdef dpfast_wide total = dpfast_wide_ends(t, self._power_table(), self._choices())
        self._scale(t.last - t.first + 1)
        self.exponent = total.exponent if total.mantissa else 0
        return total.mantissa

    cdef void _weigh_kinds(self, const dpfast_target *t, Py_ssize_t i, bint only_value) noexcept:
        cdef dpfast_wide *weights = self._choices()
        weights[0] = t.wide[i - t.first].value
        weights[1] = WIDE_ZERO if only_value else t.wide[i - t.first].gap
        self._scale(2)

    cdef Py_ssize_t _weigh_runs(self, const dpfast_target *t, Py_ssize_t i) noexcept:
        cdef Py_ssize_t n = dpfast_most_runs(t, i)
        dpfast_wide_runs(t, i, self._power_table(), n, self._choices())
        return self._scale(n)

    cdef Py_ssize_t _weigh_sources(self, const dpfast_target *t, Py_ssize_t i, bint is_gap, Py_ssize_t *source,
                                   bint *only_value) noexcept:
        return self._scale(dpfast_wide_sources(t, i, is_gap, self._power_table(), self._choices(), source, only_value))

    cdef bint _is_raised(self, const dpfast_target *t, Py_ssize_t i, bint is_gap) noexcept:
        return False

    cdef bint _arrival_is_raised(self, const dpfast_target *t, Py_ssize_t i) noexcept:
        return False
