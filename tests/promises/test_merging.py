"""T38: Everything that adds up refuses to add to one of other public parameters, whichever parameter it is."""

import dataclasses
import itertools
import pickle

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import local
from dpfast.local.randomizer import BlockRandomizer, LocalMechanism
from dpfast.streaming.wire import fingerprint
from tests.cases import every
from tests.central import central, defined, name

GRID, OTHER_GRID = dpf.Grid(0, 8, step=1), dpf.Grid(0, 16, step=2)
# Of each class whose reports add up: parameters, another value of each parameter, records.
LOCAL = {
    local.Attributes: ({"sizes": (3, 4), "epsilon": 1.0, "method": "split"}, {"sizes": (4, 3), "method": "sample"}),
    local.Binary: ({"epsilon": 1.0}, {}),
    local.Categorical: ({"k": 5, "epsilon": 1.0, "method": "k-rr"}, {"k": 6, "method": "hadamard"}),
    local.HashedCategorical: (
        {"k": 2**20, "epsilon": 1.0, "cells": 2**10, "seed": 0},
        {"k": 2**21, "cells": 2**11, "seed": 1},
    ),
    local.HeavyHitters: (
        {"epsilon": 1.0, "length": 12, "radix": 5, "alphabet": "abcd", "cells": 2**8, "seed": 0},
        {"length": 11, "radix": 6, "alphabet": "abdc", "cells": 2**9, "seed": 1},
    ),
    local.Hypercube: (
        {"d": 4, "epsilon": 1.0, "radius": 1.0, "method": "majority"},
        {"d": 5, "radius": 2.0, "method": "subset"},
    ),
    local.Interval: (
        {"epsilon": 1.0, "bounds": (0.0, 8.0), "method": "two-point", "objective": "worst"},
        {"bounds": (0.0, 9.0), "method": "piecewise", "objective": "average"},
    ),
    local.L2Ball: (
        {"d": 4, "epsilon": 1.0, "radius": 1.0, "method": "halfspace", "report": "vector", "directions": 64},
        {"d": 5, "radius": 2.0, "method": "privunit", "report": "sign", "directions": 9},
    ),
    local.SquareWave: (
        {"bounds": (0.0, 8.0), "epsilon": 1.0, "cells": 9},
        {"bounds": GRID, "cells": 7},
    ),
    local.SeriesReports: (
        {"terms": 4, "epsilon": 1.0, "grid": GRID, "method": "subset", "basis": "trigonometric"},
        {"terms": 2, "grid": OTHER_GRID, "method": "majority", "basis": "cosine"},
    ),
}
UNREAD = {(local.HeavyHitters, "radix")}  # that of the alphabet


def adds_up(kind):
    return hasattr(kind, "aggregate")


def records(survey):
    """A few records of any value."""
    if isinstance(survey, local.Attributes):
        return np.zeros((99, len(survey.sizes)))
    if isinstance(survey, (local.Hypercube, local.L2Ball)):
        return np.full((99, survey.d), 0.1)
    return ["ab"] * 99 if isinstance(survey, local.HeavyHitters) else np.ones(99)


def aggregated(survey):
    return survey.aggregate(survey.randomize(records(survey), rng=PCG64(1)))


def parts(total):
    """The aggregates of a survey, one or several."""
    return total if isinstance(total, tuple) else (total,)


def travelled(total):
    return local.Aggregate.from_bytes(total.to_bytes())


def changes(kind):
    """Each parameter, with another value of it."""
    given, others = LOCAL[kind]
    for field in dataclasses.fields(kind):
        if field.init and (kind, field.name) not in UNREAD:
            other = {"epsilon": 0.5, **others}[field.name]
            yield pytest.param(kind, {**given, field.name: other}, id=f"{kind.__name__}-{field.name}")


def test_every_class_and_every_parameter_is_here():
    assert {kind for kind in defined(LocalMechanism) if adds_up(kind)} == set(LOCAL)
    assert all(
        field.name in {**LOCAL[kind][0]} and field.name in {"epsilon": 0.5, **LOCAL[kind][1]}
        for kind in LOCAL
        for field in dataclasses.fields(kind)
        if field.init
    )


