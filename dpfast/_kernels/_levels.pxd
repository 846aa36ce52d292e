# The nested-interval law in your own nogil loop; the contract is in docs/guides/c-api.md.

from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

# One draw: a code of 0..last with weight exp(-epsilon / 2 * score), score the least t whose box lower[t]..upper[t]
# holds it, or `levels`. Boxes are nested inside 0..last.
# Hold the lock of `bit_generator`; `source` is `unwrap(bit_generator)`.
cdef int64_t draw_nested(bitgen_t *source, object bit_generator, const int64_t *lower, const int64_t *upper,
                         Py_ssize_t levels, double epsilon, int64_t last) except -1 nogil
