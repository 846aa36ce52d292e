"""Several categorical attributes of each person under one budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
import scipy
from numpy.typing import NDArray

from dpfast._kernels import _samplers
from dpfast._kernels._threads import each
from dpfast.core import checks, containers
from dpfast.core.coin import LEAST_EPSILON
from dpfast.core.types import Records
from dpfast.local.categories import Categorical
from dpfast.local.randomizer import Aggregate, LocalMechanism
from dpfast.local.simplex import rule_of
from dpfast.random import BLOCK, RandomSource, bit_generator, streams

_METHODS = ("auto", "sample", "split")


@dataclass(frozen=True)
class Attributes(LocalMechanism):
    """Local randomiser for rows of several categories, to estimate the frequencies of each attribute.

    Pure epsilon-local differential privacy for the whole row.

    Parameters
    ----------
    sizes : sequence of int
        The number of categories of each attribute; records are rows of integers, 0..size - 1 in each column.
    epsilon : float
        At least 2**-40; rounded down to a double.
    method : {"auto", "sample", "split"}
        "sample": a report is about one random attribute, with all of epsilon. "split": a report is about every
        attribute, with epsilon / d each. "auto" selects the smaller sum of variances of all frequencies, "sample" on a
        tie; it depends on the sizes and epsilon only.

    Attributes
    ----------
    method : str
        The method in use, never "auto".

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Each attribute has the `Categorical` of least variance (`parts`). An entry that is not a category counts as 0.
    A report is a row of bytes: for "sample" the attribute in two bytes, then the bytes of its report, then zeros; for
    "split" the bytes of the reports of all attributes.

    Privacy: the attribute of "sample" does not depend on the record; the losses of "split" add up to at most epsilon.
    Fake reports for the other attributes, which are said to amplify "sample", are left out: they gain nothing against a
    server that sees all reports of a person, unless the sampled attribute remains hidden, which needs a proof for each
    randomiser.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> rows = np.random.default_rng(0).integers(0, [3, 10], (100_000, 2))
    >>> survey = local.Attributes([3, 10], epsilon=1.0)
    >>> survey.method
    'sample'
    >>> first, second = survey.estimate(survey.randomize(rows))
    >>> bool(np.abs(first - 1 / 3).max() < 0.05 and np.abs(second - 0.1).max() < 0.05)
    True
    """

    sizes: tuple[int, ...]
    epsilon: float
    method: str = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.sizes, (Sequence, np.ndarray)) or not 1 <= len(self.sizes) <= 2**16:
            raise ValueError("sizes must be a sequence of 1 to 2**16 integers")
        sizes = tuple(checks.whole("sizes", size, least=2) for size in self.sizes)
        epsilon = checks.positive_down("epsilon", self.epsilon)
        checks.choice("method", self.method, _METHODS)
        put = object.__setattr__
        put(self, "sizes", sizes)
        put(self, "epsilon", epsilon)
        if self.method == "auto":
            divisible = Fraction(epsilon) / len(sizes) >= LEAST_EPSILON
            names = ("sample", "split") if divisible else ("sample",)
            spread = {name: Attributes(sizes, epsilon, name).total_variance for name in names}
            put(self, "method", min(spread, key=lambda name: spread[name]))
        assert self.parts

    @cached_property
    def parts(self) -> tuple[Categorical, ...]:
        """The randomiser of each attribute."""
        epsilon = self.epsilon
        if self.method == "split":
            epsilon = checks.positive_down("epsilon", Fraction(self.epsilon) / len(self.sizes))
        return tuple(Categorical(size, epsilon) for size in self.sizes)

    @property
    def total_variance(self) -> float:
        """N times the sum of the variances of all frequencies, about; for "sample" with its choice of people."""
        d = len(self.sizes) if self.method == "sample" else 1
        sampling = sum((d - 1) * (1 - 1 / size) for size in self.sizes)  # even frequencies
        return sum(d * part.total_variance for part in self.parts) + sampling

    @property
    def _widths(self) -> list[int]:
        """The number of bytes of a report of each attribute."""
        return [-(-part.k // 8) if part.report.shape else part.report.itemsize for part in self.parts]

    @property
    def report(self) -> np.dtype[Any]:
        """The dtype of a report, including its shape."""
        width = 2 + max(self._widths) if self.method == "sample" else sum(self._widths)
        return np.dtype((np.uint8, (width,)))

    def randomize(self, x: Records, *, rng: RandomSource = None, workers: int = 1) -> NDArray[np.uint8]:
        """Return the reports of many people, one row of bytes each.

        Parameters
        ----------
        x : array_like of shape (n, d)
            Private data, one row for each person; never modified.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the run reproducible, hence not private. Default: the secure generator.
        workers : int
            Number of threads, -1 for one per core; reports do not depend on it.
        """
        threads, d = checks.threads(workers), len(self.sizes)
        bit_generator(rng)  # reject invalid arguments before reading the data
        rows = containers.numbers("x", x, dimensions=2)
        if rows.ndim != 2 or rows.shape[1] != d:
            raise ValueError(f"x must be of shape (n, {d}), not {rows.shape}")
        out = np.zeros((len(rows), *self.report.shape), np.uint8)
        streamed = streams(rng, -(-len(rows) // BLOCK))

        def block(i: int) -> None:
            people = slice(i * BLOCK, (i + 1) * BLOCK)
            self._fill(streamed[i], rows[people], out[people])

        each(block, range(len(streamed)), threads)
        return out

    def _fill(self, source: Any, rows: NDArray[Any], out: NDArray[np.uint8]) -> None:
        chosen = np.zeros(len(rows), np.uint64)
        if self.method == "sample":
            _samplers.fill_uniform(source, len(self.sizes) - 1, chosen)
            out[:, :2] = chosen.astype("<u2")[:, None].view(np.uint8)
        place = 2 if self.method == "sample" else 0
        for j, (part, width) in enumerate(zip(self.parts, self._widths, strict=True)):
            people = np.flatnonzero(chosen == j) if self.method == "sample" else np.arange(len(rows))
            drawn = np.zeros(people.size, part.report)
            part.fill(source, rows[people, j], drawn)
            out[people, place : place + width] = np.frombuffer(part.to_bytes(drawn), np.uint8).reshape(-1, width)
            place += width if self.method == "split" else 0

    def aggregate(self, reports: NDArray[np.uint8], *, workers: int = 1) -> tuple[Aggregate, ...]:
        """Count the reports of each attribute; reports about an unknown attribute are refused with those of the first.

        Raises
        ------
        TypeError, ValueError
            If the dtype or shape is not that of the arrays that `randomize` returns.
        """
        if not isinstance(reports, np.ndarray) or reports.dtype != np.uint8:
            raise TypeError("reports must be an array of uint8, as randomize returns it")
        if reports.ndim != 2 or reports.shape[1:] != self.report.shape:
            raise ValueError(f"reports must be of shape (n, {self.report.shape[0]}), not {reports.shape}")
        totals, place, strays = [], 0, 0
        chosen = np.zeros(len(reports), np.uint16)
        if self.method == "sample":
            place, chosen = 2, np.ascontiguousarray(reports[:, :2]).view("<u2")[:, 0].astype(np.uint16)
            strays = int(np.count_nonzero(chosen >= len(self.sizes)))
        for j, (part, width) in enumerate(zip(self.parts, self._widths, strict=True)):
            own = reports[chosen == j] if self.method == "sample" else reports
            padded = own[:, place + width :].any(axis=1) if self.method == "sample" else np.zeros(len(own), np.bool_)
            data = np.ascontiguousarray(own[~padded, place : place + width]).tobytes()
            total = part.aggregate(part.from_bytes(data), workers=workers)
            refused = total.refused + int(np.count_nonzero(padded)) + (strays if j == 0 else 0)
            totals.append(replace(total, refused=refused, parameters=self.digest(j)))
            place += width if self.method == "split" else 0
        return tuple(totals)

    def estimate(
        self, reports: NDArray[np.uint8] | Sequence[Aggregate], *, project: bool | str = False
    ) -> tuple[NDArray[np.float64], ...]:
        """Unbiased estimates of the frequencies of each attribute; with `project`, nonnegative ones that sum to 1.

        Values of `project` are those of `Categorical.estimate`.

        Raises
        ------
        TypeError, ValueError
            If the reports or aggregates are not of this randomiser, or there is no report about an attribute.
        """
        rule_of(project)  # reject a bad rule before reading the reports
        totals = self.aggregate(reports) if isinstance(reports, np.ndarray) else tuple(reports)
        if len(totals) != len(self.sizes):
            raise ValueError(f"there must be an aggregate for each of {len(self.sizes)} attributes")
        unnamed = [replace(self.own(total, j), parameters=None) for j, total in enumerate(totals)]
        return tuple(part.estimate(total, project=project) for part, total in zip(self.parts, unnamed, strict=True))

    def error(self, n: SupportsIndex, confidence: float = 0.95) -> NDArray[np.float64]:
        """Half-widths of confidence intervals from n reports, for a frequency of each attribute, without data."""
        n = checks.whole("n", n, least=1)
        quantile = float(-scipy.special.ndtri((1 - checks.between("confidence", confidence, 0, 1)) / 2))
        d = len(self.sizes) if self.method == "sample" else 1
        return np.array([quantile * math.sqrt((d * part.worst_variance + (d - 1) / 4) / n) for part in self.parts])
