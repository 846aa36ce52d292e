# The chain of joint quantiles, which a kernel of its own reads in narrow windows; docs/proofs/joint-quantiles.md.

from libc.stdint cimport int64_t, uint64_t

from chain cimport dpfast_target
from dpfast._kernels._measures cimport Measure


cdef class Chain:
    cdef readonly double total
    cdef readonly int64_t exponent
    cdef readonly double margin
    cdef readonly bint certain
    cdef object _codes, _messages
    cdef Measure _measure
    cdef dpfast_target *_targets
    cdef Py_ssize_t _m, _reach
    cdef double _a
    cdef double[::1] _power, _weights, _cumulative, _scratch
    cdef int64_t[::1] _begins  # the first target of the block that ends with a target: after a pin, up to the next one
    cdef Py_ssize_t _held      # the first target of the block whose messages are in memory
    cdef Py_ssize_t _doubles   # for the message of a state
    cdef object _bits
    cdef bint _exact
    cdef list _path            # the choices of the last draw
    cdef Py_ssize_t _next      # the next one of them
    cdef Py_ssize_t _filled    # the choices whose runs are in the output
    cdef uint64_t _word        # of the next choice, if there is one
    cdef bint _waits
    cdef list _odds, _places

    cdef _set_powers(self, double rate, Py_ssize_t count)
    cdef void _place(self, dpfast_target *t, double *room) noexcept
    cdef void _start(self, dpfast_target *t) noexcept
    cdef void _step(self, dpfast_target *t) noexcept nogil
    cdef void _recall(self, Py_ssize_t j) noexcept nogil
    cdef double _weigh_ends(self) noexcept
    cdef void _weigh_kinds(self, const dpfast_target *t, Py_ssize_t i, bint only_value) noexcept
    cdef Py_ssize_t _weigh_runs(self, const dpfast_target *t, Py_ssize_t i) noexcept
    cdef Py_ssize_t _weigh_sources(self, const dpfast_target *t, Py_ssize_t i, bint is_gap, Py_ssize_t *source,
                                   bint *only_value) noexcept
    cdef bint _is_raised(self, const dpfast_target *t, Py_ssize_t i, bint is_gap) noexcept
    cdef bint _arrival_is_raised(self, const dpfast_target *t, Py_ssize_t i) noexcept
    cdef Py_ssize_t _choose(self, Py_ssize_t n, Py_ssize_t first, Py_ssize_t j, Py_ssize_t away) except -2
    cdef int _draw_word(self) except -1
    cdef Py_ssize_t _decide(self, Py_ssize_t n, Py_ssize_t j, Py_ssize_t away) except -2
    cdef _fill_run(self, int64_t start, int64_t width, int64_t[::1] out)
    cdef bint _walk(self, int64_t[::1] out) except -1
    cdef void _begin(self, bit_generator, bint exact, list path) noexcept
