"""Public numbers of records and columns may be NumPy integers: methods answer as for Python's."""

import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import dpfast as dpf
from tests.cases import every
from tests.central import central, name

BIG = 10**6
MECHANISMS = list(
    central(dpf.Grid(0, 100, step=1), 1.0, statistics=[dpf.statistics.Variance(), dpf.statistics.Median()])
)
COUNTS = ("n", "d", "d_in", "j")
# Methods that no number of records reaches, or that take seconds.
LEFT_OUT = {"error"}


def methods(mechanism):
    """The public methods whose parameters without a default are numbers of records or columns."""
    for label, function in inspect.getmembers(type(mechanism), inspect.isfunction):
        parameters = list(inspect.signature(function).parameters.values())[1:]
        needed = {p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
        given = [p.name for p in parameters if p.name in COUNTS]
        if not label.startswith("_") and label not in LEFT_OUT and given and needed <= set(COUNTS):
            yield label, given


def answer(mechanism, label, numbers):
    try:
        found = getattr(mechanism, label)(**numbers)
        return repr(list(found) if isinstance(found, Iterator) else found)
    except (TypeError, ValueError) as error:
        return str(error)


@every("mechanism", MECHANISMS, ids=name)
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64, np.uint8])
def test_numpy_integers(mechanism, kind):
    for label, given in methods(mechanism):
        numbers = {key: (BIG if kind is not np.uint8 else 200) if key == "n" else 2 for key in given}
        typed = {key: kind(value) for key, value in numbers.items()}
        assert answer(mechanism, label, typed) == answer(mechanism, label, numbers), label


def test_the_methods_are_found():
    found = {label for mechanism in MECHANISMS for label, _ in methods(mechanism)}
    assert {
        "cap",
        "explanation",
        "plan",
        "privacy_map",
        "reach",
        "scale",
        "scales",
        "shift",
        "weight",
    } <= found