@every("kind, options", [case for kind in LOCAL for case in changes(kind)])
def test_reports_of_other_parameters_do_not_add_up(kind, options):
    """Neither as they are, nor after a journey as bytes or a pickle; and no other randomiser estimates from them."""
    survey, other = kind(**LOCAL[kind][0]), kind(**options)
    assert survey != other
    mine, theirs = aggregated(survey), aggregated(other)
    for a, b in itertools.product(parts(mine), parts(theirs)):
        for first, second in ((a, b), (b, a), (travelled(a), b), (a, pickle.loads(pickle.dumps(b)))):
            with pytest.raises(ValueError, match="same randomiser"):
                first + second
    with pytest.raises(ValueError, match=r"must be of this randomiser|there must be an aggregate"):
        survey.estimate(theirs)


@every("kind", LOCAL)
def test_reports_of_equal_parameters_add_up(kind):
    survey, equal = (kind(**LOCAL[kind][0]) for _ in range(2))
    mine, theirs = aggregated(survey), aggregated(pickle.loads(pickle.dumps(equal)))
    sums = tuple(a + travelled(b) for a, b in zip(parts(mine), parts(theirs), strict=True))
    assert [total.n for total in sums] == [2 * total.n for total in parts(mine)]
    survey.estimate(sums if isinstance(mine, tuple) else sums[0])


def test_sums_that_were_counted_elsewhere():
    """They are taken as the caller says, and add up with each other only."""
    survey = local.Categorical(3, 1.0, "k-rr")
    counted = local.Aggregate(9, np.array([4, 3, 2]))
    assert counted.parameters is None
    assert travelled(counted + counted).parameters is None
    assert survey.estimate(counted).shape == (3,)
    with pytest.raises(ValueError, match="same randomiser"):
        survey.aggregate(np.zeros(4, np.uint8)) + counted


def test_parts_of_one_report_do_not_add_up_with_each_other():
    first, second = aggregated(local.Attributes((3, 3), 1.0))
    with pytest.raises(ValueError, match="same randomiser"):
        first + second
    with pytest.raises(ValueError, match="must be of this randomiser"):
        local.Attributes((3, 3), 1.0).estimate((second, first))


def test_the_digest_is_that_of_all_public_parameters():
    """Of block randomisers, which compute it for each aggregate."""
    assert {kind for kind in LOCAL if issubclass(kind, BlockRandomizer)} <= set(LOCAL)
    a, b = local.Binary(1.0), local.Binary(1)
    assert a.digest() == b.digest() == fingerprint((a, 0))


# ---- states of central mechanisms ----

STATES = [
    mechanism
    for mechanism in central(dpf.Grid(0, 100, step=1))
    if hasattr(mechanism, "start") and not mechanism.counts_first
]


@every("mechanism", STATES, ids=name)
def test_states_of_another_epsilon_do_not_merge(mechanism):
    other = dataclasses.replace(mechanism, epsilon=mechanism.epsilon * 2)
    with pytest.raises(ValueError, match="different mechanisms"):
        mechanism.start().merge(other.start())
    mechanism.start().merge(mechanism.start())


def test_states_of_another_kind_of_block_release_do_not_merge():
    """Each parameter of `SampleAndAggregate`, also those that the sums do not depend on."""
    given = {"family": "exponential", "bounds": (0.1, 10.0), "epsilon": 1.0, "blocks": 4}
    for other in ({"epsilon": 0.5}, {"bounds": (0.1, 9.0)}, {"blocks": 5}, {"family": "poisson"}, {"combine": "mean"}):
        states = [dpf.SampleAndAggregate(**{**given, **options}).block_sums(100) for options in ({}, other)]
        with pytest.raises(ValueError, match="do not merge"):
            states[0].merge(states[1])
    first, second = (dpf.SampleAndAggregate(**given).block_sums(100, position=place) for place in (0, 50))
    for state in (first, second):
        state.update(np.ones(50))
    first.merge(pickle.loads(pickle.dumps(second)))
    assert first.seen == 100
