"""Laws of the most frequent keys in order, and their errors for typical counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers
from dpfast.laws import Boxes, Law, score_cap
from dpfast.mechanisms.selection import Selection
from dpfast.random import RandomSource, bit_generator

_MOST_SIDES = 2**24  # of all boxes together
# Draws of each method, for its error for typical counts: they are repeatable, and fewer for many selections of many
# keys, which take seconds.
_DRAWS, _FEWEST_DRAWS, _MOST_NOISE = 400, 4, 2**26


class KeyOrder(Law):
    """Base class of laws of k different places among the keys, in order. PRIVATE.

    Parameters
    ----------
    counts : ndarray of int64
    k : int
    decode : callable
        Converts places to what is released.
    """

    def __init__(self, counts: NDArray[np.int64], k: int, *, decode: Callable[[NDArray[np.int64]], Any]) -> None:
        self.counts, self.k, self._decode = counts, k, decode

    def outcomes(self) -> NDArray[np.int64]:
        checks.outcomes(math.perm(len(self.counts), self.k))
        return np.array(list(itertools.permutations(range(len(self.counts)), self.k)), np.int64)

    def value(self, k: ArrayLike) -> Any:
        return self._decode(containers.integers("k", k))


class PeeledKeys(KeyOrder):
    """The law of places that are selected one after the other among those that are left.

    Parameters
    ----------
    counts, k, decode
        See `KeyOrder`.
    selection : Selection
        Of one place.
    """

    def __init__(self, counts: NDArray[np.int64], k: int, *, selection: Selection, decode: Any) -> None:
        super().__init__(counts, k, decode=decode)
        self._selection = selection

    def _law(self, left: list[int]) -> Any:
        return self._selection.law_of(self.counts[left])

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        places = containers.integers("k", k)
        out = [self._log_probability(each) for each in places.reshape(-1, self.k).tolist()]
        return np.array(out).reshape(places.shape[:-1])

    def _log_probability(self, places: list[int]) -> float:
        left, total = list(range(len(self.counts))), 0.0
        for place in places:
            if place not in left:
                return -math.inf
            total += float(self._law(left).logpmf(left.index(place)))
            left.remove(place)
        return total

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        source, shape = bit_generator(rng), checks.shape(size)
        out = np.empty((math.prod(shape), self.k), np.int64)
        for row in out:
            left = list(range(len(self.counts)))
            for j in range(self.k):
                row[j] = left.pop(self._law(left).sample(rng=source))
        return out.reshape(*shape, self.k)


class JointKeys(KeyOrder):
    """The joint exponential mechanism: probabilities proportional to ``exp(-epsilon / 2 * missed)``.

    Missed are the most records, over j, by which the j-th place has fewer of them than the j-th most frequent key;
    more than a public cap count as the cap.

    Parameters
    ----------
    counts, k, decode
        See `KeyOrder`.
    epsilon : float
        Divided by the change of the missed records by a unit.

    Notes
    -----
    Let n_j(t) be the number of keys with at most t records less than the j-th most frequent one. The orders that miss
    at most t records are those whose j-th place is one of n_j(t) keys: they are the points of a box, the j-th
    coordinate the rank of the place among the n_j(t) - j + 1 keys that are left, and boxes are nested. So this is the
    law of `dpfast.laws.Boxes` (https://dpfast.readthedocs.io/en/latest/proofs/top-k.html). Cost: O(d log d), and O(k)
    for each of at most min(cap, range of the counts) boxes.

    References
    ----------
    Gillenwater, Joseph, Munoz and Ribero 2022, "A joint exponential mechanism for differentially private top-k".
    """

    def __init__(self, counts: NDArray[np.int64], k: int, *, epsilon: float, decode: Any) -> None:
        super().__init__(counts, k, decode=decode)
        self._order = np.argsort(-counts, kind="stable")
        ascending, d, before = counts[self._order][::-1], len(counts), np.arange(k)
        missed = np.arange(min(_cap(d, k, epsilon), int(ascending[-1] - ascending[0])))
        near = d - np.searchsorted(ascending, ascending[::-1][:k] - missed[:, None], side="left")
        upper = np.vstack([near, np.full(k, d)]) - before - 1
        self._boxes = Boxes(np.zeros_like(upper), upper, epsilon=epsilon, decode=self._places)

    def _places(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of ranks among the keys that are left, in descending order of their counts."""
        rows = []
        for row in ranks.reshape(-1, self.k).tolist():
            left = _Left(self._order)
            rows.append([left.pop(rank) for rank in row])
        return np.array(rows, np.int64).reshape(ranks.shape)

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        places = containers.integers("k", k)
        rank_of = np.argsort(self._order)
        flat = [self._log_probability(rank_of[row].tolist()) for row in places.reshape(-1, self.k)]
        return np.array(flat).reshape(places.shape[:-1])

    def _log_probability(self, ranks: list[int]) -> float:
        if len(set(ranks)) < self.k:
            return -math.inf
        code = [rank - sum(earlier < rank for earlier in ranks[:j]) for j, rank in enumerate(ranks)]
        return float(self._boxes.logpmf(code))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        return self._places(self._boxes.sample(size, rng))


class _Left:
    """The keys that are left: those taken are few, in ascending order of their ranks."""

    def __init__(self, order: NDArray[np.int64]) -> None:
        self._order, self._taken = order, [-1]

    def pop(self, rank: int) -> int:
        """Take the key of a rank among those that are left, and return its place."""
        for i, taken in enumerate(self._taken[1:], 1):
            if taken > rank:
                self._taken.insert(i, rank)
                break
            rank += 1
        else:
            self._taken.append(rank)
        return int(self._order[rank])


def fits_joint(d: int, k: int, epsilon: float) -> bool:
    """Whether the boxes of all missed records that matter fit into memory, whatever the counts. Public."""
    return score_cap(epsilon, _log_orders(d, k)) <= _MOST_SIDES // k


def _cap(d: int, k: int, epsilon: float) -> int:
    """Return the public cap on the missed records of `JointKeys`."""
    return min(score_cap(epsilon, _log_orders(d, k)), _MOST_SIDES // k)


def joint_error(d: int, k: int, epsilon: float, missed: float) -> float:
    """Return the records that `JointKeys` misses with a probability of at most `missed`, for any counts.

    Infinite where that is above the cap, which memory limits: orders from there on are equally likely, whatever they
    miss.
    """
    found = 2 / epsilon * (_log_orders(d, k) - math.log(missed))
    return found if found <= _cap(d, k, epsilon) else math.inf


def _log_orders(d: int, k: int) -> float:
    return math.lgamma(d + 1) - math.lgamma(d - k + 1)


# ---- errors for typical counts in descending order, by simulation in doubles: public numbers alone ----

# Of an order of places: its greatest difference from the most frequent keys, or the mean of all k.
AIMS: dict[str, Callable[[NDArray[np.float64]], float]] = {
    "greatest": lambda differences: float(np.max(differences)),
    "mean": lambda differences: float(np.mean(np.abs(differences))),
}


def _draws(noise: int) -> int:
    """Return how many draws are made, of so many noisy numbers each."""
    return min(_DRAWS, max(_FEWEST_DRAWS, _MOST_NOISE // noise))


def _missed(counts: NDArray[np.float64], k: int, aim: str, orders: Iterable[Any]) -> float:
    """Return the expected number of missed records of orders of k places."""
    return float(np.mean([AIMS[aim](counts[:k] - counts[order]) for order in orders]))


def missed_by_counts(counts: NDArray[np.float64], k: int, scale: float, aim: str) -> float:
    """Return the expected number of missed records of the k greatest noisy counts."""
    rng, d = np.random.default_rng(0), len(counts)

    def order() -> Any:
        noisy = counts + rng.laplace(0.0, scale, d)
        released = np.argpartition(-noisy, k - 1)[:k]
        return released[np.argsort(-noisy[released])]

    return _missed(counts, k, aim, (order() for _ in range(_draws(d))))


def missed_by_peeling(counts: NDArray[np.float64], k: int, rate: float, aim: str) -> float:
    """Return that of k selections: permute-and-flip releases the greatest sum of a score and exponential noise."""
    rng, d = np.random.default_rng(0), len(counts)

    def order() -> Any:
        left, places = counts.copy(), []
        for _ in range(k):
            places.append(int(np.argmax(left + rng.exponential(1 / rate, d))))
            left[places[-1]] = -np.inf
        return places

    return _missed(counts, k, aim, (order() for _ in range(_draws(k * d))))


def missed_by_joint(counts: NDArray[np.float64], k: int, epsilon: float, aim: str) -> float:
    """Return that of `JointKeys`: for the greatest difference from its law."""
    d = len(counts)
    cap = min(_cap(d, k, epsilon), math.ceil(counts[0] - counts[-1]))
    missed, ascending, logs = np.arange(cap + 1.0), counts[::-1], np.zeros(cap + 1)
    for j in range(k):
        logs += np.log(d - j - np.searchsorted(ascending, counts[j] - missed, side="left"))
    volumes = np.exp(logs - epsilon / 2 * missed - np.max(logs - epsilon / 2 * missed))
    if aim == "greatest":
        below = np.concatenate([[0.0], volumes[:-1] * math.exp(-epsilon / 2)])
        probabilities = volumes - below
        return float(missed @ probabilities / probabilities.sum())
    rng, every = np.random.default_rng(0), np.arange(d)
    volumes[:-1] *= -math.expm1(-epsilon / 2)  # the law is a mixture of uniform ones on the nested boxes

    def order(limit: float) -> Any:
        left = _Left(every)
        sides = d - every[:k] - np.searchsorted(ascending, counts[:k] - limit, side="left")
        return [left.pop(rank) for rank in rng.integers(sides).tolist()]

    limits = rng.choice(missed, _DRAWS, p=volumes / volumes.sum())
    return _missed(counts, k, aim, map(order, limits))
