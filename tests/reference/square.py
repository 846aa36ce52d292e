"""Slow twins of the square wave: matrices, loops, and the published mechanism in floats."""

import numpy as np


def matrix(cells, width, inside, outside):
    """P(symbol | cell), a row for each symbol."""
    symbols = np.arange(cells + width - 1)[:, None]
    starts = np.arange(cells)
    return np.where((symbols >= starts) & (symbols < starts + width), float(inside), float(outside))


def smoothed(shares, span):
    """Averages over `span` neighbours, twice, with a mirror image beyond the ends."""
    wide = np.concatenate([shares[::-1], shares, shares[::-1]])
    triangle = np.convolve(np.ones(span), np.ones(span)) / span**2
    return np.convolve(wide, triangle, mode="same")[shares.size : 2 * shares.size]


def maximised(counts, p, span, tolerance, shares, most=10_000):
    """Expectation maximisation with smoothing; the log-likelihood, and the shares of the cells."""
    previous = -np.inf
    for step in range(most + 1):
        expected = p @ shares
        likelihood = float(counts[counts > 0] @ np.log(expected[counts > 0]))
        if abs(likelihood - previous) < tolerance or step == most:
            return likelihood, shares
        previous = likelihood
        shares = shares * (p.T @ (counts / expected))
        shares = smoothed(shares / shares.sum(), span)
    return None


def published(x, epsilon, cells, rng):
    """The density of numbers in [0, 1] by the square wave in floats, with smoothing by (1, 2, 1) / 4."""
    growth = np.exp(epsilon)
    b = (epsilon * growth - growth + 1) / (2 * growth * (growth - 1 - epsilon))
    near = rng.random(x.size) < 2 * b * growth / (2 * b * growth + 1)
    place = rng.random(x.size)
    far = np.where(place < x, place - b, place + b)
    reports = np.where(near, x + rng.uniform(-b, b, x.size), far)
    counts, edges = np.histogram(reports, bins=cells, range=(-b, 1 + b))
    p = np.zeros((cells, cells))
    for offset in (np.arange(4) + 0.5) / 4:
        middle = (np.arange(cells) + offset) / cells
        low, high = (np.clip(ends[:, None], middle - b, middle + b) for ends in (edges[:-1], edges[1:]))
        p += ((edges[1] - edges[0]) + (growth - 1) * (high - low)) / (2 * b * growth + 1) / 4
    return maximised(counts.astype(float), p, 2, 1e-3 * growth, np.full(cells, 1 / cells))[1]


def wasserstein(shares, x):
    """The distance of a piecewise constant density on [0, 1] to records, by their distribution functions."""
    at = np.linspace(0, 1, 8 * 1024 + 1)
    estimated = np.interp(at, np.linspace(0, 1, len(shares) + 1), np.concatenate([[0], np.cumsum(shares)]))
    return float(np.abs(estimated - np.searchsorted(np.sort(x), at, side="right") / x.size).mean())
