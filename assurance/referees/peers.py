"""Samplers of other libraries, each with its published law and the sampler of dpfast that has the same law."""

import importlib
import math
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.random import PCG64

import dpfast as dpf
from assurance.referees import published
from dpfast import local, noise
from dpfast.laws import DiscreteLaplace, RoundedGaussian, RoundedLaplace, Staircase
from dpfast.laws.shares import GaussianShare

INSTALL = {"opendp": "opendp", "diffprivlib": "diffprivlib", "pydp": "python-dp"}
SCORES = [0.0, 1.0, 3.0, 3.5, 2.0]


@dataclass(frozen=True)
class Match:
    """A sampler of another library (unseeded), ours (seeded), and the law of both by a publication."""

    library: str
    name: str
    theirs: Callable[[int], np.ndarray]
    ours: Callable[[int, Any], np.ndarray]
    law: Callable[..., published.Law]
    given: tuple[Any, ...]  # of the law; a control changes the first one
    logpmf: Callable[[np.ndarray], np.ndarray] | None = None  # of our law, where it can be written down

    def published(self, factor: float = 1.0) -> published.Law:
        return self.law(*self.given) if factor == 1.0 else published.scaled(self.law, *self.given, factor=factor)


class Missing(Exception):
    """A library that is not installed."""


def _import(name: str) -> Any:
    if name == "diffprivlib":  # its trees do not import with new releases of scikit-learn
        trees: Any = types.ModuleType("diffprivlib.models.forest")
        trees.RandomForestClassifier = trees.DecisionTreeClassifier = object
        sys.modules.setdefault("diffprivlib.models.forest", trees)
    try:
        return importlib.import_module({"opendp": "opendp.prelude"}.get(name, name))
    except ImportError as error:
        raise Missing(f"{name} is not installed: pip install {INSTALL[name]} ({error})") from error


def _each(draw: Callable[[], Any], decode: Callable[[Any], Any] = np.rint) -> Callable[[int], np.ndarray]:
    return lambda size: np.asarray(decode(np.array([draw() for _ in range(size)])), np.int64)


def opendp() -> Iterator[Match]:
    dp = _import("opendp")
    dp.enable_features("contrib", "honest-but-curious")
    integers = dp.vector_domain(dp.atom_domain(T=int))

    def on_integers(make: Callable[..., Any], metric: Any, scale: float) -> Callable[[int], np.ndarray]:
        return lambda size: np.array(make(integers, metric, scale=scale)([0] * size), np.int64)

    def on_floats(make: Callable[..., Any], metric: Any, scale: float, k: int) -> Callable[[int], np.ndarray]:
        def draw(size: int) -> np.ndarray:
            floats = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)
            return np.array(np.ldexp(make(floats, metric, scale=scale, k=k)([0.0] * size), -k), np.int64)

        return draw

    l1, l2 = dp.l1_distance, dp.l2_distance
    laplace, gaussian = dp.m.make_laplace, dp.m.make_gaussian
    yield _laplace("opendp", "Laplace on integers", on_integers(laplace, l1(T=int), 10.0), 10.0)
    yield _laplace("opendp", "Laplace on floats, k = -3", on_floats(laplace, l1(T=float), 1.5, -3), 12.0)
    yield _gaussian("opendp", "Gaussian on integers", on_integers(gaussian, l2(T=float), 7.0), 49.0)
    yield _gaussian("opendp", "Gaussian on floats, k = -2", on_floats(gaussian, l2(T=float), 3.0, -2), 144.0)
    response = dp.m.make_randomized_response(list("abcde"), prob=math.exp(1.0) / (math.exp(1.0) + 4))
    yield _response("opendp", "randomised response of 5", _each(lambda: ord(response("a")) - ord("a")))


def diffprivlib() -> Iterator[Match]:
    _import("diffprivlib")
    made = importlib.import_module("diffprivlib.mechanisms")
    one = {"epsilon": 0.1, "sensitivity": 1}
    yield _laplace("diffprivlib", "Geometric", _each(partial(made.Geometric(**one).randomise, 0)), 10.0)
    yield _rounded("diffprivlib", "Laplace, rounded", _each(partial(made.Laplace(**one).randomise, 0.0)), 10.0)
    yield _snapping(made)
    analytic = made.GaussianAnalytic(epsilon=1.0, delta=1e-3, sensitivity=3.0)
    rounded = _each(partial(analytic.randomise, 0.0))
    yield _rounded_gaussian("diffprivlib", "GaussianAnalytic, rounded", rounded, float(analytic._scale))
    discrete = made.GaussianDiscrete(epsilon=0.5, delta=1e-3, sensitivity=3)
    yield _gaussian(
        "diffprivlib", "GaussianDiscrete", _each(partial(discrete.randomise, 0)), float(discrete._scale) ** 2
    )
    yield _staircase(made)
    both = {"epsilon": 1.0, "sensitivity": 1, "utility": SCORES}
    yield _choice("diffprivlib", "Exponential", _each(made.Exponential(**both).randomise), "exponential")
    yield _choice("diffprivlib", "PermuteAndFlip", _each(made.PermuteAndFlip(**both).randomise), "permute-and-flip")
    binary = made.Binary(epsilon=1.0, value0="0", value1="1")
    yield replace(
        _response("diffprivlib", "Binary", _each(lambda: int(binary.randomise("0")))),
        ours=lambda size, rng: local.Binary(1.0).randomize(np.zeros(size, np.int64), rng=rng),
        law=lambda epsilon: published.randomised_response(2, epsilon),
    )


