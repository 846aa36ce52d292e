"""The released fit of a regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers, plotting
from dpfast.core.privacy import Privacy
from dpfast.core.tabular import Tabular, html_table

Values = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Fit(Tabular):
    """A released regression. Its attributes are public or already privatised, so further use costs no privacy.

    Attributes
    ----------
    coefficients : ndarray of shape (d,), or (k, d) for k linear predictors
        In units of the label per unit of the column.
    intercept : float, or ndarray of shape (k,)
        0 without an intercept.
    standard_errors : ndarray, of the shape of `coefficients`
        The standard errors of the coefficients: of sampling and of the noise for privacy together.
    intercept_error : float, or ndarray of shape (k,)
        The standard error of the intercept; 0 without one.
    privacy : Privacy
        The guarantee of the whole fit.
    n : int or None
        The number of records, if it is public.
    covariance : ndarray or None
        The covariance matrix of the errors of the coefficients, and of the intercept as the last one, where known.
    names : tuple of d str, or None
        The names of the columns, of a fit to a data frame.
    classes : tuple of labels, or None
        Those of the classes, if they were given: what `predict` returns.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.regression import Fit
    >>> fit = Fit(np.array([2.0, -1.0]), 0.5, np.array([0.1, 0.2]), 0.05, dpf.Privacy(1.0), n=1000)
    >>> fit
    <Fit of 1000 records: epsilon = 1 (pure differential privacy) for one record replaced \
