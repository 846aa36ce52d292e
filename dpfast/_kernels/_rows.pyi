from typing import Any

import numpy as np
from numpy.typing import NDArray

_Records = NDArray[np.floating[Any] | np.integer[Any] | np.bool_]

def add_grids(values: _Records, sums: NDArray[np.int64], *, grids: NDArray[np.float64]) -> None: ...
def add_ball(
    values: _Records,
    sums: NDArray[np.int64],
    *,
    center: NDArray[np.float64],
    inverse: float,
    radius: float,
    most: float,
) -> None: ...
def add_gradients(
    values: _Records,
    labels: _Records,
    sums: NDArray[np.int64],
    *,
    center: NDArray[np.float64],
    inverse: float,
    radius: float,
    most: float,
    family: int,
    bound: float,
    scale: float,
    clip: float,
    matrix: NDArray[np.float32],
    theta: NDArray[np.float64],
) -> None: ...
def add_products(
    values: _Records,
    sums: NDArray[np.int64],
    *,
    center: NDArray[np.float64],
    inverse: float,
    radius: float,
    most: float,
) -> None: ...
def encode_ball(
    values: _Records,
    out: NDArray[np.int64],
    *,
    center: NDArray[np.float64],
    inverse: float,
    radius: float,
    most: float,
) -> None: ...
def take_residuals(
    values: _Records,
    labels: NDArray[np.float64],
    *,
    center: NDArray[np.float64],
    inverse: float,
    radius: float,
    most: float,
    slopes: NDArray[np.float64],
) -> None: ...
def add_labelled_products(
    values: _Records,
    labels: _Records,
    sums: NDArray[np.int64],
    *,
    center: NDArray[np.float64],
    inverse: float,
    radius: float,
    most: float,
    label_center: NDArray[np.float64],
    label_inverse: float,
    label_radius: float,
    label_most: float,
) -> None: ...
