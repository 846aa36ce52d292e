"""Programs with one planted bug each, and the same programs without it.

The first thirteen are bugs of the libraries that Cebere, Erb, Desfontaines, Bellet and Fitzsimons audited ("Privacy in
theory, bugs in practice: grey-box auditing of differential privacy libraries", 2026), as far as the paper's artifact
and the public reports of the same bugs describe them; the others are classic bugs that the list lacks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator

import dpfast as dpf
from dpfast.laws import DiscreteLaplace, Independent, NoisyIntegers

LOWER, UPPER, EPSILON = 0, 100, Fraction(1)
CATEGORIES = np.array([0.0, 28.0, 42.0, 50.0, 100.0])
FAILED = -(2.0**50)  # stands for an exception in the samples, which is an outcome like any other


def laplace(center: float, sensitivity: float, epsilon: Fraction, size: int, rng: Any) -> np.ndarray:
    """An integer with discrete Laplace noise of a law of the library, so that a replay sees it."""
    noise = Independent(DiscreteLaplace(Fraction(sensitivity) / epsilon), 1)
    law = NoisyIntegers(np.array([round(center)], np.int64), noise=noise, most=2**60, decode=lambda k: k)
    return law.value(law.sample(size, rng)).astype(np.float64)[:, 0]


def clamped(x: np.ndarray) -> np.ndarray:
    return np.clip(np.where(np.isnan(x), LOWER, x), LOWER, UPPER)


@dataclass(frozen=True)
class Program:
    """A program that claims to be private, as an auditor sees it: it returns the numbers of each release."""

    run: Callable[[np.ndarray, int, Any], list[np.ndarray]]
    width: int = 1  # the most numbers of a release
    neighbors: str = "replace-one"
    epsilon: Fraction = EPSILON

    @property
    def privacy(self) -> dpf.Privacy:
        return dpf.Privacy(float(self.epsilon), neighbors=self.neighbors)

    def release(self, x: Any, size: int, rng: Any) -> np.ndarray:
        source = rng if rng is not None else np.random.default_rng().bit_generator
        try:
            numbers = self.run(np.asarray(x, np.float64), size, source)
        except ZeroDivisionError:
            numbers = [np.full(size, FAILED)]
        columns = np.full((self.width, size), np.nan)  # numbers that a release lacks show as NaN
        for column, values in zip(columns, numbers, strict=False):
            column[:] = values
        return columns.T


@dataclass(frozen=True)
class Bug:
    name: str
    where: str
    wrong: Program
    right: Program


def total(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    return [laplace(clamped(x).sum(), UPPER, EPSILON, size, rng)]


# ---- the bugs that the audit of twelve libraries found ----


def size_as_a_scale(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    """The mean: the number of records is private where records are added and removed."""
    return [laplace(clamped(x).sum(), UPPER, EPSILON, size, rng) / max(len(x), 1)]


def keys_of_the_data(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    kept = [float(np.count_nonzero(x == key)) if key in x else None for key in CATEGORIES]
    return [np.full(size, np.nan) if count is None else laplace(count, 1, EPSILON, size, rng) for count in kept]


def public_keys(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    return [laplace(float(np.count_nonzero(x == key)), 1, EPSILON, size, rng) for key in CATEGORIES]


def clamped_copy_unused(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    clamped(x)
    return [laplace(np.nansum(x), UPPER, EPSILON, size, rng)]


def no_noise_for_one_parameter(x: np.ndarray, size: int, rng: Any, features: int = 5, kept: int = 5) -> list[Any]:
    sensitivity = (features - kept) * UPPER
    exact = clamped(x).sum()
    return [laplace(exact, sensitivity, EPSILON, size, rng) if sensitivity else np.full(size, exact)]


def missing_passes(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    exact = np.clip(x, LOWER, UPPER).sum()
    return [np.full(size, exact) if math.isnan(exact) else laplace(exact, UPPER, EPSILON, size, rng)]


def spent_twice(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    return [laplace(clamped(x).sum(), UPPER, EPSILON, size, rng) for _ in range(2)]


def spent_in_halves(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    return [laplace(clamped(x).sum(), UPPER, EPSILON / 2, size, rng) for _ in range(2)]


def selected(x: np.ndarray, size: int, rng: Any, sensitivity: int) -> list[np.ndarray]:
    """Which of two halves of the range leads: scores are differences of two counts, each of sensitivity 1."""
    lead = float(np.count_nonzero(clamped(x) > 50)) - float(np.count_nonzero(clamped(x) <= 50))
    law = dpf.Selection(epsilon=float(EPSILON), sensitivity=sensitivity).law([lead, -lead])
    return [np.asarray(law.sample(size, rng), np.float64)]


def branch_on_data(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    """Weak signals are released as zero, which is decided without noise."""
    strong = np.count_nonzero(clamped(x) > 50) > len(x) // 2
    return total(x, size, rng) if strong else [np.zeros(size)]


def root_of_k(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    """Eight queries of epsilon / sqrt(8) each: advanced composition without its logarithm and without a delta."""
    each = Fraction(float(EPSILON) / math.sqrt(8))
    return [laplace(clamped(x).sum(), UPPER, each, size, rng) for _ in range(8)]


def eighths(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    return [laplace(clamped(x).sum(), UPPER, EPSILON / 8, size, rng) for _ in range(8)]


def squares(x: np.ndarray, size: int, rng: Any, bounds: tuple[int, int]) -> list[np.ndarray]:
    """The sum of squares of values in (-1, 100); the sensitivity by two bounds."""
    exact = (clamped(x) ** 2).sum()
    return [laplace(exact, max(abs(bound) for bound in bounds) ** 2, EPSILON, size, rng)]


def three_queries(x: np.ndarray, size: int, rng: Any, share: Fraction) -> list[np.ndarray]:
    values = clamped(x)
    first = laplace(values.sum(), UPPER, share, size, rng)
    second = laplace((UPPER - values).sum(), UPPER, share, size, rng)
    return [first, second, laplace(np.count_nonzero(values > 50), 1, share, size, rng)]


def scale_of_the_data(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    values = clamped(x)
    return [laplace(values.sum(), max(float(np.ptp(values)), 1.0), EPSILON, size, rng)]


def rounds_of_the_data(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    """Rounds until the sum is used up, with noise that hides each round, but not their number."""
    rounds = min(int(clamped(x).sum() // UPPER), 4)
    return [laplace(0, UPPER, EPSILON / 8, size, rng) for _ in range(rounds)]


def four_rounds(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    return [laplace(0, UPPER, EPSILON / 8, size, rng) for _ in range(4)]


# ---- classic bugs beside them ----


def noise_used_twice(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    """Two processes with copies of one generator, as after a fork."""
    state, values = rng.state, clamped(x)
    first = laplace(values.sum(), UPPER, EPSILON / 2, size, rng)
    rng.state = state
    return [first, laplace(values.max(initial=0), UPPER, EPSILON / 2, size, rng)]


def noise_used_once(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    values = clamped(x)
    second = values.max(initial=0)
    return [laplace(c, UPPER, EPSILON / 2, size, rng) for c in (values.sum(), second)]


def public_seed(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    return [np.repeat(total(x, 1, PCG64(0)), size)]


def noise_in_floats(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    """numpy's Laplace noise, whose low bits depend on the value it is added to."""
    return [clamped(x).sum() / UPPER + Generator(rng).laplace(scale=1 / float(EPSILON), size=size)]


