"""All that dpfast releases with, as the black-box tester sees it: numbers for each release, a claim, pairs of data."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm

import dpfast as dpf
from assurance.referees.pairs import LOWER, UPPER, pairs
from dpfast import local, noise, robust
from tests.central import central, takes_rows
from tests.central import name as name_of
from tests.local.test_audit import EVERY as RANDOMISERS
from tests.local.test_audit import record
from tests.reference.statistics import FUNCTIONS as STATISTICS

GRID = dpf.Grid(LOWER, UPPER, step=1)
KEYS = (0.0, 28.0, 42.0, 50.0, 100.0)  # of the data of `pairs`
SIZES = (8, 40, 500)  # numbers of records; the larger ones for mechanisms that need them
DELTA = 1e-3


@dataclass(frozen=True)
class Subject:
    group: str
    name: str
    mechanism: Any
    pairs: tuple[tuple[str, Any, Any], ...]

    def release(self, x: Any, size: int, rng: Any) -> np.ndarray:
        """Releases of a data set; reports of one record for a randomiser."""
        if hasattr(self.mechanism, "randomize"):
            value = np.asarray(x)
            return np.asarray(self.mechanism.randomize(np.broadcast_to(value, (size, *value.shape)), rng=rng))
        return np.asarray(self.mechanism.release(x, size=size, rng=rng))


# ---- mechanisms ----


@dataclass(frozen=True)
class Keyed:
    """A selection of keys, as the count of each key of the data; -1 if it is not released."""

    selection: dpf.PartitionSelection

    @property
    def privacy(self) -> dpf.Privacy:
        return self.selection.privacy

    def release(self, x: Any, *, size: int, rng: Any) -> np.ndarray:
        keys = np.array(KEYS)
        out = np.full((size, len(keys) + 1), -1.0)
        for row, released in zip(out, self.selection.release(x, size=size, rng=rng), strict=True):
            found = np.asarray([math.nan if key is None else key for key in released.keys], np.float64)
            counts = np.asarray(released.counts, np.float64)
            row[-1] = len(found)
            for key, count in zip(found, counts, strict=True):
                row[:-1][keys == key] = count
        return out


@dataclass(frozen=True)
class Listed:
    """A release of listed keys, as their places in the list."""

    mechanism: dpf.TopK

    @property
    def privacy(self) -> dpf.Privacy:
        return self.mechanism.privacy

    def release(self, x: Any, *, size: int, rng: Any) -> np.ndarray:
        places = {key: place for place, key in enumerate(self.mechanism.keys)}
        released = self.mechanism.release(x, size=size, rng=rng)
        return np.array([[places[key] for key in row] for row in released.tolist()], np.float64)


_AS_NUMBERS: dict[type, Callable[[Any], Any]] = {dpf.PartitionSelection: Keyed, dpf.TopK: Listed}


def mechanisms(epsilon: float = 1.0) -> Iterator[Subject]:
    """Every central mechanism of tests/central.py, with every statistic, relation and option."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpf.PrivacyWarning)
        every = list(central(GRID, epsilon))
    seen: dict[str, int] = {}
    for mechanism in every:
        name = name_of(mechanism)
        seen[name] = seen.get(name, 0) + 1
        made = _pairs_for(mechanism)
        if made is None:
            yield Subject("mechanism", name, mechanism, ())
            continue
        shown = f"{name} {seen[name]}" if seen[name] > 1 else name
        as_numbers = _AS_NUMBERS.get(type(mechanism))
        yield Subject("mechanism", shown, as_numbers(mechanism) if as_numbers else mechanism, made)


def _pairs_for(mechanism: Any) -> tuple[tuple[str, Any, Any], ...] | None:
    """Pairs of the first number of records that the mechanism is made for; None if it refuses all."""
    for n in SIZES:
        made = tuple(pairs(mechanism.privacy.neighbors, n, rows=takes_rows(mechanism)))
        try:
            for _, x, y in made[:1]:
                mechanism.release(x, size=1), mechanism.release(y, size=1)
        except ValueError:
            continue
        return made
    return None


# ---- noise ----


@dataclass(frozen=True)
class Noisy:
    """Integers with noise of `dpfast.noise`, and the claim of its docstring for neighbours at this distance."""

    draw: Callable[..., np.ndarray]
    privacy: dpf.Privacy

    def release(self, x: Any, *, size: int, rng: Any) -> np.ndarray:
        values = np.asarray(x, np.int64)
        return values + self.draw(size=(size, *values.shape), rng=rng)


