"""The slopes of the lines through pairs of records, for dpfast/regression/slopes.py.

The loops are in ``slopes.h``.
"""

from libc.stdint cimport int64_t, uint64_t

cdef extern from "slopes.h" nogil:
    void slopes_of_matching(const double *x, const double *y, Py_ssize_t n, Py_ssize_t turn, uint64_t index,
                            double lower, double upper, double *out)
    uint64_t slopes_end(uint64_t index)


def slopes(
    const double[::1] x not None,
    const double[::1] y not None,
    Py_ssize_t turn,
    uint64_t index,
    double lower,
    double upper,
    double[::1] out not None,
):
    """Write the slopes of the n // 2 pairs of one matching to `out`.

    **Law** deterministic: pair i = 0, 1, ... is (turn + i + 1, turn - i - 1) modulo m, the greatest odd number up to n;
    for even n the last pair is (turn, n - 1). Pairs with equal x, a difference of x that is not finite or a slope that
    is NaN get `lower` or `upper`, by index + i. Different turns have different pairs. **Assumes** n >= 2 records in x
    and in y, 0 <= turn < m, n // 2 entries of out. **Cost** O(n).
    """
    with nogil:
        slopes_of_matching(&x[0], &y[0], x.shape[0], turn, index, lower, upper, &out[0])


def ends(const int64_t[::1] places not None, double lower, double upper, double[::1] out not None):
    """Write `lower` or `upper` to `out` at these places, by the place.

    **Law** deterministic. **Assumes** places within out. **Cost** O(places).
    """
    cdef Py_ssize_t i
    for i in range(places.shape[0]):
        out[places[i]] = upper if slopes_end(places[i]) else lower