def pydp() -> Iterator[Match]:
    _import("pydp")
    made = importlib.import_module("pydp.algorithms.numerical_mechanisms")
    laplace = made.LaplaceMechanism(0.1, 1.0)
    yield _rounded("pydp", "LaplaceMechanism, rounded", _each(partial(laplace.add_noise, 0.0)), 10.0)
    gaussian = made.GaussianMechanism(1.0, 1e-3, 3.0)
    rounded = _each(partial(gaussian.add_noise, 0.0))
    yield _rounded_gaussian("pydp", "GaussianMechanism, rounded", rounded, float(gaussian.std))


def by_rationals() -> Iterator[Match]:
    """The reference of tests/reference, which has no library."""
    from tests.reference.rational_samplers import Dice, words_below

    dice = Dice(words_below(PCG64(7).random_raw))
    yield _laplace("tests/reference", "discrete Laplace", _each(partial(dice.laplace, Fraction(10))), 10.0)
    yield _gaussian("tests/reference", "discrete Gaussian", _each(partial(dice.gaussian, Fraction(49))), 49.0)


LIBRARIES = (opendp, diffprivlib, pydp, by_rationals)


# ---- counterparts ----

Draws = Callable[[int], np.ndarray]


def _laplace(library: str, name: str, theirs: Draws, scale: float) -> Match:
    ours = partial(_ours, partial(noise.discrete_laplace, scale))
    return Match(library, name, theirs, ours, published.discrete_laplace, (scale,), DiscreteLaplace(scale).logpmf)


def _rounded(library: str, name: str, theirs: Draws, scale: float) -> Match:
    ours = partial(_ours, partial(noise.laplace, scale))
    return Match(library, name, theirs, ours, published.rounded_laplace, (scale,), RoundedLaplace(scale).logpmf)


def _snapping(made: Any) -> Match:
    """Snapping rounds Laplace noise to the least power of two that is at least its scale."""
    mechanism = made.Snapping(epsilon=0.1, sensitivity=1, lower=-(2**20), upper=2**20)
    theirs = _each(partial(mechanism.randomise, 0.0), decode=lambda values: np.rint(values / 16))
    return _rounded("diffprivlib", "Snapping, in units of its grid", theirs, 10 / 16)


def _rounded_gaussian(library: str, name: str, theirs: Draws, sigma: float) -> Match:
    ours = partial(_ours, partial(noise.gaussian, sigma))
    return Match(library, name, theirs, ours, published.rounded_gaussian, (sigma,), RoundedGaussian(sigma).logpmf)


def _gaussian(library: str, name: str, theirs: Draws, variance: float) -> Match:
    def ours(size: int, rng: Any) -> np.ndarray:
        out = np.empty(size, np.int64)
        GaussianShare(Fraction(variance)).fill(rng, out)
        return out

    return Match(library, name, theirs, ours, published.discrete_gaussian, (variance,))


def _staircase(made: Any) -> Match:
    """Continuous staircase noise whose first step ends between two integers is the discrete one, after rounding."""
    sensitivity, epsilon = 10, 1.0
    law = Staircase(Fraction(sensitivity), sensitivity)
    r = math.ceil(sensitivity / (1 + math.exp(epsilon / 2)))
    theirs = made.Staircase(epsilon=epsilon, sensitivity=sensitivity, gamma=(r - 0.5) / sensitivity)
    ours = partial(_ours, partial(noise.staircase, sensitivity / epsilon, sensitivity))
    given = (epsilon, sensitivity, r)
    draws = _each(partial(theirs.randomise, 0.0))
    return Match("diffprivlib", "Staircase, rounded", draws, ours, published.staircase, given, law.logpmf)


def _choice(library: str, name: str, theirs: Draws, method: str) -> Match:
    mechanism = dpf.Selection(epsilon=1.0, selection=method)
    law = {"exponential": published.exponential, "permute-and-flip": published.permute_and_flip}[method]

    def ours(size: int, rng: Any) -> np.ndarray:
        return np.asarray(mechanism.release(SCORES, size=size, rng=rng), np.int64)

    return Match(library, name, theirs, ours, lambda rate: law(SCORES, rate), (0.5,), _selected(mechanism))


@cache
def _selected(mechanism: dpf.Selection) -> Callable[[np.ndarray], np.ndarray]:
    return mechanism.law(SCORES).logpmf


def _response(library: str, name: str, theirs: Draws) -> Match:
    mechanism = local.Categorical(5, 1.0, "k-rr")

    def ours(size: int, rng: Any) -> np.ndarray:
        return np.asarray(mechanism.randomize(np.zeros(size, np.int64), rng=rng), np.int64)

    return Match(library, name, theirs, ours, lambda epsilon: published.randomised_response(5, epsilon), (1.0,))


def _ours(draw: Callable[..., np.ndarray], size: int, rng: Any) -> np.ndarray:
    return draw(size=size, rng=rng)
