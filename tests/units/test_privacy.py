"""The statement of a guarantee, and its group version, rounded up."""

import math
import pickle
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import dpfast as dpf
from dpfast import Privacy
from dpfast.core.privacy import as_given, shown
from tests.cases import every


def test_is_a_value():
    privacy = Privacy(1.0, 1e-6, "add-remove")
    assert privacy == pickle.loads(pickle.dumps(privacy))
    assert len({privacy, Privacy(1.0, 1e-6), Privacy(1.0, 1e-6)}) == 2
    assert eval(repr(privacy)) == privacy
    with pytest.raises(AttributeError):
        privacy.epsilon = 2.0


def test_prints_a_sentence():
    one_record = "for one record replaced (the number of records is public)"
    assert str(Privacy(0.5)) == f"epsilon = 0.5 (pure differential privacy) {one_record}"
    assert str(Privacy(0.5, 1e-6)) == f"epsilon = 0.5, delta = 1e-06 {one_record}"
    assert str(Privacy(1, neighbors="add-remove")).endswith("for one record added or removed")
    assert "against everyone but its owner" in str(Privacy(1, neighbors="local"))


@every("tenth", ["0.1", "1e-1", "1/10", Decimal("0.1"), Fraction(1, 10)])
def test_exact_numbers_are_kept(tenth):
    privacy = Privacy(tenth, tenth)
    assert privacy == pickle.loads(pickle.dumps(privacy)) == Privacy(Fraction(1, 10), Fraction(1, 10))
    assert privacy != Privacy(0.1, 0.1)
    assert str(privacy).startswith("epsilon = 0.1, delta = 0.1 for")
    assert Privacy(tenth).group_up(3).epsilon == math.nextafter(0.3, 1)  # rounded up
    assert Privacy(0, tenth).group_up(3).delta == math.nextafter(0.3, 1)
    halves = Privacy("0.5", Decimal("0.5"))
    assert (type(halves.epsilon), type(halves.delta)) == (float, float)
    assert Privacy(np.float32(0.1)) == Privacy(Fraction(float(np.float32(0.1))))


@every("epsilon", [-1, -1e-300, math.nan, "-0.1", Fraction(-1, 10)])
def test_refused_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon must be at least 0"):
        Privacy(epsilon)


@pytest.mark.parametrize("delta", [-1e-300, 1.5, math.nan, math.inf])
def test_refused_delta(delta):
    with pytest.raises(ValueError, match=r"delta in \[0, 1\]"):
        Privacy(1, delta)


def test_refused_neighbors():
    with pytest.raises(ValueError, match="neighbors must be one of 'replace-one', 'add-remove', 'local', not 'other'"):
        Privacy(1, neighbors="other")


@settings(max_examples=200)
@given(st.floats(1e-308, 1e300), st.integers(1, 10**9))
def test_group_epsilon_is_the_least_double_above(epsilon, k):
    group = Privacy(epsilon).group_up(k)
    exact = Fraction(epsilon) * k
    if math.isinf(group.epsilon):
        assert exact > Fraction(1.797e308)
    else:
        assert Fraction(group.epsilon) >= exact
        assert Fraction(math.nextafter(group.epsilon, 0)) < exact
    assert group.delta == 0


def test_rounding_to_nearest_would_understate():
    """Positive control: 3 * 0.1 in doubles happens to round up, others round down."""
    assert any(Fraction(k * 0.1) < Fraction(0.1) * k for k in range(1, 50))
    assert all(Fraction(Privacy(0.1).group_up(k).epsilon) >= Fraction(0.1) * k for k in range(1, 50))


@settings(max_examples=200)
@given(st.floats(0, 50) | st.floats(1e-300, 1e-6), st.floats(1e-30, 1.0), st.integers(2, 50))
def test_group_delta_is_rounded_up_but_little(epsilon, delta, k):
    with mp.workdps(400):
        exact = mpf(delta) * sum(mp.exp(i * mpf(epsilon)) for i in range(k))
        got = Privacy(epsilon, delta).group_up(k).delta
        assert got == 1 or exact <= got <= exact * (1 + mpf(2) ** -38)
        assert got < 1 or exact > 1 - mpf(2) ** -38


def test_zero_and_one():
    privacy = Privacy(0.3, 1e-9, "local")
    assert privacy.group_up(0) == Privacy(0, 0, "local")
    assert privacy.group_up(1) == privacy


def test_extremes():
    assert Privacy(1).group_up(10**400) == Privacy(math.inf)
    assert Privacy(1, 1e-9).group_up(10**400) == Privacy(math.inf, 1.0)
    assert Privacy(math.inf, 0.5).group_up(2) == Privacy(math.inf, 1.0)
    for guarantee in (Privacy(mu=1e308), Privacy(rho=1e308)):
        assert guarantee.group_up(10) == Privacy(math.inf)
        assert guarantee.group_up(10).records == 10


@pytest.mark.parametrize("unit", ["epsilon", "rho", "mu"])
def test_a_wrong_delta_is_named_beside_the_unit(unit):
    with pytest.raises(ValueError, match=rf"{unit} must be at least 0 and delta in \[0, 1\], not 0\.5, -1\.0"):
        Privacy(**{unit: 0.5}, delta=-1)


