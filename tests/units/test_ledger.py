"""Budgets: every public release is charged once and before the data, nothing is lost or spent twice, rules hold."""

import asyncio
import contextvars
import copy
import gc
import inspect
import itertools
import json
import math
import multiprocessing
import os
import pickle
import pkgutil
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64
from scipy.special import logsumexp

import dpfast as dpf
from dpfast import BudgetError, Grid, Ledger, Mechanism, Privacy, PrivacyProfile, local, noise, robust
from dpfast.densities import PerturbedHistogram
from dpfast.ledger import Charge
from dpfast.local import Randomizer
from dpfast.local.randomizer import LocalMechanism
from dpfast.mechanisms.smooth import smooth_sensitivity
from dpfast.spending import known, refused, spending
from tests.central import central, shaped
from tests.reference.statistics import FUNCTIONS
from tests.untouchable import Untouchable

pytestmark = pytest.mark.host

ROOT = Path(__file__).parents[2]
GRID = Grid(0, 100, step=1)
X = np.arange(100.0)
MEDIAN = dpf.InverseSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=0.25)
MEAN = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=GRID, epsilon=0.25)
E = {"epsilon": 0.25}
B = {"bounds": (0, 100), **E}

# The rows of the table of the page on ledgers.
[PAGE] = (ROOT / "docs").rglob("ledger.md")
FIT = re.findall(r"^\| m.*1/10+ .*$", PAGE.read_text(), re.MULTILINE)


def by_name(name):
    """Call a function of `dpfast.location`."""
    arguments, _ = FUNCTIONS[name]
    return getattr(dpf, name)(X, *arguments, **(E if name == "count" else B))


# Everything public that releases: how to call it, and for which neighbours.
RELEASES = {
    **{f"dpf.{name}": partial(by_name, name) for name in FUNCTIONS},
    "dpf.quantile": lambda: [dpf.quantile(X, 0.3, **B), dpf.quantile(X, [0.2, 0.7], **B)],
    "dpf.m_estimate": lambda: dpf.m_estimate(X, dpf.psi.Huber(5.0), **B),
    "dpf.histogram": lambda: dpf.histogram(X, 5, **B),
    "dpf.density": lambda: dpf.density(X, **B),
    "dpf.synthesize": lambda: [
        dpf.synthesize(X, 5, method=method, **B) for method in ("perturbed", "smoothed", "ks", "series")
    ],
    "dpf.by_group": lambda: dpf.by_group(MEDIAN, X, labels=np.arange(100) % 7),
    "dpf.select": lambda: dpf.select([1, 2, 3], **E),
    "dpf.mle": lambda: dpf.mle(X + 1, "exponential", bounds=(0.001, 1.0), epsilon=0.25, blocks=4),
    "dpf.robust_mean": lambda: dpf.robust_mean(X[:, None], **B),
    "robust.reduce": lambda: robust.reduce(
        lambda c: robust.score(dpf.statistics.Median(), X, c, grid=GRID), range(3), **E
    ),
    "robust.robust_mean": lambda: robust.robust_mean(X[:, None], **B),
    "local.density": lambda: local.density(X, **B),
    "local.glm": lambda: local.glm(X[:, None], X > 50, **E),
    "local.mean": lambda: local.mean(X, **B),
    "local.median": lambda: local.median(X, **B),
    "local.median_naive": lambda: local.median_naive(X, **B),
    "local.sparse_mean": lambda: local.sparse_mean(X[:, None], **E),
}
TIMES = {"dpf.quantile": 2, "dpf.synthesize": 4}
NEIGHBORS = {"dpf.count": "add-remove", **{name: "local" for name in RELEASES if name.startswith("local")}}

# Calling these releases nothing, or what they return is private and says so.
NO_RELEASE = {
    "robust.score",
    "noise.laplace",
    "noise.discrete_laplace",
    "noise.geometric",
    "noise.add_laplace",
    "noise.gaussian",
    "noise.add_gaussian",
}
NOISE = [
    lambda: noise.laplace(1.0),
    lambda: noise.discrete_laplace(1.0),
    lambda: noise.geometric(1.0),
    lambda: noise.add_laplace(X, scale=1.0, grid=GRID),
    lambda: noise.gaussian(1.0),
    lambda: noise.add_gaussian(X, sigma=1.0, grid=GRID),
]

SMOOTH = dpf.SmoothSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=0.25, delta=1e-6)
MECHANISMS = [
    *central(GRID, 0.25, statistics=(dpf.statistics.Median(), dpf.statistics.Mean(), dpf.statistics.Count())),
    dpf.Selection(epsilon=0.25),
    dpf.Selection(epsilon=0.25, method="permute-and-flip"),
]
LOCAL = [
    local.Binary(0.25),
    local.Categorical(4, 0.25),
    local.Interval(0.25, bounds=(0, 100)),
    local.L2Ball(3, 0.25),
    local.Hypercube(4, 0.25),
    local.SeriesReports(2, 0.25, grid=GRID),
]


# Exact functions of data, which no budget pays for.
EXACT = {
    "robust.score": lambda x: robust.score(dpf.statistics.Median(), x, 50.0, grid=GRID),
    "smooth.smooth_sensitivity": lambda x: smooth_sensitivity(dpf.statistics.Median(), x, grid=GRID, beta=0.1),
    "theory.influence_function": lambda x: dpf.theory.influence_function(dpf.statistics.Median(), x, 5.0, 0.1),
    "theory.gross_error_sensitivity": lambda x: dpf.theory.gross_error_sensitivity(dpf.statistics.Median(), x, 0.1),
    "local.MedianDescent.probability": lambda x: local.MedianDescent(**B).probability(50.0, 3.0),
}
# What is PRIVATE and allowed: states, what they are made of, and `dpfast.dask.release`, which says that they are.
ON_THE_WAY = {
    "aggregate.mechanism.SampleAndAggregate.block_sums",
    "dask._block_sums",
    "dask.release",
    "dask.state",
    "densities.cells.Cells.count",
    "robust.range_free.Plan.slack",
    "streaming.state.State.to_bytes",
}


