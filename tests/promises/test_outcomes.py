"""The type of an outcome (value, exception, warning, shape, end) is the same on all data, for any public parameters.

Random parameters, most of them extreme, nasty data, every container: tests/outcomes.py, which also makes longer runs.
"""

import itertools

import numpy as np
import pytest
from numpy.random import PCG64, Generator

import dpfast as dpf
from tests.outcomes import EVERY, Job, differing, jobs, missing

# Random parameters are traps at times.
pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::dpfast.UtilityWarning")]

SEED = 9
FEW = 4
MANY = {dpf.InverseSensitivity: 300, dpf.SmoothSensitivity: 150, "local": 300}  # of others 60
each = pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind if isinstance(kind, str) else kind.__name__)


def test_nothing_is_missing():
    entries = list(missing())
    assert not entries, "needed: " + "; ".join(entries)


def check(kind, first, last):
    """Run jobs of one kind, from a number to another."""
    rng = Generator(PCG64(SEED))
    for job in itertools.islice(jobs(kind, SEED), first, last):
        found = differing(job, rng, most_forms=2)
        assert not found, (job.label, found)


@each
def test_the_type_of_outcome_is_the_same_on_all_data(kind):
    check(kind, 0, FEW)


@pytest.mark.slow
@each
def test_the_type_of_outcome_is_the_same_for_more_parameters(kind):
    check(kind, FEW, MANY.get(kind, 60))


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
