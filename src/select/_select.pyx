"""Order statistics in a window of ranks, without a full sort; serves the mechanisms on ordered data.

The algorithm, its bracket argument and its loops are in ``select.h``. This module has the steps between the loops:
scratch memory, recursion on the few remaining keys, and threads. Every pass over the data runs without the GIL.
"""

cimport numpy as cnp
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

from grid cimport dpfast_encode, dpfast_grid
from select cimport (
    describe,
    select_bracket,
    select_keys,
    select_plan,
    select_sample,
    select_set_grid,
)

from dpfast._kernels._threads import each
from dpfast._kernels._sources import secret_word

cnp.import_array()

cdef extern from "select.h" nogil:
    struct select_tally:
        Py_ssize_t not_below
        Py_ssize_t not_above
        Py_ssize_t inside
        Py_ssize_t at_low
        Py_ssize_t collected
        bint overflow

    Py_ssize_t SELECT_BLOCK
    Py_ssize_t SELECT_DIGITS

    select_keys select_keys_of_doubles(const double *x, Py_ssize_t n)
    void select_load(const select_keys *keys, Py_ssize_t start, Py_ssize_t count, double *out)
    void select_fill(double *keys, Py_ssize_t count, double missing)
    Py_ssize_t select_sort_room(Py_ssize_t n)
    double *select_sort(double *x, Py_ssize_t n, double *scratch)
    Py_ssize_t select_position(Py_ssize_t stratum, Py_ssize_t width, uint64_t secret)
    select_tally select_scan(const select_keys *keys, Py_ssize_t start, Py_ssize_t stop, double low, double high,
                             double *room, Py_ssize_t capacity)
    void select_by_digits(const select_keys *keys, Py_ssize_t first, Py_ssize_t last, int64_t *counts, double *low,
                          double *high)


cdef extern from *:
    ctypedef unsigned long long wide "unsigned __int128"

cdef extern from "sums.h" nogil:
    struct sums_moments:
        wide sum
        wide squares
        Py_ssize_t absent

    struct sums_bracket:
        double low
        double high
        double *room
        Py_ssize_t capacity

    wide sums_scan_between(const select_keys *keys, Py_ssize_t start, Py_ssize_t stop, const dpfast_grid *grid,
                           const sums_bracket *low, const sums_bracket *high, bint sums, Py_ssize_t worker,
                           select_tally *tallies)
    sums_moments sums_scan(const select_keys *keys, Py_ssize_t start, Py_ssize_t stop, const dpfast_grid *grid,
                           double low, double high, bint squares, bint absent)
    wide sums_correction(Py_ssize_t outer, Py_ssize_t collected, wide inside, int64_t bracket, Py_ssize_t ranks,
                         int64_t window)


cdef enum:
    MERGE_SORTED = 64           # up to this size the sort of select.h is faster than a NumPy call
    SORTED = 1024               # up to this size a sort is faster than a bracket
    RECORDS_A_WORKER = 1 << 20  # with fewer records a second thread does not pay off
    STRATA_A_WORKER = 1 << 14   # the same for sampled keys, each a cache miss
    SUMS_PART = 1 << 23         # the squares of this many codes sum to less than 2**128


cdef inline cnp.ndarray _scratch(Py_ssize_t n):
    """n uninitialised doubles (or 64-bit counts), freed with the array; untouched pages are never allocated."""
    return cnp.PyArray_EMPTY(1, <cnp.npy_intp *> &n, cnp.NPY_DOUBLE, 0)


cdef inline double *_doubles(cnp.ndarray scratch) noexcept nogil:
    return <double *> cnp.PyArray_DATA(scratch)


cdef class _Pass:
    """One pass over the records, one slice per worker; a subclass processes a slice."""

    cdef const select_keys *keys
    cdef Py_ssize_t workers

    cdef void share(self, Py_ssize_t worker, Py_ssize_t *start, Py_ssize_t *stop) noexcept:
        """The records of one slice."""
        cdef Py_ssize_t n = self.keys.n
        start[0] = n // self.workers * worker + min(worker, n % self.workers)
        stop[0] = n // self.workers * (worker + 1) + min(worker + 1, n % self.workers)

    cdef list run(self):
        """The results of all slices, in their order."""
        if self.workers == 1:
            return [self.slice(0)]
        return each(self.slice, range(self.workers), self.workers)


