"""A released histogram: weights, quantiles, density and samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core import checks, plotting
from dpfast.core.privacy import Privacy
from dpfast.densities.cells import Cells, frozen_array, is_whole
from dpfast.densities.of_cells import OfCells
from dpfast.laws import Independent, ZeroSumLaplace
from dpfast.theory.counts import CountNoise, count_noise
from dpfast.theory.densities import mise_with_noise


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(OfCells):
    """A released histogram. Its attributes are public or already privatised, so further use costs no privacy.

    Attributes
    ----------
    counts : ndarray of int64, shape ``cells.bins``
        The noisy counts as released: unbiased, possibly negative. With Laplace noise under "replace-one", those of up
        to 64 cells sum to n.
    weights : ndarray of int64, same shape
        The consistent counts: nonnegative, not all 0, by the argument `consistency` of `dpfast.histogram`. The methods
        below use these.
    cells : Cells
        The box and its bins; `edges` in data units. Bins of whole numbers have edges at halves.
    n : int or None
        The number of records, if it is public.
    privacy : Privacy
    noise_error : float
        Mean integrated squared error, on the unit box, from the noise of the counts alone; computed from n, bins and
        epsilon, or from the released total if n is private.

    Notes
    -----
    Everything is post-processing of `counts` and spends no budget. The density is constant on each cell.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> ages = np.random.default_rng(0).integers(18, 90, 10_000)
    >>> histogram = dpf.histogram(ages, 4, bounds=(0, 100), epsilon=1.0)
    >>> histogram.edges
    array([ -0.5,  24.5,  50.5,  75.5, 100.5])
    >>> bool(abs(histogram.cdf(50) - np.mean(ages <= 50)) < 0.01)
    True
    >>> histogram.sample(3).shape
    (3,)
    """

    counts: NDArray[np.int64]
    weights: NDArray[np.int64]
    cells: Cells
    n: int | None
    privacy: Privacy
    noise_error: float = field(default=math.nan)

    def __post_init__(self) -> None:
        for name in ("counts", "weights"):
            object.__setattr__(self, name, frozen_array(np.array(getattr(self, name))))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.counts, self.weights, self.cells, self.n, self.privacy, self.noise_error)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.cells.bins))
        records = "" if self.n is None else f" of {self.n} records"
        noisy = ", noise exceeds a uniform density's error" if self.noise_dominates else ""
        return f"<Histogram{records} in {shape} bins{noisy}: {self.privacy}>"

    def _caption(self) -> str:
        records = "" if self.n is None else f" of {self.n:,} records"
        return f"Histogram{records}: {self.privacy}"

    def _as_columns(self) -> dict[str, NDArray[Any]]:
        """Return the cells: their ends, the noisy count and an interval for the exact one, the weight and its share."""
        several = len(self.cells.bins) > 1
        columns: dict[str, NDArray[Any]] = {}
        for a, edges in enumerate(self.cells.edges):
            places = np.indices(self.cells.bins, sparse=True)[a]
            for name, ends in (("lower", edges[:-1]), ("upper", edges[1:])):
                spread = np.broadcast_to(ends[places], self.cells.bins).reshape(-1)
                columns[f"{name}_{a}" if several else name] = spread
        low, high = np.moveaxis(self.interval(), -1, 0)
        numbers = {"count": self.counts, "low": low, "high": high, "weight": self.weights}
        columns |= {name: np.ascontiguousarray(array).reshape(-1) for name, array in numbers.items()}
        return {**columns, "share": columns["weight"] / columns["weight"].sum()}

    @property
    def noise_dominates(self) -> bool:
        """Whether the noise error exceeds 1, about the error of the uniform density; if so, use fewer bins."""
        return self.noise_error > 1

    def range(self, low: float, high: float) -> float:
        """Return the number of records from `low` to `high`, both included, by `weights`; for one column.

        A bin that lies partly within has its share of the records, as if they were spread evenly: for floats that are
        mostly whole numbers, give ``grid=Grid(lower, upper, step=1)``, or ends between two numbers. Infinite ends are
        allowed.
        """
        checks.interval("low and high", (low, high))
        whole = is_whole(self.cells.grids[0])
        below = self.cdf(math.ceil(low) - 1 if whole and math.isfinite(low) else low)
        return float((self.cdf(high) - below) * self.weights.sum())

    def standard_error(self, low: float = -math.inf, high: float = math.inf) -> float:
        """Return the standard deviation of the noise in the number of records from `low` to `high`, for one column.

        It is public, and that of the unbiased `counts`; weights, which are not negative, have less error.
        """
        self._one_column()
        return math.sqrt(max(self._variance(self._shares(0, low, high)), 0.0))

    def _shares(self, axis: int, low: float, high: float) -> NDArray[np.float64]:
        """Return the share of each bin of an axis from `low` to `high`."""
        checks.interval("low and high", (low, high))
        edges = self.cells.edges[axis]
        if is_whole(self.cells.grids[axis]):
            low, high = np.ceil(low) - 0.5, np.floor(high) + 0.5
        return np.asarray(np.diff(np.clip(edges, low, max(low, high))) / np.diff(edges))

    def _variance(self, shares: NDArray[np.float64]) -> float:
        """Return the variance of the noise of a sum of shares of the counts: equal ones, whose sum may be known."""
        noise, size = self._noise(len(self.cells)), shares.size
        square = float(shares @ shares)
        if isinstance(noise.law, ZeroSumLaplace) and size > 1:
            square = (square - float(shares.sum()) ** 2 / size) * size / (size - 1)
        return noise.variance * square

    def _noise(self, cells: int | None) -> CountNoise:
        """Return the noise on the counts of a histogram of so many cells; None for independent noise."""
        privacy = self.privacy
        if privacy.unit != "epsilon":
            raise ValueError(f"privacy must be in epsilon for a histogram whose noise is known, not in {privacy.unit}")
        noise = "gaussian" if privacy.delta else "discrete-laplace"
        return count_noise(
            cells, epsilon=privacy.epsilon, delta=privacy.delta, neighbors=privacy.neighbors, noise=noise
        )

    def error(self, *, roughness: float) -> float:
        """Return the expected mean integrated squared error on the unit box, for an assumed roughness.

        `dpfast.theory.perturbed_mise`, without access to data; divide by the volume of the bounds for data units.
        """
        n = max(int(self.weights.sum()), 1) if self.n is None else self.n
        return mise_with_noise(self.cells.bins, n, checks.nonnegative("roughness", roughness), self.noise_error)

    def interval(self, confidence: float = 0.95) -> NDArray[np.int64]:
        """Intervals for the exact counts, each by itself: what the noise can have done, with this probability at least.

        Parameters
        ----------
        confidence : float
            In (0, 1).

        Returns
        -------
        ndarray of int64, shape ``(*cells.bins, 2)``
            The lower and the upper ends, between 0 and n, if that is public.

        Notes
        -----
        A function of public numbers and of the released counts. With Laplace noise of sum 0, up to 64 cells under
        "replace-one", the ends are those of independent noise, which is wider: the intervals are too long, by a factor
        of 2 for 2 cells and of 1.1 for 10.

        Examples
        --------
        >>> import dpfast as dpf
        >>> histogram = dpf.histogram([1, 2, 3], 2, bounds=(0, 4), epsilon=20.0, neighbors="add-remove")
        >>> histogram.interval().tolist()
        [[1, 1], [2, 2]]
        """
        reach = self._reach(checks.between("confidence", confidence, 0.0, 1.0))
        ends = np.stack([self.counts - reach, self.counts + reach], axis=-1)
        return np.clip(ends, 0, self.n)

    def _reach(self, confidence: float) -> int:
        """Return a number of records that the noise on a count exceeds at most with probability 1 - confidence."""
        law = self._noise(None).law
        assert isinstance(law, Independent)
        return law.noise.magnitude(confidence)

    def plot(
        self,
        ax: Any = None,
        *,
        unit: str | tuple[str | None, str | None] | None = None,
        confidence: float = 0.95,
        height: str = "density",
    ) -> Any:
        """Plot one or two columns with Matplotlib, with the range of the noise of one column.

        Bars of whole numbers stand at these, and so do the ticks of the axis.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Default: the current axes.
        unit : str, or pair of them for two columns, optional
            The unit of the data, for the labels.
        confidence : float
            Of the range of the noise, see `interval`.
        height : {"density", "count", "share"}
            What bars and colours show: the density, the number of records, or their share of all.

        Returns
        -------
        matplotlib.axes.Axes
        """
        if len(self.cells.bins) > 2:
            raise ValueError("plot supports one or two columns")
        checks.choice("height", height, ("density", "count", "share"))
        unit_height = np.full(self.cells.bins, 1.0 if height == "count" else float(self.weights.sum()))
        if height == "density":
            unit_height *= self.cells.volumes()
        reach = self._reach(checks.between("confidence", confidence, 0.0, 1.0))
        ax = plotting.axes(ax)
        records = "" if self.n is None else f" of {self.n:,} records"
        noise = f"noise on each count: at most {reach:,} with probability {plotting.percent(confidence)}"
        lines = "; lines: its range" if len(self.cells.bins) == 1 else ""
        if len(self.cells.bins) == 1:
            assert unit is None or isinstance(unit, str)
            [edges] = self.cells.edges
            ends = self.interval(confidence) / unit_height[:, None]
            ax.stairs(self.weights / unit_height, edges, fill=True, color=plotting.SKY, alpha=0.6)
            middles, ink = (edges[:-1] + edges[1:]) / 2, plotting.ink(ax)
            ax.vlines(middles, ends[:, 0], ends[:, 1], color=ink, linewidth=1)
            ax.set_xlabel(plotting.with_unit("value", unit))
            plotting.height_axis(ax, height)
        else:
            units = unit if isinstance(unit, tuple) else (unit, unit)
            mesh = ax.pcolormesh(*self.cells.edges, (self.weights / unit_height).T, cmap=plotting.MAP)
            ax.figure.colorbar(mesh, ax=ax, label=height)
            ax.set_xlabel(plotting.with_unit("first column", units[0]))
            ax.set_ylabel(plotting.with_unit("second column", units[1]))
        for axis, grid in zip((ax.xaxis, ax.yaxis), self.cells.grids, strict=False):
            if is_whole(grid):
                plotting.whole_ticks(axis)
        plotting.entitle(ax, f"Private histogram{records}", self.privacy, noise + lines)
        return ax