def packages():
    return [m.name for m in pkgutil.walk_packages(dpf.__path__, "dpfast.") if not m.name.startswith("dpfast._")]


def all_subclasses(cls):
    for name in packages():
        with suppress(ImportError):  # what needs another library, which is not installed
            import_module(name)
    found = []
    for sub in cls.__subclasses__():
        found += [sub, *all_subclasses(sub)] if sub.__module__.startswith("dpfast.") else []
    return found


def all_functions():
    """Functions of dpfast, and methods of its classes."""
    for name in packages():
        with suppress(ImportError):
            import_module(name)
    for module in [module for name, module in sys.modules.items() if name.split(".")[0] == "dpfast"]:
        for item in vars(module).values():
            if getattr(item, "__module__", None) != module.__name__:
                continue
            yield from filter(inspect.isfunction, vars(item).values() if inspect.isclass(item) else [item])


class TestEverythingIsCharged:
    def test_no_public_function_is_forgotten(self):
        modules = {"dpf": dpf, "local": local, "noise": noise, "robust": robust}
        found = {
            f"{short}.{name}"
            for short, module in modules.items()
            for name in (getattr(module, "__all__", None) or vars(module))
            if inspect.isfunction(function := getattr(module, name))
            and not name.startswith("_")
            and (short == "dpf" or function.__module__.startswith(module.__name__))
        }
        assert found == set(RELEASES) | NO_RELEASE, f"RELEASES in {__file__} needs an entry for each function"

    @pytest.mark.parametrize("name", RELEASES)
    def test_functions(self, name):
        neighbors = NEIGHBORS.get(name, "replace-one")
        ledger = Ledger(100.0, neighbors=neighbors)
        with ledger:
            RELEASES[name]()
        times = TIMES.get(name, 1)
        assert [charge.times for charge in ledger.charges] == [1] * times
        assert ledger.spent == Privacy(0.25 * times, 0.0, neighbors)
        with Ledger(0.2, neighbors=neighbors) as broke, pytest.raises(BudgetError, match="does not fit"):
            RELEASES[name]()
        assert not broke.charges
        other = "replace-one" if neighbors == "local" else "local"
        with Ledger(100.0, neighbors=other) as wrong, pytest.raises(ValueError, match="do not add up"):
            RELEASES[name]()
        assert not wrong.charges

    @pytest.mark.parametrize("cls", [*all_subclasses(Mechanism), *all_subclasses(LocalMechanism)])
    def test_every_class_is_hooked(self, cls):
        names = [name for name in ("__call__", "release", "randomize", "respond") if hasattr(cls, name)]
        names = [name for name in names if not (name == "__call__" and issubclass(cls, Randomizer))]
        assert names
        assert all(getattr(cls, name).charged for name in names if not inspect.isabstract(cls))
        if not inspect.isabstract(cls):
            assert all(getattr(cls, name).refused for name in ("law", "law_of") if hasattr(cls, name))

    def test_every_mechanism_is_in_the_list(self):
        concrete = {cls for cls in all_subclasses(Mechanism) if not inspect.isabstract(cls)}
        hidden = {cls for cls in concrete if cls.__name__.startswith("_")}
        known = {type(mechanism) for mechanism in MECHANISMS}
        assert concrete - hidden == known, "OPTIONS in tests/central.py needs an entry for each class of mechanisms"

    @pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
    def test_mechanisms(self, mechanism):
        neighbors = mechanism.privacy.neighbors
        x, ledger = shaped(mechanism, X), Ledger(10_000.0, 0.9, neighbors=neighbors)
        one = mechanism.privacy
        with ledger:
            mechanism(x)
            mechanism.release(x)
        assert ledger.spent == Privacy(2 * one.epsilon, 2 * one.delta, neighbors)
        ledger.release(mechanism, x, size=(2, 3))
        assert ledger.spent.epsilon == 8 * one.epsilon
        assert ledger.charges[-1] == Charge(repr(mechanism), mechanism.privacy_profile, 6)
        with ledger, pytest.raises(BudgetError, match="law"):
            mechanism.law(x)
        broke = Ledger(2.0**-10, neighbors=neighbors)
        for call in (mechanism, mechanism.release, lambda x: broke.release(mechanism, x, size=1)):
            with broke, pytest.raises(BudgetError, match="does not fit"):
                call(Untouchable())
        assert broke.spent.epsilon == 0

    def test_what_is_private_is_refused_or_on_the_way_to_a_release(self):
        """Everything that its docstring calls PRIVATE."""
        private = {
            f"{function.__module__.removeprefix('dpfast.')}.{function.__qualname__}": getattr(
                function, "refused", False
            )
            for function in all_functions()
            if "PRIVATE" in (function.__doc__ or "") and not getattr(function, "__isabstractmethod__", False)
        }
        assert {name for name, refused in private.items() if not refused} == ON_THE_WAY
        assert sum(private.values()) >= 15
        assert {name for name, refused in private.items() if refused and not name.endswith(("law", "law_of"))} == {
            "local.location.MedianDescent.probability",
            "mechanisms.smooth.smooth_sensitivity",
            "robust.reduction.score",
            "streaming.state.State.summary",
            "theory.influence.gross_error_sensitivity",
            "theory.influence.influence_function",
        }

    @pytest.mark.parametrize("name", EXACT)
    def test_exact_functions_of_data_are_refused(self, name):
        EXACT[name](X)
        ledger = Ledger(1.0)
        with ledger, pytest.raises(BudgetError, match="exact function of the data"):
            EXACT[name](Untouchable())
        with ledger.spend(Privacy(1.0)):
            EXACT[name](X)
        with ledger, pytest.raises(BudgetError, match="active in another thread"):
            in_thread(partial(EXACT[name], Untouchable()))

    def test_the_law_of_a_state(self):
        mechanism = dpf.SampleAndAggregate("exponential", bounds=(0.001, 1.0), epsilon=0.25, blocks=4)
        state, ledger = mechanism.block_sums(100), Ledger(1.0)
        state.update(X + 1)
        with ledger:
            with pytest.raises(BudgetError, match="law"):
                mechanism.law_of(state)
            assert ledger.charges == ()
            release = mechanism.finish(state, rng=PCG64(1))
        assert ledger.spent.epsilon == 0.25
        law = mechanism.law_of(state)
        assert release == law.value(law.sample(rng=PCG64(1)))

    @pytest.mark.parametrize("randomizer", LOCAL, ids=lambda r: type(r).__name__)
    def test_randomizers(self, randomizer):
        assert {type(randomizer) for randomizer in LOCAL} == {
            cls for cls in all_subclasses(Randomizer) if not inspect.isabstract(cls)
        }
        x = (
            np.zeros(4, np.int64)
            if randomizer.privacy and not hasattr(randomizer, "d")
            else np.zeros((4, randomizer.d))
        )
        with Ledger(1.0, neighbors="local") as ledger:
            randomizer.randomize(x)
        assert ledger.spent == Privacy(0.25, 0.0, "local")
        with Ledger(1.0), pytest.raises(ValueError, match="do not add up"):
            randomizer.randomize(Untouchable())
        with Ledger(0.2, neighbors="local"), pytest.raises(BudgetError):
            randomizer.randomize(Untouchable())

    def test_the_median_descent(self):
        survey = local.MedianDescent(bounds=(0, 100), epsilon=0.25)
        with Ledger(10.0, neighbors="local") as ledger:
            survey(X)
            survey.release(X, size=3)
            survey.respond(50.0, 3.0)
        assert [charge.times for charge in ledger.charges] == [1, 3, 1]

    def test_whether_data_are_refused_does_not_depend_on_them(self):
        class Odd(list):
            def __getattr__(self, name):
                raise AssertionError(f"the data were asked for {name}")

        @refused("no budget pays for it")
        def first(x):
            return x[0]

        assert first(Odd([1.0, 2.0])) == 1.0
        with Ledger(1.0), pytest.raises(BudgetError, match="no budget pays for it"):
            first(Odd([1.0, 2.0]))

    @pytest.mark.parametrize("draw", NOISE)
    def test_noise_is_refused_unless_declared(self, draw):
        draw()
        ledger = Ledger(1.0)
        with ledger, pytest.raises(BudgetError, match="spend"):
            draw()
        with ledger.spend(Privacy(0.5), label="my sum"):
            draw()
            dpf.median(X, **B)  # part of what was declared
            with ledger:
                pass
            draw()
        assert ledger.charges == (Charge("my sum", PrivacyProfile(Privacy(0.5))),)

    def test_a_mechanism_of_somebody_else(self):
        @dataclass(frozen=True)
        class Both(Mechanism):
            """Releases two medians, declared at what they cost together."""

            @property
            def privacy(self):
                return Privacy(0.5)

            def law(self, x, *, workers=1):
                return MEDIAN.law(x)

            def __call__(self, x, *, rng=None, workers=1):
                MEDIAN.law(x)
                return MEDIAN(x) + dpf.median(x, **B)

        with Ledger(0.5) as ledger:
            Both()(X)
            with pytest.raises(BudgetError):
                Both()(Untouchable())
        assert [charge.profile.privacy for charge in ledger.charges] == [Privacy(0.5)]

    @pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
    def test_charges_do_not_depend_on_the_data(self, mechanism):
        """T15: what is recorded for two neighbours is the same, and adds up to what was declared."""
        charges = []
        for changed in (0.0, 100.0):
            x = shaped(mechanism, X).copy()
            x[3] = changed
            ledger = Ledger(10_000.0, 0.9, neighbors=mechanism.privacy.neighbors)
            ledger.release(mechanism, x, rng=PCG64(1))
            charges.append(ledger.to_json())
        assert charges[0] == charges[1]

    def test_the_result_is_the_same(self):
        with Ledger(1.0):
            inside = MEDIAN(X, rng=PCG64(1))
        assert inside == MEDIAN(X, rng=PCG64(1))

    def test_outside_nothing_is_charged(self):
        ledger = Ledger(1.0)
        with ledger:
            pass
        MEDIAN(X)
        MEDIAN.law(X)
        assert ledger.charges == ()


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

    @pytest.mark.parametrize("tenth", ["0.1", "1e-1", " .1 ", "1/10", Decimal("0.1"), Fraction(1, 10)])
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

    @pytest.mark.parametrize("spelled", [str, Decimal, Fraction])
    @pytest.mark.parametrize("name", RELEASES)
    def test_functions_take_exact_numbers(self, name, spelled, monkeypatch):
        """Rounded down to the same double."""
        monkeypatch.setitem(E, "epsilon", spelled("0.3"))
        monkeypatch.setitem(B, "epsilon", spelled("0.3"))
        with Ledger(100.0, neighbors=NEIGHBORS.get(name, "replace-one")) as ledger:
            RELEASES[name]()
        costs = {charge.profile.privacy.epsilon for charge in ledger.charges}
        assert costs == ({0.25} if name in ("dpf.mle", "dpf.by_group") else {Privacy(0.3).epsilon})

    @pytest.mark.parametrize("spelled", [str, Decimal, Fraction])
    @pytest.mark.parametrize("mechanism", [*MECHANISMS, *LOCAL], ids=repr)
    def test_mechanisms_take_exact_numbers(self, mechanism, spelled):
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

    @pytest.mark.parametrize(
        "wrong",
        ["", "a tenth", "0,1", "0x1p-3", "nan", "inf", "1_0", "1e99999", "1/0", "9" * 5000, Decimal("1e-99999")],
    )
    def test_strings_of_no_number(self, wrong):
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

    def test_what_is_no_mechanism(self):
        for wrong in (None, 3, lambda x: 0.0, dpf.statistics.Median()):
            with pytest.raises(TypeError, match="mechanism must be"):
                Ledger(1.0).release(wrong, X)
            with pytest.raises(TypeError, match="is needed"):
                Ledger(1.0).affords(wrong)

    @pytest.mark.parametrize(
        ("arguments", "message"),
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


STATE = MEDIAN.start().read([X])

# Whatever would have to be paid for, or be refused.
UNPAID = {
    "a call": lambda: MEDIAN(X),
    "a release": lambda: MEDIAN.release(X),
    "a function": lambda: dpf.median(X, **B),
    "groups": lambda: dpf.by_group(MEDIAN, X, labels=np.arange(100) % 7),
    "a state": STATE.release,
    "a report": lambda: local.Binary(0.25).randomize(np.zeros(4, np.int64)),
    "noise": lambda: noise.laplace(1.0),
    "a law": lambda: MEDIAN.law(X),
    "the law of a state": STATE.law,
}


def in_thread(function):
    """What it returns or raises in a new thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


class TestContexts:
    @pytest.mark.parametrize("name", UNPAID)
    def test_threads_without_the_ledger_are_refused(self, name):
        ledger = Ledger(1.0)
        with ThreadPoolExecutor(1) as before:
            before.submit(UNPAID[name]).result()
            with ledger:
                for start in (in_thread, lambda function: before.submit(function).result()):
                    with pytest.raises(BudgetError, match="active in another thread"):
                        start(UNPAID[name])
            before.submit(UNPAID[name]).result()
        assert ledger.charges == ()

    def test_threads_can_have_the_ledger(self):
        ledger = Ledger(1.0)

        def entered():
            with ledger:
                return MEDIAN(X)

        with ledger:
            in_thread(partial(ledger.release, MEDIAN, X))
            in_thread(partial(contextvars.copy_context().run, MEDIAN, X))
            in_thread(entered)
            with pytest.raises(BudgetError, match="active in another thread"):
                in_thread(partial(MEDIAN, X))
        assert ledger.spent.epsilon == 0.75

    def test_what_is_paid_as_a_whole_is_free_in_threads(self):
        """The workers of a release, and the threads of a block whose cost was declared."""
        ledger, threads = Ledger(1.0), set()

        class Seen(type(MEAN)):
            def law(self, x, *, workers=1):
                threads.add(threading.get_ident())
                return super().law(x, workers=workers)

        with ledger:
            mechanism = Seen(MEAN.statistic, grid=GRID, epsilon=0.25)
            dpf.by_group(mechanism, np.zeros(3000), labels=np.arange(3000), workers=2)
        assert threads
        assert threading.get_ident() not in threads
        assert ledger.spent.epsilon == 0.25
        with ledger.spend(Privacy(0.5)):
            in_thread(lambda: (noise.laplace(1.0), MEDIAN(X)))
        assert ledger.spent.epsilon == 0.75

    def test_one_that_nobody_entered_refuses_nothing(self):
        ledger, free = Ledger(1.0), []

        class Both(type(MEDIAN)):
            def __call__(self, x, *, rng=None, workers=1):
                free.append(in_thread(partial(MEDIAN, X)))
                return free[-1]

        ledger.release(Both(MEDIAN.statistic, grid=GRID, epsilon=0.25), X)
        assert len(free) == 1
        assert ledger.spent.epsilon == 0.25

    @pytest.mark.parametrize("declared", [True, False])
    def test_a_task_that_outlives_what_was_paid_for_pays_by_itself(self, declared):
        ledger, tasks = Ledger(1.0), []

        async def later():
            await asyncio.sleep(0)
            return MEDIAN(X)

        def mean(x):
            if not tasks:
                tasks.append(asyncio.create_task(later()))
            return float(x.mean())

        async def main():
            if declared:
                with ledger.spend(Privacy(0.5)):
                    mean(X)
            else:
                ledger.release(dpf.SampleAndAggregate(mean, bounds=(0, 100), epsilon=0.5, blocks=1), X)
            await tasks[0]

        asyncio.run(main())
        assert ledger.spent.epsilon == 0.75

    def test_releases_that_a_source_of_chunks_makes_are_charged(self):
        ledger = Ledger(10.0)

        def opened():
            upper = dpf.quantile(X, 0.9, bounds=(0, 100), epsilon=1.0)
            return (np.minimum(part, upper) for part in (X, X))

        with ledger:
            MEDIAN(dpf.Chunks(opened))
        assert ledger.spent.epsilon == 0.25 + MEDIAN.start().passes
        with ledger.spend(Privacy(1.0)):
            MEDIAN(dpf.Chunks(opened))
        assert ledger.spent.epsilon == 1.25 + MEDIAN.start().passes

    def test_executors_and_older_tasks_of_asyncio_are_refused(self):
        ledger = Ledger(1.0)

        async def older(entered):
            await entered.wait()
            return MEDIAN(X)

        async def main():
            entered = asyncio.Event()
            task = asyncio.create_task(older(entered))
            await asyncio.sleep(0)
            with ledger:
                entered.set()
                with pytest.raises(BudgetError, match="another thread or task"):
                    await task
                with pytest.raises(BudgetError, match="another thread or task"):
                    await asyncio.get_running_loop().run_in_executor(None, MEDIAN, X)
                await asyncio.create_task(asyncio.to_thread(MEDIAN, X))

        asyncio.run(main())
        assert ledger.spent.epsilon == 0.25

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_a_child_that_another_thread_forked_is_refused(self):
        def child():
            pid = os.fork()
            if pid == 0:
                try:
                    MEDIAN(X)
                except BudgetError:
                    os._exit(0)
                finally:
                    os._exit(1)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

        assert in_thread(child) == 1  # without a ledger it releases
        with Ledger(1.0):
            assert in_thread(child) == 0

    @pytest.mark.parametrize("carried", [MEDIAN, local.Binary(0.25), STATE], ids=lambda c: type(c).__name__)
    def test_what_is_sent_to_other_processes(self, tmp_path, carried):
        """Pickled inside a ledger it is charged to the file of the ledger, or refused."""
        neighbors = "local" if isinstance(carried, Randomizer) else "replace-one"
        in_memory = Ledger(1.0, neighbors=neighbors)
        in_file = Ledger(1.0, neighbors=neighbors, path=tmp_path / "ledger")
        outside = pickle.dumps(carried)
        with in_memory:
            refused, by_thread = pickle.dumps(carried), in_thread(partial(pickle.dumps, carried))
        with in_file:
            charged = pickle.dumps(carried)
        sent = [outside, refused, by_thread, charged]
        done = subprocess.run(
            [sys.executable, "-c", SENT], input=pickle.dumps(sent), cwd=ROOT, capture_output=True, check=True
        )
        assert done.stdout.decode().split() == ["released", "refused", "refused", "released"]
        assert in_memory.charges == ()
        assert in_file.spent.epsilon == 0.25

    def test_what_is_copied_in_a_ledger_is_equal_and_charged(self):
        ledger, other = Ledger(1.0), Ledger(1.0)
        with ledger:
            copies = [copy.copy(MEDIAN), copy.deepcopy(MEDIAN), pickle.loads(pickle.dumps(MEDIAN))]
        assert all(copied == MEDIAN and repr(copied) == repr(MEDIAN) for copied in copies)
        for copied in copies:
            copied(X)
        with other:
            copies[0](X)
        assert (ledger.spent.epsilon, other.spent.epsilon) == (0.75, 0.25)
        name = ledger._name
        pickled = pickle.dumps(copies)
        del ledger, copied, copies
        gc.collect()
        assert name not in known
        for copied in pickle.loads(pickled):
            with pytest.raises(BudgetError, match="cannot be charged from here"):
                copied(Untouchable())

    def test_many_threads_lose_and_double_nothing(self):
        ledger, refused = Ledger(100.0), []
        start = threading.Barrier(16)

        def work():
            start.wait()
            with ledger:
                for _ in range(50):
                    try:
                        MEDIAN(X)
                    except BudgetError:
                        refused.append(1)

        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ledger.charges) == 400
        assert len(refused) == 16 * 50 - 400
        assert ledger.spent.epsilon == 100.0

    def test_tasks_have_the_ledger_of_their_context(self):
        one, two = Ledger(1.0), Ledger(1.0)

        async def work(ledger, times):
            with ledger:
                for _ in range(times):
                    await asyncio.sleep(0)
                    await asyncio.to_thread(MEDIAN, X)

        async def both():
            await asyncio.gather(work(one, 2), work(two, 3))

        asyncio.run(both())
        assert (one.spent.epsilon, two.spent.epsilon) == (0.5, 0.75)


SENT = """
import pickle, sys
import numpy as np, dpfast as dpf

for sent in pickle.load(sys.stdin.buffer):
    carried = pickle.loads(sent)
    use = getattr(carried, "randomize", carried)
    try:
        carried.release() if hasattr(carried, "update") else use(np.zeros(4, np.int64))
        print("released")
    except dpf.BudgetError as error:
        assert "path=" in str(error)
        print("refused")
"""


def open_ledger(path, epsilon=10.0):
    return Ledger(epsilon, path=path)


def spend_all(path):
    """In another process: release until nothing is left."""
    ledger, done = open_ledger(path), 0
    try:
        while True:
            ledger.release(MEDIAN, X)
            done += 1
    except BudgetError:
        return done


CRASH = """
import os, sys
import numpy as np, dpfast as dpf

class Dying:
    def __array__(self, *args, **options):
        os._exit(9)  # between the reservation and the release

grid = dpf.Grid(0, 100, step=1)
mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=0.25)
ledger = dpf.Ledger(10.0, path=sys.argv[1])
ledger.release(mechanism, np.arange(10.0))
ledger.release(mechanism, Dying())
"""


class TestFiles:
    def test_a_ledger_outlives_its_process(self, tmp_path):
        path = tmp_path / "ledger"
        open_ledger(path).release(MEDIAN, X)
        again = open_ledger(path)
        assert again.charges == (Charge(repr(MEDIAN), MEDIAN.privacy_profile),)
        open_ledger(path).release(MEDIAN, X, size=39)
        assert again.spent.epsilon == 10.0
        with pytest.raises(BudgetError):
            again.release(MEDIAN, Untouchable())

    def test_a_crash_between_reservation_and_release_is_spent(self, tmp_path):
        path = tmp_path / "ledger"
        done = subprocess.run([sys.executable, "-c", CRASH, path], cwd=ROOT, check=False)
        assert done.returncode == 9
        assert open_ledger(path).spent.epsilon == 0.5

    @pytest.mark.parametrize("cut", [1, 10])
    def test_a_torn_line_is_cut_off(self, tmp_path, cut):
        path = tmp_path / "ledger"
        for _ in range(3):
            open_ledger(path).release(MEDIAN, X)
        path.write_bytes(path.read_bytes()[:-cut])
        ledger = open_ledger(path)
        assert len(ledger.charges) == 2
        ledger.release(MEDIAN, X)
        assert len(open_ledger(path).charges) == 3
        path.write_bytes(path.read_bytes()[:20])  # torn while the file was made
        assert open_ledger(path).charges == ()

    def test_processes_share_a_file(self, tmp_path):
        path = tmp_path / "ledger"
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            done = pool.map(spend_all, [path] * 2)
        assert sum(done) == 40
        assert len(open_ledger(path).charges) == 40

    def test_threads_share_a_file(self, tmp_path):
        path = tmp_path / "ledger"
        ledger = open_ledger(path)
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda i: spend_all(path) if i % 2 else _spend(ledger), range(8)))
        assert sum(done) == 40
        assert len(ledger.charges) == 40

    def test_other_parameters_or_versions_are_refused(self, tmp_path):
        path = tmp_path / "ledger"
        open_ledger(path)
        with pytest.raises(ValueError, match=r"epsilon = 10.0, not 11.0"):
            open_ledger(path, 11.0)
        with pytest.raises(ValueError, match="neighbors"):
            Ledger(10.0, neighbors="local", path=path)
        path.write_text(path.read_text().replace('"dpfast-ledger": 1', '"dpfast-ledger": 2'))
        with pytest.raises(ValueError, match="version 2"):
            open_ledger(path)
        path.write_text("notes\n")
        with pytest.raises(ValueError, match="no ledger"):
            open_ledger(path)

    def test_a_file_that_is_gone_or_shorter_is_no_new_budget(self, tmp_path):
        path = tmp_path / "ledger"
        ledger = open_ledger(path)
        ledger.release(MEDIAN, X)
        full = path.read_bytes()
        path.write_bytes(full[: full.index(b"\n") + 1])
        with pytest.raises(ValueError, match="shorter"):
            ledger.release(MEDIAN, Untouchable())
        path.unlink()
        with pytest.raises(FileNotFoundError):
            ledger.release(MEDIAN, Untouchable())

    def test_a_damaged_line(self, tmp_path):
        path = tmp_path / "ledger"
        open_ledger(path).release(MEDIAN, X)
        path.write_bytes(path.read_bytes() + b'{"label": 3}\n')
        with pytest.raises(ValueError, match="damaged"):
            open_ledger(path)

    def test_a_damaged_line_is_refused_each_time_and_no_spending_is_lost(self, tmp_path):
        path = tmp_path / "ledger"
        ledger, other = open_ledger(path, 1.0), open_ledger(path, 1.0)
        other.release(MEDIAN, X, size=3)
        sound = path.read_bytes()
        for line in (b"{\n", b'{"label": 3}\n', b'{"label": 3}\n{"torn'):
            path.write_bytes(sound + line)
            for _ in range(3):
                with pytest.raises(ValueError, match="ledger"):
                    ledger.release(MEDIAN, Untouchable(), size=2)
            assert path.read_bytes() == sound + line
        path.write_bytes(sound)
        assert (ledger.spent.epsilon, len(ledger.charges)) == (0.75, 1)

    @pytest.mark.parametrize(
        "text", ["notes", "notes\nand more", '{"another', '{"dpfast-ledger": 1, "epsilon": 1.0', None]
    )
    def test_a_file_of_somebody_else_stays_as_it_is(self, tmp_path, text):
        path = tmp_path / "ledger"
        if text is None:
            ledger = Ledger(10.0)
            ledger.release(MEDIAN, X)
            text = ledger.to_json()
        path.write_text(text)
        with pytest.raises(ValueError, match="no ledger"):
            open_ledger(path, 11.0)
        assert path.read_text() == text
        reopened = pickle.loads(pickle.dumps(open_ledger(tmp_path / "sound")))
        os.replace(path, tmp_path / "sound")
        with pytest.raises(ValueError, match="no ledger"):
            reopened.release(MEDIAN, Untouchable())
        assert (tmp_path / "sound").read_text() == text

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_fork(self, tmp_path):
        path = tmp_path / "ledger"
        in_memory, in_file = Ledger(1.0), open_ledger(path)
        in_memory._lock.acquire()  # held by another thread, say
        in_file._lock.acquire()
        child = os.fork()
        if child == 0:
            try:
                in_memory.release(MEDIAN, X)
                os._exit(1)
            except BudgetError:
                in_file.release(MEDIAN, X)
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        in_memory._lock.release()
        in_file._lock.release()
        in_memory.release(MEDIAN, X)
        in_file.release(MEDIAN, X)
        assert in_file.spent.epsilon == 0.5

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_a_fork_while_a_thread_holds_the_file(self, tmp_path):
        """The lock ends with the thread's block, though the child lives; the child reads all charges, each once."""
        path = tmp_path / "ledger"
        ledger = open_ledger(path)
        ledger.release(MEDIAN, X)
        held, go, (out, into) = threading.Event(), threading.Event(), os.pipe()

        def hold():
            with ledger._current():
                ledger._charges.append("half of an addition")
                held.set()
                go.wait()
                ledger._charges.pop()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        child = os.fork()
        if child == 0:
            os.close(into)
            signal.alarm(60)
            os.read(out, 1)  # until the parent is done
            os._exit(0 if [charge.times for charge in ledger.charges] == [1, 2] else 1)
        go.set()
        thread.join()
        other = threading.Thread(target=lambda: open_ledger(path).release(MEDIAN, X, size=2), daemon=True)
        other.start()
        other.join(20)
        free = not other.is_alive()
        os.close(into)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        os.close(out)
        assert free

    def test_copies(self, tmp_path):
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="spend twice"):
                make(Ledger(1.0))
        ledger = open_ledger(tmp_path / "ledger")
        again = pickle.loads(pickle.dumps(ledger))
        again.release(MEDIAN, X)
        assert ledger.spent.epsilon == 0.25


