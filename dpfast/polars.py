"""Releases in expressions of polars: ``pl.col("pay").dpfast.median(...)``. Requires `polars`; import this module.

The namespace `dpfast` of expressions and of Series has a method for each function of numbers, and `release` for any
mechanism. (The namespace `dp` is OpenDP's.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from dpfast import location
from dpfast.core.foreign import active
from dpfast.mechanisms import (
    GlobalSensitivity,
    InverseSensitivity,
    Mechanism,
    MEstimator,
    SmoothSensitivity,
    m_estimate,
)
from dpfast.mechanisms.mechanism import not_mechanism
from dpfast.random import RandomSource

_MARK = "dpfast"
_GROUPED = (
    "an expression releases from all records of a frame, not from each group, window or list: use dpfast.by_group, "
    "which covers all groups by one epsilon"
)
_NUMBERS = (GlobalSensitivity, InverseSensitivity, MEstimator, SmoothSensitivity)
_NUMBER, _NUMBERS_IN_A_LIST = pl.Float64(), pl.List(pl.Float64)


class Releases(ABC):
    """The methods of the namespace `dpfast` of an expression or a Series.

    All parameters but the first are those of the function of dpfast that the method is named after, by keyword.

    Notes
    -----
    Privacy: that of the function. Each time that polars evaluates the expression it makes one release, which is charged
    to the `dpfast.Ledger` that was active when the expression was made, or else to that of the evaluation.
    In ``group_by``, ``over``, ``rolling`` and ``list.eval`` an expression raises a TypeError, before it reads records.
    """

    @abstractmethod
    def _made(self, function: Callable[[Any], Any], dtype: pl.DataType) -> Any:
        """Return the release by this function of a Series, or the expression of it."""

    def median(self, **options: Any) -> Any:
        """Release the median: `dpfast.median`."""
        return self._made(partial(location.median, **options), _NUMBER)

    def quantile(self, q: float | Sequence[float], **options: Any) -> Any:
        """Release a quantile, or several as a list: `dpfast.quantile`."""
        dtype = _NUMBER if np.ndim(q) == 0 else _NUMBERS_IN_A_LIST
        return self._made(lambda x: location.quantile(x, q, **options), dtype)

    def iqr(self, **options: Any) -> Any:
        """Release the interquartile range: `dpfast.iqr`."""
        return self._made(partial(location.iqr, **options), _NUMBER)

    def trimmed_mean(self, trim: float, **options: Any) -> Any:
        """Release a trimmed mean: `dpfast.trimmed_mean`."""
        return self._made(lambda x: location.trimmed_mean(x, trim, **options), _NUMBER)

    def mean(self, **options: Any) -> Any:
        """Release the mean: `dpfast.mean`."""
        return self._made(partial(location.mean, **options), _NUMBER)

    def sum(self, **options: Any) -> Any:
        """Release the sum: `dpfast.sum`."""
        return self._made(partial(location.sum, **options), _NUMBER)

    def variance(self, **options: Any) -> Any:
        """Release the variance: `dpfast.variance`."""
        return self._made(partial(location.variance, **options), _NUMBER)

    def std(self, **options: Any) -> Any:
        """Release the standard deviation: `dpfast.std`."""
        return self._made(partial(location.std, **options), _NUMBER)

    def count(self, **options: Any) -> Any:
        """Release the number of records, where it is private: `dpfast.count`."""
        return self._made(partial(location.count, **options), _NUMBER)

    def m_estimate(self, psi: Any, **options: Any) -> Any:
        """Release an M-estimate of location: `dpfast.m_estimate`."""
        return self._made(lambda x: m_estimate(x, psi, **options), _NUMBER)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"no release {name!r} of polars: call dpfast.{name} with a Series, or use .dpfast.release(mechanism)"
        )

    def release(self, mechanism: Mechanism, *, rng: RandomSource = None) -> Any:
        """Release by any mechanism of numbers whose release is a number or a vector: a Float64, or a list of them.

        Raises
        ------
        TypeError
            If it is not a mechanism, or releases an object: call such a mechanism on a Series.
        """
        if not isinstance(mechanism, Mechanism):
            raise TypeError(not_mechanism(mechanism))
        if not mechanism.releases_numbers:
            raise TypeError(f"a {type(mechanism).__name__} releases an object, not numbers: call it on a Series")
        dtype = _NUMBER if isinstance(mechanism, _NUMBERS) else _NUMBERS_IN_A_LIST
        return self._made(partial(mechanism, rng=rng), dtype)


@pl.api.register_series_namespace("dpfast")
class SeriesReleases(Releases):
    """Releases of a Series: floats and arrays.

    Examples
    --------
    >>> import polars as pl, dpfast.polars
    >>> ages = pl.Series([20, 30, 40] * 1000)
    >>> ages.dpfast.median(bounds=(0, 100), epsilon=1.0)
    30.0
    """

    def __init__(self, series: pl.Series) -> None:
        self._series = series

    def _made(self, function: Callable[[Any], Any], dtype: pl.DataType) -> Any:
        return function(self._series)


@pl.api.register_expr_namespace("dpfast")
class ExpressionReleases(Releases):
    """Releases of an expression: expressions of one row, in eager and lazy frames and all engines of polars.

    Examples
    --------
    >>> import polars as pl, dpfast as dpf, dpfast.polars
    >>> frame = pl.LazyFrame({"age": [20, 30, 40] * 1000})
    >>> frame.select(pl.col("age").dpfast.median(bounds=(0, 100), epsilon=1.0)).collect().item()
    30.0
    """

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def _made(self, function: Callable[[Any], Any], dtype: pl.DataType) -> pl.Expr:
        # polars may evaluate in a thread of its own, without the ledger that is active here.
        context = None if active.get() is None else copy_context()

        def released(inputs: Sequence[pl.Series]) -> pl.Series:
            x, mark = inputs
            if mark.name != _MARK:  # polars passes groups without names
                raise TypeError(_GROUPED)
            value = function(x) if context is None else context.copy().run(function, x)
            return pl.Series(x.name, [np.asarray(value).tolist()], dtype)

        inputs = [self._expression, pl.lit(0).alias(_MARK)]
        return pl.map_batches(inputs, released, return_dtype=dtype, returns_scalar=True)