def _box(size: tuple[int, int], rng: Any) -> np.ndarray:
    return noise.box([3.0] * 3, size=size[0], rng=rng)


def _ball(size: tuple[int, int], rng: Any) -> np.ndarray:
    return noise.ball([5.0] * 3, size=size[0], rng=rng)


def _staircase(size: tuple[int, int], rng: Any) -> np.ndarray:
    return noise.staircase(10.0, 10, size=size, rng=rng)


def gaussian_delta(mu: float, epsilon: float) -> float:
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def _on_grid(add: Callable[..., np.ndarray], size: tuple[int, int], rng: Any, **scale: float) -> np.ndarray:
    return add(np.zeros(size), **scale, grid=dpf.Grid(-8, 8, step=1), rng=rng).astype(np.int64)


def noises() -> Iterator[Subject]:
    one, claim = dpf.Privacy(1.0), partial(Noisy, privacy=dpf.Privacy(1.0))
    steps = (("one number", [0], [4]), ("the other way", [4], [0]))
    yield Subject("noise", "laplace", claim(partial(noise.laplace, 4.0)), steps)
    yield Subject("noise", "discrete_laplace", claim(partial(noise.discrete_laplace, 4.0)), steps)
    yield Subject("noise", "laplace of a Fraction", claim(partial(noise.laplace, Fraction(4))), steps)
    yield Subject("noise", "add_laplace", claim(partial(_on_grid, noise.add_laplace, scale=4.0)), steps)
    spread = (("two numbers", [0, 0], [1, 3]), ("one of them", [0, 0], [4, 0]), ("opposed", [0, 2], [2, 0]))
    yield Subject("noise", "laplace, two numbers", claim(partial(noise.laplace, 4.0)), spread)
    yield Subject("noise", "staircase", Noisy(_staircase, one), (("the whole", [0], [10]), ("a part", [0], [7])))
    box = (("a corner", [0] * 3, [3] * 3), ("mixed signs", [0] * 3, [3, -3, 3]), ("a face", [0] * 3, [3, 0, 1]))
    yield Subject("noise", "box", Noisy(_box, one), box)
    ball = (("along an axis", [0] * 3, [5, 0, 0]), ("oblique", [0] * 3, [3, 4, 0]), ("negative", [0] * 3, [0, -3, 4]))
    yield Subject("noise", "ball", Noisy(_ball, one), ball)
    wide = dpf.Privacy(1.0, gaussian_delta(0.5, 1.0) * (1 + 1e-9))
    yield Subject("noise", "gaussian", Noisy(partial(noise.gaussian, 8.0), wide), steps)
    yield Subject("noise", "add_gaussian", Noisy(partial(_on_grid, noise.add_gaussian, sigma=8.0), wide), steps)


# ---- local randomisers ----


def randomisers() -> Iterator[Subject]:
    for name, make in RANDOMISERS.items():
        mechanism = make(1.0)
        if isinstance(mechanism, local.L2Ball):
            ends = np.eye(3)[:2] * mechanism.radius
            made = (("opposite", ends[0], -ends[0]), ("orthogonal", ends[0], ends[1]), ("centre", ends[0], 0 * ends[0]))
        elif isinstance(mechanism, local.SeriesReports):
            made = tuple((f"{x} and {y}", x, y) for x, y in ((0.2, 0.7), (0.0, 1.0), (0.0, 0.5), (0.25, 0.75)))
        else:
            values = ((-1.0, 4.0), (0.0, 4.0), (0.0, 1.0), (1.0, 2.0), (1.0, np.nan))
            made = tuple((f"{x} and {y}", record(mechanism, x), record(mechanism, y)) for x, y in values)
        yield Subject("local", name, mechanism, _accepted(mechanism, made))


def _accepted(mechanism: Any, made: tuple[tuple[str, Any, Any], ...]) -> tuple[tuple[str, Any, Any], ...]:
    """The pairs that the randomiser takes as records: some refuse what is not a category."""
    kept = []
    for pair in made:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpf.UtilityWarning)
            try:
                for value in pair[1:]:
                    mechanism.randomize(np.broadcast_to(value, (2, *np.shape(value))))
            except (TypeError, ValueError):
                continue
        kept.append(pair)
    return tuple(kept)