def _spend(ledger):
    done = 0
    try:
        while True:
            ledger.release(MEDIAN, X)
            done += 1
    except BudgetError:
        return done


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


def divergence(logp, logq, order):
    return float(logsumexp(order * logp + (1 - order) * logq)) / (order - 1)


def hockey_stick(logp, logq, epsilon):
    return float(np.maximum(np.exp(logp) - np.exp(epsilon + logq), 0.0).sum())


class TestProfiles:
    @pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
    def test_are_those_of_the_mechanism(self, mechanism):
        profile = mechanism.privacy_profile
        assert profile.privacy == mechanism.privacy
        total = sum(Fraction(epsilon) * times for _, epsilon, times in profile.parts)
        assert total >= Fraction(mechanism.privacy.epsilon)
        assert total <= Fraction(mechanism.privacy.epsilon) * (1 + Fraction(1, 2**50))

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    def test_bound_the_exact_laws(self, epsilon):
        """On all neighbours among small datasets."""
        grid = Grid(0, 40, step=1)
        mechanisms = [
            dpf.InverseSensitivity(dpf.statistics.Median(), grid=grid, epsilon=epsilon),
            dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=grid, epsilon=epsilon),
            dpf.Quantiles((0.5,), grid=grid, epsilon=epsilon),
            dpf.Selection(epsilon=epsilon),
            dpf.Selection(epsilon=epsilon, method="permute-and-flip"),
            dpf.MEstimator(dpf.psi.Huber(5.0), grid=grid, epsilon=epsilon),
        ]
        orders = (1.1, 2.0, 8.0, 50.0)
        for mechanism in mechanisms:
            bounds = [mechanism.privacy_profile.renyi_up(order) for order in orders]
            scores = isinstance(mechanism, dpf.Selection)
            vectors = isinstance(mechanism, dpf.Quantiles)
            laws = {}
            for dataset in itertools.product([0, 1] if scores else [0.0, 20.0, 40.0], repeat=3):
                law = mechanism.law(np.array(dataset))
                laws[dataset] = law.logpmf(np.arange(grid.size)[:, None] if vectors else law.outcomes())
            for a, b in itertools.permutations(laws, 2):
                if scores or sum(x != y for x, y in zip(a, b, strict=True)) == 1:
                    for order, bound in zip(orders, bounds, strict=True):
                        assert divergence(laws[a], laws[b], order) <= bound * (1 + 1e-9)

    def test_one_that_is_charged_too_little_is_seen(self):
        """The control: permute-and-flip has more than the divergence of a bounded range."""
        mechanism = dpf.Selection(epsilon=0.1, method="permute-and-flip")
        claimed = PrivacyProfile(Privacy(0.1), (("bounded-range", 0.1, 1),)).renyi_up(2.0)
        p, q = (mechanism.law(s).logpmf(np.arange(4)) for s in ([1, 0, 0, 0], [0, 1, 1, 1]))
        assert divergence(p, q, 2.0) > 1.2 * claimed
        assert divergence(p, q, 2.0) <= mechanism.privacy_profile.renyi_up(2.0)

    @pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 2.0, 10.0])
    @pytest.mark.parametrize("order", [1.01, 2.0, 30.0, 1000.0])
    def test_worst_pairs(self, epsilon, order):
        """Against mpmath: never below the divergence of the worst pair, and for pure and Laplace hardly above."""
        import mpmath

        with mpmath.workdps(60):
            e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
            p = 1 / (1 + mpmath.exp(-e))
            response = mpmath.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
            laplace = mpmath.log(
                a / (2 * a - 1) * mpmath.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mpmath.exp(-a * e)
            ) / (a - 1)
            ranged = max(
                mpmath.log(w**a * v ** (1 - a) + (1 - w) ** a * (1 - v) ** (1 - a)) / (a - 1)
                for t in range(1, 20)
                for w in [(mpmath.exp(e) - mpmath.exp(e * t / 20)) / mpmath.expm1(e)]
                for v in [w * mpmath.exp(-e * t / 20)]
            )
        for family, exact in {"pure": response, "laplace": laplace, "bounded-range": ranged}.items():
            found = PrivacyProfile(Privacy(epsilon), ((family, epsilon, 1),)).renyi_up(order)
            assert found >= exact
            if family != "bounded-range":
                assert found <= exact * (1 + 1e-3) + 1e-9

    def test_rho(self):
        assert MEDIAN.privacy_profile.rho == 0.25**2 / 8
        assert MEAN.privacy_profile.rho == 0.25**2 / 2
        assert PerturbedHistogram(3, grid=GRID, epsilon=1.0).privacy_profile.rho == 0.25
        assert PrivacyProfile(Privacy(8.0)).rho == 8.0
        assert dpf.Selection(epsilon=1.0).rho == dpf.Selection(epsilon=1.0).privacy_profile.rho == 0.125

    def test_wrong_parts(self):
        for parts, message in [
            (((1, 2),), "of the form"),
            ((("odd", 1.0, 1),), "family must be"),
            ((("pure", math.nan, 1),), "at least 0"),
            ((("pure", 1.0, -1),), "of the form"),
        ]:
            with pytest.raises(ValueError, match=message):
                PrivacyProfile(Privacy(1.0), parts)
        with pytest.raises(TypeError):
            PrivacyProfile(1.0)
        with pytest.raises(ValueError, match="order must be above 1"):
            MEDIAN.privacy_profile.renyi_up(1.0)


