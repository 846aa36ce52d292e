"""The chain of the joint inverse sensitivity of several order statistics; serves dpfast/mechanisms/quantiles.py.

The states, the weights and the loops over them are in ``chain.h`` and ``wide_chain.h``, the proofs in
docs/proofs/joint-quantiles.md. This module has the forward pass, which computes all messages, and the backward walk,
which draws one output from them.
"""

from libc.math cimport INFINITY, M_LN2, fabs, fmin
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

from chain cimport (
    ARRIVAL_FLOOR,
    CHOICE_FLOOR,
    DPFAST_MOST_FREE,
    MOST_RATE,
    STATE_FLOOR,
    WIDE_ZERO,
    dpfast_choose_weight,
    dpfast_exp_neg,
    dpfast_gap,
    dpfast_log,
    dpfast_most_runs,
    dpfast_narrow,
    dpfast_runs,
    dpfast_score,
    dpfast_sources,
    dpfast_step,
    dpfast_target,
    dpfast_uniform,
    dpfast_weight,
    dpfast_wide,
    dpfast_wide_ends,
    dpfast_wide_exp_neg,
    dpfast_wide_of,
    dpfast_wide_runs,
    dpfast_wide_scaled,
    dpfast_wide_sources,
    dpfast_wide_state,
    dpfast_wide_step,
    dpfast_wide_times,
)
from dpfast._kernels._measures cimport Measure
from dpfast._kernels._samplers cimport unwrap
from grid cimport dpfast_encode_array, dpfast_grid
from measure cimport dpfast_draw_point

import numpy as np

from dpfast._kernels._samplers import in_one_piece, next_word

