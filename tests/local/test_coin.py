"""The private coin of local reports: its exact ratio, rounding, gain and aggregates."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpfast.core.coin import Coin, coin
from dpfast.local import Aggregate
from tests.cases import every

EPSILONS = [2.0**-40, 1e-6, 0.1, 0.5, 1.0, 2.0, 5.0, 30.0, 44.0]
ODDS = [Fraction(1), Fraction(1, 99), Fraction(8, 8), Fraction(2**70 + 1, 2**70 - 1), Fraction(3, 2)]


@every("epsilon", EPSILONS)
@every("odds", ODDS)
def test_the_ratio_is_rounded_down_by_less_than_a_unit_of_the_threshold(epsilon, odds):
    made = coin(epsilon, odds)
    with mpmath.workdps(60):
        ratio = mpmath.exp(mpmath.mpf(epsilon))
        assert mpmath.mpf(made.ratio.numerator) / made.ratio.denominator <= ratio
        following = Coin(made.threshold + 1, odds)
        if following.threshold < 2**64:
            assert mpmath.mpf(following.ratio.numerator) / following.ratio.denominator > ratio
    assert made.ratio > 1
    assert made.epsilon == pytest.approx(epsilon, rel=1e-3, abs=0.5 * (epsilon > 35))


def test_a_threshold_rounded_up_would_break_the_promise():
    """The control: one more unit, and the loss exceeds epsilon."""
    made = coin(1.0)
    with mpmath.workdps(60):
        above = Coin(made.threshold + 1).ratio
        assert mpmath.log(mpmath.mpf(above.numerator) / above.denominator) > 1


def test_gain_removes_the_bias_exactly():
    made = coin(0.5)
    assert made.gain == pytest.approx(1 / math.tanh(0.25), rel=1e-15)
    assert Fraction(made.gain) * (2 * made.probability - 1) == pytest.approx(1, abs=2.0**-52)


def test_a_large_epsilon_still_lies_once_in_2_to_the_64():
    assert coin(700.0).threshold == 2**64 - 1
    assert coin(700.0).epsilon < 44.37


@pytest.mark.parametrize(("epsilon", "odds"), [(2.0**-41, Fraction(1)), (1e-9, Fraction(1, 2**60))])
def test_a_coin_too_short_is_refused(epsilon, odds):
    with pytest.raises(ValueError, match="epsilon"):
        coin(epsilon, odds)


def test_aggregates_add_and_travel_as_bytes():
    one, two = Aggregate(3, np.array([1, 2]), refused=2), Aggregate(4, np.array([10, -(2**62)]), refused=3)
    total = one + two
    assert total == Aggregate(7, np.array([11, 2 - 2**62]), refused=5)
    assert total != Aggregate(7, np.array([11, 2 - 2**62]))
    assert Aggregate.from_bytes(total.to_bytes()) == total
    means = Aggregate(2, np.array([0.5, -1.25]))
    assert Aggregate.from_bytes(means.to_bytes()) == means
    with pytest.raises(ValueError, match="of the same randomiser"):
        one + Aggregate(1, np.array([1]))
    for wrong in (b"", total.to_bytes()[:-1], b"x" + total.to_bytes()[1:]):
        with pytest.raises(ValueError, match="data"):
            Aggregate.from_bytes(wrong)


def test_an_epsilon_beyond_all_use():
    """e**epsilon would overflow a ball: the threshold is taken at a large enough epsilon."""
    assert coin(1e300).threshold == coin(1e6).threshold
