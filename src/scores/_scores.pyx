"""The score laws of M-estimators, from the records to the draw; serves dpfast/mechanisms/mestimation.py.

Law, kernel side: theta in 0..last has weight w(theta) exp(-rate min(|S(theta)|, M + reach)), S(theta) the sum of
psi(theta - x) over the codes x of the records, M the least |S(theta)|. psi is an integer table, nondecreasing, linear
between integer knots; w is 1, or 1 / (width**2 + (theta - center)**2). The loops are in ``score_cells.h`` and
``scores.h``. docs/proofs/score-laws.md
"""

cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport free
from numpy.random cimport bitgen_t

from dpfast._kernels._samplers cimport unwrap
from grid cimport dpfast_encode_array, dpfast_grid
from select cimport describe, select_keys, select_load_filled, select_sample, select_set_grid

from fractions import Fraction
from functools import reduce

import numpy as np

from dpfast._kernels._samplers import next_word
from dpfast._kernels._threads import each
from dpfast._kernels._sources import secret_word

cnp.import_array()

cdef extern from *:
    ctypedef long long wide "__int128"

cdef extern from "scores.h" nogil:
    ctypedef struct scores_psi:
        const int64_t *knots
        const int64_t *values
        const int64_t *slopes
        Py_ssize_t count
        const int32_t *guide

    ctypedef struct scores_piece:
        int64_t near
        int64_t length
        wide excess
        wide slope
        wide closest
        int side

    ctypedef struct scores_cut:
        scores_piece *pieces
        Py_ssize_t count
        Py_ssize_t room
        double rate
        const int64_t *edges
        Py_ssize_t edge_count
        int64_t center
        int64_t width

    ctypedef struct scores_line:
        const int64_t *positions
        wide *values
        wide *slopes
        Py_ssize_t count
        int64_t left
        int64_t right
        int64_t last

    ctypedef struct scores_draw:
        uint64_t word
        Py_ssize_t piece
        int64_t step

    enum: SCORES_BUCKETS

    enum scores_stage:
        SCORES_CHOOSE
        SCORES_CHOSEN
        SCORES_KEPT
        SCORES_DONE
        SCORES_WHICH
        SCORES_WHETHER

    void scores_fill_guide(const scores_psi *psi, int32_t *guide)
    int scores_sweep(const scores_line *line, wide reach, scores_cut *cut)
    void scores_cumulative(const scores_cut *cut, double *cumulative)
    int scores_attempt(bitgen_t *source, const scores_cut *cut, const double *cumulative, scores_draw *draw, int stage,
                       bint exact)


cdef extern from "score_cells.h" nogil:
    ctypedef struct scores_tally:
        pass

    ctypedef struct scores_cell:
        pass

    ctypedef struct scores_crossing:
        int64_t low
        int64_t high
        wide at_low
        wide at_high

    ctypedef struct scores_layout:
        int64_t center
        Py_ssize_t side

    scores_layout scores_lay_out(int64_t center, int bits, int fine)
    int64_t scores_at_once(const scores_layout *layout)
    void scores_fill(const select_keys *keys, const dpfast_grid *grid, Py_ssize_t start, Py_ssize_t stop,
                     const scores_layout *layout, uint16_t *found, scores_tally *table)
    void scores_add_table(scores_tally *table, Py_ssize_t size, uint64_t *totals)
    Py_ssize_t scores_cells(const uint64_t *totals, const scores_layout *layout, scores_cell *cells)
    void scores_singles(const int64_t *codes, Py_ssize_t n, scores_cell *cells)
    wide scores_doubt(const scores_psi *psi, const scores_cell *cells, Py_ssize_t n, int64_t shift)
    scores_crossing scores_cross(const scores_psi *psi, const scores_cell *cells, Py_ssize_t n, int64_t center,
                                 int64_t last, wide target, wide close)
    Py_ssize_t scores_mark(const scores_psi *psi, const scores_cell *cells, Py_ssize_t n, int64_t center, int64_t left,
                           int64_t right, uint8_t *marked, wide *sums)
    Py_ssize_t scores_collect(const select_keys *keys, const dpfast_grid *grid, Py_ssize_t start, Py_ssize_t stop,
                              const uint16_t *found, const uint8_t *marked, int64_t *codes, Py_ssize_t capacity)
    Py_ssize_t scores_scan(const scores_psi *psi, int64_t *codes, Py_ssize_t n, int64_t left, int64_t right, wide *sums)


