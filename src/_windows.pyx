"""Many windows of order statistics in little more than one pass over the data; serves dpfast/streaming/ranks.py.

The loops are in ``windows.h``. This module has the steps between them: it marks buckets and finds the place of each
rank among the copied keys.
"""

cimport numpy as cnp
from libc.stdint cimport uint16_t, uint32_t, uint64_t

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

from dpfast._threads import each
from dpfast.random import secret_word

cnp.import_array()

cdef extern from "windows.h" nogil:
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


cdef enum:
    SORTED = 4096               # up to this size a sort is faster than a pass
    RECORDS_A_WORKER = 1 << 18  # with fewer records a second thread does not pay off


cdef class _Records:
    """The records and the requested ranks."""

    cdef cnp.ndarray values
    cdef select_keys keys
    cdef windows_buckets buckets
    cdef uint16_t[::1] found
    cdef Py_ssize_t size  # buckets, those beyond the ends included
    cdef double lower, upper, step
    cdef Py_ssize_t workers

    def __init__(self, cnp.ndarray values, double lower, double upper, double step, double missing, Py_ssize_t workers):
        self.values, self.lower, self.upper, self.step = values, lower, upper, step
        describe(&self.keys, values)
        self.workers = max(1, min(workers, self.keys.n // RECORDS_A_WORKER))
        select_set_grid(&self.keys, lower, upper, step, missing)

    cdef object ordered(self, ranks):
        """The order statistics of these ranks, by a sort of all keys."""
        keys = np.empty(self.keys.n)
        cdef double[::1] view = keys
        with nogil:
            select_load_filled(&self.keys, 0, self.keys.n, &view[0])
        keys.sort()
        return np.clip(keys[ranks - 1], self.lower, self.upper)

    cdef object sample(self):
        """Sorted keys, one per stratum, inside the bounds."""
        cdef select_bracket plan = select_plan(self.keys.n, 1, self.keys.n)
        keys = np.empty(plan.strata)
        cdef double[::1] view = keys
        cdef uint64_t secret = secret_word()
        with nogil:
            select_sample(&self.keys, plan.width, secret, 0, plan.strata, &view[0])
        keys.sort()
        return np.clip(keys, self.lower, self.upper)

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
            total += np.asarray(counts).sum(axis=0, dtype=np.int64)
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
        return each(lambda worker: task(worker, *arguments), range(self.workers), self.workers)

    cdef object counts(self):
        """The number of keys in each bucket; finds the bucket of each record."""
        self.found = np.empty(self.keys.n, np.uint16)
        return sum(self.each(self.count))

    cdef object on_few_points(self, ranks):
        """The order statistics of these ranks on a grid with a bucket for each point, from counts alone."""
        self.buckets, self.size = windows_of_points(self.lower, self.upper, self.step), WINDOWS_POINTS
        return self.lower + (np.searchsorted(np.cumsum(self.counts()), ranks) - 1) * self.step

    cdef object by_buckets(self, firsts, lasts, ranks):
        """Order statistics firsts[0]..lasts[0] and so on; None where more than half of the keys would be copied."""
        cdef select_bracket plan
        sample = self.sample()
        plan = select_plan(self.keys.n, firsts.min(), lasts.max())
        self.buckets = windows_between(sample[max(plan.first, 1) - 1], sample[min(plan.last, plan.strata) - 1],
                                       self.lower, self.upper)
        self.size = WINDOWS_BUCKETS + 2
        counts = self.counts()
        cumulative = np.cumsum(counts)
        marked = np.zeros(self.size, np.uint8)
        begins = np.searchsorted(cumulative, firsts)
        for first, last in zip(begins.tolist(), np.searchsorted(cumulative, lasts).tolist(), strict=True):
            marked[first:last + 1] = 1
        copied = int(counts[marked > 0].sum())
        if copied > self.keys.n // 2:
            return None
        keys = np.concatenate(self.each(self.collect, marked, copied))
        if keys.size != copied:
            raise RuntimeError("values were written to while they were read")
        keys.sort()
        # A window holds no bucket that was left out, so that all its ranks move by one number.
        left_out = np.cumsum(np.where(marked > 0, 0, counts))
        return keys[ranks - 1 - np.repeat(left_out[begins], lasts - firsts + 1)]


def windows(cnp.ndarray values not None, firsts not None, lasts not None, *, double lower, double upper, double step,
            double missing, Py_ssize_t workers=1):
    """Order statistics of the keys of `values`, of the ranks firsts[0]..lasts[0], then firsts[1]..lasts[1] and so on.

    **Law**: deterministic. Keys as in ``_select.window``, clamped to [`lower`, `upper`] and, where the grid has few
    points, rounded to it: a monotone map of the records, and encoding the result gives the windows of the encoded
    records. Independent of order, strides, `workers` and machine, after encoding.

    **Assumes**, checked by the caller: 1 <= firsts[0] <= lasts[0] < firsts[1] <= ... <= n; otherwise as
    ``_select.window``.

    **Cost**: one pass and O(n^(5/8)), two bytes per record, and a sort of about w + 2 n / 2^12 keys per window of w
    ranks; a sort of all keys if windows cover more than n / 4 ranks, or if keys are concentrated in few buckets of a
    wide grid. No sort on a grid of fewer than 2^14 points.

    **Reference**: ``windows.h``.

    Parameters
    ----------
    values : ndarray of shape (n,)
    firsts, lasts : ndarray of int64, shape (windows,)
        Ranks, from 1, inclusive.
    lower, upper, step, missing : float
        The public grid.
    workers : int

    Returns
    -------
    ndarray of float64
        The windows, one after the other.
    """
    cdef _Records records = _Records(values, lower, upper, step, missing, workers)
    ranks = np.concatenate([np.arange(first, last + 1) for first, last in zip(firsts, lasts, strict=True)])
    if records.keys.n <= SORTED:
        return records.ordered(ranks)
    if (upper - lower) / step <= WINDOWS_POINTS - 2:
        return records.on_few_points(ranks)
    found = records.by_buckets(firsts, lasts, ranks) if 4 * ranks.size <= records.keys.n else None
    return records.ordered(ranks) if found is None else found
