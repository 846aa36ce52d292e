"""Every public release is charged once, before it touches the data; exact functions of data are refused."""

import inspect
import pkgutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import BudgetError, Ledger, Mechanism, Privacy, PrivacyProfile, local, noise, robust
from dpfast.core.spending import refused
from dpfast.ledger import Charge
from dpfast.local import Randomizer
from dpfast.local.randomizer import LocalMechanism
from dpfast.mechanisms.plan import Plan
from dpfast.smooth import smooth_sensitivity
from tests.cases import every
from tests.central import shaped
from tests.releases import (
    GRID,
    LOCAL,
    MECHANISMS,
    MEDIAN,
    NEIGHBORS,
    NO_RELEASE,
    NOISE,
    RELEASES,
    TIMES,
    B,
    X,
    in_thread,
)
from tests.untouchable import Untouchable

pytestmark = pytest.mark.host


# Exact functions of data, which no budget pays for.
EXACT = {
    "robust.score": lambda x: robust.score(dpf.statistics.Median(), x, 50.0, grid=GRID),
    "smooth.smooth_sensitivity": lambda x: smooth_sensitivity(dpf.statistics.Median(), x, grid=GRID, beta=0.1),
    "theory.influence_function": lambda x: dpf.theory.influence_function(dpf.statistics.Median(), x, 5.0, 0.1),
    "theory.gross_error_sensitivity": lambda x: dpf.theory.gross_error_sensitivity(dpf.statistics.Median(), x, 0.1),
    "local.MedianDescent.probability": lambda x: local.MedianDescent(**B).probability(50.0, 3.0),
    "local.QuantileSearch.probability": lambda x: local.QuantileSearch(**B).probability(50.0, 3.0),
}
# Private and allowed: states and their parts, and releases of hosts, which document them.
ON_THE_WAY = {
    "mechanisms.Triples.law",
    "aggregate.SampleAndAggregate.block_sums",
    "dask._block_sums",
    "dask.release",
    "dask._state",
    "dask.state",
    "densities.Rounds._exact",
    "densities.Cells.count",
    "densities.Cells.locate",
    "densities.counted",
    "densities.encoded",
    "keys.read",
    "mechanisms.sample_of",
    "robust.SpreadTest.slack",
    "densities.RectangleSums.of",
    "running.PeriodRecords.integers",
    "spark._summary",
    "spark._read",
    "spark.groups",
    "spark.partitions",
    "spark.read",
    "spark.release",
    "spark.summaries",
    "spark.summary",
    "statistics.UserStatistic.change_at",
    "statistics.UserStatistic.exact",
    "streaming.State.to_bytes",
}


@cache
def import_all():
    for module in pkgutil.walk_packages(dpf.__path__, "dpfast."):
        if not module.name.startswith("dpfast._"):
            with suppress(ImportError):  # a missing optional library
                import_module(module.name)


def all_subclasses(cls):
    import_all()
    found = []
    for sub in cls.__subclasses__():
        found += [sub, *all_subclasses(sub)] if sub.__module__.startswith("dpfast.") else []
    return found


