"""T32, T33, T44: What code of containers and users releases while a charge is open is charged by itself, or refused."""

import inspect
import pickle
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import BudgetError, Ledger, Privacy, local, noise, robust
from dpfast.groups.draws import Groups
from tests.cases import every
from tests.central import shaped
from tests.lazy import CONTAINERS, EPSILON, LAW, Inside, swapped
from tests.releases import GRID, MECHANISMS, MEDIAN, NEIGHBORS, RELEASES, B, X

MODULES = {"dpf": dpf, "local": local, "robust": robust}
NO_RECORDS = {"robust.reduce", "dpf.select"}  # they take scores


def changed_functions(monkeypatch, called):
    """Call all public functions by `called(function, args, options)` where the entries of RELEASES call them."""
    for short, module in MODULES.items():
        for name in {entry.split(".")[1] for entry in RELEASES if entry.startswith(f"{short}.")}:
            monkeypatch.setattr(module, name, partial(_called, called, getattr(module, name)))


def _called(called, function, *args, **options):
    return called(function, args, options)


def swapping(container, inside):
    """Put containers in the place of the arrays of records."""

    def swap(value):
        return swapped(value, lambda array: container(array, inside))

    def called(function, args, options):
        return function(*map(swap, args), **{name: swap(value) for name, value in options.items()})

    return called


class TestContainers:
    @every("name", RELEASES)
    def test_functions(self, name, monkeypatch):
        neighbors, made = NEIGHBORS.get(name, "replace-one"), 0
        for container in CONTAINERS.values():
            with monkeypatch.context() as patch:
                inside = Inside(neighbors)
                changed_functions(patch, swapping(container, inside))
                ledger = Ledger(10_000.0, 0.9, neighbors=neighbors)
                with ledger, suppress(TypeError, ValueError):  # not a container for this function
                    RELEASES[name]()
            inside.charged(ledger)
            made += inside.made
        assert made or name in NO_RECORDS

    @every("mechanism", MECHANISMS, ids=repr)
    def test_mechanisms(self, mechanism):
        neighbors, made = mechanism.privacy.neighbors, 0
        for container in CONTAINERS.values():
            for options in ({}, {"size": 2}):
                inside, ledger = Inside(neighbors), Ledger(10_000.0, 0.9, neighbors=neighbors)
                with suppress(TypeError, ValueError):
                    ledger.release(mechanism, container(shaped(mechanism, X), inside), **options)
                inside.charged(ledger)
                made += inside.made
        assert made

    def test_what_was_declared_is_free(self):
        inside, ledger = Inside(), Ledger(1.0)
        with ledger.spend(Privacy(0.5)):
            MEDIAN(CONTAINERS["lazy"](X, inside))
        assert inside.made
        assert [charge.label for charge in ledger.charges] == ["declared"]

    @pytest.mark.host
    @pytest.mark.parametrize("scheduler", ["threads", "sync"])
    def test_blocks_of_dask(self, scheduler):
        dask = pytest.importorskip("dask")
        from dask.array import from_array

        import dpfast.dask

        for block in (lambda b: b - dpf.median(b, **{**B, "epsilon": 5.0}), partial(_shifted, epsilon=5.0)):
            for release in (MEDIAN, partial(dpfast.dask.release, MEDIAN)):
                lazy, ledger = from_array(X, chunks=50).map_blocks(block, dtype=float), Ledger(100.0)
                with dask.config.set(scheduler=scheduler), ledger:
                    release(lazy)
                charges = [charge.profile.privacy.epsilon for charge in ledger.charges]
                assert set(charges) == {0.25, 5.0}
                assert charges.count(5.0) % 2 == 0

    def test_a_budget_that_is_too_small_refuses_the_container(self):
        ledger = Ledger(0.5)
        with ledger, pytest.raises(BudgetError, match="does not fit"):
            dpf.median(CONTAINERS["sequence"](X, Inside()), bounds=(0, 100), epsilon=0.5)
        assert ledger.spent.epsilon == 0.5


def _shifted(block, epsilon):
    return block - dpf.median(block, bounds=(0, 100), epsilon=epsilon)


class Distribution:
    """A guess that releases when it is asked."""

    def __init__(self, inside):
        self.ppf = inside


