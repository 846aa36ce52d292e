"""Order statistics of many small groups, released in one call; serves dpfast/groups/draws.py.

A counting sort by label, then for each group a sort, the levels of its nested-interval law and two words.
docs/proofs/groups.md
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

from dpfast._kernels._measures cimport Measure, choose_level_exactly, flip_level_exactly, of_measure
from dpfast._kernels._samplers cimport unwrap
from grid cimport dpfast_encode_array, dpfast_grid
from measure cimport dpfast_draw_point, dpfast_measure

cdef extern from "select.h":
    Py_ssize_t select_sort_room(Py_ssize_t n) noexcept nogil
    double *select_sort(double *x, Py_ssize_t n, double *scratch) noexcept nogil

cdef extern from "groups.h":
    ctypedef struct dpfast_group_plan:
        dpfast_grid grid
        int64_t last
        int64_t radius
        const dpfast_measure *measure
        Py_ssize_t cap
        double rate
        double loss
        const double *powers
        const int64_t *ranks
        uint64_t numerator
        int shift
        int above
        int deep
        int flips

    double LEVEL_ERROR "DPFAST_LEVEL_ERROR"
    void dpfast_level_ranks(const dpfast_group_plan *plan, Py_ssize_t n, Py_ssize_t t, Py_ssize_t *low,
                            Py_ssize_t *high) noexcept nogil
    double dpfast_one_minus_exp_neg(double y) noexcept nogil
    double dpfast_exp_neg(double y) noexcept nogil
    Py_ssize_t dpfast_group_levels(const dpfast_group_plan *plan, const int64_t *codes, Py_ssize_t apart, Py_ssize_t n,
                                   int64_t *lower, int64_t *upper, Py_ssize_t *depth) noexcept nogil
    void dpfast_group_cumulative(const dpfast_group_plan *plan, double *cumulative, Py_ssize_t levels,
                                 Py_ssize_t depth) noexcept nogil
    void dpfast_interval_weights(const dpfast_measure *measure, const int64_t *lower, const int64_t *upper,
                                 double *weights, Py_ssize_t n) noexcept nogil
    Py_ssize_t FEW "DPFAST_FEW"
    ctypedef struct dpfast_interval_counts:
        pass
    ctypedef struct dpfast_few_groups:
        Py_ssize_t *start
        Py_ssize_t *depth
        int64_t *lower
        int64_t *upper
        double *cumulative
        dpfast_interval_counts counts
    Py_ssize_t dpfast_prepare_few(const dpfast_group_plan *plan, const double *values, const int64_t *offsets,
                                  Py_ssize_t groups, dpfast_few_groups *few) noexcept nogil
    int64_t dpfast_counted_point(const dpfast_measure *measure, bitgen_t *source, const dpfast_interval_counts *counts,
                                 int64_t first, int64_t last, Py_ssize_t t) noexcept nogil
    void dpfast_shell_weights(const dpfast_measure *measure, const int64_t *lower, const int64_t *upper,
                              int64_t *sizes, Py_ssize_t n) noexcept nogil
    Py_ssize_t dpfast_flip(bitgen_t *source, const int64_t *sizes, uint64_t *words, Py_ssize_t n, Py_ssize_t depth,
                           double rate) noexcept nogil
    int64_t dpfast_draw_shell_point(const dpfast_measure *measure, bitgen_t *source, const int64_t *lower,
                                    const int64_t *upper, Py_ssize_t n, Py_ssize_t t, int64_t last) noexcept nogil
    Py_ssize_t dpfast_choose(uint64_t word, const double *cumulative, Py_ssize_t n, double error) noexcept nogil

cdef extern from "pages.h":
    void dpfast_fetch(const void *table, uint64_t z, Py_ssize_t size) noexcept nogil
    void *dpfast_lines(size_t size) noexcept nogil
    void dpfast_free_lines(void *lines) noexcept nogil

LARGEST_GROUP = 4096
cdef Py_ssize_t CODES_AHEAD = 16, RECORDS_AHEAD = 4  # half a line of a cache


def by_label(const int64_t[:] labels not None, const double[:] values not None, double missing,
             int64_t[::1] offsets not None, double[::1] out not None):
    """Sort the values by their labels 0..G-1, G = len(offsets) - 1: group g is out[offsets[g]:offsets[g + 1]].

    **Law** deterministic and stable; other labels are dropped, NaN becomes `missing`. **Assumes** labels, values and
    out of equal length, `offsets` zero. **Cost** two passes over the labels, one over the values.
    """
    cdef Py_ssize_t i, n = labels.shape[0], total = 0
    cdef uint64_t groups = offsets.shape[0] - 1, g
    cdef int64_t count
    cdef double x
    with nogil:
        for i in range(n):
            g = <uint64_t> labels[i]
            if g < groups:
                offsets[g + 1] += 1
        # offsets[g + 1] is the next place of group g, and finally its end
        for g in range(groups):
            count = offsets[g + 1]
            offsets[g + 1] = total
            total += count
        for i in range(n):
            g = <uint64_t> labels[i]
            if g < groups:
                x = values[i]
                out[offsets[g + 1]] = x if x == x else missing
                offsets[g + 1] += 1


def count_ranges(const int64_t[:] labels not None, Py_ssize_t groups, int shift, int64_t[::1] counts not None):
    """counts[b] += the number of labels l of 0..groups - 1 with ``l >> shift == b``.

    **Assumes** ``len(counts) > (groups - 1) >> shift``. **Cost** one pass.
    """
    cdef Py_ssize_t i, n = labels.shape[0]
    cdef uint64_t last = groups, g
    with nogil:
        for i in range(n):
            g = <uint64_t> labels[i]
            if g < last:
                counts[g >> shift] += 1


def by_range(const int64_t[:] labels not None, const double[:] values not None, double missing, Py_ssize_t groups,
             int shift, int64_t[::1] places not None, uint16_t[::1] out_labels not None, double[::1] out not None):
    """Sort the values and the last `shift` digits of their labels by the other digits; NaN becomes `missing`.

    **Law** deterministic and stable; labels outside of 0..groups - 1 are dropped. **Assumes** places[b] the place of
    the first record of range b, from which the further ones follow; shift <= 16. **Cost** one pass; the places of the
    next records of a range are fetched, for which a write would wait.
    """
    cdef Py_ssize_t i, n = labels.shape[0], place
    cdef void *codes = &out_labels[0] if out_labels.shape[0] else NULL
    cdef void *records = &out[0] if out.shape[0] else NULL
    cdef uint64_t last = groups, low = (<uint64_t> 1 << shift) - 1, g
    cdef double x
    with nogil:
        for i in range(n):
            g = <uint64_t> labels[i]
            if g < last:
                x = values[i]
                place = places[g >> shift]
                places[g >> shift] = place + 1
                dpfast_fetch(codes, place + CODES_AHEAD, sizeof(uint16_t))
                dpfast_fetch(records, place + RECORDS_AHEAD, sizeof(double))
                out_labels[place] = <uint16_t> (g & low)
                out[place] = x if x == x else missing


def within_ranges(const uint16_t[::1] labels not None, double[::1] values not None, const int64_t[::1] ends not None,
                  Py_ssize_t first, Py_ssize_t stop, int shift, int64_t[::1] offsets not None,
                  double[::1] scratch not None):
    """Sort the records of the ranges first..stop - 1 by their labels: group g is values[offsets[g]:offsets[g + 1]].

    **Law** deterministic and stable. **Assumes** range b at ends[b]..ends[b + 1] of labels and values, labels in the
    range; offsets zero from ``(first << shift) + 1`` on; `scratch` no shorter than a range. **Cost** three passes, in
    the cache where ranges fit into it.
    """
    cdef Py_ssize_t b, i, n, total, groups = offsets.shape[0] - 1, g, stop_group
    cdef int64_t count
    cdef int64_t *places
    cdef const uint16_t *label
    cdef double *records
    if values.shape[0] == 0:
        return
    with nogil:
        for b in range(first, stop):
            places = &offsets[(b << shift) + 1]
            stop_group = min(groups, (b + 1) << shift) - (b << shift)
            n, label, records = ends[b + 1] - ends[b], &labels[0] + ends[b], &values[0] + ends[b]
            for i in range(n):
                places[label[i]] += 1
            total = 0
            for g in range(stop_group):
                count = places[g]
                places[g] = total
                total += count
            for i in range(n):
                scratch[places[label[i]]] = records[i]
                places[label[i]] += 1
            memcpy(records, &scratch[0], n * sizeof(double))
            for g in range(stop_group):
                places[g] += ends[b]


def sizes(const int64_t[::1] offsets not None, uint8_t[::1] out not None):
    """Set out[n] to 1 for each group of n records, n < len(out).

    **Law** deterministic. **Assumes** offsets in order. **Cost** one pass.
    """
    cdef Py_ssize_t g, largest = out.shape[0]
    cdef int64_t n
    with nogil:
        for g in range(offsets.shape[0] - 1):
            n = offsets[g + 1] - offsets[g]
            if n < largest:
                out[n] = 1


def powers(double epsilon, double[::1] out not None):
    """exp(-t epsilon / 2), t = 0, 1, ...: relative error at most 2**-50 (1 + t epsilon / 2)."""
    cdef Py_ssize_t t
    for t in range(out.shape[0]):
        out[t] = dpfast_exp_neg(<double> t * (epsilon / 2))


def private_ranks(object q, Py_ssize_t n, int64_t[::1] low not None, int64_t[::1] high not None):
    """Fill with ceil(q n - t c) and floor(q n + t c) + 1 for t = 0, 1, ..., c = max(q, 1 - q).

    **Law** deterministic, exact. **Assumes** q = (numerator, shift, above) as in `draw_quantiles`, 0 <= n < 2**61,
    `low` and `high` of equal length, at most n + 1. **Cost** two products of 128 bits per entry.
    **Reference** docs/proofs/add-remove.md.
    """
    cdef dpfast_group_plan plan
    cdef Py_ssize_t t, first = 0, final = 0
    plan.ranks = NULL
    plan.numerator, plan.shift, plan.above = q
    with nogil:
        for t in range(low.shape[0]):
            dpfast_level_ranks(&plan, n, t, &first, &final)
            low[t], high[t] = first, final


cdef inline int64_t _draw_in(bint flips, bitgen_t *source, const dpfast_group_plan *plan, const int64_t *lower,
                             const int64_t *upper, Py_ssize_t levels, Py_ssize_t level) noexcept nogil:
    """A point of the shell of `level` if `flips`, else of its box."""
    if flips:
        return dpfast_draw_shell_point(plan.measure, source, lower, upper, levels, level, plan.last)
    if level < levels:
        return dpfast_draw_point(plan.measure, source, lower[level], upper[level])
    return dpfast_draw_point(plan.measure, source, 0, plan.last)


def draw_quantiles(bit_generator, const double[::1] values not None, const int64_t[::1] offsets not None,
                   Py_ssize_t start, int64_t[::1] out not None, *, double epsilon, const double[::1] powers not None,
                   Py_ssize_t cap, const int64_t[::1] ranks, object q, int64_t radius, double lower, double upper,
                   double step, double first, int64_t last, bint deep, Measure measure=None,
                   bint flips=False, bint exact=False):
    """Draw a code for each of the groups start, start + 1, ... into out[start], ... until a group is too large.

    **Law** of `_levels.RankDraw` for group g, the records values[offsets[g]:offsets[g + 1]], with the same
    words: k - t and k + t are the ranks of level t, k = ranks[n]; or, for ranks None, those of
    docs/proofs/add-remove.md for the quantile q = (numerator, shift, above). The base measure for an empty group.
    The depth is 0 unless `deep`; permute-and-flip if `flips`. Returns the first group of more than `LARGEST_GROUP`
    records, which is not drawn, or the number of groups.
    **Assumes** values free of NaN, offsets in order, `powers` of 2 LARGEST_GROUP entries, LARGEST_GROUP + 1 ranks or
    None, a valid grid, epsilon > 0, 0 <= radius <= last. **Cost** a sort of each group, and two words; with `flips`
    one for each level, and one.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t groups = out.shape[0], largest = LARGEST_GROUP, room = 2 * largest, g = start, n, levels = 0
    cdef Py_ssize_t level = -1, depth = 0
    cdef double *scratch = <double *> malloc((2 * room + largest + 2) * sizeof(double))
    cdef int64_t *codes = <int64_t *> malloc(3 * (largest + 1) * sizeof(int64_t))
    cdef dpfast_few_groups *few = <dpfast_few_groups *> dpfast_lines(sizeof(dpfast_few_groups))
    cdef Py_ssize_t begin = start, end = start, place = 0  # the groups in `few`, the first box of one
    cdef const double *records = &values[0] if values.shape[0] else NULL
    cdef const double *ordered
    cdef double *cumulative = NULL
    cdef int64_t *left = NULL
    cdef int64_t *right = NULL
    cdef int64_t *sizes = NULL
    cdef uint64_t *words = NULL
    cdef uint64_t word = 0
    cdef dpfast_measure uniform
    cdef dpfast_group_plan plan
    plan.grid = dpfast_grid(lower, upper, step, lower, first, 0)
    plan.last, plan.radius, plan.cap = last, radius, cap
    plan.deep, plan.flips = deep, flips
    plan.measure = of_measure(measure, &uniform, last)
    plan.rate = epsilon / 2
    plan.loss = dpfast_one_minus_exp_neg(epsilon / 2)
    plan.powers = &powers[0]
    plan.ranks = NULL
    if ranks is not None:
        plan.ranks = &ranks[0]
    plan.numerator, plan.shift, plan.above = (0, 0, 0) if q is None else q
    try:
        if scratch == NULL or codes == NULL or few == NULL:
            raise MemoryError
        sizes, words = codes, <uint64_t *> (scratch + 2 * room)  # the codes are in the boxes by then
        while g < groups:
            level = 0
            with bit_generator.lock, nogil:
                while g < groups:
                    n = offsets[g + 1] - offsets[g]
                    if n > largest:
                        break
                    if g >= end and n < FEW and plan.measure.table == NULL:
                        begin, end = g, g + dpfast_prepare_few(&plan, records, &offsets[g], groups - g, few)
                    if g < end:
                        place = few.start[g - begin]
                        levels, depth = few.start[g - begin + 1] - place - 1, few.depth[g - begin]
                        left, right, cumulative = few.lower + place, few.upper + place, few.cumulative + place
                    else:
                        left, right, cumulative = codes + largest + 1, codes + 2 * (largest + 1), scratch + 2 * room
                        if n:
                            memcpy(scratch, records + offsets[g], n * sizeof(double))
                            ordered = select_sort(scratch, n, scratch + room)
                            dpfast_encode_array(&plan.grid, ordered, codes, n)
                        levels = dpfast_group_levels(&plan, codes, 1, n, left, right, &depth)
                        if not flips:
                            dpfast_interval_weights(plan.measure, left, right, cumulative, levels)
                            dpfast_group_cumulative(&plan, cumulative, levels, depth)
                    if flips:
                        dpfast_shell_weights(plan.measure, left, right, sizes, levels)
                        level = dpfast_flip(source, sizes, words, levels, depth, plan.rate)
                    else:
                        word = source.next_uint64(source.state)
                        level = dpfast_choose(word, cumulative, levels + 1, LEVEL_ERROR)
                    if level < 0 or exact:
                        level = -1
                        break
                    if g < end and not flips:
                        out[g] = dpfast_counted_point(plan.measure, source, &few.counts, left[level], right[level],
                                                      place + level)
                    else:
                        out[g] = _draw_in(flips, source, &plan, left, right, levels, level)
                    g += 1
            if level >= 0:
                break
            if flips:
                level = flip_level_exactly(bit_generator, words, sizes, levels, depth, epsilon)
            else:
                level = choose_level_exactly(bit_generator, word, plan.measure, left, right, levels, depth, epsilon)
            with bit_generator.lock, nogil:
                out[g] = _draw_in(flips, source, &plan, left, right, levels, level)
            g += 1
        return g
    finally:
        free(scratch)
        free(codes)
        dpfast_free_lines(few)
