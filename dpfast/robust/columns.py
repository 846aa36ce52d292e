"""The base class of mechanisms for coordinate-wise statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _boxes
from dpfast._kernels._threads import each
from dpfast.core import checks, containers
from dpfast.core.types import Records
from dpfast.mechanisms import Mechanism
from dpfast.statistics import Median, RankStatistic

if TYPE_CHECKING:
    pass


_TRANSFORMED_ROWS = 256


@dataclass(frozen=True, repr=False)
class CoordinateWise(Mechanism):
    """A mechanism for a statistic of each column, with public scales and an optional linear transform."""

    statistic: RankStatistic = field(default_factory=Median)
    epsilon: float = field(kw_only=True)
    radius: float = field(kw_only=True, default=0.0)
    scale: float | tuple[float, ...] | None = field(kw_only=True, default=None)
    transform: tuple[tuple[float, ...], ...] | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, RankStatistic):
            raise TypeError(
                f"statistic must have an attack range, like Median() or TrimmedMean(0.1), not {self.statistic!r}"
            )
        values = {
            "epsilon": checks.positive_down("epsilon", self.epsilon),
            "radius": checks.nonnegative("radius", self.radius),
            "scale": _scales(self.scale),
            "transform": _matrix(self.transform),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_dimensions(self) -> None:
        """Reject parameters for different numbers of columns."""
        given = dict(self._dimensions())
        if len(set(given.values())) > 1:
            parts = ", ".join(f"{name}: {d}" for name, d in given.items())
            raise ValueError(f"parameters must be for one number of columns ({parts})")

    def _scale(self, j: int) -> float:
        if self.scale is None:
            return 1.0
        return self.scale[j] if isinstance(self.scale, tuple) else self.scale

    def _dimensions(self) -> Iterator[tuple[str, int]]:
        """Yield the parameters that determine the number of columns."""
        if isinstance(self.scale, tuple):
            yield "scale", len(self.scale)
        if self.transform is not None:
            yield "transform", len(self.transform)

    @property
    def dimensions(self) -> int:
        return 2

    def _matrix(self, X: Records) -> NDArray[Any]:
        records = containers.matrix("X", X)
        self._check_columns(records.shape[1])
        return records

    def _transformed(self, records: NDArray[Any], threads: int) -> NDArray[Any]:
        return records if self.transform is None else _transformed(records, np.array(self.transform), threads)

    def _check_columns(self, columns: int) -> None:
        for name, d in self._dimensions():
            if d != columns:
                raise ValueError(f"X must have {d} columns, like {name}, not {columns}")

    def _restored(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Undo `transform` on released values: postprocessing, which preserves privacy."""
        if self.transform is None:
            return values
        return np.asarray(np.linalg.solve(np.array(self.transform), values[..., None])[..., 0])

    def _described(self) -> str:
        within = f" within {self.radius!r}" if self.radius else ""
        return f"coordinate-wise {self.statistic}{within}"


def _scales(scale: Any) -> float | tuple[float, ...] | None:
    if scale is None:
        return None
    scale = checks.once(scale)
    if np.ndim(scale) == 0:
        return checks.positive("scale", scale)
    return tuple(checks.positive("each of scale", part) for part in scale)


def _matrix(transform: Any) -> tuple[tuple[float, ...], ...] | None:
    if transform is None:
        return None
    matrix = containers.matrix("transform", transform).astype(np.float64)
    if matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"transform must be a square matrix of finite numbers, not of shape {matrix.shape}")
    if np.linalg.matrix_rank(matrix) < len(matrix):
        raise ValueError("transform must be invertible")
    return tuple(map(tuple, matrix.tolist()))


def _transformed(records: NDArray[Any], matrix: NDArray[np.float64], threads: int) -> NDArray[np.float64]:
    """`matrix` times each record separately, in contiguous columns, with the same result on every machine."""
    n, d = records.shape
    out = np.empty((d, n))

    def fill(start: int) -> None:
        rows = slice(start, start + _TRANSFORMED_ROWS)
        with np.errstate(all="ignore"):
            x = np.ascontiguousarray(records[rows].T, dtype=np.float64)
        _boxes.transform(matrix, x, out[:, rows])

    each(fill, range(0, n, _TRANSFORMED_ROWS), threads)
    return out.T