def test_epsilons_end_at_a_bound():
    """Those up to it are found."""
    assert Privacy(2.0**999).epsilon_up(0.0) == 2.0**999
    assert Privacy(2.0**1001).epsilon_up(0.0) == math.inf
    assert Privacy(mu=1440.0).epsilon_up(0.9) < 2**20 < Privacy(mu=1449.0).epsilon_up(0.5) == math.inf
    assert Privacy(0, 1e-9).group_up(10**400).delta == 1.0
    assert Privacy(1e-300, 1e-9).group_up(10**400).delta == 1.0


@pytest.mark.parametrize("unit", ["rho", "mu"])
class TestOtherUnits:
    """Guarantees in rho and mu; what they imply is in test_divergences.py."""

    def test_is_a_value(self, unit):
        privacy = Privacy(**{unit: 0.5}, neighbors="add-remove")
        assert privacy == pickle.loads(pickle.dumps(privacy)) == eval(repr(privacy)) == replace(privacy)
        assert (privacy.unit, privacy.amount, privacy.epsilon, privacy.delta) == (unit, 0.5, math.inf, 0.0)
        others = {Privacy(0.5), Privacy(math.inf), Privacy(rho=0.5), Privacy(mu=0.5), Privacy(**{unit: 0.25})}
        assert len({privacy, *others}) == 6
        assert Privacy(**{unit: "0.1"}).amount == Fraction(1, 10)
        assert Privacy(0.5).unit == "epsilon"

    def test_prints_a_sentence(self, unit):
        kind = {"rho": "zero-concentrated", "mu": "Gaussian"}[unit]
        assert str(Privacy(**{unit: "1/3"}, neighbors="add-remove")) == (
            f"{unit} = 1/3 ({kind} differential privacy) for one record added or removed"
        )

    def test_groups_are_rounded_up(self, unit):
        power = {"rho": 2, "mu": 1}[unit]
        for k in (1, 3, 10, 12345):
            group = Privacy(**{unit: 0.1}).group_up(k)
            exact = Fraction(0.1) * k**power
            assert Fraction(math.nextafter(group.amount, 0)) < exact <= Fraction(group.amount)
            assert (group.unit, group.records) == (unit, k)
        assert Privacy(**{unit: 0.1}).group_up(0) == Privacy(0.0)

    def test_refused(self, unit):
        for amount in (-1, math.inf, math.nan, "-1/10"):
            with pytest.raises(ValueError, match=f"{unit} must be finite and at least 0"):
                Privacy(**{unit: amount})
        with pytest.raises(TypeError, match="only one of epsilon, rho and mu"):
            Privacy(1.0, **{unit: 1.0})
        with pytest.raises(TypeError, match="must be a real number"):
            Privacy(**{unit: []})


def test_refused_units():
    with pytest.raises(TypeError, match="epsilon, rho or mu must be given"):
        Privacy()
    with pytest.raises(TypeError, match="only one of epsilon, rho and mu"):
        Privacy(rho=1.0, mu=1.0)
    with pytest.raises(ValueError, match="delta must be 0 with mu"):
        Privacy(mu=1.0, delta=0.5)
    assert str(Privacy(rho=1.0, delta=0.5)).startswith("rho = 1, delta = 0.5 (zero-concentrated")
    with pytest.raises(ValueError, match=r"delta must be 0 for the group guarantee of rho, not 0\.5"):
        Privacy(rho=1.0, delta=0.5).group_up(2)
    for wrong in (-0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match="epsilon must be"):
            Privacy(1.0).delta_up(wrong)
    for wrong in (-0.1, 1.0, math.nan):
        with pytest.raises(ValueError, match="delta must be"):
            Privacy(1.0).epsilon_up(wrong)


@every("records", [-1, True, 1.0, "1", None])
def test_refused_group(records):
    with pytest.raises((TypeError, ValueError), match="records must be"):
        Privacy(1).group_up(records)


@every(
    "amount, text",
    [
        (math.nextafter(0.1, 0), "0.1"),  # 0.1 as text, rounded down
        (0.1, "0.1"),
        (0.1 + 0.2, "0.30000000000000004"),  # never below
        (Fraction(1, 3), "1/3"),
        (Fraction(7, 10), "0.7"),
        (2.0, "2"),
        (1e-6, "1e-06"),
        (math.inf, "inf"),
    ],
)
def test_numbers_of_guarantees_are_shown_as_given(amount, text):
    assert shown(amount) == text
    if math.isfinite(amount):
        assert as_given(amount) == float(Fraction(text))


def test_a_short_guarantee():
    assert dpf.Privacy("0.1", 1e-6).short == "epsilon = 0.1, delta = 1e-06 for one record replaced"
    assert dpf.Privacy(rho=0.5, neighbors="add-remove").short == "rho = 0.5 for one record added or removed"
    assert dpf.Privacy(1, 1.9999999e-7).short == "epsilon = 1, delta = 2e-07 for one record replaced"
    assert dpf.Privacy(1, 1.2301e-7).short == "epsilon = 1, delta = 1.24e-07 for one record replaced"
    units = dpf.Privacy(1, neighbors="add-remove", per_unit=3)
    assert units.short == "epsilon = 1 for one unit of at most 3 records added or removed"
