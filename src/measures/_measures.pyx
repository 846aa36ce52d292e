"""Base measures of the nested-interval law, for dpfast/core/measures.py; weights and draws: measure.h and magnitudes.h.

docs/proofs/base-measures.md
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from measure cimport (
    DPFAST_BLOCK_OF_PIECES,
    DPFAST_FEW_POWERS,
    DPFAST_PARTS,
    dpfast_bucket,
    dpfast_count,
    dpfast_first_of_piece,
    dpfast_interval_weight,
    dpfast_magnitudes,
    dpfast_measure,
    dpfast_piece,
    dpfast_piece_of,
    dpfast_point_at,
    dpfast_powers_of,
    dpfast_rounds_below,
    dpfast_set_uniform,
)

from collections import Counter

import numpy as np

from dpfast._kernels._samplers import next_word

MOST_PARTS = DPFAST_PARTS


cdef class Magnitudes:
    """The weights of floats by magnitude: those of the points of a `FloatGrid` without bounds, for indices from 0.0.

    The slope of each piece (magnitudes.h) is the weight of its magnitudes; `points` have the weights `more` besides.

    **Assumes** 1 <= digits <= 40, positive slopes for digits + 1 pieces and more, `points` ascending and inside them,
    positive `more`; twice the sum of all weights is below 2**62. ``made_by`` is a pair of function and arguments that
    make an equal object. **Cost** 16 bytes a point, 4 for each of 2**fine parts of the pieces with points.
    """

    def __init__(self, int digits, const int64_t[::1] slopes not None, const int64_t[::1] points not None,
                 const int64_t[::1] more not None, made_by, *, int fine=11):
        cdef dpfast_magnitudes *f = &self.magnitudes
        cdef const int64_t[::1] edge, held, point, before, kinds, weight, count
        cdef const int32_t[::1] kind
        cdef int32_t[::1] start
        cdef int32_t most
        cdef const uint64_t[:, ::1] piece
        cdef Py_ssize_t j
        self._made_by = made_by
        f.digits, f.fine, f.pieces, f.zero = digits, min(fine, digits - 1), slopes.shape[0], slopes[0]
        if points.shape[0] and points[0] == 0:
            f.zero += more[0]
        # where the pieces begin, and the weights of the points in each
        firsts = np.array([dpfast_first_of_piece(f, p) for p in range(f.pieces + 1)])
        place = np.searchsorted(points, firsts)
        held = place
        before = np.concatenate([[0], np.cumsum(more)])
        slope = np.asarray(slopes)
        edges = np.concatenate([[0], np.cumsum(slope * np.diff(firsts))])
        edge = edges + np.asarray(before)[place]
        pieces = np.stack([edges[:f.pieces] - slope * firsts[:f.pieces], slope], axis=1)
        piece = np.concatenate([pieces, pieces[f.pieces - 1:]]).view(np.uint64)  # the last up to after its end
        # the buckets
        f.first = dpfast_bucket(f, points[0]) if points.shape[0] else 0
        f.last = dpfast_bucket(f, points[points.shape[0] - 1]) + 1 if points.shape[0] else 0
        start = np.zeros(f.last - f.first + 1, np.int32)
        for j in range(points.shape[0]):
            start[dpfast_bucket(f, points[j]) - f.first + 1] += 1
        most = 1
        for j in range(start.shape[0] - 1):
            most = max(most, start[j + 1])
            start[j + 1] += start[j]
        f.step = 1 << int(most).bit_length() - 1
        point = np.concatenate([points, np.full(2 * f.step, 2**63 - 1)])
        # the kinds of weights in each piece: its own, if any magnitude has it, and those of its points
        weights, counts, kinds, kind = self._kinds(slopes, more, held, np.diff(firsts) - np.diff(place))
        weight, count = weights, counts
        # sums of powers
        cdef const double[::1] top, block_top
        cdef const double[:, ::1] tail, block_tail
        tops = np.maximum.reduceat(weights, np.asarray(kinds)[:f.pieces])
        shares = weights / np.repeat(tops, np.diff(kinds))
        powers = np.cumprod(np.repeat(shares[:, None], DPFAST_FEW_POWERS, axis=1), axis=1) * counts[:, None]
        sums = np.add.reduceat(powers, np.asarray(kinds)[:f.pieces])
        starts = np.arange(0, f.pieces, DPFAST_BLOCK_OF_PIECES)
        top, tail = self._tails(tops.astype(np.float64), sums, DPFAST_BLOCK_OF_PIECES)
        block_top, block_tail = self._tails(np.asarray(top)[starts], np.asarray(tail)[starts], f.pieces)
        # the struct points into them
        self._arrays = tuple(map(np.asarray, (piece, edge, held, start, point, before, kind, kinds, weight, count)))
        self._sums = tuple(map(np.asarray, (top, tail, block_top, block_tail)))
        f.piece = <const dpfast_piece *> &piece[0, 0]
        f.edge, f.held, f.start, f.point, f.before = &edge[0], &held[0], &start[0], &point[0], &before[0]
        f.kinds, f.weight, f.count = &kinds[0], &weight[0], &count[0]
        f.kind = &kind[0] if kind.shape[0] else NULL
        f.most_kinds = np.diff(kinds).max()
        f.top, f.tail, f.block_top, f.block_tail = &top[0], &tail[0, 0], &block_top[0], &block_tail[0, 0]

    @staticmethod
    def _kinds(const int64_t[::1] slopes, const int64_t[::1] more, const int64_t[::1] held, const int64_t[::1] spare):
        """The kinds of weights of each piece, ascending, how many magnitudes have each, where those of a piece begin,
        and the kind of each point among those of its piece."""
        cdef Py_ssize_t p, j, at, low, high, first, found, end = 0
        cdef int64_t added
        most = slopes.shape[0] + more.shape[0]
        extra, counts = np.empty(most, np.int64), np.zeros(most, np.int64)
        starts, kind = np.empty(slopes.shape[0] + 1, np.int64), np.empty(more.shape[0], np.int32)
        cdef int64_t[::1] kinds = extra, count = counts, start = starts
        cdef int32_t[::1] of_point = kind
        for p in range(slopes.shape[0]):
            start[p] = first = end
            if spare[p]:
                kinds[end], count[end] = 0, spare[p]
                end += 1
            for found in range(2):      # collect the kinds; then count them
                for j in range(held[p], held[p + 1]):
                    added, low, high = more[j], first, end
                    while low < high:
                        at = (low + high) // 2
                        if kinds[at] < added:
                            low = at + 1
                        else:
                            high = at
                    if found:
                        count[low] += 1
                        of_point[j] = <int32_t> (low - first)
                    elif low == end or kinds[low] != added:
                        for at in range(end, low, -1):
                            kinds[at] = kinds[at - 1]
                        kinds[low] = added
                        end += 1
        start[slopes.shape[0]] = end
        weights = extra[:end] + np.repeat(slopes, np.diff(starts))
        return weights, counts[:end].copy(), starts, kind

    @staticmethod
    def _tails(tops, sums, Py_ssize_t block):
        """The greatest of the tops from each place to the end of its block, and the sums of powers over it."""
        count = np.arange(1, DPFAST_FEW_POWERS + 1)
        left = np.minimum(-np.arange(1, len(tops) + 1) % block, np.arange(len(tops))[::-1])     # further in the block
        after, added = tops.copy(), np.zeros_like(sums)
        for further in range(1, left.max() + 1):
            here = np.flatnonzero(left >= further)
            after[here] = np.maximum(after[here], tops[here + further])
        for further in range(left.max(), -1, -1):       # each is scaled once
            here = np.flatnonzero(left >= further)
            added[here] += sums[here + further] * (tops[here + further] / after[here])[:, None] ** count
        return after, added

    def __reduce__(self):
        function, arguments = self._made_by
        return function, arguments

    cdef int64_t least_slope(self, int64_t low, int64_t high):
        """The least slope of the pieces of the indices low..high, which is at most their least weight."""
        cdef const dpfast_magnitudes *f = &self.magnitudes
        cdef int64_t near = 0 if low <= 0 <= high else min(abs(low), abs(high))
        cdef Py_ssize_t begin = dpfast_piece_of(f, dpfast_bucket(f, near))
        cdef Py_ssize_t end = dpfast_piece_of(f, dpfast_bucket(f, max(abs(low), abs(high))))
        return min(<int64_t> f.piece[p].slope for p in range(begin, end + 1))

    cdef tuple stretch(self, Py_ssize_t p, int64_t low, int64_t high):
        """The part of piece p in low..high: its first magnitude, the last, and the round numbers and their weights."""
        cdef const dpfast_magnitudes *f = &self.magnitudes
        cdef int64_t start = max(low, dpfast_first_of_piece(f, p))
        cdef int64_t stop = min(high, dpfast_first_of_piece(f, p + 1) - 1)
        cdef Py_ssize_t j = dpfast_rounds_below(f, start, dpfast_bucket(f, start))
        cdef Py_ssize_t beyond = dpfast_rounds_below(f, stop + 1, dpfast_bucket(f, stop + 1))
        _, _, _, _, point, before, _, _, _, _ = self._arrays
        return start, stop, point[j:beyond], <int64_t> f.piece[p].slope + np.diff(before[j:beyond + 1])

    cdef object kinds(self, int64_t low, int64_t high):
        """Weights and how many of the magnitudes low..high have them, two rows; a weight may come several times."""
        cdef const dpfast_magnitudes *f = &self.magnitudes
        cdef Py_ssize_t p, begin, end
        if low > high:
            return np.empty((2, 0), np.int64)
        _, _, _, _, _, _, _, kinds, weight, count = self._arrays
        begin, end = dpfast_piece_of(f, dpfast_bucket(f, low)), dpfast_piece_of(f, dpfast_bucket(f, high))
        found = [np.stack([weight, count])[:, kinds[begin + 1]:max(kinds[begin + 1], kinds[end])]]
        for p in {begin, end}:
            start, stop, points, weights = self.stretch(p, low, high)
            found.append([[<int64_t> f.piece[p].slope], [stop - start + 1 - len(points)]])
            found.append([weights, np.ones_like(weights)])
        weights, counts = np.concatenate(found, axis=1)
        return np.stack([weights[counts > 0], counts[counts > 0]])

    cdef list places(self, int64_t weight, int64_t low, int64_t high):
        """The magnitudes low..high of a weight: (how many, the first, None), or with those that others come before."""
        cdef const dpfast_magnitudes *f = &self.magnitudes
        cdef Py_ssize_t p, begin, end
        found = []
        if low > high:
            return found
        _, _, _, _, _, _, _, kinds, every, _ = self._arrays
        begin, end = dpfast_piece_of(f, dpfast_bucket(f, low)), dpfast_piece_of(f, dpfast_bucket(f, high))
        alike = np.flatnonzero(every[kinds[begin]:kinds[end + 1]] == weight) + kinds[begin]
        for p in np.searchsorted(kinds, alike, side="right") - 1:
            start, stop, points, weights = self.stretch(p, low, high)
            if <int64_t> f.piece[p].slope == weight:  # the i-th follows the round numbers that fewer than i + 1 precede
                found.append((stop - start + 1 - len(points), start, points - start - np.arange(len(points))))
            else:
                same = points[weights == weight]
                found.append((len(same), same, None))
        return found


cdef class Measure:
    """An integer weight for each code of 0..last: `unit`, and for each part that holds the code the weight of the part.

    With `table`, its entries are the weights instead; with `floats`, those of the index k + offset of floats.

    **Assumes** `parts` of (weight, numerator, denominator): part j holds, for each integer i, the least code k with
    (k + offset + 1/2) numerator / denominator >= i, all positive, the numerator odd; the spacing, denominator /
    numerator, is at least 2 and divides that of the next part; (last + offset + 1) numerator < 2**50; 0 <= offset; at
    most `MOST_PARTS`. A table of last + 1 positive weights. The total weight is below 2**62. **Cost** O(1), or 8 bytes
    per code.
    """

    def __init__(self, int64_t last, int64_t unit=1, int64_t offset=0, object parts=(), object table=None,
                 Magnitudes floats=None):
        cdef const int64_t[::1] below
        cdef Py_ssize_t j
        before = 1, 1
        self.unit, self.offset, self.parts, self.table, self.floats = unit, offset, parts, table, floats
        self.measure.unit, self.measure.offset, self.measure.table = unit, offset, NULL
        self.measure.floats = NULL if floats is None else &floats.magnitudes
        self.measure.parts = len(parts)
        for j, (weight, numerator, denominator) in enumerate(parts):
            # Python divides integers with one rounding
            factor = before[0] * numerator / (before[1] * denominator)
            self.measure.part[j].factor, self.measure.part[j].shift = factor, factor / 2 - 0.5
            self.measure.part[j].weight = weight
            self.measure.part[j].numerator, self.measure.part[j].denominator = numerator, denominator
            before = denominator, numerator
        if table is not None:
            below = np.concatenate([[0], np.cumsum(table)])
            self._below = below  # kept alive: the struct points into it
            self.measure.table = &below[0]
        self.measure.total = dpfast_interval_weight(&self.measure, 0, last)
        self.last, self.total = last, self.measure.total
        self.least = unit if table is None else min(table)
        if floats is not None:
            self.least = floats.least_slope(offset, last + offset)

    def __reduce__(self):
        return Measure, (self.last, self.unit, self.offset, self.parts, self.table, self.floats)

    cdef list _sides(self, int64_t first, int64_t last):
        """The magnitudes of the codes first..last of floats below 0, and of the others: the least and the greatest."""
        cdef int64_t low = first + self.offset, high = last + self.offset
        return [(max(1, -high), -low), (max(0, low), high)]

    def point_at(self, int64_t first, int64_t last, int64_t place):
        """The code at a place of the weight of first..last: uniform places give codes by their weights.

        **Law** deterministic. **Assumes** 0 <= place < the weight. **Cost** O(parts), or the logarithm of the numbers
        in a table, or of pieces and round numbers.
        """
        return dpfast_point_at(&self.measure, first, last, place)

    def power_sums(self, int64_t first, int64_t last, double whole, Py_ssize_t count):
        """The sums of (weight / whole)**k over the codes first..last, k = 1..count, relative errors
        (k + 128) 2**-52; of floats with more than 28 digits (3 k / 2 + 128) 2**-52.

        **Law** deterministic. **Assumes** first <= last in range, count <= 128. **Cost** O(count) for each part, piece
        or kind of weight.
        """
        out = np.empty(count)
        cdef double[::1] view = out
        dpfast_powers_of(&self.measure, first, last, whole, &view[0], count)
        return out

    def weights(self, const int64_t[:] lower not None, const int64_t[:] upper not None):
        """The weights of the intervals lower[t]..upper[t], exact.

        **Law** deterministic. **Assumes** 0 <= lower, upper <= last, lower <= upper + 1, equal lengths. **Cost**
        O(parts) each.
        """
        cdef Py_ssize_t t
        out = np.empty(lower.shape[0], np.int64)
        cdef int64_t[::1] view = out
        for t in range(lower.shape[0]):
            view[t] = dpfast_interval_weight(&self.measure, lower[t], upper[t])
        return out

    def kinds(self, int64_t first, int64_t last):
        """The distinct weights of the codes first..last, ascending, and how many codes have each: a list of pairs.

        **Law** deterministic. **Assumes** 0 <= first <= last + 1, last in range. **Cost** O(parts), or O(codes) for a
        table, or O(pieces + round numbers) for floats.
        """
        cdef const dpfast_measure *measure = &self.measure
        cdef double below = <double> (first + measure.offset - 1), up_to = <double> (last + measure.offset)
        cdef int64_t weight = measure.unit, left = last - first + 1, inside
        cdef Py_ssize_t j
        if self.table is not None:
            return sorted(Counter(self.table[first:last + 1]).items())
        if self.floats is not None:
            floats = <Magnitudes> self.floats
            sides = (floats.kinds(low, high) for low, high in self._sides(first, last))
            weights, counts = np.concatenate([pairs for pairs in sides], axis=1)
            distinct, place = np.unique(weights, return_inverse=True)
            totals = np.zeros(len(distinct), np.int64)
            np.add.at(totals, place.reshape(-1), counts)
            return list(zip(distinct.tolist(), totals.tolist(), strict=True))
        found = []
        for j in range(measure.parts):
            below, up_to = dpfast_count(&measure.part[j], below), dpfast_count(&measure.part[j], up_to)
            inside = <int64_t> (up_to - below)
            if inside < left:
                found.append((weight, left - inside))
            weight, left = weight + measure.part[j].weight, inside
        if left:
            found.append((weight, left))
        return found

    def code_of(self, int64_t weight, int64_t first, int64_t last, below):
        """A uniform code of those of first..last that have this weight; ``below(n)`` is a uniform integer below n.

        **Law** exact: a code of the last part that all codes of this weight are in, until it is in no further part.
        **Assumes** a weight of `kinds`. **Cost** O(parts) for each of a few codes, or O(codes) for a table.
        """
        cdef const dpfast_measure *measure = &self.measure
        cdef double before = <double> (first + measure.offset - 1), up_to = <double> (last + measure.offset)
        cdef int64_t inside = measure.unit, code, index, twice
        cdef Py_ssize_t part = 0
        if self.table is not None:
            codes = [k for k in range(first, last + 1) if self.table[k] == weight]
            return codes[below(len(codes))]
        if self.floats is not None:
            return self._float_of(weight, first, last, below)
        while inside < weight:
            before, up_to = dpfast_count(&measure.part[part], before), dpfast_count(&measure.part[part], up_to)
            inside += measure.part[part].weight
            part += 1
        while True:
            code = index = <int64_t> before + 1 + <int64_t> below(<int64_t> (up_to - before))
            if part:
                twice = 2 * measure.part[part - 1].numerator
                code = (2 * index * measure.part[part - 1].denominator - twice // 2 + twice - 1) // twice
            code -= measure.offset
            if dpfast_interval_weight(measure, code, code) == weight:
                return code

    cdef int64_t _float_of(self, int64_t weight, int64_t first, int64_t last, below) except -1:
        """`code_of` for a measure of floats."""
        cdef Magnitudes floats = self.floats
        (low, high), (least, most) = self._sides(first, last)
        negative = floats.places(weight, low, high)
        found = negative + floats.places(weight, least, most)
        place = below(sum(count for count, _, _ in found))
        chosen = 0
        while place >= found[chosen][0]:
            place -= found[chosen][0]
            chosen += 1
        _, start, between = found[chosen]
        if between is None:
            magnitude = int(start[place])
        else:
            magnitude = start + place + int(np.searchsorted(between, place, side="right"))
        return (-magnitude if chosen < len(negative) else magnitude) - self.offset


cdef const dpfast_measure *of_measure(Measure measure, dpfast_measure *uniform, int64_t last) noexcept:
    """The weights of a measure; for None those of the uniform measure, which it puts into `uniform`."""
    dpfast_set_uniform(uniform, last)
    return uniform if measure is None else &measure.measure


cdef Py_ssize_t choose_level_exactly(object bit_generator, uint64_t word, const dpfast_measure *measure,
                                     const int64_t *lower, const int64_t *upper, Py_ssize_t n,
                                     Py_ssize_t depth, double epsilon) except -1:
    from dpfast._kernels._balls import choose_level
    weights = [dpfast_interval_weight(measure, lower[t], upper[t]) for t in range(n)]
    return choose_level(word, lambda: next_word(bit_generator), weights, epsilon, measure.total, depth)


cdef Py_ssize_t flip_level_exactly(object bit_generator, const uint64_t *words, const int64_t *sizes, Py_ssize_t n,
                                   Py_ssize_t depth, double epsilon) except -1:
    from dpfast._kernels._balls import flip_level
    weights = [sizes[t] for t in range(n + 1)]
    drawn = [words[t] for t in range(n + 1)]
    return flip_level(drawn, lambda: next_word(bit_generator), weights, epsilon, depth)