# Functions of users, made from what they release.
CALLBACKS = {
    "psi": lambda inside: dpf.m_estimate(X, inside, **B),
    "psi of a mechanism": lambda inside: dpf.MEstimator(dpf.psi.Function(inside), grid=GRID, epsilon=0.25)(X),
    "score": lambda inside: robust.reduce(inside, range(3), epsilon=0.25),
    "chunks": lambda inside: MEDIAN(dpf.Chunks(lambda: iter([inside(X)]))),
    "distribution": lambda inside: dpf.median(X, distribution=Distribution(inside), **B),
}


class TestCallbacks:
    @every("name", CALLBACKS)
    @every("wrap", [lambda inside: inside, lambda inside: lambda *args: inside(*args)])
    def test_functions_of_users(self, name, wrap):
        inside, ledger = Inside(), Ledger(10_000.0)
        with ledger, suppress(TypeError, ValueError):
            CALLBACKS[name](wrap(inside))
        assert inside.made
        inside.charged(ledger)

    def test_scores_may_be_exact(self):
        with Ledger(1.0) as ledger:
            robust.reduce(lambda c: robust.score(dpf.statistics.Median(), X, c, grid=GRID), range(3), epsilon=0.25)
        assert ledger.spent.epsilon == 0.25


class Cell:
    """A record that runs code when it is read as a number, as a row, or as a key."""

    def __init__(self, run):
        self.run = run

    def __float__(self):
        self.run()
        return 3.0


class Row(Cell):
    """A record of several numbers that runs code when it is read."""

    def __len__(self):
        return 2

    def __getitem__(self, place):
        self.run()
        return [3.0, 4.0][place]


class Key(Cell):
    """A key that runs code when its class is asked for."""

    @property
    def __class__(self):
        self.run()
        return str


@dataclass(frozen=True)
class Fitted(dpf.families.BlockFamily):
    """A family of a user."""

    run: object

    names = ("location",)

    def fit(self, x, *, offsets, box, corrected):
        self.run(x)
        return np.array([[x.mean()]])


@dataclass(frozen=True)
class Averaged(dpf.families.AdditiveFamily):
    """A family of a user whose estimates are functions of sums."""

    run: object

    names = ("location",)

    def columns(self, box):
        return (dpf.families.RecordSum("value", 0.0, 2.0**-20),)

    def estimate(self, count, sums, box, *, corrected):
        for mean in sums[0] / count:
            self.run(np.array([mean]))
        return [sums[0] / count]


def above(run):
    """Run code for blocks of large records only, none of which the library makes up."""
    return lambda x: (run() if x.min() >= 75 and np.ptp(x) < 30 else None, float(x.mean()))[1]


KEYS = dpf.PartitionSelection(epsilon=0.25, delta=1e-6, neighbors="replace-one")
_MLE = {"bounds": (0, 100), "epsilon": 0.25, "blocks": 4}
# Code whose exceptions become missing values, as releases with a seed.
LOST = {
    "a cell": lambda run, rng: dpf.mean([*X.tolist(), Cell(run)], rng=rng, **B),
    "a score of a list": lambda run, rng: dpf.select([1.0, Cell(run)], epsilon=0.25, rng=rng),
    "the class of a score": lambda run, rng: dpf.select([1.0, Key(run)], epsilon=0.25, rng=rng),
    "a score": lambda run, rng: robust.reduce(lambda c: Cell(run) if c else 1.0, range(3), epsilon=0.25, rng=rng),
    "a row": lambda run, rng: dpf.mean([*np.stack([X, X], axis=1).tolist(), Row(run)], rng=rng, **B),
    "a key": lambda run, rng: KEYS(["a", "b", Key(run)] * 20, rng=rng).keys,
    "an estimator": lambda run, rng: dpf.mle(X, above(run), rng=rng, **_MLE),
    "the estimate of a family": lambda run, rng: dpf.mle(X, Averaged(above(run)), rng=rng, **_MLE),
    "the fit of a family": lambda run, rng: dpf.mle(X, Fitted(above(run)), rng=rng, **_MLE),
}
WAYS = {
    "a mechanism": lambda ledger: MEDIAN(X),
    "a function": lambda ledger: dpf.median(X, **B),
    "the ledger": lambda ledger: ledger.release(MEDIAN, X),
    "a block of the ledger": lambda ledger: _in_a_block(ledger),
    "a declared cost": lambda ledger: _in_a_block(ledger.spend(Privacy(0.1))),
    "a charge": lambda ledger: ledger.reserve(MEDIAN.privacy_profile),
    "a law": lambda ledger: MEDIAN.law(X),
    "noise": lambda ledger: noise.laplace(1.0),
}


