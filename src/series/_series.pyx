"""Counts at public nodes, their integer cosine sums, draws from a series; serves dpfast/densities/series.py."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from numpy.random cimport bitgen_t

from dpfast._kernels._samplers cimport unwrap

cdef extern from "series.h":
    void dpfast_series(const double *a, const double *b, Py_ssize_t terms, double w, const double *u, double *out,
                       Py_ssize_t n) noexcept nogil
    Py_ssize_t dpfast_node(int64_t code, uint64_t multiplier) noexcept nogil
    int64_t dpfast_code_at(uint64_t position, uint64_t size) noexcept nogil


def add_counts(const int64_t[::1] codes not None, uint64_t multiplier, int64_t[::1] counts not None):
    """Count each code at its node, floor(code * multiplier / 2**63).

    **Law** deterministic, elementwise. **Assumes** 0 <= code < size, multiplier <= 2**63 len(counts) / size.
    **Cost** O(n).
    """
    cdef Py_ssize_t i
    with nogil:
        for i in range(codes.shape[0]):
            counts[dpfast_node(codes[i], multiplier)] += 1


def sums(const int64_t[::1] counts not None, const int32_t[::1] table not None, const int64_t[::1] starts not None,
         const int64_t[::1] strides not None, int64_t[::1] out not None):
    """Fill out[j] with sum_i counts[i] * table[(starts[j] + i * strides[j]) mod len(table)].

    **Law** exact integers. **Assumes** starts and strides in [0, len(table)), as many as `out`; sum |counts| times max
    |table| below 2**63. **Cost** len(counts) * len(out). **Reference** docs/proofs/series.md.
    """
    cdef Py_ssize_t i, j
    cdef int64_t place, period = table.shape[0], total
    with nogil:
        for j in range(out.shape[0]):
            place, total = starts[j], 0
            for i in range(counts.shape[0]):
                total += counts[i] * table[place]
                place += strides[j]
                if place >= period:
                    place -= period
            out[j] = total


def evaluate(const double[::1] cosines not None, const double[::1] sines not None, double frequency,
             const double[::1] points not None, double[::1] out not None):
    """Fill `out` with sum_l (cosines[l] cos(l w u) + sines[l] sin(l w u)), w the frequency, at each point u.

    **Law** in doubles, not certified: for public data only. **Assumes** equal lengths, at least 1, of `cosines` and
    `sines`, and of `points` and `out`; sines[0] is not read. **Cost** O(len(points) len(cosines)). **Reference**
    Clenshaw 1955.
    """
    cdef Py_ssize_t n = points.shape[0]
    if n:
        with nogil:
            dpfast_series(&cosines[0], &sines[0], cosines.shape[0] - 1, frequency, &points[0], &out[0], n)


def fill_density(bit_generator, const int32_t[::1] cells not None, const double[::1] cosines not None,
                 const double[::1] sines not None, double frequency, *, const double[::1] envelope not None,
                 const double[::1] squeeze not None, uint64_t size, int64_t first_code, double step,
                 double[::1] out not None):
    """Fill with grid points whose cells hold draws from the density max(s, 0) / total, s the sum of `evaluate`.

    Returns the number of points; the other draws were rejected.

    **Law** of a position in [0, 1), as of s in doubles: one in each of `cells`, drawn in proportion to the envelope,
    accepted with probability s / envelope; out is (first_code + floor(position * size)) * step. **Assumes** 2**10 to
    2**24 equal cells, a power of two; squeeze <= s / envelope <= 1 on each; size >= 1; len(out) >= len(cells). **Cost**
    a word and O(1) for each of `cells`; a second word, and s, only between squeeze and envelope. **Reference** Devroye
    1986, II.3.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t i, filled = 0, terms = cosines.shape[0] - 1
    cdef int bits = 0  # of a position within its cell
    cdef uint64_t word, position
    cdef double accept, x, s
    while <uint64_t> envelope.shape[0] << bits != <uint64_t> 1 << 63:
        bits += 1
    bits += 1
    with bit_generator.lock, nogil:
        for i in range(cells.shape[0]):
            word = source.next_uint64(source.state)
            position = (<uint64_t> cells[i] << bits) + (word >> (64 - bits))
            accept = (word & 1023) * 2.0 ** -10
            if accept + 2.0 ** -10 > squeeze[cells[i]]:
                accept += (source.next_uint64(source.state) >> 11) * 2.0 ** -63
                x = position * 2.0 ** -64
                dpfast_series(&cosines[0], &sines[0], terms, frequency, &x, &s, 1)
                if accept * envelope[cells[i]] >= s:
                    continue
            out[filled] = (first_code + dpfast_code_at(position, size)) * step
            filled += 1
    return filled
