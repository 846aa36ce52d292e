"""Many windows of order statistics in little more than one pass over the data; serves dpfast/streaming/ranks.py.

The loops are in ``spans.h`` and ``brackets.h``. This module has the steps between them: it chooses brackets, marks
buckets and finds the place of each rank among the copied keys.
"""

cimport numpy as cnp
from libc.math cimport NAN
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from select cimport (
    describe,
    select_bracket,
    select_keys,
    select_load_filled,
    select_plan,
    select_sample,
    select_set_grid,
)

import numpy as np

from dpfast._kernels._threads import each
from dpfast._kernels._sources import secret_word

cnp.import_array()

cdef extern from "spans.h" nogil:
    struct windows_buckets:
        double lower

    Py_ssize_t WINDOWS_BUCKETS
    Py_ssize_t WINDOWS_POINTS
    Py_ssize_t WINDOWS_COUNTED

    windows_buckets windows_between(double low, double high, double lower, double upper)
    windows_buckets windows_of_points(double lower, double upper, double step)
    void windows_count(const select_keys *keys, const windows_buckets *b, Py_ssize_t start, Py_ssize_t stop,
                       uint16_t *found, uint32_t *counts, Py_ssize_t size)
    Py_ssize_t windows_collect(const select_keys *keys, const windows_buckets *b, Py_ssize_t start, Py_ssize_t stop,
                               const uint16_t *found, const unsigned char *marked, double *room,
                               Py_ssize_t capacity)

cdef extern from "brackets.h" nogil:
    struct brackets:
        double edges[32]
        int used

    struct brackets_counts:
        int64_t of[32]

    enum: BRACKETS_MOST
    enum: BRACKETS_EDGES
    Py_ssize_t BRACKETS_BLOCK
    double SELECT_SLACK

    bint brackets_pay()
    Py_ssize_t brackets_scan(const select_keys *keys, const brackets *b, Py_ssize_t start, Py_ssize_t stop,
                             double *room, Py_ssize_t capacity, brackets_counts *counts)


cdef enum:
    BRACKETED = 1 << 18         # from this size on brackets pay off
    SORTED = 4096               # up to this size a sort is faster than a pass
    CHECKED = 1 << 18           # records among which NaN are looked for at once
    RECORDS_A_WORKER = 1 << 18  # with fewer records a second thread does not pay off


class _Missing(Exception):
    """A key is NaN, and nothing stands for it."""


cdef object ranks_between(firsts, lasts):
    """firsts[0]..lasts[0], then firsts[1]..lasts[1] and so on."""
    lengths = lasts - firsts + 1
    ends = lengths.cumsum()
    return np.arange(np.add.reduce(lengths)) + (lasts - ends + 1).repeat(lengths)


