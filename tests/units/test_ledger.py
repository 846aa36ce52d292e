"""Ledgers: charges, refusals and the JSON form."""

import inspect
import json
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64

import dpfast as dpf
from dpfast import BudgetError, Ledger, Privacy, PrivacyProfile, robust
from dpfast.core.spending import spending
from tests.cases import every
from tests.releases import GRID, LOCAL, MECHANISMS, MEDIAN, NEIGHBORS, RELEASES, SMOOTH, B, E, X
from tests.untouchable import Untouchable

MEDIAN_OF_A_FIFTH = dpf.InverseSensitivity(dpf.statistics.Median(), grid=GRID, epsilon="0.2")  # a double below it


class TestWhatIsSpent:
    def test_what_fits_is_exact(self):
        ledger = Ledger(1.0)
        for _ in range(9):
            ledger.reserve(PrivacyProfile(Privacy(0.1)))
        assert not ledger.affords(Privacy(0.1))  # ten of the double 0.1 are more than 1
        tenth = dpf.InverseSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=Fraction(1, 10))
        ledger = Ledger(1.0)
        for _ in range(10):
            ledger.release(tenth, X)
        assert ledger.spent.epsilon == 1.0
        assert not ledger.affords(Privacy(1e-9))

    @every("tenth", ["0.1", "1e-1", " .1 ", "1/10", Decimal("0.1"), Fraction(1, 10)])
    def test_ten_exact_tenths_fit(self, tenth):
        ledger = Ledger(1)
        for _ in range(10):
            dpf.median(X, bounds=(0, 100), epsilon=tenth)
            with ledger:
                dpf.median(X, bounds=(0, 100), epsilon=tenth)
        ledger = Ledger("0.3", "3e-6")
        for _ in range(3):
            with ledger.spend(Privacy(tenth, "1e-6")):
                pass
        assert not ledger.affords(Privacy("1e-300"))
        assert ledger.remaining == Privacy(0.0)
        assert ledger.privacy == Privacy(Fraction(3, 10), Decimal("0.000003"))
        again = Ledger.from_json(ledger.to_json())
        assert (again.charges, again.privacy) == (ledger.charges, ledger.privacy)

    def test_ten_floats_of_a_tenth_do_not_and_the_message_says_how(self):
        ledger = Ledger(1)
        for _ in range(9):
            dpf.median(X, bounds=(0, 100), epsilon=0.1)
            ledger.reserve(PrivacyProfile(Privacy(0.1)))
        with ledger, pytest.raises(BudgetError, match=r"0\.1 is a little more than 1/10: give .* epsilon='0\.1'"):
            dpf.median(Untouchable(), bounds=(0, 100), epsilon=0.1)
        with pytest.raises(BudgetError, match=r"epsilon = 0\.09999999999999995 is left$"):
            ledger.reserve(PrivacyProfile(Privacy(0.2)))
        with ledger:
            dpf.median(X, bounds=(0, 100), epsilon=ledger.remaining.epsilon)
        deltas = Ledger(10.0, 1e-5)
        for _ in range(9):
            deltas.reserve(PrivacyProfile(Privacy(0.5, 1e-6)))
        deltas.reserve(PrivacyProfile(Privacy(0.5, "1e-6")))
        with pytest.raises(BudgetError, match="as strings"):
            Ledger("0.3", 1e-5).reserve(PrivacyProfile(Privacy(0.1)), times=3)

    @every(
        ("budget", "cost", "message"),
        [
            ({"epsilon": "0.01"}, Privacy("0.02"), "a release of epsilon = 0.02 does not fit: epsilon = 0.00999"),
            ({"epsilon": "0.1"}, MEDIAN_OF_A_FIFTH, "a release of epsilon = 0.2 does not fit: epsilon = 0.0999"),
            ({"epsilon": "1/3"}, Privacy("1/2", "1e-6"), "a release of epsilon = 0.5, delta = 1e-06 does not fit"),
            ({"epsilon": "0.1"}, Privacy("1/3"), "a release of epsilon = 1/3 does not fit"),
        ],
        ids=str,
    )
    def test_a_refusal_shows_a_cost_as_it_was_given(self, budget, cost, message):
        with pytest.raises(BudgetError, match=f"^{message}"), Ledger(**budget).spend(cost):
            raise AssertionError

    def test_exact_numbers_in_a_file(self, tmp_path):
        path = tmp_path / "ledger"
        for _ in range(2):
            with Ledger("0.3", "1e-6", path=path).spend(Privacy("0.1")):
                pass
        ledger = Ledger(Decimal("0.3"), Fraction(1, 10**6), path=path)
        assert ledger.affords(Privacy("0.1"))
        assert not ledger.affords(Privacy(0.1))
        with pytest.raises(ValueError, match=r"has delta = '1/1000000', not 1e-06"):
            Ledger(0.3, 1e-6, path=path)

    @pytest.mark.parametrize("composition", ["renyi", "plan"])
    def test_exact_numbers_in_other_compositions(self, composition):
        one = PrivacyProfile(Privacy("0.1"))
        assert one.parts == (("pure", 0.1, 1),)  # rounded up
        assert PrivacyProfile(Privacy("0.3")).parts == (("pure", math.nextafter(0.3, 1), 1),)
        options = {"plan": [one]} if composition == "plan" else {"composition": composition}
        ledger = Ledger("1/3", "1e-6", **options)
        ledger.reserve(one)
        assert Ledger.from_json(ledger.to_json()).charges == ledger.charges

    @every("spelled", [str, Decimal, Fraction])
    @every("name", RELEASES)
    def test_functions_take_exact_numbers(self, name, spelled, monkeypatch):
        """Rounded down to the same double."""
        monkeypatch.setitem(E, "epsilon", spelled("0.3"))
        monkeypatch.setitem(B, "epsilon", spelled("0.3"))
        with Ledger(100.0, neighbors=NEIGHBORS.get(name, "replace-one")) as ledger:
            RELEASES[name]()
        costs = {charge.profile.privacy.epsilon for charge in ledger.charges}
        assert costs == ({0.25} if name in ("dpf.mle", "dpf.by_group") else {Privacy(0.3).epsilon})

    @every("spelled", [str, Decimal, Fraction])
    @every("mechanism", [*MECHANISMS, *LOCAL], ids=repr)
    def test_mechanisms_take_exact_numbers(self, mechanism, spelled):
        if isinstance(mechanism, dpf.Subsampled):
            return  # its epsilon is that of its mechanism
        tenth, least = math.nextafter(0.1, 0), math.nextafter(1e-3, 0)
        assert Fraction(least) < Fraction("0.001")
        exact = {"epsilon": spelled("0.1")} | ({"delta": spelled("0.001")} if mechanism.privacy.delta else {})
        if isinstance(mechanism, dpf.SmoothSensitivity):
            exact["beta"] = None
        made = replace(mechanism, **exact)
        assert type(made.epsilon) is float
        assert tenth * (1 - 1e-15) <= made.privacy.epsilon <= tenth
        assert made.privacy.delta <= least
        with pytest.raises(ValueError, match=r"epsilon must be a number, such as '0\.1', '1e-6' or '1/3', not 'a"):
            replace(mechanism, epsilon="a tenth")

    @every(
        "wrong",
        ["", "a tenth", "0,1", "0x1p-3", "nan", "inf", "1_0", "1e99999", "1/0", "9" * 5000, Decimal("1e-99999")],
    )
    def test_strings_that_are_not_numbers(self, wrong):
        for make in (
            Ledger,
            Privacy,
            lambda e: dpf.median(Untouchable(), bounds=(0, 1), epsilon=e),
            partial(Ledger, 1.0),
        ):
            with pytest.raises(ValueError, match=r"(epsilon|delta) must"):
                make(wrong)

    @given(st.lists(st.floats(1e-300, 2.0), max_size=30), st.floats(1e-3, 10.0))
    def test_sums_never_exceed_the_budget(self, costs, budget):
        ledger, total = Ledger(budget), Fraction()
        for cost in costs:
            fits = total + Fraction(cost) <= Fraction(budget)
            assert ledger.affords(Privacy(cost)) == fits
            if fits:
                ledger.reserve(PrivacyProfile(Privacy(cost)))
                total += Fraction(cost)
            else:
                with pytest.raises(BudgetError):
                    ledger.reserve(PrivacyProfile(Privacy(cost)))
        assert Fraction(ledger.spent.epsilon) >= total
        assert Fraction(ledger.remaining.epsilon) <= Fraction(budget) - total

    def test_delta_adds_up(self):
        ledger = Ledger(10.0, 1e-6)
        smooth = SMOOTH
        ledger.release(smooth, X)
        assert ledger.remaining.delta == 0
        with pytest.raises(BudgetError, match="delta = 1e-06 does not fit"):
            ledger.release(smooth, Untouchable())
        ledger.release(MEDIAN, X)

    def test_times_are_a_whole_number(self):
        ledger = Ledger(1.0)
        for times in (-5, 0.5, "1"):
            with pytest.raises((TypeError, ValueError), match="times"):
                ledger.reserve(PrivacyProfile(Privacy(0.25)), times=times)
        assert ledger.remaining.epsilon == 1.0

    def test_sizes(self):
        with Ledger(1.0) as ledger:
            MEDIAN.release(X, size=0)
            MEDIAN.release(X, size=4)
            with pytest.raises(BudgetError):
                MEDIAN.release(X, size=1)
        assert ledger.spent.epsilon == 1.0
        with Ledger(1.0) as ledger:
            with pytest.raises(BudgetError, match=r"5 releases of epsilon = 0\.25 do not fit: epsilon = 1\.0 is left"):
                MEDIAN.release(Untouchable(), size=5)
            dpf.select([1, 2], epsilon=0.25, size=(2, 2))
        assert ledger.spent.epsilon == 1.0

    def test_what_raises_is_spent_but_wrong_arguments_are_not(self):
        ledger = Ledger(1.0)
        for wrong in ({"rng": 3}, {"workers": 0}, {"size": -1}):
            with pytest.raises((TypeError, ValueError)):
                ledger.release(MEDIAN, X, **wrong)
        assert ledger.spent.epsilon == 0

        def broken(candidate):
            raise RuntimeError("seen")

        with ledger, pytest.raises(RuntimeError, match="seen"):
            robust.reduce(broken, [1, 2], epsilon=0.25)
        assert ledger.spent.epsilon == 0.25

    @every(
        "wrong",
        [
            np.array(["a", "b"]),
            np.array([b"a"]),
            np.array(["2020-01-01"], "M8[D]"),
            np.array([1j]),
            np.zeros((3, 2)),
            dpf.Chunks([np.array([1.0]), np.array(["a"])]),
        ],
        ids=str,
    )
    def test_a_dtype_without_numbers_is_refused_before_the_charge(self, wrong):
        """A dtype is public. Of objects only the cells say what they are."""
        with Ledger(1.0) as ledger:
            for release in (MEDIAN, partial(MEDIAN.release, size=2), partial(dpf.std, bounds=(0, 1), epsilon=0.25)):
                with pytest.raises((TypeError, ValueError), match=r"must hold numbers|must be one-dimensional"):
                    release(wrong)
            if isinstance(wrong, np.ndarray) and wrong.ndim == 1:
                with pytest.raises(TypeError, match="must hold numbers"):
                    dpf.by_group(MEDIAN, wrong, labels=np.zeros(len(wrong), int), keys=[0])
        assert ledger.spent.epsilon == 0
        with ledger, pytest.raises(TypeError, match="must hold numbers"):
            MEDIAN(np.array(["a", "b"], object))
        assert ledger.spent.epsilon == MEDIAN.privacy.epsilon

    def test_nesting(self):
        ledger, other = Ledger(1.0), Ledger(1.0)
        with ledger, ledger:
            MEDIAN(X)
            with pytest.raises(ValueError, match="another ledger"), other:
                pass
            with pytest.raises(ValueError, match="another ledger"):
                other.release(MEDIAN, X)
            ledger.release(MEDIAN, X)
            MEDIAN(X)
        MEDIAN(X)
        assert (ledger.spent.epsilon, other.spent.epsilon) == (0.75, 0)

    def test_objects_that_are_not_mechanisms(self):
        for wrong in (None, 3, lambda x: 0.0, dpf.statistics.Median()):
            with pytest.raises(TypeError, match="mechanism must be"):
                Ledger(1.0).release(wrong, X)
            with pytest.raises(TypeError, match="is needed"):
                Ledger(1.0).affords(wrong)

    @every(
        "arguments, message",
        [
            (((0.0,), {}), "epsilon must be positive"),
            (((math.inf,), {}), "epsilon must be finite"),
            (((1.0, 1.0), {}), "delta must be at least 0 and below 1"),
            (((1.0,), {"neighbors": "friends"}), "neighbors must be one of"),
            (((1.0, 1e-6), {"composition": "magic"}), "composition must be one of"),
            (((1.0,), {"composition": "renyi"}), "delta must be positive"),
            (((1e-3, 1e-300), {"composition": "renyi"}), "too small"),
            (((1.0, 1e-6), {"composition": "renyi", "plan": []}), "left out with a plan"),
            (((1.0,), {"plan": [PrivacyProfile(Privacy(0.1, neighbors="local"))]}), "in the plan"),
        ],
    )
    def test_wrong_parameters(self, arguments, message):
        positional, named = arguments
        with pytest.raises(ValueError, match=message):
            Ledger(*positional, **named)


