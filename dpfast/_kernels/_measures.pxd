# The base measure that other kernels read; docs/proofs/base-measures.md.

from libc.stdint cimport int64_t, uint64_t

from measure cimport dpfast_magnitudes, dpfast_measure


cdef class Magnitudes:
    cdef dpfast_magnitudes magnitudes
    cdef object _arrays, _sums, _made_by
    cdef int64_t least_slope(self, int64_t low, int64_t high)
    cdef tuple stretch(self, Py_ssize_t p, int64_t low, int64_t high)
    cdef object kinds(self, int64_t low, int64_t high)
    cdef list places(self, int64_t weight, int64_t low, int64_t high)


cdef class Measure:
    cdef dpfast_measure measure
    cdef readonly int64_t last
    cdef readonly int64_t total
    cdef readonly int64_t least
    cdef readonly int64_t unit
    cdef readonly int64_t offset
    cdef readonly object parts, table, floats
    cdef object _below
    cdef list _sides(self, int64_t first, int64_t last)
    cdef int64_t _float_of(self, int64_t weight, int64_t first, int64_t last, below) except -1


cdef const dpfast_measure *of_measure(Measure measure, dpfast_measure *uniform, int64_t last) noexcept

# Choose a level of the nested-interval law in ball arithmetic: the slow path of `dpfast_choose`.
cdef Py_ssize_t choose_level_exactly(object bit_generator, uint64_t word, const dpfast_measure *measure,
                                     const int64_t *lower, const int64_t *upper, Py_ssize_t n,
                                     Py_ssize_t depth, double epsilon) except -1

# Choose a level of permute-and-flip in ball arithmetic: the slow path of `dpfast_flip`.
cdef Py_ssize_t flip_level_exactly(object bit_generator, const uint64_t *words, const int64_t *sizes, Py_ssize_t n,
                                   Py_ssize_t depth, double epsilon) except -1
