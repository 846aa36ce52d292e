# Selection among scored candidates in your own nogil loop; the contract is in docs/guides/c-api.md.

from numpy.random cimport bitgen_t

# The exponential mechanism: an index of 0..n-1, with weight exp(rate * scores[index]). A NaN counts as 0.
# n >= 1, 2^-900 <= rate <= 2^900. Hold the lock of `bit_generator`; `source` is `unwrap(bit_generator)`.
cdef Py_ssize_t draw_choice(bitgen_t *source, object bit_generator, const double *scores, Py_ssize_t n,
                            double rate) except -1 nogil