cdef extern from "select.h":
    Py_ssize_t select_sort_room(Py_ssize_t n) noexcept nogil
    double *select_sort(double *x, Py_ssize_t n, double *scratch) noexcept nogil

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
        self.refresh()

    def refresh(self):
        """Compute the messages again, after the codes have changed.

        **Assumes** no pins, so that the windows do not depend on the codes. **Cost** O(states).
        """
        cdef Py_ssize_t j
        self._start(self._targets)
        with nogil:
            for j in range(1, self._m + 1):
                self._step(self._targets + j)
        self._held = self._begins[self._m]
        self.exponent = self._targets[self._m].exponent
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

    cdef Py_ssize_t _choose(self, Py_ssize_t n, Py_ssize_t first, Py_ssize_t j, Py_ssize_t away) except -2:
        """Choose one of the n weights, whose numbers begin with `first`, or -1 if no choice is made.

        The weights are parts of messages of target j, for a state `away` from its rank. A replay repeats the choices
        and keeps their odds.
        """
        cdef Py_ssize_t chosen, k = 0
        while k < n and self._weights[k] == 0.0:
            k += 1
        if k == n:
            return -1
        if self._next < <Py_ssize_t> len(self._path):
            chosen = <Py_ssize_t> self._path[self._next] - first
            if self._odds is not None:
                self._odds.append((self._weights[chosen], np.array(self._weights[:n])))
        else:
            chosen = self._decide(n, j, away)
            if chosen < 0:
                return -1
            self._path.append(first + chosen)
        self.certain &= self._weights[chosen] > CHOICE_FLOOR
        self._next += 1
        return first + chosen

    cdef int _draw_word(self) except -1:
        """Draw the word of the next choice, unless it was drawn before."""
        cdef bitgen_t *source = unwrap(self._bits)
        if not self._waits:
            with self._bits.lock, nogil:
                self._word = source.next_uint64(source.state)
        self._waits = False
        return 0

    cdef Py_ssize_t _decide(self, Py_ssize_t n, Py_ssize_t j, Py_ssize_t away) except -2:
        """The choice of a word among the n weights."""
        cdef Py_ssize_t chosen
        self._draw_word()
        chosen = dpfast_choose_weight(self._word, &self._weights[0], n, &self._cumulative[0])
        return _chosen_exactly(self, n) if self._exact or chosen < 0 else chosen

    cdef _fill_run(self, int64_t start, int64_t width, int64_t[::1] out):
        """Fill with a sorted vector of entries in start..start + width - 1, by the product of their weights."""
        cdef bitgen_t *source = unwrap(self._bits)
        if self._measure is None:
            fill_multiset(self._bits, start, width, out)
        elif out.shape[0] == 1:
            with self._bits.lock, nogil:
                out[0] = dpfast_draw_point(&self._measure.measure, source, start, start + width - 1)
        else:
            _fill_longer_run(self, start, width, out)

    cdef bint _walk(self, int64_t[::1] out) except -1:
        """Walk back from the last target to the start, one choice at a time; False where no choice is made."""
        cdef Py_ssize_t j = self._m, i, r, n, kind, away, source, first = 0
        cdef bint only_value = False, is_gap
        cdef int64_t width, start
        cdef dpfast_target *t = self._targets + j
        self._next = 0
        self._recall(j)
        self._weigh_ends()
        i = self._choose(t.last - t.first + 1, t.first, j, 0)
        if i < 0:
            return False
        while j > 0:
            t = self._targets + j
            with nogil:
                self._recall(j)
            away = abs(i - t.rank)
            self._weigh_kinds(t, i, only_value)
            kind = self._choose(2, 0, j, away)
            if kind < 0:
                return False
            is_gap = kind == 1
            self.certain &= not self._is_raised(t, i, is_gap)
            r = 1
            if is_gap:
                width = dpfast_gap(t, i, &start)
                r = self._choose(self._weigh_runs(t, i), 1, j, away)
                if r < 0:
                    return False
                if self._odds is not None:
                    self._places.append((start, width, r))
                elif self._next > self._filled:
                    self._fill_run(start, width, out[j - r:j])
                t -= r - 1
                self.certain &= not self._arrival_is_raised(t, i)
            else:
                out[j - 1] = t.x[i - t.first + 1]
                if self._odds is not None and self._measure is not None:
                    self._places.append((out[j - 1], 1, 1))
            j -= r
            n = self._weigh_sources(t, i, is_gap, &first, &only_value)
            source = self._choose(n, first, j, abs(i - t.rank))
            if source < 0:
                return False
            only_value = only_value and source == i
            i = source
        return True

    def score(self, const int64_t[::1] o not None):
        """min(S(o), reach + 1) for an output o.

        **Law** deterministic. **Assumes** o nondecreasing, with the pinned values. **Cost** two binary searches for
        each target. **Reference** docs/proofs/joint-quantiles.md.
        """
        return dpfast_score(self._targets, self._m, &o[0], self._reach + 1)

    def scores(self, const int64_t[:, ::1] outputs not None, int64_t[::1] out not None):
        """Fill with `score` of each row."""
        cdef Py_ssize_t i
        for i in range(outputs.shape[0]):
            out[i] = dpfast_score(self._targets, self._m, &outputs[i, 0], self._reach + 1)

    def draw(self, bit_generator, *, bint exact=False):
        """One output, or None at a dead end; `certain` tells whether the margin holds for it.

        **Law** that of the class. **Cost** O(states); two or three words for each target, one for each output in a gap.
        """
        out = np.empty(self._m, np.int64)
        self._begin(bit_generator, exact, [])
        return out if self._walk(out) else None

    cdef void _begin(self, bit_generator, bint exact, list path) noexcept:
        """Before a draw of which some choices are made."""
        self._bits, self._exact, self._path, self._filled = bit_generator, exact, path, len(path)
        self.certain, self._waits = True, False

    def whole(self):
        """The chain whose total and odds the exact decisions take: this one."""
        return self

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


