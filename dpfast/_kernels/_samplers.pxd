# Exact draws in your own nogil loop; the contract of all functions is in docs/guides/c-api.md.
#
#     from dpfast._kernels._samplers cimport draw_uniform, unwrap
#
#     cdef bitgen_t *source = unwrap(bit_generator)
#     with bit_generator.lock, nogil:
#         for i in range(n):
#             out[i] = draw_uniform(source, 9)        # 0..9, exactly uniform
#
# Leaving the lock raises EntropyError if a secure generator failed: never draw without it.

from libc.stdint cimport int64_t, uint64_t
from numpy.random cimport bitgen_t

# The version that you compiled against; c_api_version() is the installed one. It changes with a law, the words that a
# draw takes or the meaning of an argument; Cython refuses a changed signature at import.
cdef enum:
    C_API_VERSION = 2
cdef int c_api_version() noexcept nogil

cdef bitgen_t *unwrap(object bit_generator) except NULL
cdef uint64_t draw_uniform(bitgen_t *source, uint64_t last) noexcept nogil      # uniform on 0..last
cdef bint draw_bernoulli(bitgen_t *source, uint64_t numerator, uint64_t denominator) noexcept nogil
cdef bint draw_bernoulli_dyadic(bitgen_t *source, uint64_t threshold) noexcept nogil        # threshold / 2^64

# One word decides these draws, two those of a scale of 2^34 or more, except with probability about scale 2^-48, at
# most 2^-13: then they acquire the GIL for ball arithmetic and more words. `source` is `unwrap(bit_generator)`. The
# laws are those of the fill_ functions.
cdef int draw_bernoulli_exp(bitgen_t *source, object bit_generator, double gamma) except -1 nogil   # exp(-gamma)
cdef int64_t draw_geometric(bitgen_t *source, object bit_generator,
                            double scale) except? -0x7FFFFFFFFFFFFFFF nogil
cdef int64_t draw_rounded_laplace(bitgen_t *source, object bit_generator,
                                  double scale) except? -0x7FFFFFFFFFFFFFFF nogil
cdef int64_t draw_rounded_gaussian(bitgen_t *source, object bit_generator,
                                   double sigma) except? -0x7FFFFFFFFFFFFFFF nogil