def all_functions():
    """Functions of dpfast, and methods of its classes."""
    import_all()
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
            if inspect.isroutine(function := getattr(module, name))
            and not name.startswith("_")
            and (short == "dpf" or function.__module__.startswith(module.__name__))
        }
        missing = "RELEASES in tests/releases.py, or FUNCTIONS in tests/reference/statistics.py, needs an entry"
        assert found == set(RELEASES) | NO_RELEASE, missing

    @every("name", RELEASES)
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

    @every("cls", [*all_subclasses(Mechanism), *all_subclasses(LocalMechanism)])
    def test_every_class_is_hooked(self, cls):
        defined = {name for base in cls.__mro__ for name in vars(base)}  # hasattr finds the __call__ of `type`
        names = [name for name in ("__call__", "release", "randomize", "respond") if name in defined]
        assert names
        assert all(getattr(cls, name).charged for name in names if not inspect.isabstract(cls))
        if not inspect.isabstract(cls):
            assert all(getattr(cls, name).refused for name in ("law", "law_of") if hasattr(cls, name))

    @every("cls", [Plan, *all_subclasses(Plan)])
    def test_every_step_of_a_plan_is_guarded(self, cls):
        assert all(getattr(cls, name).refused for name in ("draw", "draw_from", "draws", "groups", "law_of", "read"))

    def test_every_mechanism_is_in_the_list(self):
        concrete = {cls for cls in all_subclasses(Mechanism) if not inspect.isabstract(cls)}
        hidden = {cls for cls in concrete if cls.__name__.startswith("_")}
        known = {type(mechanism) for mechanism in MECHANISMS}
        assert concrete - hidden == known

    @every("mechanism", MECHANISMS, ids=repr)
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

    def test_private_functions_are_refused_or_part_of_a_release(self):
        """Everything that its docstring calls PRIVATE."""
        private = {
            f"{function.__module__.split('.')[1]}.{function.__qualname__}": getattr(function, "refused", False)
            for function in all_functions()
            if "PRIVATE" in (function.__doc__ or "") and not getattr(function, "__isabstractmethod__", False)
        }
        assert {name for name, refused in private.items() if not refused} == ON_THE_WAY
        assert sum(private.values()) >= 15
        assert {name for name, refused in private.items() if refused and not name.endswith(("law", "law_of"))} == {
            "local.SecureSum.report",
            "local.ThresholdProtocol.probability",
            "mechanisms.smooth_sensitivity",
            "robust.score",
            "streaming.State.summary",
            "mechanisms.Plan.read",
            "regression.Steps.read",
            "regression._Blocks.read",
            "aggregate.Blocks.read",
            "theory.gross_error_sensitivity",
            "theory.influence_function",
        }

    @every("name", EXACT)
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

    @every("randomizer", LOCAL, ids=lambda r: type(r).__name__)
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

    @pytest.mark.parametrize(
        ("randomizer", "rows"),
        [
            (local.HashedCategorical(2**40, 0.25), np.zeros(4)),
            (local.HeavyHitters(0.25, 32), np.zeros(4)),
            (local.Attributes([2, 9], 0.25), np.zeros((4, 2))),
            (local.Attributes([2, 9], 0.25, "split"), np.zeros((4, 2))),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_randomizers_of_keys_and_rows(self, randomizer, rows):
        with Ledger(1.0, neighbors="local") as ledger:
            randomizer.randomize(rows)
        assert ledger.spent == Privacy(0.25, 0.0, "local")
        assert len(ledger.charges) == 1
        with Ledger(0.2, neighbors="local"), pytest.raises(BudgetError):
            randomizer.randomize(Untouchable())

    @pytest.mark.parametrize("protocol", [local.MedianDescent, local.QuantileSearch])
    def test_protocols_of_questions(self, protocol):
        survey = protocol(bounds=(0, 100), epsilon=0.25)
        with Ledger(10.0, neighbors="local") as ledger:
            survey(X)
            survey.release(X, size=3)
            survey.respond(50.0, 3.0)
        assert [charge.times for charge in ledger.charges] == [1, 3, 1]

    def test_whether_data_are_refused_does_not_depend_on_them(self):
        class Odd(list):
            def __getattr__(self, name):
                raise AssertionError(f"the data were asked for {name}")

        @refused("no budget covers it")
        def first(x):
            return x[0]

        assert first(Odd([1.0, 2.0])) == 1.0
        with Ledger(1.0), pytest.raises(BudgetError, match="no budget covers it"):
            first(Odd([1.0, 2.0]))

    @every("draw", NOISE)
    def test_noise_is_refused_unless_declared(self, draw):
        draw()
        ledger = Ledger(1.0)
        with ledger, pytest.raises(BudgetError, match="spend"):
            draw()
        with ledger.spend(Privacy(0.5), label="my sum"):
            draw()
            dpf.median(X, **B)  # part of the declared cost
            with ledger:
                pass
            draw()
        assert ledger.charges == (Charge("my sum", PrivacyProfile(Privacy(0.5))),)

    def test_a_mechanism_of_somebody_else(self):
        @dataclass(frozen=True)
        class Both(Mechanism):
            """Releases two medians and declares their total cost."""

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

    @every("mechanism", MECHANISMS, ids=repr)
    def test_charges_do_not_depend_on_the_data(self, mechanism):
        """T15: the records of two neighbours agree, and add up to the declared cost."""
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

    def test_no_charge_outside_a_ledger(self):
        ledger = Ledger(1.0)
        with ledger:
            pass
        MEDIAN(X)
        MEDIAN.law(X)
        assert ledger.charges == ()