cdef Py_ssize_t _chosen_exactly(Chain chain, Py_ssize_t n) except -2:
    """The choice of the last word among the n weights, in exact arithmetic. A function of its own: it has a closure."""
    from dpfast._kernels._balls import choose_weight
    return choose_weight(chain._word, lambda: next_word(chain._bits), np.asarray(chain._weights[:n]))


cdef int _fill_longer_run(Chain chain, int64_t start, int64_t width, int64_t[::1] out) except -1:
    """Fill with a sorted vector of several entries by the measure."""
    from dpfast._kernels._multisets import draw
    np.asarray(out)[:] = draw(chain._measure, start, start + width - 1, out.shape[0], lambda: next_word(chain._bits))
    return 0


cdef class GroupChain(Chain):
    """A chain without pins that draws for many groups, while the lock of the generator is held."""

    cdef bitgen_t *_source

    cdef int _draw_word(self) except -1:
        if not self._waits:
            self._word = self._source.next_uint64(self._source.state)
        self._waits = False
        return 0

    cdef _fill_run(self, int64_t start, int64_t width, int64_t[::1] out):
        if self._measure is not None and out.shape[0] == 1:
            out[0] = dpfast_draw_point(&self._measure.measure, self._source, start, start + width - 1)
        else:
            Chain._fill_run(self, start, width, out)


cdef class GroupStage:
    """The draws of groups of one size by one chain, whose codes change from group to group.

    Parameters
    ----------
    chain : GroupChain
    codes : ndarray of int64
        Those that the chain reads.
    ranks : ndarray of int64
        The rank, from 1, of the record in each place of `codes`; 0 for a place that stays.
    places : ndarray of int64
        The target of each number of a release.
    epsilon : float
    reach : int
    last : int
        The greatest code.
    logs : pair of float
        The logarithms of the weight of "anywhere" and of that of all vectors.
    decisions : object
        Decides what doubles leave open: ``anywhere(source)``, ``goes_anywhere(word, source)``,
        ``keeps(word, source, score)`` and, after `rounds` in vain, ``rest(source)``.
    """

    cdef GroupChain _chain
    cdef int64_t[::1] _codes, _drawn
    cdef const int64_t[::1] _ranks, _places
    cdef double _epsilon, _log_anywhere, _log_vectors
    cdef Py_ssize_t _reach
    cdef int64_t _last
    cdef object _decisions

    def __init__(self, GroupChain chain not None, int64_t[::1] codes not None, const int64_t[::1] ranks not None,
                 const int64_t[::1] places not None, double epsilon, Py_ssize_t reach, int64_t last, logs, decisions):
        self._chain, self._codes, self._ranks, self._places = chain, codes, ranks, places
        self._epsilon, self._reach, self._last, self._decisions = epsilon, reach, last, decisions
        self._log_anywhere, self._log_vectors = logs
        self._drawn = np.empty(chain._m, np.int64)

    cdef int _read(self, const int64_t *codes) except -1:
        """Take the sorted codes of a group."""
        cdef Py_ssize_t i
        for i in range(self._codes.shape[0]):
            if self._ranks[i]:
                self._codes[i] = codes[self._ranks[i] - 1]
        self._chain.refresh()
        return 0

    cdef int _draw(self, object bit_generator, Py_ssize_t rounds, bint exact, int64_t[::1] out) except -1:
        """Draw the numbers of a release: proposals of the chain until one is kept, as `JointQuantiles` does."""
        cdef GroupChain chain = self._chain
        cdef int64_t[::1] drawn = self._drawn
        cdef Py_ssize_t i, void = 0
        cdef int64_t score
        while True:
            if void == rounds:
                drawn = self._decisions.rest(bit_generator)
                break
            void += 1
            if self._goes_anywhere(bit_generator, exact):
                if chain._measure is None:
                    fill_multiset(bit_generator, 0, self._last + 1, drawn)
                else:
                    drawn = self._decisions.anywhere(bit_generator)
                break
            chain._begin(bit_generator, exact, [])
            if not chain._walk(drawn):
                continue
            score = dpfast_score(chain._targets, chain._m, &drawn[0], self._reach + 1)
            if score <= self._reach and self._keeps(bit_generator, score, exact):
                break
        for i in range(out.shape[0]):
            out[i] = drawn[self._places[i]]
        return 0

    cdef bint _goes_anywhere(self, object bit_generator, bint exact) except -1:
        cdef GroupChain chain = self._chain
        cdef uint64_t word = chain._source.next_uint64(chain._source.state)
        cdef double at = <double> word * 2.0 ** -64, share, doubt
        cdef double log_total = -INFINITY, odds, less
        if chain.total:
            log_total = dpfast_log(chain.total) + <double> chain.exponent * M_LN2
        odds = fmin(log_total - self._log_anywhere, 700.0)
        less = dpfast_exp_neg(fabs(odds))
        share = (less if odds > 0 else 1.0) / (1.0 + less)
        doubt = fabs(self._log_anywhere) + fabs(log_total) + fabs(self._log_vectors) + 2.0 ** 10
        doubt = fmin(2.0 * (2.0 * chain.margin + 2.0 ** -48 * doubt) * share, 1.0) + 2.0 ** -52
        if fabs(at - share) > doubt and not exact:
            return at < share
        return self._decisions.goes_anywhere(word, bit_generator)

    cdef bint _keeps(self, object bit_generator, int64_t score, bint exact) except -1:
        cdef GroupChain chain = self._chain
        cdef uint64_t word = chain._source.next_uint64(chain._source.state)
        cdef double beyond = dpfast_exp_neg(self._epsilon / 2.0 * <double> (self._reach + 1 - score))
        cdef double doubt = 4.0 * chain.margin + beyond + 2.0 ** -40
        if chain.certain and not exact and <double> (word >> 11) * 2.0 ** -53 < 1.0 - doubt - 2.0 ** -50:
            return True
        return self._decisions.keeps(word, bit_generator, score)