cdef class _Sample(_Pass):
    """Reads one key in each stratum."""

    cdef Py_ssize_t width, strata
    cdef uint64_t secret
    cdef double *out

    def slice(self, Py_ssize_t worker):
        with nogil:
            select_sample(self.keys, self.width, self.secret, self.strata * worker // self.workers,
                          self.strata * (worker + 1) // self.workers, self.out)


cdef class _Scan(_Pass):
    """Counts the keys against the ends of a bracket and copies those inside, each slice to its own part of `room`."""

    cdef double low, high
    cdef double *room
    cdef Py_ssize_t capacity

    def slice(self, Py_ssize_t worker):
        cdef select_tally tally
        cdef Py_ssize_t start, stop
        self.share(worker, &start, &stop)
        with nogil:
            tally = select_scan(self.keys, start, stop, self.low, self.high,
                                self.room + worker * (self.capacity + SELECT_BLOCK), self.capacity)
        return tally


cdef class _DoubleScan(_Pass):
    """The same for two brackets, and the sum of the codes of the keys clamped between them."""

    cdef dpfast_grid grid
    cdef sums_bracket low, high
    cdef bint sums

    def slice(self, Py_ssize_t worker):
        cdef select_tally tallies[2]
        cdef Py_ssize_t start, stop
        cdef wide total
        self.share(worker, &start, &stop)
        with nogil:
            total = sums_scan_between(self.keys, start, stop, &self.grid, &self.low, &self.high, self.sums, worker,
                                      tallies)
        return tallies[0], tallies[1], _integer(total)


cdef select_tally _together(list tallies, double *room, Py_ssize_t capacity):
    """The counts of all slices; their keys are moved to the front of the buffer."""
    cdef select_tally total, tally
    total.not_below = total.not_above = total.inside = total.at_low = total.collected = 0
    total.overflow = False
    for worker, tally in enumerate(tallies):
        total.not_below += tally.not_below
        total.not_above += tally.not_above
        total.inside += tally.inside
        total.at_low += tally.at_low
        total.overflow |= tally.overflow
        memmove(room + total.collected, room + <Py_ssize_t> worker * (capacity + SELECT_BLOCK),
                tally.collected * sizeof(double))
        total.collected += tally.collected
    return total


cdef class _Sums(_Pass):
    """Sums codes; a slice gives the sum, the sum of squares and the number of NaN."""

    cdef dpfast_grid grid
    cdef double low, high
    cdef bint squares, absent

    def slice(self, Py_ssize_t worker):
        cdef sums_moments moments
        cdef Py_ssize_t start, part, stop
        self.share(worker, &start, &stop)
        total, squares, absent = 0, 0, 0
        for part in range(start, stop, SUMS_PART):
            with nogil:
                moments = sums_scan(self.keys, part, min(part + SUMS_PART, stop), &self.grid, self.low, self.high,
                                    self.squares, self.absent)
            total += _integer(moments.sum)
            squares += _integer(moments.squares)
            absent += moments.absent
        return total, squares, absent


cdef object _integer(wide value):
    """All 128 bits as a Python integer."""
    cdef uint64_t high = <uint64_t> (value >> 64), low = <uint64_t> value
    return (<object> high << 64) + low


cdef object _signed(wide value):
    """The same with a sign."""
    cdef int64_t high = <int64_t> (value >> 64)
    return (<object> high << 64) + <uint64_t> value


cdef bint _load_all(const select_keys *keys, double *x, Py_ssize_t *missing) noexcept nogil:
    """All keys, filled; False if the NaN among them are to be counted, and there are some."""
    cdef Py_ssize_t i, absent = 0
    select_load(keys, 0, keys.n, x)
    if missing != NULL:
        for i in range(keys.n):
            absent += x[i] != x[i]
        missing[0] = absent
        if absent:
            return False
    select_fill(x, keys.n, keys.missing)
    return True


cdef int _merge_sorted(const select_keys *keys, Py_ssize_t first, Py_ssize_t last, double *out,
                       Py_ssize_t *missing) except -1:
    """The window of a few keys, by the sort of select.h, without allocating an array or releasing the GIL."""
    cdef Py_ssize_t room = select_sort_room(keys.n)
    cdef double *x = <double *> malloc(2 * room * sizeof(double))
    if x == NULL:
        raise MemoryError
    if _load_all(keys, x, missing):
        memcpy(out, select_sort(x, keys.n, x + room) + first - 1, (last - first + 1) * sizeof(double))
    free(x)
    return 0


cdef int _numpy_sorted(const select_keys *keys, Py_ssize_t first, Py_ssize_t last, double *out,
                       Py_ssize_t *missing) except -1:
    """The window of all keys sorted by NumPy, whose vectorised sort is faster for many keys."""
    cdef cnp.ndarray scratch = _scratch(keys.n)
    cdef double *x = _doubles(scratch)
    cdef bint filled
    if keys.n <= SORTED:  # takes less time than to release the GIL
        filled = _load_all(keys, x, missing)
    else:
        with nogil:
            filled = _load_all(keys, x, missing)
    if not filled:
        return 0
    cnp.PyArray_Sort(scratch, 0, cnp.NPY_QUICKSORT)
    memcpy(out, x + first - 1, (last - first + 1) * sizeof(double))
    return 0


cdef cnp.ndarray _sampled(const select_keys *keys, const select_bracket *plan, Py_ssize_t workers):
    """One key of each stratum."""
    cdef cnp.ndarray scratch = _scratch(plan.strata)
    cdef double *out = _doubles(scratch)
    cdef uint64_t secret = secret_word()
    cdef _Sample sample
    workers = min(workers, plan.strata // STRATA_A_WORKER)
    if workers < 2:
        with nogil:
            select_sample(keys, plan.width, secret, 0, plan.strata, out)
        return scratch
    sample = _Sample()
    sample.keys, sample.out, sample.workers = keys, out, workers
    sample.width, sample.strata, sample.secret = plan.width, plan.strata, secret
    sample.run()
    return scratch


cdef int _ends(cnp.ndarray sample, const select_bracket *plan, double *low, double *high) except -1:
    """The ends of the bracket: two order statistics of the sample, or infinities where it is unbounded."""
    cdef cnp.ndarray ends
    cdef select_keys sampled = select_keys_of_doubles(_doubles(sample), plan.strata)
    cdef Py_ssize_t first = plan.first, last = plan.last

    # Both ends in one window; an unbounded side has no end to find.
    if plan.first < 1:
        first = last
    if plan.last > plan.strata:
        last = first
    ends = _scratch(last - first + 1)
    _select(&sampled, first, last, _doubles(ends), 1, NULL)
    low[0] = _doubles(ends)[0] if plan.first >= 1 else -INFINITY
    high[0] = _doubles(ends)[last - first] if plan.last <= plan.strata else INFINITY
    return 0


cdef bint _bracketed(const select_keys *keys, double low, double high, Py_ssize_t capacity, Py_ssize_t first,
                     Py_ssize_t last, double *out, Py_ssize_t workers, Py_ssize_t *missing) except -1:
    """One scan between two ends, and the window from its counts; False if the bracket missed it or overflowed."""
    cdef Py_ssize_t room = min(capacity, keys.n // workers + 1)
    cdef cnp.ndarray scratch = _scratch((room + SELECT_BLOCK) * workers)
    cdef double *inside = _doubles(scratch)
    cdef select_tally tally
    cdef Py_ssize_t below
    cdef _Scan scan
    if workers == 1:
        with nogil:
            tally = select_scan(keys, 0, keys.n, low, high, inside, room)
    else:
        scan = _Scan()
        scan.keys, scan.workers, scan.low, scan.high = keys, workers, low, high
        scan.room, scan.capacity = inside, room
        tally = _together(scan.run(), inside, room)
    return _counted(keys, low, high, &tally, inside, room * workers, first, last, out, &below, missing)


cdef bint _counted(const select_keys *keys, double low, double high, select_tally *tally, double *inside,
                   Py_ssize_t room, Py_ssize_t first, Py_ssize_t last, double *out, Py_ssize_t *below,
                   Py_ssize_t *told) except -1:
    """The window from the counts of a scan, with NaN in its place; False if the bracket missed it or overflowed.

    The number of NaN goes to `told`, unless that is NULL; if there are some, there is no window.
    """
    cdef Py_ssize_t at_high, missing, i
    if tally.overflow:
        return False

    # Every record is below, at or above each end, or NaN: four counts determine all.
    below[0] = tally.not_above - tally.inside
    at_high = tally.inside - tally.at_low - tally.collected
    missing = keys.n - tally.not_below - below[0]
    if told != NULL:
        told[0] = missing
        if missing:
            return True
    if keys.missing < low:
        below[0] += missing
    elif keys.missing == low:
        tally.at_low += missing
    elif keys.missing == high:
        at_high += missing
    elif keys.missing < high:
        if missing > room - tally.collected:
            return False
        with nogil:
            for i in range(missing):
                inside[tally.collected + i] = keys.missing
        tally.collected += missing
    if first <= below[0] or last > below[0] + tally.at_low + tally.collected + at_high:
        return False

    _window_between(low, tally.at_low, inside, tally.collected, high, first - below[0], last - below[0], out)
    return True


cdef int _window_between(double low, Py_ssize_t at_low, const double *inside, Py_ssize_t collected, double high,
                         Py_ssize_t first, Py_ssize_t last, double *out) except -1:
    """Ranks first..last of `at_low` keys `low`, then `collected` unsorted keys inside, then keys `high`."""
    cdef Py_ssize_t inner_first = max(first - at_low, 1), inner_last = min(last - at_low, collected), rank
    cdef select_keys keys = select_keys_of_doubles(inside, collected)
    with nogil:
        for rank in range(first, min(last, at_low) + 1):
            out[rank - first] = low
        for rank in range(max(first, at_low + collected + 1), last + 1):
            out[rank - first] = high
    if inner_first <= inner_last:
        _select(&keys, inner_first, inner_last, out + at_low + inner_first - first, 1, NULL)
    return 0


cdef int _select(const select_keys *keys, Py_ssize_t first, Py_ssize_t last, double *out, Py_ssize_t workers,
                 Py_ssize_t *missing) except -1:
    """Order statistics first..last, which lie in 1..n.

    Unless `missing` is NULL, the number of NaN goes there; if there are some, there are no order statistics.
    """
    cdef select_bracket plan
    cdef double low, high
    cdef cnp.ndarray counts
    if keys.n <= MERGE_SORTED:
        return _merge_sorted(keys, first, last, out, missing)
    if keys.n <= SORTED:
        return _numpy_sorted(keys, first, last, out, missing)
    plan = select_plan(keys.n, first, last)
    if plan.capacity > keys.n:
        return _numpy_sorted(keys, first, last, out, missing)

    _ends(_sampled(keys, &plan, workers), &plan, &low, &high)
    if _bracketed(keys, low, high, plan.capacity, first, last, out, workers, missing):
        return 0

    counts = _scratch(2 * SELECT_DIGITS)
    with nogil:
        select_by_digits(keys, first, last, <int64_t *> cnp.PyArray_DATA(counts), &low, &high)
    if not _bracketed(keys, low, high, last - first + 1, first, last, out, workers, missing):
        raise RuntimeError("values were written to while they were read")
    return 0


cdef void _pad(double *out, Py_ssize_t first, Py_ssize_t last, Py_ssize_t n) noexcept nogil:
    """Infinities for those of the ranks first..last that are outside 1..n."""
    cdef Py_ssize_t rank
    for rank in range(first, min(last, 0) + 1):
        out[rank - first] = -INFINITY
    for rank in range(max(first, n + 1), last + 1):
        out[rank - first] = INFINITY


cdef cnp.ndarray _padded(Py_ssize_t first, Py_ssize_t last, Py_ssize_t n):
    """An array for the keys of ranks first..last, with infinities for the ranks outside 1..n."""
    cdef cnp.ndarray result = _scratch(last - first + 1)
    _pad(_doubles(result), first, last, n)
    return result


cdef int select_window(const double *x, Py_ssize_t n, Py_ssize_t first, Py_ssize_t last, double missing,
                       double *out) except -1:
    cdef select_keys keys = select_keys_of_doubles(x, n)
    keys.missing = missing
    _pad(out, first, last, n)
    if max(first, 1) <= min(last, n):
        _select(&keys, max(first, 1), min(last, n), out + max(first, 1) - first, 1, NULL)
    return 0


def window(object values, Py_ssize_t first, Py_ssize_t last, *, double lower, double upper, double step,
           double missing, Py_ssize_t workers=1):
    """Order statistics of the keys of `values`, from rank `first` to rank `last`.

    **Law**: deterministic. The key of a float is its value, exact as a double, NaN being `missing` and -0.0 being 0.0;
    it does not depend on bounds and step. The key of a 64-bit integer is rounded half to even to a multiple of `step`
    if `step` > 1, in integers, and clamped to [`lower`, `upper`]; the key of a shorter integer or a boolean is its
    value. Keys are a monotone map of the records, so encoding the window gives the window of the encoded records.
    The result depends only on the multiset of the keys, not on order, strides, `workers` or machine.

    **Assumes**, checked by the caller: `values` is 1-d, of native byte order, and not modified meanwhile;
    `first` <= `last`; `step` is a positive power of two, `lower` <= `upper` are multiples of it with
    max(|`lower`|, |`upper`|) / max(`step`, 1) <= 2**53; `workers` >= 1.

    **Cost**: n + O(n^(5/8)) reads and O(n^(11/16)) memory for a narrow window, O(n) reads on every input; a window of w
    ranks adds O(w log w) and O(w). `values` is never copied nor modified. The GIL is released during the passes.

    **Reference**: R. W. Floyd and R. L. Rivest, Expected time bounds for selection, Comm. ACM 18 (1975), with a radix
    selection as the safety net; see ``select.h``.

    Parameters
    ----------
    values : ndarray of shape (n,), or PartedColumn
        float16, float32, float64, bool or any integer, of any strides, possibly read-only.
    first, last : int
        Ranks, from 1, inclusive; they may lie outside 1..n.
    lower, upper, step : float
        The public grid, for 64-bit integers.
    missing : float
        The key of NaN; or NaN, to count them, if one of the ranks is in 1..n.
    workers : int
        Threads that share the passes, if there are enough records.

    Returns
    -------
    ndarray of shape (last - first + 1,), float64
        The keys in order; -inf for ranks below 1 and inf for ranks above n. An integer, the number of NaN, if they are
        to be counted and there are some.

    Raises
    ------
    TypeError
        The dtype is not supported.
    MemoryError
        Memory for the scratch or the result is not available.
    RuntimeError
        `values` was modified meanwhile and the counts are inconsistent; memory access is safe in any case.
    """
    cdef cnp.ndarray result = _scratch(last - first + 1)
    if select_records(values, first, last, lower, upper, step, missing, _doubles(result), workers):
        return int(_doubles(result)[0])
    return result


cdef int select_records(object values, Py_ssize_t first, Py_ssize_t last, double lower, double upper, double step,
                        double missing, double *out, Py_ssize_t workers) except -1:
    cdef select_keys keys
    cdef bint tells = missing != missing
    cdef Py_ssize_t absent = 0
    describe(&keys, values)
    select_set_grid(&keys, lower, upper, step, lower if tells else missing)
    _pad(out, first, last, keys.n)
    if max(first, 1) <= min(last, keys.n):
        _select(&keys, max(first, 1), min(last, keys.n), out + max(first, 1) - first,
                max(1, min(workers, keys.n // RECORDS_A_WORKER)), &absent if tells else NULL)
    if absent:
        out[0] = absent
    return absent > 0


cdef object _windows(const select_keys *keys, const dpfast_grid *grid, Py_ssize_t first, Py_ssize_t last,
                     Py_ssize_t next, Py_ssize_t final, double *low_out, double *high_out, bint sums,
                     Py_ssize_t workers, Py_ssize_t *missing):
    """Ranks first..last and next..final, all in 1..n, and the sum of the codes between (or 0); None if the scan failed.

    Unless `missing` is NULL, the number of NaN goes there; if there are some, there are no order statistics.

    The scan sums the codes clamped between the brackets; the contributions of the keys in and beyond the brackets are
    then corrected, to be clamped between x_(last) and x_(next).
    """
    cdef Py_ssize_t n = keys.n, room, lower_side, upper_side, below, below_high
    cdef select_bracket low_plan, high_plan
    cdef select_tally low, high
    cdef cnp.ndarray sample, low_room, high_room
    cdef _DoubleScan scan = _DoubleScan()
    cdef double left, right
    low_plan, high_plan = select_plan(n, first, last), select_plan(n, next, final)
    if n <= SORTED or max(low_plan.capacity, high_plan.capacity) > n:
        return None
    sample = _sampled(keys, &low_plan, workers)
    _ends(sample, &low_plan, &scan.low.low, &scan.low.high)
    _ends(sample, &high_plan, &scan.high.low, &scan.high.high)
    if scan.low.high > scan.high.low:
        return None

    scan.keys, scan.workers, scan.grid, scan.sums = keys, workers, grid[0], sums
    room = n // workers + 1
    scan.low.capacity, scan.high.capacity = min(low_plan.capacity, room), min(high_plan.capacity, room)
    low_room = _scratch((scan.low.capacity + SELECT_BLOCK) * workers)
    high_room = _scratch((scan.high.capacity + SELECT_BLOCK) * workers)
    scan.low.room, scan.high.room = _doubles(low_room), _doubles(high_room)
    low_tallies, high_tallies, totals = zip(*scan.run())
    low = _together(list(low_tallies), scan.low.room, scan.low.capacity)
    high = _together(list(high_tallies), scan.high.room, scan.high.capacity)
    if not (_counted(keys, scan.low.low, scan.low.high, &low, scan.low.room, scan.low.capacity * workers, first, last,
                     low_out, &below, missing)
            and _counted(keys, scan.high.low, scan.high.high, &high, scan.high.room, scan.high.capacity * workers, next,
                         final, high_out, &below_high, NULL)):
        return None
    if not sums:
        return 0

    left, right = low_out[last - first], high_out[0]
    lower_side, upper_side = below + low.at_low, n - below_high - high.at_low - high.collected
    return (sum(totals)
            + _signed(sums_correction(lower_side, low.collected,
                                      _clamped(grid, scan.low.room, low.collected, left, scan.low.high),
                                      dpfast_encode(grid, scan.low.high), last, dpfast_encode(grid, left)))
            + _signed(sums_correction(upper_side, high.collected,
                                      _clamped(grid, scan.high.room, high.collected, scan.high.low, right),
                                      dpfast_encode(grid, scan.high.low), n - next + 1, dpfast_encode(grid, right))))


cdef wide _clamped(const dpfast_grid *grid, const double *x, Py_ssize_t n, double low, double high):
    """The sum of the codes of keys clamped to low..high."""
    cdef select_keys keys = select_keys_of_doubles(x, n)
    return sums_scan(&keys, 0, n, grid, low, high, False, False).sum


def windows(object values, low_ranks, high_ranks, *, double lower, double upper, double step,
            double missing, double first, bint sums=False, Py_ssize_t workers=1):
    """Order statistics in two windows of ranks, and the sum of the codes of the ranks between them (0 without `sums`).

    **Law**: deterministic; each window as by `window`, the sum exact, of any size.

    None instead, if `missing` is NaN and a record, too; then without `sums`.

    **Assumes**: as `window`; the last of `low_ranks` is below the first of `high_ranks`; `first` is `lower` / `step`.
    **Cost**: as `window`, in one pass for both windows and the sum; three or more passes if the windows are wide or
    close together. **Reference**: docs/proofs/exact-sums.md.
    """
    cdef select_keys keys
    cdef bint tells = missing != missing
    cdef double known = lower if tells else missing
    cdef dpfast_grid grid = dpfast_grid(lower, upper, step, known, first, 0)
    cdef Py_ssize_t low_first = low_ranks[0], last = low_ranks[1], next = high_ranks[0], final = high_ranks[1], n
    cdef cnp.ndarray low, high
    cdef Py_ssize_t absent = 0
    describe(&keys, values)
    select_set_grid(&keys, lower, upper, step, known)
    n = keys.n
    if 1 <= last and next <= n:
        low, high = _padded(low_first, last, n), _padded(next, final, n)
        between = _windows(&keys, &grid, max(low_first, 1), last, next, min(final, n),
                           _doubles(low) + max(low_first, 1) - low_first, _doubles(high), sums,
                           max(1, min(workers, n // RECORDS_A_WORKER)), &absent if tells else NULL)
        if absent:
            return None
        if between is not None:
            return low, high, between

    options = {"lower": lower, "upper": upper, "step": step, "missing": missing, "workers": workers}
    found = window(values, low_first, last, **options), window(values, next, final, **options)
    if tells and (isinstance(found[0], int) or isinstance(found[1], int)):
        return None
    low, high = found
    if not sums:
        return low, high, 0
    left, right = _doubles(low)[last - low_first], _doubles(high)[0]
    total, _, _ = moments(values, first=first, low=left, high=right, **options)
    # Clamped to x_(last)..x_(next): ranks up to `last` count as x_(last), ranks from `next` on as x_(next).
    below, above = min(max(last, 0), n), n - min(max(next - 1, 0), n)
    last_code, next_code = dpfast_encode(&grid, left), dpfast_encode(&grid, right)
    return low, high, total - below * last_code - above * next_code


def moments(object values, *, double lower, double upper, double step, double missing, double first,
            double low=-INFINITY, double high=INFINITY, bint squares=False, bint absent=False,
            Py_ssize_t workers=1):
    """The sum of the codes of all records, clamped to [`low`, `high`] first, the sum of their squares and the number of
    NaN, each 0 unless requested.

    **Law**: deterministic, exact: integers of any size. It depends only on the multiset of the codes, not on order,
    strides, `workers` or machine.

    **Assumes**: as `window`; `first` is `lower` / `step`; `low` <= `high`. **Cost**: one pass, memory-bound for
    contiguous float64 without squares; the GIL is released during it. **Reference**: docs/proofs/exact-sums.md.
    """
    cdef select_keys keys
    cdef _Sums sums = _Sums()
    describe(&keys, values)
    select_set_grid(&keys, lower, upper, step, missing)
    sums.keys, sums.workers = &keys, max(1, min(workers, keys.n // RECORDS_A_WORKER))
    sums.grid = dpfast_grid(lower, upper, step, missing, first, 0)
    sums.low, sums.high, sums.squares, sums.absent = low, high, squares, absent
    total, total_squares, missing_ones = 0, 0, 0
    for part, squared, unknown in sums.run():
        total, total_squares, missing_ones = total + part, total_squares + squared, missing_ones + unknown
    return total, total_squares, missing_ones


def doubles(object values, Py_ssize_t start, Py_ssize_t stop):
    """The records start..stop-1 as doubles, 64-bit integers rounded, missing ones NaN, in a new array.

    **Law**: deterministic, elementwise. **Assumes**: as `window`; 0 <= `start` <= `stop` <= the number of records.
    **Cost**: one pass.
    """
    cdef select_keys keys
    cdef cnp.ndarray result = _scratch(stop - start)
    describe(&keys, values)
    select_set_grid(&keys, -INFINITY, INFINITY, 1.0, 0.0)
    with nogil:
        select_load(&keys, start, stop - start, _doubles(result))
    return result


def sample_positions(Py_ssize_t n, uint64_t secret):
    """Indices of the records that a selection among `n` reads first, given its secret.

    **Law**: one index in each stratum of about 3/4 n^(3/8) records, ascending; for a secret that is uniform, uniform in
    its stratum.

    **Assumes**: `n` >= 1.

    **Cost**: O(n^(5/8)).

    **Reference**: ``select.h``. It lets a test or an auditor construct orders for which a bracket fails.

    Parameters
    ----------
    n : int
        Number of records.
    secret : int
        The value of `secret_word`.

    Returns
    -------
    list of int
        The positions.
    """
    cdef select_bracket plan = select_plan(n, 1, n)
    cdef Py_ssize_t stratum
    return [select_position(stratum, plan.width, secret) for stratum in range(plan.strata)]