# ---- functions ----


def numbers(result: Any, depth: int = 4) -> list[float]:
    """All numbers that a result holds, in its attributes too: what a reader of the release can see."""
    if result is None:
        return [math.nan]
    if isinstance(result, (bool, int, float, np.number, np.bool_)):
        return [float(result)]
    if isinstance(result, np.ndarray):
        return [number for value in result.ravel().tolist() for number in numbers(value, depth)]
    if depth == 0 or isinstance(result, (str, bytes, dpf.Privacy, dpf.Grid)):
        return []
    if isinstance(result, dict):
        return [number for key in sorted(result, key=repr) for number in numbers(result[key], depth - 1)]
    if isinstance(result, (tuple, list)):
        return [number for value in result for number in numbers(value, depth - 1)]
    if is_dataclass(result):
        held = [getattr(result, field.name) for field in fields(result)]
    else:
        held = list(getattr(result, "__dict__", {}).values())
    return [number for value in held for number in numbers(value, depth - 1)]


@dataclass(frozen=True)
class Function:
    """A function that is called once for each release; its numbers in a row of fixed length, padded with NaN."""

    call: Callable[..., Any]
    width: int
    privacy: dpf.Privacy

    def release(self, x: Any, *, size: int, rng: Any) -> np.ndarray:
        out = np.full((size, self.width), np.nan)
        for row in out:
            found = numbers(self.call(x, rng))[: self.width]
            row[: len(found)] = found
        return out


E1: dict[str, Any] = {"epsilon": 1.0}
B1: dict[str, Any] = {"bounds": (LOWER, UPPER), **E1}


def _located(name: str, given: tuple[Any, ...], budget: dict[str, Any], x: Any, rng: Any) -> Any:
    """A function of `dpfast.location`."""
    return getattr(dpf, name)(x, *given, **budget, rng=rng)


