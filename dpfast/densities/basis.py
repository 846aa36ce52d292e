"""Trigonometric bases on a grid of nodes."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpfast.core.grid import Grid

BITS = 20  # a table entry is a multiple of 2**-20
MOST_TERMS = 2**10


def most_terms(grid: Grid) -> int:
    """Return the largest number of terms of a series on a grid."""
    return min(grid.size - 1, MOST_TERMS)


def width_of(grid: Grid) -> float:
    """Return the width of the interval of a series, in data units."""
    return grid.size * grid.step


# ---- the public table ----


@lru_cache(maxsize=16)
def cosine_table(nodes: int, bits: int) -> NDArray[np.int32]:
    """round(2**bits cos(pi q / (2 nodes))), q = 0 .. 4 nodes - 1, to within 0.5 + 2**-10.

    A Taylor series of 13 terms in doubles; each operation is correctly rounded, so all machines compute the same table.
    """
    square = (math.pi / 2 * np.arange(nodes + 1) / nodes) ** 2
    cosine = np.zeros(nodes + 1)
    for k in range(12, -1, -1):
        cosine = cosine * square + (-1) ** k / math.factorial(2 * k)
    quarter = np.rint(cosine * 2.0**bits).astype(np.int32)
    quarter[nodes] = 0
    half = np.concatenate([quarter, -quarter[-2::-1]])
    table = np.concatenate([half, half[-2:0:-1]])
    table.flags.writeable = False
    return table


def phases(terms: int, basis: str, nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of phi_j(u_i), u_i = (i + 1/2) / nodes, in the table: starts[j] + i strides[j], modulo its length.

    Cosine j is cos(pi j (2 i + 1) / (2 nodes)); sine l is cosine 2 l, a quarter of a period later.
    """
    j = np.arange(1, terms + 1)
    if basis == "cosine":
        frequency, late = j, 0 * j
    else:
        frequency, late = j + j % 2, nodes * (1 - j % 2)
    period = 4 * nodes
    return (frequency - late) % period, 2 * frequency % period
