# Order statistics; the contract is in docs/guides/c-api.md.

cimport numpy as cnp

# out[0..last-first] = x_(first), ..., x_(last) of n contiguous doubles, ranks from 1; -inf below rank 1, inf above n; a
# NaN counts as `missing`. Needs the GIL, which it releases during long passes; x is not modified.
cdef int select_window(const double *x, Py_ssize_t n, Py_ssize_t first, Py_ssize_t last, double missing,
                       double *out) except -1

# The same for an array of any supported dtype and stride; the grid is for 64-bit integers, as in `_select.window`.
# Returns 0. If `missing` is NaN, one of the ranks must be in 1..n; if there are NaN among the records, it then returns
# 1, with how many they are in out[0].
cdef int select_records(object values, Py_ssize_t first, Py_ssize_t last, double lower, double upper, double step,
                        double missing, double *out, Py_ssize_t workers) except -1
