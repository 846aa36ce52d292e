"""Stages of joint quantiles with caps of our choice, and base measures for them."""

import itertools
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import dpfast as dpf
from dpfast._kernels._measures import Measure
from dpfast.mechanisms.quantiles import _Stage, _Windows


def vectors(last, m, first=0):
    """All sorted vectors of m codes in first..last."""
    return list(itertools.combinations_with_replacement(range(first, last + 1), m))


def stage(data, ranks, last, epsilon, reach, pins=None, measure=None):
    codes = np.sort(np.asarray(data))

    def read(firsts, lasts):
        return np.concatenate([codes[first - 1 : last] for first, last in zip(firsts, lasts, strict=True)])

    windows = _Windows.around(np.asarray(ranks), reach, len(codes), dpf.Grid(0, last, step=1), read)
    return _Stage(windows, range(len(ranks)), epsilon, reach, pins or {}, measure)


@st.composite
def measures(draw, last):
    """A table, or parts with each spacing a multiple of the one before."""
    if draw(st.booleans()):
        return Measure(last, table=draw(st.lists(st.integers(1, 50), min_size=last + 1, max_size=last + 1)))
    spacing, parts = Fraction(draw(st.integers(2, 4)), draw(st.sampled_from([1, 1, 5]))), []
    spacing = max(spacing, Fraction(2))
    for ratio in draw(st.lists(st.integers(2, 3), max_size=2)):
        parts.append((draw(st.integers(1, 99)), spacing.denominator, spacing.numerator))
        spacing *= ratio
    return Measure(last, draw(st.integers(1, 9)), draw(st.integers(0, 50)), parts)


def weights_of(measure):
    codes = np.arange(measure.last + 1)
    return measure.weights(codes, codes).tolist()
