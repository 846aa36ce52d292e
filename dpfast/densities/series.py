"""Orthogonal series: noisy coefficients of a density in a cosine or trigonometric basis.

Notation: ``psi_j = sqrt(2) phi_j`` on the unit interval, ``phi_j(u) = cos(pi j u)`` (cosine) or ``cos(2 pi u), sin(2 pi
u), cos(4 pi u), ...`` (trigonometric); the density is ``1 + sum_j beta_j psi_j``, where beta_j is the mean of psi_j.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _series
from dpfast._kernels._threads import each
from dpfast.core import checks, containers
from dpfast.core.grid import Grid, check_grid
from dpfast.core.privacy import Privacy
from dpfast.densities.basis import BITS, cosine_table, most_terms, phases, width_of
from dpfast.laws import DiscreteLaplace, Independent, NoisyIntegers
from dpfast.mechanisms import Mechanism
from dpfast.mechanisms.plan import Plan
from dpfast.mechanisms.usefulness import OF_NOISE, enough_for_error
from dpfast.random import BLOCK
from dpfast.streaming import Counts
from dpfast.theory.series import BASES, series_error

_NODES = 2**14
_COARSE = 2**8  # up to this many nodes are compared in pairs
_MOST_SUM = 2**61  # bound on a release and on its center
_WEIGHT_BITS = 40  # precision of the weights of cells in draws
_CHUNK = 2**13  # number of draws whose words fit the cache
_SQRT2 = math.sqrt(2)


@dataclass(frozen=True, repr=False)
class SeriesCoefficients(Mechanism):
    """Release the first coefficients of a density in a cosine or trigonometric basis, with discrete Laplace noise.

    Pure epsilon-differential privacy for all coefficients together, under one replaced record; the number of records is
    public.

    Parameters
    ----------
    terms : int
        Number of coefficients, from 1 to 1024 and below the number of grid points.
    grid : Grid
        Public bounds and granularity of the data, in data units. The points half a step beyond its ends map to 0 and 1.
    epsilon : float
        Positive; rounded down to a double.
    basis : {"cosine", "trigonometric"}
        "cosine" is for any smooth density, "trigonometric" for periodic data (hours, angles).

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Privacy: each record is mapped to one of at most 2**14 public nodes, and to the integer vector that a public table
    of ``round(2**20 phi_j)`` has for this node. The sums of these vectors are integers and do not depend on the order
    of the records. One record changes them by at most `sensitivity` in the l1 norm, which is about 1.217 (terms + 1/2)
    2**20 for the cosine basis and is computed from the table. Each sum gets discrete Laplace noise of scale exactly
    sensitivity / epsilon (https://dpfast.readthedocs.io/en/latest/proofs/series.html). The published scale is half of
    this for one term, and 0.82 of it for many: not private (`dpfast.theory.series_published_loss`).
    A record moves by at most one node, 2**-14 of the range: coefficient j of a smooth density is damped by ``(pi j /
    2**14)**2 / 24``, 4e-6 for j = 50.
    Cost: one pass over x, whatever the number of terms, and ``2**14 terms`` multiplications.
    Not implemented: noise of density exp(-n epsilon |v| / S2) in the l2 norm, which has less variance in real
    arithmetic, but has no exact sampler on integers here; and the exponential mechanism over synthetic data sets
    (Theorem 14), whose rate is worse, and whose draws by rejection take a time that grows with a high power of n
    (https://dpfast.readthedocs.io/en/latest/papers/wasserman-zhou.html).

    References
    ----------
    Wasserman and Zhou 2010, "A statistical framework for differential privacy", orthogonal series, Theorem 15.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.SeriesCoefficients(4, grid=dpf.Grid(0, 1), epsilon=1.0)
    >>> x = np.random.default_rng(0).beta(2, 2, 100_000)
    >>> bool(abs(mechanism(x)[1] - np.mean(np.sqrt(2) * np.cos(2 * np.pi * x))) < 0.01)
    True
    """

    terms: int
    grid: Grid = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    basis: str = field(kw_only=True, default="cosine")

    def __post_init__(self) -> None:
        terms = checks.whole("terms", self.terms, least=1)
        check_grid(self.grid)
        self.check_missing()
        most = most_terms(self.grid)
        if terms > most:
            raise ValueError(f"terms must be at most {most} on {self.grid.size} grid points, not {terms}")
        if self.basis not in BASES:
            raise ValueError(f"basis must be {' or '.join(map(repr, BASES))}, not {self.basis!r}")
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        if self.scale > 2**56:
            raise ValueError(f"epsilon={self.epsilon!r} needs noise of more than 2**36 records: use a larger epsilon")

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    @property
    def nodes(self) -> int:
        """Number of public points at which the basis is tabulated."""
        return min(self.grid.size, _NODES)

    @property
    def sensitivity(self) -> int:
        """Bound on the l1 change of the integer sums by one record, in units of 2**-20, at least 1. Public."""
        return max(1, _sensitivity(self.terms, self.basis, self.nodes, BITS))

    @property
    def scale(self) -> Fraction:
        """The exact scale of the noise on the integer sums, sensitivity / epsilon. Public."""
        return self.sensitivity / Fraction(self.epsilon)

    def __repr__(self) -> str:
        grid = self.grid
        return (
            f"<SeriesCoefficients release of {self.terms} {self.basis} coefficients of records on {grid.size} points "
            f"from {grid.lower!r} to {grid.upper!r}, step {grid.step!r}: {self.privacy}>"
        )

    def error(self, n: SupportsIndex, *, smoothness: float = 2.0, roughness: float = 1.0) -> float:
        """Upper bound on the mean integrated squared error of the raw series, in data units.

        `dpfast.theory.series_error` divided by the width of the bounds; n, smoothness and roughness are public
        assumptions.
        """
        bound = series_error(
            self.terms, n, epsilon=self.epsilon, smoothness=smoothness, roughness=roughness, basis=self.basis
        )
        return bound / width_of(self.grid)

    def _enough(self) -> float:
        return enough_for_error(
            OF_NOISE * self.sensitivity / 2**BITS, self.epsilon, spread=2 * math.sqrt(2)
        )  # of a cosine

    def _make_plan(self, n: int | None) -> Plan:
        if n is not None:
            checks.code_range(n << (BITS + 2))
        return super()._make_plan(n)

    def reading(self) -> Counts:
        def count(values: NDArray[Any], threads: int) -> NDArray[np.int64]:
            return _counts(values, self.grid, self.nodes, threads)

        def locate(values: NDArray[Any]) -> NDArray[np.int64]:
            return np.searchsorted(_least_codes(self.grid, self.nodes), self.grid.encode(values), side="right") - 1

        return Counts((self.nodes,), partial(containers.vector, "x"), count, locate)

    def law_of(self, summary: tuple[NDArray[np.int64], int]) -> NoisyIntegers:
        counts, n = summary
        totals = np.empty(self.terms, np.int64)
        _series.sums(counts, cosine_table(self.nodes, BITS), *phases(self.terms, self.basis, self.nodes), totals)
        noise = Independent(DiscreteLaplace(self.scale), totals.size)
        return NoisyIntegers(totals, noise=noise, most=_MOST_SUM, decode=partial(_coefficients, n))


def _coefficients(n: int, sums: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(sums * (_SQRT2 / (n << BITS)))


@lru_cache(maxsize=256)
def _sensitivity(terms: int, basis: str, nodes: int, bits: int) -> int:
    """Integer upper bound on sum_j |phi_j(a) - phi_j(b)| over all nodes a and b, phi_j from the table.

    Up to `_COARSE` nodes are compared in pairs. Otherwise, with u and v half the sum and half the difference of the two
    angles, the sum is 2 sum_j |sin j u sin j v| (cosine: at most its value at u = v) or 2 sum_l |sin l v| (|sin l u| +
    |cos l u|) (at most sqrt(2) in brackets): a maximum over one angle, a multiple of pi / nodes. The last summand
    covers the rounding of the table (https://dpfast.readthedocs.io/en/latest/proofs/series.html).
    """
    table, period = cosine_table(nodes, bits).astype(np.int64), 4 * nodes
    if nodes <= _COARSE:
        starts, strides = phases(terms, basis, nodes)
        phi = table[(starts[:, None] + strides[:, None] * np.arange(nodes)) % period]
        return max(int(np.abs(phi - phi[:, [a]]).sum(axis=0).max()) for a in range(nodes))
    angle = np.arange(nodes + 1)
    if basis == "cosine":
        total = sum((1 << bits) - table[2 * j * angle % period] for j in range(1, terms + 1))
        return int(np.max(total)) + 3 * terms
    sines = [np.abs(table[(2 * j * angle - nodes) % period]) for j in range(1, (terms + 1) // 2 + 1)]
    paired, last = sum(sines[: terms // 2]), sines[-1] * (terms % 2)
    return math.ceil(float(np.max(2 * (_SQRT2 * paired + last)))) + 3 * terms


def _multiplier(grid: Grid, nodes: int) -> int:
    """Return the node of a code is ``floor(code * multiplier / 2**63)``."""
    return (nodes << 63) // grid.size


def _least_codes(grid: Grid, nodes: int) -> NDArray[np.int64]:
    """Return the least code of each node, about i size / nodes for node i."""
    return np.array([-((-i << 63) // _multiplier(grid, nodes)) for i in range(nodes)], np.int64)


def _counts(values: NDArray[Any], grid: Grid, nodes: int, workers: int) -> NDArray[np.int64]:
    """Count the records at each node."""
    multiplier = _multiplier(grid, nodes)

    def count(part: NDArray[Any]) -> NDArray[np.int64]:
        counts = np.zeros(nodes, np.int64)
        for start in range(0, part.shape[0], BLOCK):
            _series.add_counts(grid.encode(part[start : start + BLOCK]), multiplier, counts)
        return counts

    return np.asarray(np.sum(each(count, np.array_split(values, workers), workers), axis=0))
