# To draw exactly inside your own nogil loop:
#
#     from dpfast._kernels._samplers cimport draw_uniform, unwrap
#
#     cdef bitgen_t *source = unwrap(bit_generator)
#     with bit_generator.lock, nogil:
#         for i in range(n):
#             out[i] = draw_uniform(source, 9)        # 0..9, exactly uniform
#
# The lock is what raises EntropyError when a secure generator fails: never draw without it.

from libc.stdint cimport uint64_t
from numpy.random cimport bitgen_t

cdef bitgen_t *unwrap(object bit_generator) except NULL
cdef uint64_t draw_uniform(bitgen_t *source, uint64_t last) noexcept nogil      # uniform on 0..last
cdef bint draw_bernoulli(bitgen_t *source, uint64_t numerator, uint64_t denominator) noexcept nogil
cdef bint draw_bernoulli_dyadic(bitgen_t *source, uint64_t threshold) noexcept nogil        # threshold / 2^64