class TestJson:
    @pytest.mark.parametrize("options", [{}, {"composition": "renyi"}])
    def test_round_trip(self, options):
        ledger = Ledger(5.0, 1e-5, **options)
        ledger.release(MEDIAN, X)
        ledger.release(SMOOTH, X, size=2)
        again = Ledger.from_json(ledger.to_json())
        assert again.charges == ledger.charges
        assert again.remaining == ledger.remaining
        assert again.to_json() == ledger.to_json()
        assert json.loads(ledger.to_json())["dpfast-ledger"] == 1

    def test_what_is_refused(self):
        text = Ledger(1.0).to_json()
        with pytest.raises(ValueError, match="version 7"):
            Ledger.from_json(text.replace('"dpfast-ledger": 1', '"dpfast-ledger": 7'))
        ledger = Ledger(1.0)
        ledger.release(MEDIAN, X, size=3)
        with pytest.raises(ValueError, match="damaged"):
            Ledger.from_json(ledger.to_json().replace('"times": 3', '"times": 5'))

    @settings(max_examples=300)
    @given(st.data())
    def test_damaged_text_is_a_value_error(self, draws):
        ledger = Ledger(1.0, 1e-6)
        ledger.release(MEDIAN, X, rng=PCG64(1))
        text = ledger.to_json()
        start = draws.draw(st.integers(0, len(text) - 1))
        stop = draws.draw(st.integers(start, min(len(text), start + 20)))
        damaged = text[:start] + draws.draw(st.text('0123456789.-e"[]{},:nul', max_size=4)) + text[stop:]
        try:
            read = Ledger.from_json(damaged)
        except ValueError:
            return
        assert read.spent.epsilon <= read.privacy.epsilon


def test_the_hook_keeps_signatures_and_is_free_of_charge_outside():
    assert list(inspect.signature(dpf.InverseSensitivity.__call__).parameters) == ["self", "x", "rng", "workers"]
    with spending(MEDIAN.privacy_profile, label="nobody pays"):
        MEDIAN(X)
