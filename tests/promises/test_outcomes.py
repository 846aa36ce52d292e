"""The type of an outcome (value, exception, warning, shape, end) is the same on all data, for any public parameters.

Random parameters, most of them extreme, nasty data, every container: tests/outcomes.py, which also makes longer runs.
Values are absurd there, and have the type of others: tests/absurd.py counts absurd releases of real kinds of columns.
"""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf
from bench.columns import runs
from dpfast.core import measures
from dpfast.densities import SeriesCoefficients
from tests.absurd import INFORMATION, JUDGED, UNJUDGED, calls
from tests.outcomes import EVERY, KINDS, Job, differing, jobs, missing

# Random parameters are traps at times.
pytestmark = pytest.mark.filterwarnings("ignore::dpfast.UtilityWarning")

SEED = 9
FEW, CELLS = 2, 500  # jobs; of so many records in containers other than arrays, which take most of the time
MANY = {dpf.InverseSensitivity: 300, dpf.SmoothSensitivity: 150, "local": 300}  # of others 60


def each_of(kinds):
    return pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind if isinstance(kind, str) else kind.__name__)


each = each_of(EVERY)


@pytest.mark.host
def test_nothing_is_missing():
    entries = list(missing())
    assert not entries, "needed: " + "; ".join(entries)


def check(kind, count, cells=math.inf):
    """Run jobs of one kind, in all containers with at most so many records, and in arrays with more."""
    rng = Generator(PCG64(SEED))
    for job in itertools.islice(jobs(kind, SEED), count):
        few = job.n <= cells
        job = job if few else dataclasses.replace(job, forms=job.forms | {"list"})
        found = differing(job, rng, most_forms=2 if few else 0)
        assert not found, (job.label, found)


@pytest.mark.host
@each
def test_the_type_of_outcome_is_the_same_on_all_data(kind):
    check(kind, FEW, CELLS)


@pytest.mark.host
@pytest.mark.slow
@each
def test_the_type_of_outcome_is_the_same_for_more_parameters(kind):
    check(kind, MANY.get(kind, 60))


CONTROLS = {
    "an exception": lambda x, source: float(int(x[0])),
    "an exception of one type on all data": lambda x, source: {}[0],
    "a warning": lambda x, source: float(np.sum(np.square(x))),
    "a message": lambda x, source: dpf.Grid(0, 0 if x[0] > 0 else -1),
    "a shape": lambda x, source: np.zeros(1 + int(x[0] > 0)),
    "a type": lambda x, source: 0 if x[0] > 0 else 0.0,
    "an infinity": lambda x, source: np.inf,
}


@pytest.mark.parametrize("control", CONTROLS)
def test_control(control):
    job = Job(control, CONTROLS[control], 10, 0, frozenset({"list", "float32"}))
    assert "float64" in differing(job, Generator(PCG64(1)), most_forms=0)


def test_control_an_endless_call():
    def never(x, source):
        while np.isnan(x).all():
            pass
        return 0.0

    job = Job("never", never, 10, 0, frozenset({"list", "float32"}))
    assert "float64" in differing(job, Generator(PCG64(1)), most_forms=0, seconds=0.05)


def test_a_good_call_passes():
    job = Job("good", lambda x, source: 0.0, 10)
    assert differing(job, Generator(PCG64(1))) == {}


# How many calls of these, and 60 of others.
CALLS = {dpf.InverseSensitivity: 600, dpf.Quantiles: 300, dpf.TheilSen: 300, dpf.SufficientStatistics: 25, "local": 300}
SHARE = 1 / 200  # of all releases
AFTER_A_WORD = {dpf.InverseSensitivity: 0.2, dpf.Quantiles: 0.4, dpf.TheilSen: 0.1, "local": 0.5}  # of those with one
ENOUGH = 50.0  # n epsilon min(q, 1 - q), from which on one quantile needs no word


def too_many_absurd(kind, count):
    """What is wrong with calls of one kind: absurd releases, too many after a word, or words with enough records."""
    made = itertools.islice(calls(kind, SEED), count)
    found = [outcome for call in made if (outcome := call.run()) is not None]
    of = {
        name: [outcome for outcome in found if outcome.kind == name]
        for name in (runs.ABSURD, runs.WARNED, runs.REFUSED, runs.BROKEN)
    }
    if len(of[runs.ABSURD]) > SHARE * len(found):
        yield from map(str, of[runs.ABSURD])
    warned = [str(outcome) for outcome in of[runs.WARNED] if outcome.absurd]
    if len(warned) > AFTER_A_WORD.get(kind, 0.0) * len(of[runs.WARNED]):
        yield from warned
    if kind is dpf.InverseSensitivity:
        yield from (str(outcome) for outcome in of[runs.WARNED] if outcome.call.information >= ENOUGH)
    if len(of[runs.REFUSED]) > len(found) / 2:
        yield "most calls release nothing to judge"
    yield from map(str, of[runs.BROKEN])


@each_of([kind for kind in EVERY if kind not in UNJUDGED])
def test_few_releases_are_absurd(kind):
    wrong = list(too_many_absurd(kind, CALLS.get(kind, 60)))
    assert not wrong, "\n".join(wrong[:20])


def test_every_mechanism_is_judged_or_has_a_reason():
    assert JUDGED.keys() | UNJUDGED.keys() == KINDS, "tests/absurd.py judges each class of mechanisms, or says why not"
    assert not JUDGED.keys() & UNJUDGED.keys()
    assert max(INFORMATION) > ENOUGH > min(INFORMATION)


# Weights of floats that favour none of them, by a measure and by none.
FLAT = {"flat": lambda grid, measure: measures.Measure(grid.size - 1, 64), "uniform": lambda grid, measure: None}


@pytest.mark.parametrize("measure", FLAT)
@each_of([dpf.InverseSensitivity, dpf.Quantiles, dpf.TheilSen])
def test_control_uniform_weights_of_floats(kind, measure, monkeypatch):
    monkeypatch.setattr(measures, "on_floats", FLAT[measure])
    assert any(too_many_absurd(kind, 200))


@each_of([dpf.GlobalSensitivity, dpf.SmoothSensitivity, dpf.NestedBoxes, SeriesCoefficients])
def test_control_releases_that_are_not_scaled_back(kind, monkeypatch):
    monkeypatch.setattr(kind, "__call__", lambda self, x, rng=None: 1e9 * self.epsilon * np.ones(1))
    assert any(too_many_absurd(kind, 60))