def calls() -> Iterator[tuple[str, Callable[..., Any], str]]:
    """Functions of one line by name, and their relation of neighbours."""
    for name, (given, _) in STATISTICS.items():
        budget = E1 if name == "count" else B1
        relation = "add-remove" if name == "count" else "replace-one"
        yield f"dpf.{name}", partial(_located, name, given, budget), relation
    one = "replace-one"
    table = {"a": (LOWER, UPPER), "b": [0, 1, 2]}
    yield "dpf.quantile of two", lambda x, rng: dpf.quantile(x, [0.2, 0.7], **B1, rng=rng), one
    yield "dpf.mean of rows", lambda x, rng: dpf.mean(x[:, None], **B1, rng=rng), one
    yield "dpf.mean, private bounds", lambda x, rng: dpf.mean(x, bounds="private", **E1, rng=rng), one
    yield "dpf.m_estimate", lambda x, rng: dpf.m_estimate(x, dpf.psi.Huber(5.0), **B1, rng=rng), one
    yield "dpf.bounds", lambda x, rng: dpf.bounds(x, **E1, rng=rng), one
    for name in ("median", "mean", "std", "sum"):
        yield f"dpf.interval of {name}", lambda x, rng, name=name: dpf.interval(name, x, **B1, rng=rng), one
    yield "dpf.histogram", lambda x, rng: dpf.histogram(x, 5, **B1, rng=rng), one
    yield "dpf.density", lambda x, rng: dpf.density(x, **B1, rng=rng), one
    for method in ("perturbed", "smoothed", "ks", "series", "quantiles"):
        yield f"dpf.synthesize, {method}", lambda x, rng, m=method: dpf.synthesize(x, 5, method=m, **B1, rng=rng), one
    yield (
        "dpf.synthesize of columns",
        lambda x, rng: dpf.synthesize({"a": x, "b": x > 50}, 5, columns=table, **E1, rng=rng),
        one,
    )
    yield "dpf.covariance", lambda x, rng: dpf.covariance(x[:, None], radius=100.0, **E1, rng=rng), one
    yield (
        "dpf.linear_regression",
        lambda x, rng: dpf.linear_regression(x[:, None], x, radius=100.0, label_bound=100.0, **E1, rng=rng),
        one,
    )
    yield "dpf.glm", lambda x, rng: dpf.glm(x[:, None], x > 50, radius=100.0, **E1, rng=rng), one
    yield "dpf.theil_sen", lambda x, rng: dpf.theil_sen(x, UPPER - x, **E1, rng=rng), one
    yield "dpf.by_group", lambda x, rng: dpf.by_group(_MEDIAN, x, labels=np.arange(len(x)) % 2, rng=rng), one
    yield (
        "dpf.by_group, private labels",
        lambda x, rng: dpf.by_group(_ADDED, x, labels=np.nan_to_num(x) // 60, keys=[0, 1], rng=rng),
        "add-remove",
    )
    yield "dpf.contribution_limit", lambda x, rng: dpf.contribution_limit(x, most=9, **E1, rng=rng), "add-remove"
    yield "dpf.partitions", lambda x, rng: dpf.partitions(x, domain=100, **E1, rng=rng), "add-remove"
    yield "dpf.top_k", lambda x, rng: dpf.top_k(x, 2, keys=[0.0, 50.0, 100.0], **E1, rng=rng), "add-remove"
    yield "dpf.marginals", lambda x, rng: dpf.marginals({"a": x, "b": x > 50}, table, **E1, rng=rng), one
    yield "dpf.mle", lambda x, rng: dpf.mle(x + 1, "exponential", bounds=(0.001, 1.0), blocks=4, **E1, rng=rng), one
    yield "dpf.robust_mean", lambda x, rng: dpf.robust_mean(x[:, None], **B1, rng=rng), one
    yield "dpf.select", lambda x, rng: dpf.select(_votes(x), **E1, rng=rng), one
    yield "robust.robust_mean", lambda x, rng: robust.robust_mean(x[:, None], **B1, rng=rng), one
    yield "robust.reduce", lambda x, rng: robust.reduce(partial(_score, x), range(0, 101, 25), **E1, rng=rng), one
    yield "local.mean", lambda x, rng: local.mean(x, **B1, rng=rng), one
    yield "local.median", lambda x, rng: local.median(x, **B1, rng=rng), one
    yield "local.median_naive", lambda x, rng: local.median_naive(x, **B1, rng=rng), one
    yield "local.quantile", lambda x, rng: local.quantile(x, 0.5, **B1, rng=rng), one
    yield "local.density", lambda x, rng: local.density(x, **B1, rng=rng), one
    yield "local.glm", lambda x, rng: local.glm(x[:, None], x > 50, **E1, rng=rng), one
    yield "local.sparse_mean", lambda x, rng: local.sparse_mean(x[:, None], **E1, rng=rng), one


_MEDIAN = dpf.InverseSensitivity(dpf.statistics.Median(), grid=GRID, epsilon=1.0)
_ADDED = replace(_MEDIAN, neighbors="add-remove")


def _votes(x: Any) -> list[int]:
    """The number of records in each quarter of the range."""
    return [np.count_nonzero(np.clip(np.nan_to_num(x), LOWER, 99) // 25 == quarter) for quarter in range(4)]


def _score(x: Any, candidate: int) -> int:
    return robust.score(dpf.statistics.Median(), x, candidate, grid=GRID)


def functions() -> Iterator[Subject]:
    for name, call, neighbors in calls():
        finds_bounds = name in ("dpf.bounds", "dpf.mean, private bounds")  # for which they need more records
        made = tuple(pairs(neighbors, SIZES[2] if finds_bounds else SIZES[1]))
        rng = np.random.PCG64(0)
        width = max(len(numbers(call(x, rng))) for _, *both in made for x in both for _ in range(5))
        yield Subject("function", name, Function(call, width, dpf.Privacy(1.0, neighbors=neighbors)), made)


def selections() -> Iterator[Subject]:
    """Choices among scores, whose neighbours are scores that differ by at most the sensitivity."""
    made = (
        ("opposite", [0.0, 3.0, 1.0], [1.0, 2.0, 1.0]),
        ("ties", [0.0] * 4, [1.0, -1.0, 1.0, 0.0]),
        ("one leads", [5.0, 0.0, 0.0], [4.0, 1.0, 1.0]),
        ("minus infinity", [0.0, -np.inf, 1.0], [1.0, -np.inf, 0.0]),
    )
    for method in ("exponential", "permute-and-flip"):
        yield Subject("mechanism", f"Selection {method}", dpf.Selection(epsilon=1.0, selection=method), made)


SUBJECTS = (mechanisms, selections, noises, randomisers, functions)