def response_pair(epsilon):
    return (1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon)))


def binomial_delta(epsilon, times, target):
    """The exact hockey-stick divergence of `times` randomised responses."""
    p, q = response_pair(epsilon)
    total = 0.0
    for k in range(times + 1):
        weight = math.comb(times, k)
        total += weight * max(0.0, p**k * q ** (times - k) - math.exp(target) * q**k * p ** (times - k))
    return total


class TestRenyi:
    def test_what_it_admits_is_private(self):
        """The number of randomised responses it lets pass keeps the budget, exactly; a tenth more would not be far."""
        for cost in (0.01, 0.05, 0.2):
            ledger, times = Ledger(1.0, 1e-6, composition="renyi"), 0
            while ledger.affords(Privacy(cost)):
                ledger.reserve(PrivacyProfile(Privacy(cost)))
                times += 1
            assert binomial_delta(cost, times, 1.0) <= 1e-6

    def test_it_is_tighter_for_many_small_releases(self):
        small = dpf.InverseSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=0.01)
        ledger = Ledger(1.0, 1e-6, composition="renyi")
        assert ledger.affords(small, times=1500)
        assert not Ledger(1.0, 1e-6).affords(small, times=101)
        assert not ledger.affords(Privacy(0.01), times=1500)  # four times as dear where only epsilon is known

    def test_deltas_have_their_half(self):
        ledger = Ledger(1.0, 1e-6, composition="renyi")
        assert ledger.affords(Privacy(1e-3, 5e-7))
        assert not ledger.affords(Privacy(1e-3, 5.1e-7))
        assert ledger.remaining.delta == 5e-7

    def test_remaining_fits(self):
        ledger = Ledger(1.0, 1e-6, composition="renyi")
        left = ledger.remaining.epsilon
        assert ledger.affords(Privacy(left))
        assert not ledger.affords(Privacy(left * (1 + 1e-9)))
        ledger.reserve(PrivacyProfile(Privacy(left)))
        assert ledger.remaining.epsilon < 1e-4

    @pytest.mark.parametrize("row", [row.strip("|").split("|") for row in FIT], ids=str)
    def test_the_table_of_the_guide(self, row):
        """As many releases as it says fit, and not one more; a plan as dp-accounting has it."""
        assert len(FIT) == 4
        statistic = dpf.statistics.Mean() if "mean" in row[0] else dpf.statistics.Median()
        kind = dpf.GlobalSensitivity if "Laplace" in row[0] else dpf.InverseSensitivity
        mechanism = kind(statistic, grid=dpf.Grid(0, 100), epsilon=Fraction(row[1]))
        for composition, most in (("basic", int(row[2])), ("renyi", int(row[3]))):
            ledger = dpf.Ledger(1.0, 1e-6, composition=composition)
            assert ledger.affords(mechanism, times=most)
            assert not ledger.affords(mechanism, times=most + 1)
        pytest.importorskip("dp_accounting")
        most = int(row[4])
        dpf.Ledger(1.0, 1e-6, plan=[mechanism] * most)
        with pytest.raises(dpf.BudgetError):
            dpf.Ledger(1.0, 1e-6, plan=[mechanism] * (most + max(2, most // 100)))

    def test_the_conversion_is_that_of_dp_accounting(self):
        rdp = pytest.importorskip("dp_accounting.rdp")
        ledger = Ledger(1.0, 1e-6, composition="renyi")
        account = ledger._account
        epsilon, _ = rdp.compute_epsilon([account.order], [float(account._left)], 5e-7)
        assert epsilon == pytest.approx(1.0, rel=1e-6)


class TestPlans:
    def test_a_plan_within_the_sums_needs_nothing(self):
        ledger = Ledger(0.5, plan=[MEDIAN, MEAN])
        with pytest.raises(BudgetError, match="release 1 of the plan"):
            ledger.release(MEAN, Untouchable())
        assert ledger.remaining == MEDIAN.privacy
        ledger.release(MEDIAN, X)
        ledger.release(MEAN, X)
        with pytest.raises(BudgetError, match="all 2 releases of the plan were made"):
            ledger.release(MEAN, Untouchable())
        assert ledger.remaining.epsilon == 0
        again = Ledger.from_json(ledger.to_json())
        assert again.charges == ledger.charges

    def test_sizes_take_several_places(self):
        ledger = Ledger(1.0, plan=[MEDIAN] * 3 + [MEAN])
        ledger.release(MEDIAN, X, size=3)
        ledger.release(MEAN, X)

    def test_without_the_library_it_says_so(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
        with pytest.raises(ImportError, match="pip install dp-accounting"):
            Ledger(0.4, 1e-3, plan=[MEDIAN, MEAN])

    def test_losses_of_randomised_response(self):
        pytest.importorskip("dp_accounting")
        profile = PrivacyProfile(Privacy(0.1))
        for times in (20, 60):
            exact = binomial_delta(0.1, times, 1.0)
            Ledger(1.0, exact * 1.02 + 1e-12, plan=[profile] * times)
            with pytest.raises(BudgetError, match="the plan needs delta"):
                Ledger(1.0, exact * 0.98, plan=[profile] * times)

    def test_bounded_range_costs_less_and_bounds_the_exact_law(self):
        pytest.importorskip("dp_accounting")
        from dpfast.ledger.accounts import _planned_delta

        mechanism = dpf.InverseSensitivity(dpf.statistics.Median(), grid=Grid(0, 30, step=1), epsilon=1.0)
        single = mechanism.privacy_profile
        for target in (0.3, 0.9):
            curve = _planned_delta([single], target)
            assert curve == pytest.approx((math.exp(0.5) - math.exp(target / 2)) ** 2 / math.expm1(1.0), rel=1e-2)
            for a, b in [([0, 30, 30], [0, 0, 30]), ([0, 0, 30], [0, 30, 30])]:
                p, q = (mechanism.law(x).logpmf(np.arange(31)) for x in (a, b))
                assert hockey_stick(p, q, target) <= curve
        assert _planned_delta([single] * 20, 6.0) < 0.2 * _planned_delta([PrivacyProfile(Privacy(1.0))] * 20, 6.0)
        laplace = PrivacyProfile(Privacy(1.0), (("laplace", 1.0, 1),))
        assert _planned_delta([laplace], 0.5) == pytest.approx(1 - math.exp(-0.25), rel=1e-3)

    def test_plans_of_several_kinds(self):
        """Against the exact losses of two families of randomised response, and never cheaper than one of them alone."""
        pytest.importorskip("dp_accounting")
        from dpfast.ledger.accounts import _planned_delta

        pure = [PrivacyProfile(Privacy(0.3))] * 4 + [PrivacyProfile(Privacy(0.01))] * 3
        large, small = response_pair(0.3), response_pair(0.01)
        exact = 0.0
        for signs in itertools.product([0, 1], repeat=7):
            p = math.prod((large if i < 4 else small)[sign] for i, sign in enumerate(signs))
            q = math.prod((large if i < 4 else small)[1 - sign] for i, sign in enumerate(signs))
            exact += max(0.0, p - math.exp(0.7) * q)
        found = _planned_delta(pure, 0.7)
        assert exact <= found <= exact * 1.01 + 1e-9
        mixed = [MEDIAN.privacy_profile] * 5 + [MEAN.privacy_profile] * 5 + [PrivacyProfile(Privacy(1e-7, 1e-9))]
        assert _planned_delta(mixed[:5], 0.9) <= _planned_delta(mixed, 0.9) <= _planned_delta(mixed, 0.8)
        ledger = Ledger(2.0, 1e-3, plan=mixed)
        for mechanism in [MEDIAN] * 5 + [MEAN] * 5:
            ledger.release(mechanism, X)

    def test_a_plan_in_a_file(self, tmp_path):
        path = tmp_path / "ledger"
        Ledger(0.5, plan=[MEDIAN, MEAN], path=path).release(MEDIAN, X)
        with pytest.raises(ValueError, match="plan"):
            Ledger(0.5, plan=[MEAN, MEDIAN], path=path)
        ledger = Ledger(0.5, plan=[MEDIAN, MEAN], path=path)
        ledger.release(MEAN, X)
        assert not ledger.affords(MEAN)


def test_the_hook_keeps_signatures_and_is_free_of_charge_outside():
    assert list(inspect.signature(dpf.InverseSensitivity.__call__).parameters) == ["self", "x", "rng", "workers"]
    with spending(MEDIAN.privacy_profile, label="nobody pays"):
        MEDIAN(X)
