"""Smooth-sensitivity maxima: the kernel against all pairs, its weights against exact numbers (T19)."""

from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from dpfast._kernels import _gaps
from tests.reference import gaps

pytestmark = pytest.mark.kernel

BETAS = [2.0**-30, 1e-5, 0.01, 0.35, np.nextafter(0.35, 1), 0.7, 3.0, 40.0]


@pytest.mark.parametrize("beta", BETAS)
def test_weights_never_fall_faster_than_exp_minus_beta(beta):
    weights = _gaps.weights(beta, 2.0**52, 5000)
    before, ctx.prec = ctx.prec, 200
    discount = (-arb(fmpq(*float(beta).as_integer_ratio()))).exp()
    exact = [arb(fmpq(*float(w).as_integer_ratio())) for w in weights]
    assert weights[0] == 1
    assert all(b >= discount * a for a, b in pairwise(exact))
    assert all(b <= (discount + min(beta, 1.0) * 2.0**-45 + 2.0**-51) * a for a, b in pairwise(exact))
    assert (np.diff(weights) < 0).all()
    ctx.prec = before


@pytest.mark.parametrize("beta", [0.01, 0.7])
def test_weights_stop_where_no_gap_matters(beta):
    weights = _gaps.weights(beta, 1000.0, 100_000)
    assert weights[-1] * 1000 > 1
    assert weights[-1] * np.exp(-beta) * (1 + 1e-12) * 1000 <= 1 + 1e-9
    assert len(weights) == int(np.ceil(np.log(1000.0) / beta))
    assert len(_gaps.weights(beta, 1000.0, 3)) == 3
    assert len(_gaps.weights(beta, 1.0, 3)) == 0


@st.composite
def windows(draw):
    most = draw(st.sampled_from([1, 2, 20, 2**20, 2**51]))
    codes = st.lists(st.integers(0, most), min_size=1, max_size=25)
    low, high = sorted(draw(codes)), sorted(draw(codes))
    split = draw(st.integers(0, most))
    lower = np.array([min(code, split) for code in low][::-1], dtype=float)
    upper = np.array([max(code, split) for code in high], dtype=float)
    return lower, upper, float(most)


@given(windows(), st.sampled_from(BETAS))
def test_the_fast_maximum_is_the_maximum_of_all_pairs(window, beta):
    lower, upper, most = window
    weights = _gaps.weights(beta, most, 30)
    fast, slow = _gaps.stretch(lower, upper, weights), gaps.stretch(lower, upper, weights)
    assert slow * (1 - 2.0**-46) <= fast <= slow


def test_a_wide_window_and_its_ties():
    rng = np.random.default_rng(1)
    weights = _gaps.weights(0.01, 2.0**32, 10_000)
    n = len(weights)
    for top in (0, 1, 50, 2**31):
        lower = np.sort(rng.integers(0, top + 1, n))[::-1].astype(float)
        upper = np.sort(rng.integers(top, 2 * top + 1, n)).astype(float)
        all_pairs = weights[:, None] * (weights * (upper - lower[:, None]))
        assert _gaps.stretch(lower, upper, weights) == all_pairs.max()


def test_positive_control_the_wrong_order_of_columns_loses_the_maximum():
    """The divide and conquer needs nonincreasing `lower`: turned round, it finds less."""
    weights = _gaps.weights(0.3, 1e6, 100)
    rng = np.random.default_rng(2)
    found = []
    for _ in range(50):
        lower = np.sort(rng.integers(0, 10**6, 7)).astype(float) * (np.arange(7) > 2)
        upper = 10**6 + np.cumsum(rng.lognormal(11, 2, 7)).astype(int).astype(float)
        found.append(_gaps.stretch(lower, upper, weights) / gaps.stretch(lower, upper, weights))
    assert min(found) < 0.99


def test_empty_windows():
    assert _gaps.stretch(np.empty(0), np.ones(1), np.ones(1)) == 0
    assert _gaps.stretch(np.zeros(1), np.ones(1), np.empty(0)) == 0
