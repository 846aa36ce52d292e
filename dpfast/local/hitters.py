"""Frequent keys of a public domain, found by their prefixes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast._kernels import _samplers
from dpfast._kernels._threads import each
from dpfast.core import checks, containers
from dpfast.core.tabular import Tabular
from dpfast.core.types import Records
from dpfast.local.hashed import HashedCategorical, keys_of
from dpfast.local.randomizer import Aggregate, LocalMechanism
from dpfast.local.scalar import symbols
from dpfast.random import BLOCK, RandomSource, bit_generator, streams

_FIRST = 2**16  # candidates of the first level, at most
_STEP = 2**8  # extensions of a prefix, at most, if the radix is not larger
_KEPT = 2**10  # prefixes that are extended, at most
_STRAYS = 16  # expected number of prefixes that are extended by chance, at most
_SINGULAR = 1e-9  # singular values below, relative to the largest, are those of keys with equal collisions
_CHANCE = 0.01  # probability that a key is reported by chance, about


class _FrequentKeys(NamedTuple):
    """The fields of `FrequentKeys`."""

    keys: Any
    frequencies: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    threshold: float


class FrequentKeys(Tabular, _FrequentKeys):
    """The keys that `HeavyHitters` found, by decreasing frequency.

    Parameters
    ----------
    keys : ndarray of uint64, or list of str
    frequencies, standard_errors : ndarray of float64
        Unbiased estimates for given keys; those that were found are overestimated on average, as they passed the
        threshold.
    threshold : float
        The least estimate that is reported.
    """

    __slots__ = ()

    def _as_columns(self) -> dict[str, Any]:
        return {"key": self.keys, "frequency": self.frequencies, "error": self.standard_errors}

    def _caption(self) -> str:
        return f"{len(self.keys):,} frequent keys, with estimated frequencies of at least {self.threshold:.4g}"


@dataclass(frozen=True)
class HeavyHitters(LocalMechanism):
    """Local protocol that finds the frequent keys of a large public domain: integers, or strings of an alphabet.

    Pure epsilon-local differential privacy. Non-interactive: each person sends one report about a prefix of their key,
    of a random length. The server extends the prefixes that are frequent.

    Parameters
    ----------
    epsilon : float
        At least 2**-40; rounded down to a double.
    length : int
        Keys have so many digits. With an alphabet: strings have at most so many characters.
    radix : int
        2..2**16: keys are the integers 0..radix**length - 1, at most 2**64 of them.
    alphabet : str, optional
        Different characters; keys are then strings, and the radix is the number of characters plus one, for the end.
    cells, seed
        See `HashedCategorical`, which counts the prefixes of each length.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Keys from 2**53 on need an array of integers, since a list is read as float64. A record that is not a key counts as
    0, or as the empty string: also a string that is too long or has other characters. `levels` are the lengths of the
    prefixes: the first has at most 2**16 prefixes, each further one extends them by at most 2**8 endings (or one
    digit). With n_l reports about a level, a prefix is extended if its estimate is above a multiple of its standard
    error that about 16 of the candidates pass by chance, and among the 1024 largest; collisions of these with each
    other are removed. The last level reports the keys above the multiple that any of the candidates passes by chance
    with probability about 1/100. So thresholds depend on released numbers only.

    Privacy: the length does not depend on the record, and given it the report is one of `HashedCategorical`
    (https://dpfast.readthedocs.io/en/latest/proofs/local-categories.html).
    Accuracy: a key is found if its frequency is well above ``threshold``, which is proportional to
    ``sqrt(number of levels / n)``.

    References
    ----------
    Bassily, Nissim, Stemmer and Thakurta 2017, "Practical locally private heavy hitters" (TreeHist); Wang, Li and Jha
    2019, "Locally differentially private heavy hitter identification" (PEM).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> source = np.random.default_rng(0)
    >>> pages = np.where(source.random(50_000) < 0.3, 2**40 + 7, source.integers(0, 2**48, 50_000))
    >>> survey = local.HeavyHitters(2.0, 48)
    >>> survey.estimate(survey.randomize(pages)).keys[:1].tolist()
    [1099511627783]
    >>> words = source.choice(["yes", "no", "maybe"], 40_000, p=[0.5, 0.3, 0.2])
    >>> survey = local.HeavyHitters(2.0, 8, alphabet="abcdefghijklmnopqrstuvwxyz")
    >>> survey.estimate(survey.randomize(words)).keys[:3]
    ['yes', 'no', 'maybe']
    """

    epsilon: float
    length: int
    radix: int = field(default=2, kw_only=True)
    alphabet: str | None = field(default=None, kw_only=True)
    cells: int = field(default=2**18, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        length = checks.whole("length", self.length, least=1)
        radix = checks.whole("radix", self.radix, least=2)
        if self.alphabet is not None:
            if not isinstance(self.alphabet, str) or not self.alphabet or len(set(self.alphabet)) < len(self.alphabet):
                raise ValueError("alphabet must be a string of different characters")
            radix = len(self.alphabet) + 1
        if radix > _FIRST:
            raise ValueError(f"radix must be at most 2**16, not {radix}")
        if length > 64 or radix**length > 2**64:
            raise ValueError(f"there must be at most 2**64 keys, not {radix}**{length}")
        seed = checks.whole("seed", self.seed)
        for name, value in (("length", length), ("radix", radix), ("seed", seed)):
            object.__setattr__(self, name, value)
        first = HashedCategorical(2, self.epsilon, cells=self.cells, seed=seed)  # checks epsilon, cells and seed
        object.__setattr__(self, "epsilon", first.epsilon)
        object.__setattr__(self, "cells", first.cells)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The lengths of the prefixes, in digits."""
        first = min(self.length, max(1, math.floor(math.log(_FIRST + 0.5, self.radix))))
        step = max(1, math.floor(math.log(_STEP + 0.5, self.radix)))
        return (*range(first, self.length, step), self.length)

    @cached_property
    def oracles(self) -> tuple[HashedCategorical, ...]:
        """The randomiser of each level."""
        return tuple(
            HashedCategorical(self.radix**digits, self.epsilon, cells=self.cells, seed=(self.seed + i) % 2**64)
            for i, digits in enumerate(self.levels)
        )

    @property
    def share(self) -> Fraction:
        return self.oracles[0].share

    @cached_property
    def _offsets(self) -> list[int]:
        """The number of reports before those of each level, and of all."""
        offsets = [0]
        for oracle in self.oracles:
            offsets.append(offsets[-1] + oracle.outcomes)
        return offsets

    @cached_property
    def _sizes(self) -> list[int]:
        """The number of counts of each level."""
        return [oracle.hashes * oracle.buckets for oracle in self.oracles]

    @property
    def report(self) -> np.dtype[Any]:
        """The dtype of a report."""
        return symbols(self._offsets[-1])

    # ---- the person ----

    def randomize(self, x: Records, *, rng: RandomSource = None, workers: int = 1) -> NDArray[Any]:
        """Return the reports of many people.

        Parameters
        ----------
        x : array_like of shape (n,)
            Private data, one key for each person; never modified.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the run reproducible, hence not private. Default: the secure generator.
        workers : int
            Number of threads, -1 for one per core; reports do not depend on it.
        """
        threads = checks.threads(workers)
        bit_generator(rng)  # reject invalid arguments before reading the data
        keys = self._keys(x)
        out, parts = np.empty(keys.size, self.report), streams(rng, -(-keys.size // BLOCK))

        def block(i: int) -> None:
            part = slice(i * BLOCK, (i + 1) * BLOCK)
            self._fill(parts[i], keys[part], out[part])

        each(block, range(len(parts)), threads)
        return out

    def _fill(self, source: Any, keys: NDArray[np.uint64], out: NDArray[Any]) -> None:
        level = np.empty(keys.size, np.uint64)
        _samplers.fill_uniform(source, len(self.levels) - 1, level)
        for i, (digits, oracle) in enumerate(zip(self.levels, self.oracles, strict=True)):
            people = np.flatnonzero(level == i)
            drawn = np.empty(people.size, oracle.report)
            oracle.fill(source, keys[people] // np.uint64(self.radix ** (self.length - digits)), drawn)
            out[people] = drawn.astype(self.report) + self.report.type(self._offsets[i])

    def _keys(self, x: Records) -> NDArray[np.uint64]:
        if self.alphabet is None:
            return keys_of(containers.vector("x", x), self.radix**self.length)
        items = x if isinstance(x, (list, tuple)) else list(np.asarray(x, dtype=object))
        codes = {character: i + 1 for i, character in enumerate(self.alphabet)}
        return np.array([self._code(item, codes) for item in items], np.uint64)

    def _code(self, item: Any, codes: dict[str, int]) -> int:
        """Return the integer whose digits are the characters of a string, then zeros; 0 for other records."""
        if not isinstance(item, str) or len(item) > self.length or any(c not in codes for c in item):
            return 0
        code = 0
        for character in item:
            code = code * self.radix + codes[character]
        return int(code * self.radix ** (self.length - len(item)))

    def _string(self, code: int) -> str:
        assert self.alphabet is not None
        digits = []
        for _ in range(self.length):
            code, digit = divmod(code, self.radix)
            digits.append(digit)
        return "".join(self.alphabet[digit - 1] for digit in reversed(digits) if digit)

    # ---- the server ----

    def aggregate(self, reports: NDArray[Any], *, workers: int = 1) -> tuple[Aggregate, ...]:
        """Count the reports of each level; the first aggregate also counts the refused reports.

        Adding the aggregates of each level gives those of all their reports.

        Raises
        ------
        TypeError, ValueError
            If the dtype or shape is not that of the arrays that `randomize` returns.
        """
        if not isinstance(reports, np.ndarray) or reports.dtype != self.report:
            raise TypeError(f"reports must be an array of {self.report}, as randomize returns it")
        if reports.ndim != 1:
            raise ValueError(f"reports must be of shape (n,), not {reports.shape}")
        threads, parts, ends = checks.threads(workers), list[Aggregate](), np.cumsum(self._sizes)
        # Of 9 MB, one array has large pages, touched in 0.3 ms; an array for each level took 5 ms.
        sums = np.zeros(ends[-1], np.int64)
        for i, (oracle, (start, end)) in enumerate(zip(self.oracles, pairwise(self._offsets), strict=True)):
            places = reports - self.report.type(start)  # of other levels, modulo the range of the dtype, too large
            own = places[places < end - start].astype(oracle.report)
            part = oracle.counted(own, sums[ends[i] - self._sizes[i] : ends[i]], threads)
            parts.append(replace(part, parameters=self.digest(i)))
        parts[0] = replace(parts[0], refused=reports.size - sum(part.n for part in parts))
        return tuple(parts)

    def estimate(self, reports: NDArray[Any] | Sequence[Aggregate]) -> FrequentKeys:
        """Return the frequent keys, by decreasing frequency.

        Raises
        ------
        TypeError, ValueError
            If the reports or aggregates are not of this protocol, or a level has no report.
        """
        totals = self.aggregate(reports) if isinstance(reports, np.ndarray) else tuple(reports)
        if len(totals) != len(self.levels) or not all(isinstance(total, Aggregate) for total in totals):
            raise ValueError(f"there must be an aggregate for each of {len(self.levels)} levels")
        totals = tuple(replace(self.own(total, i), parameters=None) for i, total in enumerate(totals))
        if min(total.n for total in totals) < 1:
            raise ValueError("an estimate needs at least one report of each level")
        found, digits = np.zeros(1, np.uint64), 0
        for total, oracle, level in zip(totals[:-1], self.oracles, self.levels, strict=False):
            found = np.sort(_frequent(oracle, total, self._extended(found, level - digits), _STRAYS)[0])
            digits = level
        candidates, oracle, n = self._extended(found, self.length - digits), self.oracles[-1], totals[-1].n
        found, frequencies, threshold = _frequent(oracle, totals[-1], candidates, _CHANCE)
        errors = [oracle.standard_error(n, min(f, 1.0)) for f in frequencies.tolist()]
        keys: Any = found if self.alphabet is None else [self._string(int(key)) for key in found]
        return FrequentKeys(keys, frequencies, np.array(errors), threshold)

    def _extended(self, prefixes: NDArray[np.uint64], digits: int) -> NDArray[np.uint64]:
        """All prefixes that are longer by a number of digits."""
        endings = self.radix**digits
        longer = prefixes[:, None] * np.uint64(endings) + np.arange(endings, dtype=np.uint64)
        return longer.reshape(-1)


def _frequent(
    oracle: HashedCategorical, total: Aggregate, keys: NDArray[np.uint64], strays: float
) -> tuple[NDArray[np.uint64], NDArray[np.float64], float]:
    """Return the keys above the threshold that `strays` keys pass by chance, their frequencies, decreasing, the
    threshold.

    Collisions among the keys that pass are removed, then the threshold is applied again. Keys with equal
    collisions share their frequency evenly.
    """
    estimates = oracle.estimate(total, keys)
    threshold = float(-scipy.special.ndtri(min(0.5, strays / max(keys.size, 1)))) * oracle.standard_error(total.n)
    largest = np.argsort(-estimates, kind="stable")[:_KEPT]
    found = keys[largest[estimates[largest] > threshold]]
    solved = np.linalg.lstsq(oracle.collisions(found), estimates[largest[: found.size]], rcond=_SINGULAR)[0]
    frequencies = solved.astype(np.float64, copy=False)
    order = np.argsort(-frequencies, kind="stable")
    order = order[frequencies[order] > threshold]
    return found[order], frequencies[order], threshold
