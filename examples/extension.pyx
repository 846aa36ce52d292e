# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""A Cython module of another package that uses the kernels of dpfast; docs/guides/c-api.md explains how to build it.

Three private loops without the GIL; each docstring states the guarantee.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from numpy.random cimport bitgen_t

from dpfast._kernels._choice cimport draw_choice
from dpfast._kernels._levels cimport draw_nested
from dpfast._kernels._samplers cimport C_API_VERSION, c_api_version, draw_rounded_laplace, unwrap
from dpfast._kernels._select cimport select_window

if c_api_version() != C_API_VERSION:
    raise ImportError(f"compiled for version {C_API_VERSION} of the C level of dpfast, not {c_api_version()}")


def add_noise(bit_generator, const int64_t[::1] counts not None, double scale, int64_t[::1] out not None):
    """Counts of disjoint sets of records with rounded Laplace noise: epsilon-private for ``scale = 2 / epsilon``."""
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t i
    with bit_generator.lock, nogil:
        for i in range(counts.shape[0]):
            out[i] = counts[i] + draw_rounded_laplace(source, bit_generator, scale)


def best_of_each(bit_generator, const double[:, ::1] scores not None, double rate, int64_t[::1] out not None):
    """The index of a high score in each row: epsilon-private for disjoint rows, rate = epsilon / (2 sensitivity)."""
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t i
    with bit_generator.lock, nogil:
        for i in range(scores.shape[0]):
            out[i] = draw_choice(source, bit_generator, &scores[i, 0], scores.shape[1], rate)


def median_code(bit_generator, const double[::1] x not None, Py_ssize_t reach, double epsilon, int64_t last):
    """The lower median of x, rounded to integers in 0..last: epsilon-private, by inverse sensitivity.

    It uses `reach` order statistics on each side; ``InverseSensitivity.cap(n) - 1`` are enough.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t rank = (x.shape[0] + 1) // 2, t
    cdef double *window = <double *> malloc((2 * reach + 1) * sizeof(double))
    cdef int64_t *lower = <int64_t *> malloc((reach + 1) * sizeof(int64_t))
    cdef int64_t *upper = <int64_t *> malloc((reach + 1) * sizeof(int64_t))
    try:
        if window == NULL or lower == NULL or upper == NULL:
            raise MemoryError
        select_window(&x[0], x.shape[0], rank - reach, rank + reach, 0.0, window)
        for t in range(reach + 1):
            lower[t] = <int64_t> min(max(window[reach - t] + 0.5, 0.0), <double> last)
            upper[t] = <int64_t> min(max(window[reach + t] + 0.5, 0.0), <double> last)
        with bit_generator.lock:
            return draw_nested(source, bit_generator, lower, upper, reach + 1, epsilon, last)
    finally:
        free(window)
        free(lower)
        free(upper)
