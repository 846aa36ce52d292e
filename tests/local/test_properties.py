"""T39: Every public property of every class of local privacy returns, without a delta and at the smallest ones."""

import inspect
import math
from functools import cached_property

import numpy as np
import pytest

import dpfast as dpf
from dpfast import local
from dpfast.domains import Ball, Box
from dpfast.local.randomizer import LocalMechanism
from tests.cases import every
from tests.central import defined

GRID = dpf.Grid(0, 8, step=1)
BOX = Box((GRID, dpf.Grid(-5, 5, step=0.5)))
REPORTS = local.SeriesReports(4, 1.0, grid=GRID)
# Instances of each public class, pure or with a delta that is next to 0 or to 1.
EVERY = [
    local.Aggregate(9, np.array([4, 5])),
    local.Attributes((3, 4), 1.0),
    local.Attributes((3, 4), 1.0, "split"),
    local.Binary(1.0),
    *(local.Categorical(5, 1.0, method) for method in ("k-rr", "subset", "oue", "olh", "hadamard")),
    local.Binary(1.0).law(1),
    local.GradientDescent(2, 1.0),
    local.HashedCategorical(2**40, 1.0),
    local.HeavyHitters(1.0, 32),
    *(local.Hypercube(4, 1.0, method=method) for method in ("majority", "subset")),
    *(
        local.Interval(1.0, bounds=(0, 1), method=m)
        for m in ("two-point", "codebook", "piecewise", "hybrid", "laplace")
    ),
    *(local.L2Ball(4, 1.0, method=method) for method in ("halfspace", "directions", "privunit")),
    REPORTS.density(REPORTS.randomize(np.ones(99))),
    local.MedianDescent(bounds=(0, 1), epsilon=1.0),
    local.QuantileSearch(bounds=(0, 1), epsilon=1.0),
    *(
        local.SeriesReports(4, 1.0, grid=GRID, method=m, basis="trigonometric")
        for m in ("one-frequency", "halfspace", "majority", "subset")
    ),
    local.SeriesReports(3, 1.0, grid=GRID),
    local.SquareWave((0, 1), 1.0, cells=9),
    local.SquareWave((0, 1), 1.0, cells=9).density(np.zeros(3, np.uint8)),
    local.Shuffled(1.0, n=10, delta=5e-324),
    local.Shuffled(local.HashedCategorical(2**40, 1.0), n=10, delta=5e-324),
    local.Shuffled(local.Categorical(5, 1.0, "k-rr"), n=10, delta=math.nextafter(1, 0)),
    *(
        local.SecureSum(domain, n=10, epsilon=epsilon, delta=delta, dropouts=3)
        for domain in (3, BOX)
        for epsilon in (2.0**-30, 1.0, 2.0**10)
        for delta in (0.0, 5e-324, 2.0**-1000, math.nextafter(1, 0))
    ),
    local.SecureSum(3, n=10, epsilon=1.0, noise="laplace", delta=1e-6),
    local.SecureSum(Ball(1.0), n=10, epsilon=1.0, delta=2.0**-1000, dimension=2),
    local.SecureSum(3, n=10, epsilon=1.0, noise="gaussian", delta=2.0**-1000),
]


def properties(kind):
    return [
        name
        for name in dir(kind)
        if not name.startswith("_") and isinstance(inspect.getattr_static(kind, name), property | cached_property)
    ]


def test_every_class_is_here():
    public = {getattr(local, name) for name in local.__all__ if inspect.isclass(getattr(local, name))}
    here = {type(made) for made in EVERY}
    assert {kind for kind in public if not inspect.isabstract(kind)} - here == set()
    assert defined(LocalMechanism) <= here


@every("made", EVERY, ids=lambda made: repr(made)[:90])
def test_every_property_returns(made):
    """The searches behind them are bounded: `secure._rho_down` says why, and refuses what has no answer."""
    for name in properties(type(made)):
        value = getattr(made, name)
        assert value is not None or name in ("mu", "rho")


def test_rho_of_a_secure_sum():
    """What epsilon implies for Laplace noise, whatever delta is; that of the Gaussian noise otherwise."""
    pure = dpf.PrivacyProfile(dpf.Privacy(1.0)).rho
    for delta in (0.0, 5e-324, 1e-6):
        poll = local.SecureSum(3, n=10, epsilon=1.0, delta=delta, noise="laplace")
        assert poll.rho == poll.privacy_profile.rho == pure
    gaussian = local.SecureSum(3, n=10, epsilon=1.0, delta=1e-6, noise="gaussian")
    assert dpf.Privacy(rho=gaussian.rho).delta_up(1.0) <= 1e-6


@pytest.mark.parametrize("delta", [5e-324, 1e-318, math.nextafter(2.0**-1000, 0)])
def test_a_delta_too_small_for_gaussian_noise(delta):
    """The default takes Laplace noise; the sum of shares differs from Gaussian noise by more than such a delta."""
    assert local.SecureSum(3, n=10, epsilon=1.0, delta=delta).noise == "laplace"
    with pytest.raises(ValueError, match=r"at least 2\*\*-1000"):
        local.SecureSum(3, n=10, epsilon=1.0, delta=delta, noise="gaussian")
    with pytest.raises(ValueError, match=r"at least 2\*\*-1000"):
        local.SecureSum(Ball(1.0), n=10, epsilon=1.0, delta=delta, dimension=2)


def test_shuffled_at_the_ends_of_delta():
    batch = local.Shuffled(local.Categorical(5, 1.0, "k-rr"), n=10, delta=1e-6)
    assert batch.epsilon_up(0.0) == 1.0
    assert batch.epsilon_down(0.0) <= 1.0
    assert batch.epsilon_up(5e-324) <= 1.0
    assert batch.epsilon_up(math.nextafter(1, 0)) == 0.0
