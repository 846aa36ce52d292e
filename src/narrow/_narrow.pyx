"""The draws of a chain of joint quantiles from narrow windows; serves dpfast/mechanisms/quantiles.py.

The states and the loops over them are those of ``_chain.pyx``, the proofs in docs/proofs/joint-quantiles.md.
"""

from libc.math cimport INFINITY, fmax, fmin
from libc.stdint cimport int64_t

from chain cimport dpfast_choose_weight, dpfast_exp_neg, dpfast_log, dpfast_target
from dpfast._kernels._chain cimport Chain
from dpfast._kernels._measures cimport Measure

import numpy as np

cdef double LOG_2 = 0.6931471805599453
cdef double MOST_RAISED = 500.0  # e**500 is below 2**722: with 2**-880 nothing to an error


cdef inline double least_of_one(double x) noexcept:
    """min(exp(x), 1)."""
    return dpfast_exp_neg(-x) if x < 0.0 else 1.0


cdef class NarrowChain(Chain):
    """The draws of the chain that `make_whole` makes, from messages in `near` indices on each side of the ranks.

    **Law** that of the whole chain, the same output for the same words: a choice is made here if a bound of what the
    narrow windows leave out, and of all roundings, leaves no doubt. In doubt the whole chain is made, repeats the
    choices so far and goes on with the same word. `is_bounded` tells whether there is such a bound at all pins and for
    `total`, which is then that of the whole chain within a factor in [1 - margin, 1 + margin].

    **Assumes** as for `Chain`, with the arguments of the whole chain; all indices that a pin can have are less than
    `near` from its rank; vectors[j - 1] is the logarithm of the weight of all sorted vectors from the target after the
    last pin to target j.

    **Cost** that of `Chain`, for 2 near + 1 states for each target.

    **Reference** docs/proofs/joint-quantiles.md, "Narrow windows".
    """

    cdef readonly bint is_bounded
    cdef object _make_whole
    cdef Chain _whole
    cdef bint _goes_on         # the last draw went on in the whole chain
    cdef double _rate
    cdef double _error         # of a message, relative
    cdef double[::1] _omitted  # the log of the walks to a target that leave windows after the last pin, times a**away
    cdef double[::1] _share    # the share of those that leave windows before
    cdef double[::1] _raised   # the log of what floors may add to a message, times 2**880

    def __init__(self, make_whole, Py_ssize_t near, const double[::1] vectors not None, codes, bases, ranks, firsts,
                 lasts, lowers, uppers, double rate, Py_ssize_t reach, Measure measure=None):
        firsts, lasts = np.maximum(ranks - near, firsts), np.minimum(ranks + near, lasts)
        Chain.__init__(self, codes, bases, ranks, firsts, lasts, lowers, uppers, rate, reach, measure)
        self._make_whole, self._rate, self._error = make_whole, rate, self.margin / 32
        self._omitted, self._raised = np.full((2, self._m + 1), -np.inf)
        self._share = np.zeros(self._m + 1)
        self.is_bounded = self.margin < 0.25 and self._bound(near, vectors)
        self.margin *= 2

    cdef bint _bound(self, Py_ssize_t near, const double[::1] vectors) except -1:
        """Bound what is left out; False if a pin has no state of which little is, or the end."""
        cdef const dpfast_target *t
        cdef Py_ssize_t j, i, poor, begin = 1  # the first target after the last pin
        cdef double start = 0.0  # the log of the sum of the messages of the last pin, each times a**-away
        cdef double carried = -INFINITY, floors = 0.0  # omitted and raised there, at states with few other walks
        cdef double share = 0.0, least, sum, mass, away
        cdef double[::1] units = np.zeros(self._m + 1)  # the log of that of the whole chain's message, at most
        for j in range(1, self._m + 1):
            t = self._targets + j
            self._omitted[j] = fmax(start - self._rate * (2 * near + 2), carried) + vectors[j - 1] + LOG_2
            mass = fmax(t.exponent * LOG_2, fmax(start - self._rate * (near + 1), carried) + vectors[j - 1])
            units[j] = fmax(units[j - 1] - 40 * LOG_2, mass + 3 * LOG_2)
            self._raised[j] = floors + vectors[j - 1]
            for i in range(begin, j):
                self._raised[j] = fmax(self._raised[j], units[i] + vectors[begin - 1 + j - i])
            units[j] = fmax(units[j], self._raised[j] - MOST_RAISED)
            self._raised[j] = fmax(self._raised[j], units[j] + vectors[begin - 1])
            self._share[j] = share
            if t.free:
                continue
            poor, sum, least = 0, 0.0, INFINITY
            for i in range(t.first, t.last + 1):
                mass = t.value[i - t.first] + t.gap[i - t.first]
                if mass == 0.0:
                    continue
                away = self._rate * abs(i - t.rank)
                sum += mass / dpfast_exp_neg(away)
                mass = dpfast_log(mass) - away + t.exponent * LOG_2
                if (self._m * least_of_one(self._omitted[j] - mass) < self._error
                        and self._raised[j] - mass <= MOST_RAISED):
                    least = fmin(least, mass)
                else:
                    poor += 1
            share += 2.0 * (1.0 + share) * least_of_one(self._omitted[j] - least)
            if least == INFINITY or sum == INFINITY or not share <= self._error:
                return False
            carried = self._omitted[j] + dpfast_log(poor) if poor else -INFINITY
            floors = fmax(units[j], self._raised[j]) if poor else units[j]
            start, begin = dpfast_log(sum) + t.exponent * LOG_2, j + 1
            self._omitted[j], self._share[j] = carried, share
        return self.total > 0.0 and self._is_near(dpfast_log(self.total) + self.exponent * LOG_2, self._m, 0)

    cdef bint _is_near(self, double log_total, Py_ssize_t j, Py_ssize_t away) noexcept:
        """Whether little is left out, or raised, of a sum of messages of target j, so far from its rank."""
        cdef double share = self._share[j]
        share += 2.0 * (1.0 + share) * least_of_one(self._omitted[j] + self._rate * away - log_total)
        return share <= 2.0 * self._error and self._raised[j] - log_total <= MOST_RAISED

    cdef Py_ssize_t _decide(self, Py_ssize_t n, Py_ssize_t j, Py_ssize_t away) except -2:
        cdef double total, place, below, doubt
        cdef Py_ssize_t chosen
        self._draw_word()
        self._waits = True  # for the whole chain
        chosen = dpfast_choose_weight(self._word, &self._weights[0], n, &self._cumulative[0])
        if chosen < 0:
            return -1
        total = self._cumulative[n - 1]
        if not self._is_near(dpfast_log(total) + self._targets[j].exponent * LOG_2, j, away):
            return -1
        place, doubt = self._word * 2.0 ** -64 * total, (8.0 * self._error + 2.0 ** -46) * total
        below = self._cumulative[chosen - 1] if chosen else 0.0  # what is left out may be below all
        if place - below < doubt or self._cumulative[chosen] - place < doubt:
            return -1
        self._waits = False
        return chosen

    def draw(self, bit_generator, *, bint exact=False):
        cdef Chain whole
        out = np.empty(self._m, np.int64)
        self._begin(bit_generator, exact, [])
        self._goes_on = exact or not self._walk(out)
        if not self._goes_on:
            return out
        whole = self.whole()
        whole._begin(bit_generator, exact, self._path)
        whole._word, whole._waits = self._word, self._waits
        walked = whole._walk(out)
        self.certain = whole.certain
        return out if walked else None

    def whole(self):
        if self._whole is None:
            self._whole = self._make_whole()
        return self._whole

    def score(self, const int64_t[::1] o not None):
        """min(S(o), reach + 1) for the last output o."""
        return self.whole().score(o) if self._goes_on else Chain.score(self, o)

    def odds(self):
        cdef Chain whole = self.whole()
        whole._path = self._path
        return whole.odds()
