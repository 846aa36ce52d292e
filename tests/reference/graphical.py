"""Slow twins of graphical models: one table of all columns."""

import math

import numpy as np


def joint(sizes, potentials, total):
    """The table of all columns that is proportional to the product of exponentials of potentials."""
    table = np.ones(sizes)
    for places, values in potentials.items():
        table *= np.exp(np.reshape(values, [size if i in places else 1 for i, size in enumerate(sizes)]))
    return total * table / table.sum()


def margin(table, places):
    """The margin of a table, flat."""
    return table.sum(axis=tuple(i for i in range(table.ndim) if i not in places)).reshape(-1)


def objective(table, noisy, entropy):
    """What a fit minimises: weighted squares, less the entropy."""
    least = math.sqrt(min(each.variance for each in noisy.values()))
    squares = sum(
        ((margin(table, places) - each.counts) ** 2).sum() / (2 * entropy * each.variance / least)
        for places, each in noisy.items()
    )
    return squares + (table * np.log(np.maximum(table, 1e-300))).sum()
