"""The density of records from counts of square-wave reports, for dpfast/local/square.py.

The loops are in ``square.h``.
"""

import numpy as np

cdef extern from "square.h" nogil:
    double square_maximise(const double *counts, Py_ssize_t cells, Py_ssize_t width, double inside, double outside,
                           Py_ssize_t span, double tolerance, Py_ssize_t most, double *f, double *sums,
                           double *expected)


def maximise(const double[::1] counts not None, Py_ssize_t width, double inside, double outside, Py_ssize_t span,
             double tolerance, Py_ssize_t most, double[::1] density not None):
    """Improve a density of cells by expectation maximisation, smoothed after each step; return the log-likelihood.

    **Law** deterministic: each step multiplies a cell's probability by the mean, over the reports, of the ratio of its
    probability of a report to that of the density, then averages over `span` neighbours, twice. It ends when the
    logarithm of the likelihood changes by less than `tolerance`, or after `most` steps. **Assumes** positive entries of
    `density`, of sum 1; a count for each of ``len(density) + width - 1`` symbols, not all 0; outside positive and at
    most inside; a span of 1 to len(density). **Cost** O(symbols) for a step, a logarithm each. **Reference** Li et al.
    2020, section 5.5.
    """
    cdef Py_ssize_t cells = density.shape[0]
    cdef double[::1] sums = np.empty(cells + 2 * width + 2 * span), expected = np.empty(counts.shape[0])
    cdef double found
    with nogil:
        found = square_maximise(&counts[0], cells, width, inside, outside, span, tolerance, most, &density[0],
                                &sums[0], &expected[0])
    return found
