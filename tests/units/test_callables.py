"""Functions of users that cannot take one argument are refused before a charge; in blocks nothing else would tell."""

from functools import partial

import numpy as np
import pytest

import dpfast as dpf
from tests.cases import every

X = np.random.default_rng(0).normal(size=500)
WITHIN = {"bounds": (-10, 10), "epsilon": 1.0}
RELEASES = {
    "psi": lambda function: dpf.m_estimate(X, function, **WITHIN),
    "estimator": lambda function: dpf.mle(X, function, **WITHIN),
    "score": lambda function: dpf.robust.reduce(function, [0, 1], epsilon=1.0),
}


def two(first, second):
    return np.clip(np.mean(first) - second, -1, 1)


def one(first, *, limit=1.0):
    return float(np.clip(np.mean(first), -limit, limit))


class Callable:
    def __call__(self, first):
        return one(first)


@every("name", list(RELEASES))
@every(
    "function, told",
    [
        (two, "missing a required argument: 'second'"),
        (lambda: 0.0, "too many positional arguments"),
        (lambda *, first: 0.0, "too many positional arguments"),
    ],
)
def test_other_numbers_of_arguments_are_refused_without_a_charge(name, function, told):
    with dpf.Ledger(1) as ledger:
        with pytest.raises(TypeError, match=f"{name} must be a function of one argument, .*: {told}"):
            RELEASES[name](function)
        assert ledger.spent.epsilon == 0


@every("name", list(RELEASES))
@every(
    "function", [one, Callable(), partial(two, second=0.5), partial(one, limit=2.0), np.tanh, lambda *all: one(*all)]
)
def test_functions_of_one_argument_are_taken(name, function):
    assert isinstance(RELEASES[name](function), (int, float))