def draw_groups(bit_generator, const double[::1] values not None, const int64_t[::1] offsets not None, Py_ssize_t start,
                int64_t[:, ::1] out not None, list stages not None, *, double lower, double upper, double step,
                double first, Py_ssize_t rounds, bint exact=False):
    """Draw codes for each of the groups start, start + 1, ... into out[start], ... until one has no `GroupStage`.

    **Law** of `JointQuantiles` for group g, the records values[offsets[g]:offsets[g + 1]], from the same words;
    ``stages[n]`` is that of n records, or None. Empty groups are skipped. Returns the first group without one, which is
    not drawn, or the number of groups.
    **Assumes** values free of NaN, offsets in order, a valid grid; no other thread draws by the same stages. **Cost** a
    sort of each group, and that of a chain and its draw.
    """
    cdef Py_ssize_t groups = out.shape[0], largest = len(stages) - 1, room = select_sort_room(largest), g, n
    cdef dpfast_grid grid = dpfast_grid(lower, upper, step, lower, first, 0)
    cdef const double *records = &values[0] if values.shape[0] else NULL
    cdef double *sorting = <double *> malloc(2 * (room + 1) * sizeof(double))
    cdef int64_t *codes = <int64_t *> malloc((largest + 1) * sizeof(int64_t))
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef GroupStage stage
    try:
        if sorting == NULL or codes == NULL:
            raise MemoryError
        with in_one_piece(bit_generator):
            for g in range(start, groups):
                n = offsets[g + 1] - offsets[g]
                if n == 0:
                    continue
                stage = stages[n] if n <= largest else None
                if stage is None:
                    return g
                memcpy(sorting, records + offsets[g], n * sizeof(double))
                dpfast_encode_array(&grid, select_sort(sorting, n, sorting + room), codes, n)
                stage._chain._source = source
                stage._read(codes)
                stage._draw(bit_generator, rounds, exact, out[g])
            return groups
    finally:
        free(sorting)
        free(codes)


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