cdef class _WindowRecords:
    """The records and the requested ranks."""

    cdef object values
    cdef select_keys keys
    cdef windows_buckets buckets
    cdef brackets brackets
    cdef uint16_t[::1] found
    cdef Py_ssize_t size  # buckets, those beyond the ends included
    cdef double lower, upper, step, missing
    cdef Py_ssize_t workers

    def __init__(self, object values, double lower, double upper, double step, double missing, Py_ssize_t workers):
        self.values, self.lower, self.upper, self.step, self.missing = values, lower, upper, step, missing
        describe(&self.keys, values)
        self.workers = max(1, min(workers, self.keys.n // RECORDS_A_WORKER))
        select_set_grid(&self.keys, lower, upper, step, missing)

    cdef object ordered(self, firsts, lasts):
        """Order statistics firsts[0]..lasts[0] and so on, by a sort of all keys."""
        keys = np.empty(self.keys.n)
        cdef double[::1] view = keys
        with nogil:
            select_load_filled(&self.keys, 0, self.keys.n, &view[0])
        keys.sort()
        if keys[keys.size - 1] != keys[keys.size - 1]:  # NaN is last
            raise _Missing
        found = np.concatenate([keys[first - 1:last] for first, last in zip(firsts, lasts, strict=True)])
        return np.clip(found, self.lower, self.upper, out=found)

    cdef object sample(self, Py_ssize_t width):
        """Sorted keys, one from each stratum of so many records."""
        cdef Py_ssize_t strata = self.keys.n // width
        keys = np.empty(strata)
        cdef double[::1] view = keys
        cdef uint64_t secret = secret_word()
        with nogil:
            select_sample(&self.keys, width, secret, 0, strata, &view[0])
        keys.sort()
        if keys[strata - 1] != keys[strata - 1]:  # NaN is last
            raise _Missing
        return keys

    cdef object check_missing(self):
        """Raise `_Missing` if a key is NaN and nothing stands for it; else a number does from now on."""
        if self.missing == self.missing:
            return
        cdef Py_ssize_t start
        if self.values.dtype.kind == "f":
            with np.errstate(invalid="ignore"):  # a signalling NaN
                for start in range(0, self.keys.n, CHECKED):  # parts of a column are converted
                    least = np.minimum.reduce(self.values[start:start + CHECKED])
                    if least != least:
                        raise _Missing
        self.missing = self.lower
        select_set_grid(&self.keys, self.lower, self.upper, self.step, self.missing)

    cdef Py_ssize_t start(self, Py_ssize_t worker):
        return self.keys.n // self.workers * worker + min(worker, self.keys.n % self.workers)

    def count(self, Py_ssize_t worker):
        """The counts of one worker's records."""
        cdef uint32_t[:, ::1] counts
        cdef Py_ssize_t begin, start = self.start(worker), stop = self.start(worker + 1)
        total = np.zeros(self.size, np.int64)
        for begin in range(start, stop, WINDOWS_COUNTED):
            counts = np.zeros((2, self.size), np.uint32)
            with nogil:
                windows_count(&self.keys, &self.buckets, begin, min(begin + WINDOWS_COUNTED, stop), &self.found[0],
                              &counts[0, 0], self.size)
            total += np.add.reduce(np.asarray(counts), axis=0, dtype=np.int64)
        return total

    def collect(self, Py_ssize_t worker, const unsigned char[::1] marked, Py_ssize_t capacity):
        """The keys of one worker's records in marked buckets."""
        room = np.empty(capacity + 1)
        cdef double[::1] view = room
        cdef Py_ssize_t start = self.start(worker), stop = self.start(worker + 1), collected
        with nogil:
            collected = windows_collect(&self.keys, &self.buckets, start, stop, &self.found[0], &marked[0], &view[0],
                                        capacity)
        return room[:collected]

    def each(self, task, *arguments):
        """The results of a task for all workers."""
        if self.workers == 1:
            return [task(0, *arguments)]
        return each(lambda worker: task(worker, *arguments), range(self.workers), self.workers)

    cdef object counts(self):
        """The number of keys in each bucket; finds the bucket of each record."""
        self.found = np.empty(self.keys.n, np.uint16)
        return sum(self.each(self.count))

    cdef object on_few_points(self, ranks):
        """The order statistics of these ranks on a grid with a bucket for each point, from counts alone."""
        self.buckets, self.size = windows_of_points(self.lower, self.upper, self.step), WINDOWS_POINTS
        return self.lower + (self.counts().cumsum().searchsorted(ranks) - 1) * self.step

    cdef object by_buckets(self, firsts, lasts):
        """Order statistics firsts[0]..lasts[0] and so on; None where more than half of the keys would be copied."""
        cdef select_bracket plan
        cdef double low, high
        plan = select_plan(self.keys.n, firsts[0], lasts[len(lasts) - 1])
        sample = self.sample(plan.width)
        low, high = sample[max(plan.first, 1) - 1], sample[min(plan.last, plan.strata) - 1]
        self.buckets = windows_between(min(max(low, self.lower), self.upper), min(max(high, self.lower), self.upper),
                                       self.lower, self.upper)
        self.size = WINDOWS_BUCKETS + 2
        counts = self.counts()
        cumulative = counts.cumsum()
        marked = np.zeros(self.size, np.uint8)
        begins = cumulative.searchsorted(firsts)
        for first, last in zip(begins.tolist(), cumulative.searchsorted(lasts).tolist(), strict=True):
            marked[first:last + 1] = 1
        copied = int(np.add.reduce(counts[marked > 0]))
        if copied > self.keys.n // 2:
            return None
        parts = self.each(self.collect, marked, copied)
        keys = np.concatenate(parts) if self.workers > 1 else parts[0]
        if keys.size != copied:
            raise RuntimeError("values were written to while they were read")
        keys.sort()
        # A window holds no bucket that was left out, so that all its ranks move by one number.
        left_out = (counts * (marked == 0)).cumsum()[begins]
        return keys[ranks_between(firsts - left_out, lasts - left_out) - 1]

    def filter(self, Py_ssize_t worker, Py_ssize_t capacity):
        """The counts of one worker's records by class, and the keys inside brackets; None if there are too many."""
        cdef int64_t[::1] classes = np.zeros(BRACKETS_EDGES + 1, np.int64)
        room = np.empty(capacity + BRACKETS_BLOCK + 8)
        cdef double[::1] view = room
        cdef Py_ssize_t start = self.start(worker), stop = self.start(worker + 1), copied
        with nogil:
            copied = brackets_scan(&self.keys, &self.brackets, start, stop, &view[0], capacity,
                                   <brackets_counts *> &classes[0])
        if copied == -2:
            raise _Missing
        return None if copied < 0 else (np.asarray(classes), room[:copied])

    cdef object by_brackets(self, firsts, lasts):
        """The same from the keys inside brackets around the windows; None if the sample gives no good brackets."""
        cdef Py_ssize_t n = self.keys.n, j
        width = max(1, n // round((0.15 * len(firsts) * n) ** 0.667))  # sampled keys against copied ones
        sample = self.sample(width)
        m, z = len(sample), SELECT_SLACK
        p, q = firsts / n, lasts / n
        low = np.floor(m * p - z * np.sqrt(m * p * (1 - p)) - z * z / 3 - 2).astype(np.int64)
        high = np.ceil(m * q + z * np.sqrt(m * q * (1 - q)) + z * z / 3 + 2).astype(np.int64)
        lows = np.where(low < 1, -np.inf, sample[np.maximum(low, 1) - 1])
        highs = np.where(high > m, np.inf, sample[np.minimum(high, m) - 1])
        apart = np.concatenate([[True], lows[1:] > np.maximum.accumulate(highs)[:len(highs) - 1]])
        heads = np.flatnonzero(apart)
        which = np.cumsum(apart) - 1
        ends = np.maximum.reduceat(highs, heads)
        if 2 * len(heads) > BRACKETS_EDGES or np.sum(high - low + 1) * width > n // 3:
            return None
        edges = np.full(BRACKETS_EDGES + 1, NAN)
        edges[:2 * len(heads):2] = lows[heads]
        edges[1:2 * len(heads):2] = np.where(ends < np.inf, np.nextafter(ends, np.inf), NAN)
        for j in range(BRACKETS_EDGES + 1):
            self.brackets.edges[j] = edges[j]
        self.brackets.used = int(np.count_nonzero(edges == edges))
        parts = self.each(self.filter, n // (2 * self.workers))
        if any(part is None for part in parts):
            return None
        counts = sum(part[0] for part in parts)
        below, inside = np.cumsum(counts[::2])[which], np.cumsum(counts[1::2])
        new_firsts, new_lasts = firsts - below, lasts - below
        if np.any(new_firsts <= np.append(0, inside)[which]) or np.any(new_lasts > inside[which]):
            return None
        keys = np.concatenate([part[1] for part in parts]) if self.workers > 1 else parts[0][1]
        copied = _WindowRecords(keys, self.lower, self.upper, self.step, self.missing, self.workers)
        return copied.selected(new_firsts, new_lasts)

    cdef object selected(self, firsts, lasts):
        """The same by the way that suits the number of records and windows."""
        cdef Py_ssize_t n = self.keys.n
        found = None
        if n > SORTED and 4 * int(np.add.reduce(lasts - firsts + 1)) <= n:
            if n >= BRACKETED and len(firsts) <= BRACKETS_MOST and brackets_pay():
                found = self.by_brackets(firsts, lasts)
            if found is None:
                self.check_missing()
                found = self.by_buckets(firsts, lasts)
        return self.ordered(firsts, lasts) if found is None else found


def windows(object values, firsts not None, lasts not None, *, double lower, double upper, double step,
            double missing, Py_ssize_t workers=1):
    """Order statistics of the keys of `values`, of the ranks firsts[0]..lasts[0], then firsts[1]..lasts[1] and so on.

    **Law**: deterministic. Keys as in ``_select.window``, clamped to [`lower`, `upper`] and, where the grid has few
    points, rounded to it: a monotone map of the records, and encoding the result gives the windows of the encoded
    records. Independent of order, strides, `workers` and machine, after encoding.

    **Assumes**, checked by the caller: 1 <= firsts[0] <= lasts[0] < firsts[1] <= ... <= n; otherwise as
    ``_select.window``.

    **Cost**: one pass and O(n^(5/8)), two bytes per record, and a sort of about w + 2 n / 2^12 keys per window of w
    ranks; a sort of all keys if windows cover more than n / 4 ranks, or if keys are concentrated in few buckets of a
    wide grid. No sort on a grid of fewer than 2^14 points. With AVX-512, from 2^18 records on and for up to 15 windows
    the pass only compares, 4 instructions a record, and these steps are for O(n^(2/3)) records around each window.

    **Reference**: ``spans.h``, ``brackets.h``.

    Parameters
    ----------
    values : ndarray of shape (n,)
    firsts, lasts : ndarray of int64, shape (windows,)
        Ranks, from 1, inclusive.
    lower, upper, step, missing : float
        The public grid. If `missing` is NaN, nothing stands for NaN.
    workers : int

    Returns
    -------
    ndarray of float64
        The windows, one after the other; None if a record is NaN and nothing stands for it.
    """
    cdef _WindowRecords records = _WindowRecords(values, lower, upper, step, missing, workers)
    try:
        if records.keys.n > SORTED and (upper - lower) / step <= WINDOWS_POINTS - 2:
            records.check_missing()
            return records.on_few_points(ranks_between(firsts, lasts))
        return records.selected(firsts, lasts)
    except _Missing:
        return None
