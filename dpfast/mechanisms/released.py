"""A released estimate with an interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.core import plotting
from dpfast.core.privacy import Privacy
from dpfast.core.tabular import Tabular

_LINE = "dpfast estimate"  # the mark of an estimate in axes


ENDLESS = 1e308  # from which on an end of an interval on all floats is no bound


def or_none(end: Any) -> float | None:
    """Return an end of an interval; None for no bound."""
    return end if isinstance(end, (int, float)) and not abs(end) >= ENDLESS else None


@dataclass(frozen=True, repr=False)
class Estimate(Tabular):
    """A private estimate with an interval. It unpacks into ``value, low, high``, an array of these three.

    Attributes
    ----------
    value, low, high : float
        ``low <= value <= high``.
    confidence : float
        The probability with which the interval contains the value that it is for (`dpfast.interval`).
    privacy : Privacy
        The guarantee of all three numbers together.
    bounds : pair of float, optional
        The public range of the value.

    Examples
    --------
    >>> import dpfast as dpf
    >>> estimate = dpf.Estimate(43412.25, 43100.5, 43730.0, 0.95, dpf.Privacy(1.0))
    >>> estimate
    43,412 (95 % interval 43,100 to 43,730); epsilon = 1 (pure differential privacy) for one record replaced (the \
number of records is public)
    >>> value, low, high = estimate
    >>> high - low
    629.5
    """

    value: float
    low: float
    high: float
    confidence: float
    privacy: Privacy
    bounds: tuple[float, float] | None = None

    @property
    def at_bound(self) -> str | None:
        """Whether the value is at an end of `bounds`: "lower", "upper" or None.

        The exact statistic may then be there too, or the bounds may be too narrow, or the records too few.
        """
        if self.bounds is None:
            return None
        lower, upper = self.bounds
        return "lower" if self.value <= lower else "upper" if self.value >= upper else None

    def __iter__(self) -> Iterator[float]:
        return iter((self.value, self.low, self.high))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array([*self], np.float64 if dtype is None else dtype)

    def __repr__(self) -> str:
        return f"{self._numbers}; {self.privacy}"

    def plot(self, ax: Any = None, *, name: str = "estimate", unit: str | None = None) -> Any:
        """Plot the value and the interval with Matplotlib, below the other estimates that are in the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Default: the current axes.
        name : str
            The label of the line.
        unit : str, optional
            The unit of the data, for the label of the axis.

        Returns
        -------
        matplotlib.axes.Axes

        Notes
        -----
        The title has the guarantee of this estimate. Several estimates from the same records cost the sum.
        """
        ax = plotting.axes(ax)
        reach = [[self.value - self.low], [self.high - self.value]]
        above = [line.get_label() for line in ax.lines if line.get_gid() == _LINE]
        place, label = len(above), plotting.plain(name)
        plotting.rows_of_intervals(ax, [place], [self.value], reach)
        ax.containers[-1].lines[0].set(gid=_LINE, label=label)
        ax.set_yticks(range(place + 1), [*above, label])
        ax.set_ylim(place + 0.5, -0.5)
        ax.set_xlabel(plotting.with_unit("value", unit))
        title = f"Private estimate, {plotting.percent(self.confidence)} interval{self._at}"
        plotting.entitle(ax, title, self.privacy)
        return ax

    def _as_columns(self) -> dict[str, list[Any]]:
        numbers = {name: [getattr(self, name)] for name in ("value", "low", "high", "confidence")}
        return {**numbers, "at_bound": [self.at_bound or ""]}

    def _caption(self) -> str:
        return str(self.privacy)

    def _repr_html_(self) -> str:
        return f"<b>{self._shown(self.value)}</b> {self._between}{self._at}<br><small>{self._caption()}</small>"

    @property
    def _numbers(self) -> str:
        return f"{self._shown(self.value)} {self._between}{self._at}"

    @property
    def _at(self) -> str:
        return "" if self.at_bound is None else f", at the {self.at_bound} bound"

    @property
    def _between(self) -> str:
        return f"({100 * self.confidence:.10g} % interval {self._shown(self.low)} to {self._shown(self.high)})"

    def _shown(self, number: float) -> str:
        """Return the number to about a hundredth of the interval's width, or whole like all three, as of counts."""
        width = self.high - self.low
        if not 1e-12 < width < 1e15 or abs(number) >= 1e15:
            return f"{number:.6g}"
        if all(part.is_integer() for part in self):
            return f"{number:,.0f}"
        return f"{number:,.{max(0, 2 - math.floor(math.log10(width)))}f}"