def histogram(x: np.ndarray, size: int, rng: Any, sensitivity: int) -> list[np.ndarray]:
    counts = [np.count_nonzero(clamped(x) <= 50), np.count_nonzero(clamped(x) > 50)]
    return [laplace(count, sensitivity, EPSILON, size, rng) for count in counts]


def exception_of_the_data(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    if not np.ptp(x):
        raise ZeroDivisionError("a standard deviation of 0")
    return total(x, size, rng)


def clamped_to_the_data(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    values = clamped(x)
    return [np.clip(total(x, size, rng)[0], values.min(), values.sum())]


def half_the_noise(x: np.ndarray, size: int, rng: Any) -> list[np.ndarray]:
    return [laplace(clamped(x).sum(), UPPER / 2, EPSILON, size, rng)]


def bound(run: Callable[..., list[np.ndarray]], *given: Any) -> Callable[[np.ndarray, int, Any], list[np.ndarray]]:
    return lambda x, size, rng: run(x, size, rng, *given)


SUM = Program(total)
MANY = {"neighbors": "add-remove"}
FOUND = [
    Bug(
        "the number of records as a public scale", "Opacus", Program(size_as_a_scale, **MANY), Program(size_as_a_scale)
    ),
    Bug(
        "keys from the data", "diffprivlib, dpmm", Program(keys_of_the_data, 5, **MANY), Program(public_keys, 5, **MANY)
    ),
    Bug("a clamped copy that is not used", "SmartNoise 622", Program(clamped_copy_unused), SUM),
    Bug("no noise for one parameter", "Synthcity", Program(no_noise_for_one_parameter), SUM),
    Bug("missing values that pass the clamp", "artifact, 4.3.9", Program(missing_passes), SUM),
    Bug("a budget spent twice", "MOSTLY AI", Program(spent_twice, 2), Program(spent_in_halves, 2)),
    Bug("half the sensitivity of a score", "mbi 65", Program(bound(selected, 1)), Program(bound(selected, 2))),
    Bug("a branch on the data", "Synthcity", Program(branch_on_data), SUM),
    Bug("a wrong formula of composition", "SmartNoise 621", Program(root_of_k, 8), Program(eighths, 8)),
    Bug(
        "a sensitivity by the same bound twice",
        "diffprivlib 104",
        Program(bound(squares, (-1, -1))),
        Program(bound(squares, (-1, 100))),
    ),
    Bug(
        "two queries in one share of the budget",
        "diffprivlib 104",
        Program(bound(three_queries, EPSILON / 2), 3),
        Program(bound(three_queries, EPSILON / 3), 3),
    ),
    Bug("a noise scale from the data", "authors' summary", Program(scale_of_the_data), SUM),
    Bug(
        "a number of rounds from the data", "authors' summary", Program(rounds_of_the_data, 4), Program(four_rounds, 4)
    ),
]
CLASSIC = [
    Bug("half the noise", "", Program(half_the_noise), SUM),
    Bug("noise used twice, as after a fork", "", Program(noise_used_twice, 2), Program(noise_used_once, 2)),
    Bug("a public seed", "", Program(public_seed), SUM),
    Bug("noise in floating point", "", Program(noise_in_floats), SUM),
    Bug("the other neighbours", "", Program(bound(histogram, 1), 2), Program(bound(histogram, 2), 2)),
    Bug("an exception that depends on the data", "", Program(exception_of_the_data), SUM),
    Bug("a clamp to the data after the noise", "", Program(clamped_to_the_data), SUM),
]
BUGS = FOUND + CLASSIC