cdef enum:
    FEW = 4096                  # records that are cells of one record each
    SAMPLED = 1024              # records that give the center of the cells
    FINEST = 7                  # log2 of the most cells for each doubling of the distance from the center
    RECORDS_A_CELL = 8          # of the smallest table with as many cells, if there are fewer than that many records
    RECORDS_A_WORKER = 1 << 18  # with fewer records a second thread does not pay off


def _add_totals(first, second):
    """The sums of the totals of two tables, with the carry of the sums of two words."""
    total = first + second
    total[:, 2] += total[:, 1] < first[:, 1]
    return total


cdef object _integer(wide value):
    """All 128 bits as a Python integer."""
    return (<object> <int64_t> (value >> 64) << 64) + <object> <uint64_t> value


cdef wide _wide(object value) except? -1:
    """A Python integer below 2**127 in magnitude."""
    cdef int64_t high = value >> 64
    cdef uint64_t low = value & 0xFFFFFFFFFFFFFFFF
    return (<wide> high) * (<wide> 1 << 64) + <wide> low


cdef class Pieces:
    """The law as pieces of nearly constant weight, drawn by rejection.

    **Law** exact, that of the module. **Assumes**, checked by the caller: knots strictly ascending, at least two,
    inside -last..last; values ascend by slopes times gaps, slopes >= 0, magnitudes below 2**61; reach > 0 and records
    times values below 2**125; ``width`` and distances to ``center`` below 2**54, width 0 for the uniform prior; `edges`
    ascending; a valid grid; at least one record. **Cost** one pass, two bytes per record and at most 2^14 cells for a
    narrow interval around the root, and a sort of the records with knots there; of all records if they are few or the
    interval is wide (epsilon n small). **Reference** ``score_cells.h``, ``scores.h``.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Records of any numeric dtype and stride, as for ``_select.window``.
    knots, levels, slopes : ndarray of int64
        psi: ``levels[j]`` at ``knots[j]``, then slope ``slopes[j]``.
    reach : int
        Magnitudes from M + reach on have equal weight.
    rate : Fraction
    last : int
    lower, upper, step, missing, first : float
        The public grid.
    edges : ndarray of int64
        No piece contains both edge - 1 and edge.
    center, width : int
        The Cauchy prior; width 0 is the uniform prior.
    workers : int
    """

    cdef cnp.ndarray _values
    cdef select_keys _keys
    cdef dpfast_grid _grid
    cdef scores_psi _psi
    cdef const int64_t[::1] _knots, _levels, _slopes, _edges
    cdef int32_t[::1] _guide
    cdef scores_cut _cut
    cdef double[::1] _cumulative
    cdef Py_ssize_t _workers
    cdef int64_t _last
    cdef object _rate
    cdef scores_layout _layout
    cdef int64_t[::1] _codes   # of all records, ascending, if they are few, each a cell; else
    cdef uint16_t[::1] _found  # the cell of each record
    cdef uint8_t[::1] _cells   # those with records,
    cdef Py_ssize_t _count     # so many, of places up to
    cdef Py_ssize_t _places

    def __cinit__(self):
        self._cut.pieces = NULL

    def __dealloc__(self):
        free(self._cut.pieces)

    def __init__(self, cnp.ndarray values not None, const int64_t[::1] knots not None,
                 const int64_t[::1] levels not None, const int64_t[::1] slopes not None, *, reach, rate, int64_t last,
                 double lower, double upper, double step, double missing, double first,
                 const int64_t[::1] edges not None, int64_t center=0, int64_t width=0, Py_ssize_t workers=1):
        self._values, self._knots, self._levels, self._slopes = values, knots, levels, slopes
        self._edges = edges
        self._guide = np.empty(SCORES_BUCKETS, np.int32)
        self._psi = scores_psi(&knots[0], &levels[0], &slopes[0], knots.shape[0], &self._guide[0])
        scores_fill_guide(&self._psi, &self._guide[0])
        self._grid = dpfast_grid(lower, upper, step, missing, first, 0)
        describe(&self._keys, values)
        select_set_grid(&self._keys, lower, upper, step, missing)
        self._workers = max(1, min(workers, self._keys.n // RECORDS_A_WORKER))
        self._last, self._rate = last, rate
        self._cut.rate = float(rate)
        self._cut.edge_count = edges.shape[0]
        if edges.shape[0]:
            self._cut.edges = &edges[0]
        self._cut.center, self._cut.width = center, width
        self._build(reach)
        self._cumulative = np.empty(self._cut.count)
        with nogil:
            scores_cumulative(&self._cut, &self._cumulative[0])

    cdef int64_t _center(self) except -1:
        """A grid point near the root: about that of one record per stratum, which is as near as they tell."""
        cdef double[::1] keys = np.empty(SAMPLED)
        cdef uint64_t secret = secret_word()
        cdef wide spread = self._levels[self._levels.shape[0] - 1] - self._levels[0]
        cdef scores_crossing crossing
        with nogil:
            select_sample(&self._keys, self._keys.n // SAMPLED, secret, 0, SAMPLED, &keys[0])
        self._singles(keys)
        with nogil:
            crossing = scores_cross(&self._psi, self._known(), SAMPLED, 0, self._last, 0, 2 * spread)
        return min(crossing.high, self._last)

    cdef object _singles(self, double[::1] keys):
        """Make each of a few records a cell; return their codes."""
        cdef Py_ssize_t n = keys.shape[0]
        cdef int64_t[::1] codes = np.empty(n, np.int64)
        with nogil:
            dpfast_encode_array(&self._grid, &keys[0], &codes[0], n)
        np.asarray(codes).sort()
        self._cells = np.empty((n + 1) * sizeof(scores_cell), np.uint8)
        with nogil:
            scores_singles(&codes[0], n, self._known())
        return codes

    cdef int _fill_cells(self) except -1:
        """Put all records into cells around the center; fewer cells for fewer records."""
        cdef Py_ssize_t n = self._keys.n
        cdef double[::1] keys
        cdef uint64_t[:, ::1] counts
        if n <= FEW:
            keys = np.empty(n)
            with nogil:
                select_load_filled(&self._keys, 0, n, &keys[0])
            self._codes, self._count, self._places = self._singles(keys), n, n
            return 0
        cdef int bits = int(self._last).bit_length()
        cdef int fine = max(0, min((n // (2 * bits * RECORDS_A_CELL)).bit_length(), FINEST))
        self._layout = scores_lay_out(self._center(), bits, fine)
        self._found = np.empty(n, np.uint16)
        counts = totals = reduce(_add_totals, self._each(self.fill_cells))
        self._places = 2 * self._layout.side
        self._cells = np.empty((np.count_nonzero(totals[:, 0]) + 1) * sizeof(scores_cell), np.uint8)
        with nogil:
            self._count = scores_cells(&counts[0, 0], &self._layout, self._known())

    cdef scores_cell *_known(self) noexcept nogil:
        return <scores_cell *> &self._cells[0]

    def fill_cells(self, Py_ssize_t worker):
        """The totals of the cells of one worker's records."""
        cdef Py_ssize_t start, stop, size = 2 * self._layout.side, most = scores_at_once(&self._layout)
        cdef uint64_t[:, ::1] table = np.zeros((size, 2), np.uint64), totals = np.zeros((size, 3), np.uint64)
        start, stop = self._share(worker)
        with nogil:
            while start < stop:
                scores_fill(&self._keys, &self._grid, start, min(start + most, stop), &self._layout, &self._found[0],
                            <scores_tally *> &table[0, 0])
                scores_add_table(<scores_tally *> &table[0, 0], size, &totals[0, 0])
                start += most
        return np.asarray(totals)

    cdef object _crossing(self, target, close):
        """Grid points between which S crosses `target`, and S there; neighbours, or with sums that differ by at most
        `close`, as the cells tell."""
        cdef wide level = _wide(target), difference = _wide(close)
        cdef scores_crossing found
        with nogil:
            found = scores_cross(&self._psi, self._known(), self._count, self._layout.center, self._last, level,
                                 difference)
        return found.low, found.high, _integer(found.at_low), _integer(found.at_high)

    cdef object _doubt(self, int64_t theta):
        """About the error of these sums."""
        cdef wide doubt
        with nogil:
            doubt = scores_doubt(&self._psi, self._known(), self._count, theta - self._layout.center)
        return _integer(doubt)

    cdef int _build(self, reach) except -1:
        """Guess from the cells where |S| < M + reach; if the scan shows that the guess was too narrow, widen it."""
        self._fill_cells()
        root = self._crossing(0, reach // 4)
        least, slack = min(abs(root[2]), abs(root[3])), self._doubt(root[1])
        while True:
            limit = reach + least + slack
            left = min(max(self._crossing(-limit, limit // 8)[0], 0), self._last - 1)
            right = max(min(self._crossing(limit, limit // 8)[1], self._last), left + 1)
            if self._cut_up(left, right, _wide(reach)):
                return 0
            slack = 8 * slack + limit

    def scan(self, int64_t left, int64_t right):
        """S(left), S(left + 1), and the codes with knots strictly between the ends."""
        cdef wide sums[2]
        cdef uint8_t[::1] marked = np.zeros(self._places, np.uint8)
        cdef int64_t[::1] codes
        cdef Py_ssize_t records, bends = 0
        sums[0] = sums[1] = 0
        with nogil:
            records = scores_mark(&self._psi, self._known(), self._count, self._layout.center, left, right, &marked[0],
                                  sums)
        if records:
            codes = self._marked(marked, records)
            with nogil:
                bends = scores_scan(&self._psi, &codes[0], codes.shape[0], left, right, sums)
        kept = np.asarray(codes)[:bends] if records else np.empty(0, np.int64)
        return _integer(sums[0]), _integer(sums[1]), kept

    cdef object _marked(self, marked, records):
        """The codes of the records whose cells are marked."""
        if self._keys.n <= FEW:
            return np.asarray(self._codes)[np.asarray(marked).view(np.bool_)]
        return np.concatenate(self._each(self.collect, marked, records))

    def collect(self, Py_ssize_t worker, const uint8_t[::1] marked, Py_ssize_t capacity):
        """The codes of those of one worker's records whose cells are marked."""
        cdef Py_ssize_t start, stop, collected
        cdef int64_t[::1] codes = np.empty(capacity, np.int64)
        start, stop = self._share(worker)
        with nogil:
            collected = scores_collect(&self._keys, &self._grid, start, stop, &self._found[0], &marked[0], &codes[0],
                                       capacity)
        return np.asarray(codes)[:collected]

    cdef object _share(self, Py_ssize_t worker):
        """The first and the last but one of a worker's records."""
        cdef Py_ssize_t n = self._keys.n, w = self._workers
        return n // w * worker + min(worker, n % w), n // w * (worker + 1) + min(worker + 1, n % w)

    def _each(self, task, *arguments):
        """The results of a task for all workers."""
        return each(lambda worker: task(worker, *arguments), range(self._workers), self._workers)

    cdef object _bends(self, int64_t[::1] sorted_codes, int64_t left, int64_t right):
        """Positions strictly between the ends where the slope of S changes, ascending, and the changes."""
        codes, knots = np.asarray(sorted_codes), np.asarray(self._knots)
        steps = np.zeros(len(knots), np.int64)
        steps[:-1] = self._slopes
        steps[1:] -= self._slopes
        starts, stops = np.searchsorted(codes, left + 1 - knots), np.searchsorted(codes, right - knots)
        inside = np.flatnonzero(starts < stops)
        positions = [codes[starts[j]:stops[j]] + knots[j] for j in inside]
        positions = np.concatenate([np.empty(0, np.int64), *positions])
        order = np.argsort(positions)
        return positions[order], np.repeat(steps[inside], stops[inside] - starts[inside])[order]

    cdef bint _cut_up(self, int64_t left, int64_t right, wide reach) except -1:
        """The pieces, from a scan for left < right; False if they miss a point of an excess below `reach`."""
        cdef int64_t[::1] positions, bends
        cdef scores_line line
        cdef Py_ssize_t i, count
        cdef int done
        at_left, following, codes = self.scan(left, right)
        positions, bends = self._bends(np.sort(codes), left, right)
        count = positions.shape[0] + 1
        wides = np.empty((2, count, 2), np.int64)
        places = np.empty(count, np.int64)
        places[0] = left
        places[1:] = positions
        positions = places
        cdef int64_t[:, :, ::1] memory = wides
        line.positions, line.count = &positions[0], count
        line.values, line.slopes = <wide *> &memory[0, 0, 0], <wide *> &memory[1, 0, 0]
        line.left, line.right, line.last = left, right, self._last
        line.values[0] = _wide(at_left)
        line.slopes[0] = _wide(following - at_left)
        self._cut.count = 0
        with nogil:
            for i in range(1, count):
                line.values[i] = line.values[i - 1] + line.slopes[i - 1] * (positions[i] - positions[i - 1])
                line.slopes[i] = line.slopes[i - 1] + bends[i - 1]
            done = scores_sweep(&line, reach, &self._cut)
        if done < 0:
            raise MemoryError
        return done

    def arrays(self):
        """The pieces in the order of the draw: nearest points, lengths, sides, excesses and slopes times the rate."""
        cdef Py_ssize_t i, n = self._cut.count
        cdef scores_piece *piece
        near, lengths, sides = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
        falls, slopes = np.empty(n), np.empty(n)
        cdef int64_t[::1] near_view = near, lengths_view = lengths, sides_view = sides
        cdef double[::1] falls_view = falls, slopes_view = slopes
        with nogil:
            for i in range(n):
                piece = &self._cut.pieces[i]
                near_view[i], lengths_view[i], sides_view[i] = piece.near, piece.length, piece.side
                falls_view[i] = self._cut.rate * <double> piece.excess
                slopes_view[i] = self._cut.rate * <double> piece.slope
        return near, lengths, sides, falls, slopes

    def fill(self, bit_generator, int64_t[::1] out not None, *, bint exact=False):
        """Fill with independent draws.

        **Law** exact. **Cost** a binary search and two or more words an attempt, on average at most e / (e - 1) = 1.6
        attempts for the uniform prior and four times as many for the Cauchy prior; ball arithmetic with probability
        below pieces * 2**-37. Holds a lock, released while ball arithmetic decides.
        """
        cdef bitgen_t *source = unwrap(bit_generator)
        cdef scores_draw draw
        cdef const scores_piece *piece
        cdef Py_ssize_t i = 0
        cdef int stage = SCORES_CHOOSE
        while i < out.shape[0]:
            with bit_generator.lock, nogil:
                while i < out.shape[0]:
                    stage = scores_attempt(source, &self._cut, &self._cumulative[0], &draw, stage, exact)
                    if stage == SCORES_DONE:
                        piece = &self._cut.pieces[draw.piece]
                        out[i] = piece.near + piece.side * draw.step
                        stage = SCORES_CHOOSE
                        i += 1
                    elif stage != SCORES_CHOOSE:
                        break
            if stage == SCORES_WHICH:
                draw.piece = self._which(bit_generator, draw.word)
                stage = SCORES_CHOSEN
            elif stage == SCORES_WHETHER:
                stage = SCORES_KEPT if self._whether(bit_generator, &draw) else SCORES_CHOOSE

    cdef Py_ssize_t _which(self, object bit_generator, uint64_t word) except -1:
        from dpfast._kernels._balls import choose_piece
        pieces = [(self._cut.pieces[i].length, _integer(self._cut.pieces[i].excess),
                   _integer(self._cut.pieces[i].closest)) for i in range(self._cut.count)]
        return choose_piece(word, lambda: next_word(bit_generator), pieces, self._rate)

    cdef bint _whether(self, object bit_generator, const scores_draw *draw) except -1:
        from dpfast._kernels._balls import below_exp_neg
        gamma = self._rate * Fraction(_integer(self._cut.pieces[draw.piece].slope) * draw.step)
        return below_exp_neg(draw.word, lambda: next_word(bit_generator), gamma)
