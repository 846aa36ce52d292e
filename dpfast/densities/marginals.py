"""Noisy marginals of a table: exact counts of all of them in one pass, noise of one budget."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _marginals
from dpfast.core import checks
from dpfast.core.divergences import gaussian_mu_down
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.core.rounding import root_up, up
from dpfast.core.traps import Trap
from dpfast.densities.columns import Bins, Codes, Column, DataColumns, columns_of, traps_of_columns
from dpfast.densities.released_marginals import Marginals
from dpfast.laws import DiscreteLaplace, IndependentRuns, IntegerNoise, NoisyIntegers, RoundedGaussian
from dpfast.mechanisms.noisy_integers import FromIntegers
from dpfast.streaming import Counts

MOST_CELLS = 2**24
_MOST_SCALE = 2**56
CHANGED = {"replace-one": 2, "add-remove": 1}  # counts of each marginal by one record


class Noise(NamedTuple):
    """The noise on the counts of a marginal, and its standard deviation."""

    law: IntegerNoise
    deviation: float


@dataclass(frozen=True, repr=False)
class NoisyMarginals(FromIntegers):
    """Release marginals of a table: exact counts plus Gaussian or discrete Laplace noise, under one budget.

    (epsilon, delta)- or mu-Gaussian differential privacy for all marginals together under one replaced record (row), or
    one added or removed; pure for discrete Laplace noise.

    Parameters
    ----------
    columns : mapping from names to domains
        `Categories` or `Bins`, or short forms of them; see `dpfast.marginals`. Bins that need a release of quantiles
        are not supported here.
    marginals : sequence of tuples of names
        The columns of each marginal, at least one; at most 2**24 cells in total.
    epsilon : float
        Positive; rounded down to a double.
    delta : float
        In [0, 1). Positive: Gaussian noise, where that has less variance.
    mu : float
        Instead of epsilon and delta: the mu of Gaussian differential privacy.
    neighbors : {"replace-one", "add-remove"}
        With "add-remove", the number of records is private.
    weights : sequence of floats, optional
        Positive, one for each marginal: the standard deviation of its noise is divided by it. Default: equal.

    Raises
    ------
    TypeError, ValueError
        A wrong parameter, before any data are read.

    Notes
    -----
    Privacy: a replaced record changes two counts of each marginal by 1, one added or removed one count. With weights w,
    Gaussian noise has the variance ``2 sum(w**2) / (w_j mu)**2``, discrete Laplace noise the scale ``2 sum(w) / (w_j
    epsilon)``, half of both for one record added or removed; no float decides the noise
    (https://dpfast.readthedocs.io/en/latest/proofs/marginals.html). Cost: two bytes for each value, and one pass over
    them for each column of each marginal.

    References
    ----------
    Barak et al. 2007, "Privacy, accuracy, and consistency too".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.densities import NoisyMarginals
    >>> columns = {"age": dpf.Bins(5, bounds=(0, 100)), "member": dpf.Categories([0, 1])}
    >>> mechanism = NoisyMarginals(columns, [("age", "member")], epsilon=1.0)
    >>> mechanism
    <NoisyMarginals of 15 cells in 1 marginal of 2 columns: epsilon = 1 (pure differential privacy) for one record \
replaced (the number of records is public)>
    >>> mechanism({"age": np.arange(100), "member": np.arange(100) % 2}).counts["age", "member"].shape
    (5, 3)
    """

    columns: Any
    marginals: Sequence[Sequence[Any]]
    epsilon: float | None = field(kw_only=True, default=None)
    delta: float = field(kw_only=True, default=0.0)
    mu: float | None = field(kw_only=True, default=None)
    neighbors: str = field(kw_only=True, default="replace-one")
    weights: Sequence[float] | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.mu is None) or (self.mu is not None and self.delta):
            raise TypeError("give epsilon, with or without delta, or mu")
        for name in ("epsilon", "mu"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.positive_down(name, getattr(self, name)))
        object.__setattr__(self, "delta", checks.delta_down(self.delta))
        checks.choice("neighbors", self.neighbors, tuple(CHANGED))
        object.__setattr__(self, "columns", _ready(columns_of(self.columns)))
        object.__setattr__(self, "marginals", checked_marginals(self.marginals, [name for name, _ in self.columns]))
        weights = (1.0,) * len(self.marginals) if self.weights is None else tuple(self.weights)
        if len(weights) != len(self.marginals):
            raise ValueError(f"weights must be one for each of {len(self.marginals)} marginals, not {len(weights)}")
        weights = tuple(checks.positive("each of weights", weight) for weight in weights)
        object.__setattr__(self, "weights", weights)
        if sum(self.sizes) > MOST_CELLS:
            raise ValueError(f"marginals must have at most 2**24 cells in total, not {sum(self.sizes)}")
        self.noises  # noqa: B018  # reject too small a budget

    @cached_property
    def domains(self) -> dict[Any, Column]:
        """The domain of each column."""
        return dict(self.columns)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each marginal."""
        return tuple(tuple(self.domains[name].size for name in names) for names in self.marginals)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each marginal."""
        return tuple(map(math.prod, self.shapes))

    @cached_property
    def gaussian_mu(self) -> float | None:
        """The guarantee of Gaussian noise in Gaussian differential privacy; None for discrete Laplace noise."""
        if self.epsilon is None:
            return self.mu
        return gaussian_mu(self.epsilon, self.delta, len(self.marginals), self.neighbors)

    @cached_property
    def noises(self) -> tuple[Noise, ...]:
        """The noise of each marginal. Public."""
        assert self.weights is not None
        numbers, changed = tuple(sorted(Counter(self.weights).items())), CHANGED[self.neighbors]
        noises = dict[float, Noise]()
        for weight, _ in numbers:
            noise = _noise(self.gaussian_mu, self.epsilon, changed, weight, numbers)
            if noise is None:
                raise ValueError(f"{self.privacy} needs noise of more than 2**56 records: use a larger epsilon")
            noises[weight] = noise
        return tuple(noises[weight] for weight in self.weights)

    @property
    def privacy(self) -> Privacy:
        if self.epsilon is None:
            return Privacy(mu=self.mu, neighbors=self.neighbors)
        return Privacy(self.epsilon, 0.0 if self.gaussian_mu is None else self.delta, self.neighbors)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        if self.gaussian_mu is not None:
            return PrivacyProfile(self.privacy, (("gaussian", self.gaussian_mu, 1),))
        assert self.epsilon is not None
        assert self.weights is not None
        changed, numbers = CHANGED[self.neighbors], Counter(self.weights)
        unit = Fraction(self.epsilon) / sum((times * Fraction(weight) for weight, times in numbers.items()), Fraction())
        parts = [
            ("discrete-laplace", up(unit * Fraction(weight) / changed), changed * times)
            for weight, times in numbers.items()
        ]
        return PrivacyProfile(self.privacy, tuple(parts))

    @property
    def dimensions(self) -> int:
        return 2

    def _traps(self) -> Iterator[Trap]:
        yield from super()._traps()
        yield from traps_of_columns(self.columns)

    def __repr__(self) -> str:
        m = len(self.marginals)
        return (
            f"<NoisyMarginals of {sum(self.sizes)} cells in {m} marginal{'s' * (m > 1)} of {len(self.columns)} "
            f"column{'s' * (len(self.columns) > 1)}: {self.privacy}>"
        )

    def error(self, n: SupportsIndex, *args: Any, **assumptions: Any) -> NDArray[np.float64]:
        """Return the standard deviation of the noise on each count, for each marginal; it does not depend on n."""
        return np.array([noise.deviation for noise in self.noises])

    def reading(self) -> Counts:
        return Counts(
            (sum(self.sizes),),
            partial(encoded, self.columns),
            partial(counted, self.columns, self.marginals),
            cells_of_a_record=len(self.marginals),
        )

    def law_of(self, summary: tuple[NDArray[np.int64], int]) -> NoisyIntegers:
        counts, n = summary
        runs = [(noise.law, size) for noise, size in zip(self.noises, self.sizes, strict=True)]
        return NoisyIntegers(
            counts, noise=IndependentRuns(runs), most=2**62 // max(self.sizes), decode=partial(self._released, n=n)
        )

    def _released(self, codes: NDArray[np.int64], *, n: int) -> Marginals:
        pieces = np.split(codes, np.cumsum(self.sizes)[:-1])
        counts = {
            tuple(names): piece.reshape(shape)
            for names, piece, shape in zip(self.marginals, pieces, self.shapes, strict=True)
        }
        deviations = {tuple(names): noise.deviation for names, noise in zip(self.marginals, self.noises, strict=True)}
        known = n if self.neighbors == "replace-one" else None
        return Marginals(dict(self.columns), counts, deviations, known, self.privacy)


@lru_cache(maxsize=256)
def _noise(
    mu: float | None, epsilon: float | None, changed: int, weight: float, numbers: tuple[tuple[float, int], ...]
) -> Noise | None:
    """Return the noise of a marginal with this weight, Gaussian if mu is given; None if it is too large.

    `numbers` has each weight with the number of its marginals.
    """
    power = 1 if mu is None else 2
    total = changed * sum((times * Fraction(other) ** power for other, times in numbers), Fraction())
    law: DiscreteLaplace | RoundedGaussian
    if mu is None:
        assert epsilon is not None
        scale: Fraction | float = total / (Fraction(epsilon) * Fraction(weight))
    else:
        scale = root_up(total / (Fraction(mu) * Fraction(weight)) ** 2)
    if scale > _MOST_SCALE:
        return None
    law = DiscreteLaplace(scale) if mu is None else RoundedGaussian(scale)
    return Noise(law, math.sqrt(law.variance))


def gaussian_mu(epsilon: float, delta: float, m: int, neighbors: str) -> float | None:
    """Return the mu of Gaussian noise on m marginals; None if discrete Laplace noise has less variance, at equal
    weights.
    """
    mu = gaussian_mu_down(epsilon, delta) if delta else 0.0
    changed = CHANGED[neighbors] * m
    return mu if mu and math.sqrt(changed) / mu < math.sqrt(2) * changed / epsilon else None


def encoded(columns: Sequence[tuple[Any, Column]], x: Any) -> Codes:
    """Return the bins of the records of a table, of shape (n, columns). PRIVATE."""
    table = DataColumns(x, [name for name, _ in columns])
    codes = np.empty((len(columns), table.n), np.uint16)
    for row, (name, column) in zip(codes, columns, strict=True):
        row[:] = column.encode(f"column {name!r}", table[name])
    return codes.T


def counted(
    columns: Sequence[tuple[Any, Column]], marginals: Sequence[Sequence[Any]], codes: Codes, threads: int
) -> NDArray[np.int64]:
    """Return the counts of all cells of marginals, one after the other, from `encoded` records. PRIVATE."""
    places = {name: i for i, (name, _) in enumerate(columns)}
    sizes = [column.size for _, column in columns]
    runs = [[places[name] for name in names] for names in marginals]
    out = np.empty(sum(math.prod(sizes[place] for place in run) for run in runs), np.int64)
    _marginals.count(np.ascontiguousarray(codes.T), np.array(sizes, np.int32), runs, out, workers=threads)
    return out


def checked_marginals(marginals: Any, names: Sequence[Any]) -> tuple[tuple[Any, ...], ...]:
    """Marginals as different tuples of different names."""
    if isinstance(marginals, str) or not hasattr(marginals, "__iter__"):
        raise TypeError(f"marginals must be a sequence of tuples of names, not {type(marginals).__name__}")
    made: list[tuple[Any, ...]] = []
    for given in marginals:
        chosen = tuple(given) if isinstance(given, (tuple, list)) else ()
        if not chosen:
            raise TypeError(f"each marginal must be a tuple of names, not {given!r}")
        for name in chosen:
            if name not in names:
                raise ValueError(f"each marginal must have names of columns, not {name!r}")
        made.append(chosen)
    if not made or any(len(set(given)) < len(given) for given in made) or len(set(map(frozenset, made))) < len(made):
        raise ValueError("marginals must be different sets of different columns, at least one")
    return tuple(made)


_BINS = 16


def _ready(columns: Sequence[tuple[Any, Column]]) -> tuple[tuple[Any, Column], ...]:
    """Columns whose bins are given, or 16 of a grid."""
    made = []
    for name, column in columns:
        if isinstance(column, Bins):
            if column.private:
                raise ValueError(f"column {name!r} must have bounds, a Grid or edges")
            column = column.within(None).with_bins(_BINS)
        made.append((name, column))
    return tuple(made)
