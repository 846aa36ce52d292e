# What wide.h, chain.h and wide_chain.h offer.

from libc.stdint cimport int64_t, uint64_t
from numpy.random cimport bitgen_t

from measure cimport dpfast_measure


cdef extern from "wide.h" nogil:
    ctypedef struct dpfast_wide:
        double mantissa
        int64_t exponent
    dpfast_wide WIDE_ZERO "DPFAST_WIDE_ZERO"
    dpfast_wide dpfast_wide_of(double x)
    dpfast_wide dpfast_wide_times(dpfast_wide x, dpfast_wide y)
    dpfast_wide dpfast_wide_exp_neg(double y)
    void dpfast_wide_scaled(const dpfast_wide *numbers, Py_ssize_t n, double least, double *doubles)


cdef extern from "chain.h" nogil:
    double STATE_FLOOR "DPFAST_STATE_FLOOR"
    double ARRIVAL_FLOOR "DPFAST_ARRIVAL_FLOOR"
    double CHOICE_FLOOR "DPFAST_CHOICE_FLOOR"
    enum: DPFAST_MOST_FREE
    ctypedef struct dpfast_wide_state:
        dpfast_wide value
        dpfast_wide gap
        dpfast_wide arrival
    ctypedef struct dpfast_target:
        Py_ssize_t rank
        Py_ssize_t first
        Py_ssize_t last
        int64_t lower
        int64_t upper
        const int64_t *x
        double *value
        double *gap
        double *arrival
        int64_t exponent
        dpfast_wide_state *wide
        const dpfast_measure *measure
        Py_ssize_t free
    double dpfast_exp_neg(double y)
    double dpfast_log(double x)
    int64_t dpfast_gap(const dpfast_target *t, Py_ssize_t i, int64_t *start)
    void dpfast_step(dpfast_target *t, double a, const double *power, double *scratch)
    double dpfast_weight(double mass, double power)
    Py_ssize_t dpfast_sources(const dpfast_target *t, Py_ssize_t i, bint is_gap, double a, const double *power,
                              double *weights, Py_ssize_t *source, bint *only_value)
    Py_ssize_t dpfast_most_runs(const dpfast_target *t, Py_ssize_t i)
    Py_ssize_t dpfast_runs(const dpfast_target *t, Py_ssize_t i, const double *power, int64_t unit, double *terms)
    void dpfast_narrow(dpfast_target *t)
    int64_t dpfast_score(const dpfast_target *t, Py_ssize_t m, const int64_t *o, int64_t most)
    Py_ssize_t dpfast_choose_weight(uint64_t word, const double *weights, Py_ssize_t n, double *cumulative)
    uint64_t dpfast_uniform(bitgen_t *source, uint64_t last)


cdef extern from "wide_chain.h" nogil:
    double MOST_RATE "DPFAST_MOST_RATE"
    void dpfast_wide_step(dpfast_target *t, const dpfast_wide *power, dpfast_wide *scratch)
    dpfast_wide dpfast_wide_ends(const dpfast_target *t, const dpfast_wide *power, dpfast_wide *weights)
    void dpfast_wide_runs(const dpfast_target *t, Py_ssize_t i, const dpfast_wide *power, Py_ssize_t runs,
                          dpfast_wide *terms)
    Py_ssize_t dpfast_wide_sources(const dpfast_target *t, Py_ssize_t i, bint is_gap, const dpfast_wide *power,
                                   dpfast_wide *weights, Py_ssize_t *source, bint *only_value)
