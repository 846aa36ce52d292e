"""Smooth-sensitivity maxima: the kernel against all pairs, its weights against exact numbers (T19)."""

from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from dpfast._kernels import _gaps
from tests.cases import every
from tests.reference import gaps

pytestmark = pytest.mark.kernel


def stretch(lower, upper, weights):
    """The gap of the ranks L and H + 1 from the codes below and above, the farthest of which are repeated."""
    reach = len(weights)
    low, high = np.zeros((2, 2 * reach + 1), np.int64)
    low[:] = np.pad(lower, (0, reach + 1), "edge")[: reach + 1][::-1][np.arange(2 * reach + 1).clip(max=reach)]
    high[:] = np.pad(upper, (0, reach), "edge")[(np.arange(2 * reach + 1) - reach - 1).clip(0)]
    gap, _ = _gaps.stretches(low, high, False, weights)
    return gap


BETAS = [2.0**-30, 1e-5, 0.01, 0.35, np.nextafter(0.35, 1), 0.7, 3.0, 40.0]


@every("beta", BETAS)
def test_weights_never_fall_faster_than_exp_minus_beta(beta):
    weights = _gaps.weights(beta, 2.0**52, 5000)
    with ctx.workprec(200):
        discount = (-arb(fmpq(*float(beta).as_integer_ratio()))).exp()
        exact = [arb(fmpq(*float(w).as_integer_ratio())) for w in weights]
        assert weights[0] == 1
        assert all(b >= discount * a for a, b in pairwise(exact))
        assert all(b <= (discount + min(beta, 1.0) * 2.0**-45 + 2.0**-51) * a for a, b in pairwise(exact))
        assert (np.diff(weights) < 0).all()


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
    fast, slow = stretch(lower, upper, weights), gaps.stretch(lower, upper, weights)
    assert slow * (1 - 2.0**-46) <= fast <= slow


def test_a_wide_window_and_its_ties():
    rng = np.random.default_rng(1)
    weights = _gaps.weights(0.01, 2.0**32, 10_000)
    n = len(weights)
    for top in (0, 1, 50, 2**31):
        lower = np.sort(rng.integers(0, top + 1, n))[::-1].astype(float)
        upper = np.sort(rng.integers(top, 2 * top + 1, n)).astype(float)
        all_pairs = weights[:, None] * (weights * (upper - lower[:, None]))
        assert stretch(lower, upper, weights) == all_pairs.max()


def test_positive_control_the_wrong_order_of_columns_loses_the_maximum():
    """The divide and conquer needs nonincreasing `lower`: turned round, it finds less."""
    weights = _gaps.weights(0.3, 1e6, 100)
    rng = np.random.default_rng(2)
    found = []
    for _ in range(50):
        lower = np.sort(rng.integers(0, 10**6, 7)).astype(float) * (np.arange(7) > 2)
        upper = 10**6 + np.cumsum(rng.lognormal(11, 2, 7)).astype(int).astype(float)
        found.append(stretch(lower, upper, weights) / gaps.stretch(lower, upper, weights))
    assert min(found) < 0.99


def test_no_weights():
    assert _gaps.stretches(np.zeros(1, np.int64), np.ones(1, np.int64), False, np.empty(0)) == [0, 0]


@given(st.lists(st.integers(0, 2**51), min_size=16, max_size=16).map(sorted), st.integers(1, 7))
def test_the_gaps_of_both_ends_and_directions(codes, records):
    """L = 4 and H = L + records - 1 of codes 0..15, four ranks to each side."""
    weights = _gaps.weights(0.3, 2.0**51, 4)
    x, low, high = np.array(codes), np.array(codes[:9]), np.array(codes[records - 1 : records + 8])
    first, last = 4, records + 3

    def gap(a, b):
        return gaps.stretch(x[a::-1][:4].astype(float), x[b:][:4].astype(float), weights)

    up = [gap(first, last + 1), gap(first, first + 1), gap(last, last + 1)]
    down = [gap(first - 1, last), gap(first - 1, first), gap(last - 1, last)]
    assert np.allclose(_gaps.stretches(low, high, True, weights), up + down, rtol=2.0**-46, atol=0)
    assert _gaps.stretches(low, high, False, weights) == _gaps.stretches(low, high, True, weights)[::3]
