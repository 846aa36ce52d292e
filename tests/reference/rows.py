"""Slow codes of rows in a ball, in exact arithmetic, and the divergences of laws on a lattice."""

import math
from fractions import Fraction

import numpy as np


def code_of_row(row, ball):
    """The exact nearest code of a row well within the ball, or None if the row or that code is not.

    For a center of 0, where the division by the step is exact.
    """
    if not np.isfinite(row).all():
        return [0] * len(row)
    exact = [Fraction(float(v)) / Fraction(ball.step) for v in row]
    inner = Fraction(ball.ratio) * (1 - Fraction(2) ** -23)
    nearest = [round(v) for v in exact]
    within = sum(v**2 for v in exact) < inner**2 and sum(v**2 for v in nearest) <= ball.most
    return nearest if within else None


def shortened(row, ball):
    """The coordinates, in steps, of the nearest point of the ball to a finite row outside, rounded once at the end."""
    exact = [Fraction(float(v)) / Fraction(ball.step) for v in row]
    most = max(map(abs, exact))
    parts = [float(v / most) for v in exact]
    norm = math.sqrt(math.fsum(part**2 for part in parts))
    return np.array([ball.ratio * part / norm for part in parts])


def adversarial_rows(ball, count, d, rng):
    """Rows made to leave a ball around 0 by rounding: near its surface, huge, tiny, missing, on the lattice."""
    kinds = [
        rng.normal(size=(count, d)),
        np.where(np.arange(d) < 1, 1.0, rng.normal(size=(count, d)) * 1e-9),
        np.ones((count, d)),
        rng.normal(size=(count, d)).astype(np.float32).astype(np.float64),
    ]
    near = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in kinds]
    factors = 1 + np.array([0, 1, -1, 3, -3]) * 2.0 ** -np.array([0, 53, 53, 27, 27])
    rows = [ball.radius * factors[rng.integers(0, 5, (count, 1))] * part for part in near]
    rows.append(np.rint(rows[0] / ball.step) * ball.step)  # on the lattice, many just outside
    rows.append((np.rint(rows[0] / ball.step) + 0.5) * ball.step)
    extremes = [1e308, -1e308, 1.7976931348623157e308, 5e-324, 1e-310, 0.0, -0.0, ball.radius, ball.step]
    rows.append(rng.choice(extremes, (count, d)))
    odd = rng.normal(size=(count, d)) * ball.radius
    odd[np.arange(count), rng.integers(0, d, count)] = rng.choice([np.nan, np.inf, -np.inf, 1e308], count)
    rows.append(odd)
    return np.concatenate(rows)


def loss(mine, theirs):
    """The largest log-ratio of two laws, as log-probabilities of the same outcomes."""
    possible = mine > -np.inf
    return float(np.max(mine[possible] - theirs[possible]))


def delta(mine, theirs, epsilon):
    """Their hockey-stick divergence at epsilon."""
    excess = np.exp(mine) - np.exp(epsilon + theirs)
    return math.fsum(excess[excess > 0])
