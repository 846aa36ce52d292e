"""Densities that are constant on cells: values, quantiles and samples, whatever the weights of the cells are."""

from __future__ import annotations

from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _bins
from dpfast.core import checks
from dpfast.core.privacy import Privacy
from dpfast.core.tabular import Tabular
from dpfast.densities.cells import Cells, frozen_array, is_whole, plain
from dpfast.random import RandomSource


class OfCells(Tabular):
    """Base class of densities that are constant on each cell. All methods are post-processing and spend no budget.

    Attributes
    ----------
    weights : ndarray of int64, shape ``cells.bins``
        Nonnegative, not all 0.
    cells : Cells
    privacy : Privacy
    """

    weights: NDArray[np.int64]
    cells: Cells
    privacy: Privacy

    @property
    def edges(self) -> Any:
        """The edges of the bins in data units: an array, or a tuple with one for each column."""
        edges = self.cells.edges
        return edges[0] if len(edges) == 1 else edges

    @cached_property
    def density(self) -> NDArray[np.float64]:
        """The density on each cell, per data unit; integrates to 1.

        Raises ValueError, whatever the counts, if cells are so small or large that it could overflow float64.
        """
        return frozen_array(np.asarray(self.weights / self.weights.sum() / self.cells.volumes()))

    def pdf(self, x: ArrayLike) -> Any:
        """Return the density at points (of shape (..., r) for r columns): 0 outside, NaN at NaN. A float for one point.

        At an edge it is the density of the bin above; at the upper bound, that of the last bin. For whole numbers it is
        the probability of each, constant from half a unit below to half a unit above it.
        """
        points = np.asarray(x, dtype=np.float64)
        if len(self.cells.bins) == 1:
            points = points[..., None]
        elif points.ndim == 0 or points.shape[-1] != len(self.cells.bins):
            raise ValueError(f"x must have {len(self.cells.bins)} columns, not shape {points.shape}")
        inside = np.ones(points.shape[:-1], dtype=bool)
        index = []
        for a, edges in enumerate(self.cells.edges):
            column = points[..., a]
            inside &= (column >= edges[0]) & (column <= edges[-1])
            index.append(np.clip(np.searchsorted(edges, column, side="right") - 1, 0, edges.size - 2))
        outside = np.where(np.isnan(points).any(axis=-1), np.nan, 0.0)
        return plain(np.where(inside, self.density[tuple(index)], outside))

    def cdf(self, x: ArrayLike) -> Any:
        """Return the distribution function, for one column. A float for a number, else an array.

        Of whole numbers it is the share of those up to x, and rises at whole numbers only.
        """
        edges, shares = self._one_column()
        points = np.asarray(x, dtype=np.float64)
        if is_whole(self.cells.grids[0]):
            points = np.floor(points) + 0.5
        return plain(np.interp(points, edges, shares))

    def quantile(self, q: ArrayLike) -> Any:
        """Return the least x within the bounds with cdf(x) >= q (for q = 0, the least with a density); NaN outside [0,
        1].

        For one column. A float for a number, else an array; of whole numbers it is one of them.
        """
        edges, shares = self._one_column()
        levels = np.asarray(q, dtype=np.float64)
        levels = np.where((levels >= 0) & (levels <= 1), levels, np.nan)
        first, last = np.flatnonzero(self.weights)[[0, -1]]
        bins = np.clip(np.searchsorted(shares[1:], levels, side="left"), first, last)
        within = (levels - shares[bins]) / (shares[bins + 1] - shares[bins])
        found = edges[bins] + within * (edges[bins + 1] - edges[bins])
        if is_whole(self.cells.grids[0]):
            found = np.maximum(np.ceil(found - 0.5), edges[first] + 0.5)
            found = np.where(self.cdf(found - 1) >= levels, np.maximum(found - 1, edges[first] + 0.5), found)
            found = np.where(self.cdf(found) < levels, found + 1, found)
        return plain(found)

    def _one_column(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the edges, and the share of the total up to each edge."""
        if len(self.cells.bins) > 1:
            raise ValueError("cdf and quantile support one column only: use sample() and pdf() for several")
        sums = np.cumsum(self.weights)
        return self.cells.edges[0], np.concatenate([[0.0], sums / sums[-1]])

    def sample(self, k: SupportsIndex, rng: RandomSource = None, *, workers: int = 1) -> NDArray[np.float64]:
        """Draw independent synthetic records: a cell, exactly by weight, then a uniform grid point of the cell.

        Parameters
        ----------
        k : int
            Number of records, at least 0; any number is free of privacy cost.
        rng : numpy.random.Generator or BitGenerator, optional
        workers : int
            Number of threads; for a given rng the draws do not depend on it.

        Returns
        -------
        ndarray of float64, shape (k,), or (k, r) for r columns

        Notes
        -----
        Run time: about twice that of ``Generator.random(k)`` for one column.
        """
        threads, k = checks.threads(workers), checks.whole("k", k)
        points = self.cells.draw(_bins.WeightedCells(self.weights.reshape(-1)).fill, k, rng, threads)
        return points[:, 0] if len(self.cells.bins) == 1 else points