def _in_a_block(block):
    with block:
        MEDIAN(X)


def failed():
    raise ArithmeticError("a cell of bad luck")


class TestLostExceptions:
    """Where an exception becomes a missing value, a release is refused, whatever is left of the budget."""

    @every("place", LOST)
    @every("way", WAYS)
    def test_a_release_is_like_any_other_exception(self, place, way):
        with Ledger(100.0, 0.1) as ledger:
            expected = LOST[place](failed, PCG64(1))
            before = len(ledger.charges)
            released = LOST[place](lambda: WAYS[way](ledger), PCG64(1))
        assert np.array_equal(released, expected)
        assert len(ledger.charges) == 2 * before
        for charges in (ledger.charges[:before], ledger.charges[before:]):
            assert {charge.profile.privacy.epsilon for charge in charges} == {0.25}

    @every("place", LOST)
    def test_nothing_is_refused_without_a_ledger(self, place):
        made = []
        LOST[place](lambda: made.append(MEDIAN(X)), PCG64(1))
        assert made

    @every("left", [1e6, 0.3])
    @every(
        "family",
        [
            pytest.param(lambda run: run, id="estimator"),
            pytest.param(Fitted, id="fit"),
            pytest.param(Averaged, id="estimate"),
        ],
    )
    def test_an_estimator_that_releases_is_refused_by_made_up_records(self, family, left):
        mechanism = dpf.SampleAndAggregate(
            family(lambda x: dpf.median(x, **B)), bounds=(0, 100), epsilon=0.25, blocks=4
        )
        for x in (X, np.zeros(100), dpf.Chunks([X[:50], X[50:]])):
            with Ledger(left) as ledger, pytest.raises(BudgetError, match="whatever is left"):
                mechanism(x)
            assert len(ledger.charges) == 1

    def test_made_up_records_may_be_bad_ones(self):
        def strict(x):
            if x.size != 25 or not 0 < x[0] < 1:
                raise ValueError("other records")
            return x.mean()

        with Ledger(1.0):
            assert 0 <= dpf.mle(np.full(100, 0.5), strict, **_MLE) <= 100


class TestLaws:
    """Laws that were made before the block."""

    @every("mechanism", MECHANISMS, ids=repr)
    def test_draws_are_refused(self, mechanism):
        law = mechanism.law(shaped(mechanism, X))
        with Ledger(10_000.0, 0.9, neighbors=mechanism.privacy.neighbors) as ledger:
            for draw in (law.sample, partial(law.sample, 3)):
                with pytest.raises(BudgetError, match="a draw from a law is a release"):
                    draw()
        law.sample()
        assert ledger.charges == ()

    @every("mechanism", MECHANISMS)
    def test_steps_of_releases_are_refused(self, mechanism):
        """What a plan draws is charged by its caller: in a ledger's block nobody else may draw by it."""
        values = mechanism.values_of(shaped(mechanism, X))
        plan = mechanism.plan(mechanism.number_of(values))
        _, summary = plan.read(values)
        source = np.random.PCG64(1)
        steps = (
            lambda: plan.read(values),
            lambda: plan.draw(values, source),
            lambda: plan.draw_from(summary, source),
            lambda: plan.draws(summary, (3,), source),
            lambda: plan.law_of(summary),
            lambda: mechanism.plan().groups(values, None),
        )
        if isinstance(x := shaped(mechanism, X), np.ndarray) and mechanism.reads_records and mechanism.releases_numbers:
            drawn = mechanism.plan().groups(x, Groups(1, offsets=np.array([0, len(x)])))
            steps = (*steps, lambda: drawn(0, 1, source))
        with Ledger(10_000.0, 0.9, neighbors=mechanism.privacy.neighbors) as ledger:
            for step in steps:
                with pytest.raises(BudgetError, match="a step of a release"):
                    step()
            copied = pickle.loads(pickle.dumps(mechanism))
        with pytest.raises(BudgetError):  # the copy carries the ledger
            copied.plan(plan.n).draw(values, source)
        assert ledger.charges == ()

    def test_every_law_is_guarded(self):
        assert type(LAW).sample.refused
        assert inspect.isabstract(dpf.laws.Law)
        assert MEDIAN.epsilon > EPSILON