(the number of records is public)
                   estimate         error      95 % low     95 % high
    x0                    2           0.1         1.804         2.196
    x1                   -1           0.2        -1.392        -0.608
    intercept           0.5          0.05         0.402         0.598>
    >>> fit.predict([[1.0, 1.0]])
    array([1.5])
    >>> fit.interval(0.95).round(3)
    array([[ 1.804,  2.196],
           [-1.392, -0.608]])
    """

    coefficients: Values
    intercept: float | Values
    standard_errors: Values
    intercept_error: float | Values
    privacy: Privacy
    n: int | None = None
    covariance: Values | None = None
    names: tuple[str, ...] | None = None
    classes: tuple[Any, ...] | None = None

    def named(self, names: Sequence[str]) -> Fit:
        """Return the fit with these names of the columns."""
        return replace(self, names=tuple(names))

    def linear_predictor(self, X: ArrayLike) -> Values:
        """``X @ coefficients + intercept``: an ndarray of shape (m,), or (m, k) for k linear predictors."""
        rows = containers.matrix("X", X)
        if rows.shape[1] != self.coefficients.shape[-1]:
            raise ValueError(f"X must have {self.coefficients.shape[-1]} columns, not {rows.shape[1]}")
        with np.errstate(all="ignore"):  # a row may contain NaN, infinities or huge numbers
            return np.asarray(rows.astype(np.float64) @ self.coefficients.T + self.intercept)

    def predict(self, X: ArrayLike) -> Values:
        """Predict the labels of rows.

        Parameters
        ----------
        X : array_like of shape (m, d)

        Returns
        -------
        ndarray of shape (m,)
        """
        return self.linear_predictor(X)

    def _labels(self, codes: Values) -> NDArray[Any]:
        """Return the labels of classes by their places, as floats if there are none."""
        if self.classes is None:
            return codes
        labels = np.empty(len(self.classes), object)
        labels[:] = self.classes
        kinds = set(map(type, self.classes))
        plain = labels.astype(kinds.pop()) if kinds < {str, int, bool, float} and len(kinds) == 1 else labels
        return np.asarray(plain[codes.astype(np.intp)])

    def interval(self, confidence: float = 0.95) -> Values:
        """Confidence intervals for the coefficients, each by itself, from `standard_errors` and normal quantiles.

        Parameters
        ----------
        confidence : float
            Strictly between 0 and 1.

        Returns
        -------
        ndarray of shape (d, 2), or (k, d, 2)
            The lower and the upper ends.
        """
        return _around(self.coefficients, self.standard_errors, confidence)

    def intercept_interval(self, confidence: float = 0.95) -> Values:
        """Return the confidence interval for the intercept, see `interval`: an ndarray of shape (2,), or (k, 2)."""
        return _around(self.intercept, self.intercept_error, confidence)

    def __repr__(self) -> str:
        rows = self._table()
        first = max(len(name) for name, _ in rows)
        headings: tuple[str, ...] = _HEADINGS
        if all(math.isnan(value) for _, (_, *errors) in rows for value in errors):  # none are released
            headings, rows = headings[:1], [(name, values[:1]) for name, values in rows]
        lines = [f"{'':{first}}{''.join(f'{name:>{_WIDTH}}' for name in headings)}"]
        lines += [f"{name:{first}}{''.join(f'{_shown(value):>{_WIDTH}}' for value in values)}" for name, values in rows]
        return f"<{self._title()}\n" + "\n".join(lines) + ">"

    def _repr_html_(self) -> str:
        rows = ((name, *values) for name, values in self._table())
        return html_table(self._caption(), ["", *_HEADINGS], rows)

    def _caption(self) -> str:
        return self._title()

    def _as_columns(self) -> dict[str, Any]:
        names, numbers = zip(*self._table(), strict=True)
        return {
            "name": list(names),
            **dict(zip(("estimate", "error", "low", "high"), np.array(numbers).T, strict=True)),
        }

    def plot(self, ax: Any = None, *, confidence: float = 0.95, intercept: bool = False) -> Any:
        """Plot the coefficients and their intervals with Matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Default: the current axes.
        confidence : float
            Of the intervals, see `interval`.
        intercept : bool
            Whether to show the intercept, too.

        Returns
        -------
        matplotlib.axes.Axes
        """
        z = _quantile(confidence)
        shown = [(name, values) for name, values in self._table() if intercept or not name.endswith("intercept")]
        ax, names = plotting.axes(ax), [plotting.plain(name) for name, _ in shown]
        estimates, errors = np.array([values[:2] for _, values in shown]).T
        ink = plotting.ink(ax)
        ax.axvline(0, color=ink, linewidth=0.8, linestyle=":")
        plotting.rows_of_intervals(ax, names, estimates, np.stack([z * errors, z * errors]))
        ax.invert_yaxis()
        ax.set_xlabel("coefficient")
        records = "" if self.n is None else f" of {self.n:,} records"
        kind = f"{type(self).__name__.removesuffix('Fit').lower()} regression".strip()
        title = f"Private {kind}{records}, {plotting.percent(confidence)} intervals"
        plotting.entitle(ax, title, self.privacy)
        return ax

    def _title(self) -> str:
        records = "" if self.n is None else f" of {self.n} records"
        return f"{type(self).__name__}{records}: {self.privacy}"

    def _table(self) -> list[tuple[str, list[float]]]:
        """Return the name, estimate, error and 95 % interval of each parameter."""
        d, several = self.coefficients.shape[-1], self.coefficients.ndim > 1
        estimates, errors = (
            np.concatenate([np.atleast_2d(slopes), np.reshape(constant, (-1, 1))], axis=1)
            for slopes, constant in (
                (self.coefficients, self.intercept),
                (self.standard_errors, self.intercept_error),
            )
        )
        ends = _around(estimates, errors, 0.95)
        names, classes = [*(self.names or (f"x{j}" for j in range(d))), "intercept"], self.classes or range(len(ends))
        return [
            (f"{classes[i]}: {name}" if several else name, [estimates[i, j], errors[i, j], *ends[i, j]])
            for i in range(len(estimates))
            for j, name in enumerate(names)
        ]


_WIDTH = 14
_HEADINGS = ("estimate", "error", "95 % low", "95 % high")


def _shown(value: Any) -> str:
    return f"{value:.4g}"


def _quantile(confidence: float) -> float:
    """Return the two-sided normal quantile."""
    return float(scipy.special.ndtri((1 + checks.between("confidence", confidence, 0.0, 1.0)) / 2))


def _around(estimate: Any, error: Any, confidence: float) -> Values:
    z = _quantile(confidence)
    with np.errstate(over="ignore"):  # a released error may be near the largest float
        return np.stack([np.asarray(estimate - z * error), np.asarray(estimate + z * error)], axis=-1)
