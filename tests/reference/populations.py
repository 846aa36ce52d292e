"""Slow twin of `_kernels._populations`: the sums over the nodes and lengths of normal rows, one after the other."""

import math

import numpy as np


def clipped(axes, rest, clip, nodes, lengths, labels, slopes):
    """The sums of `_populations.clipped`, by its definition."""
    out = np.zeros((4, 7))
    for (weight, u, v), (chance, first, second), curvatures in zip(nodes, labels.T, slopes.T, strict=True):
        z = axes[0] + u * axes[1] + v * axes[2]
        for share, normal in lengths:
            square = rest[0] * max(1 - rest[1] ** 2 + rest[1] * normal, 0.0) ** 3
            limit = clip / math.sqrt(float(z @ z) + square)
            moved = [min(max(residual, -limit), limit) for residual in (first, second)]
            left = [abs(residual) < limit for residual in (first, second)]
            mean, inside, size = (
                chance * a + (1 - chance) * b for a, b in (moved, left, [residual**2 for residual in moved])
            )
            values = [mean, curvatures[0] * inside, size, curvatures[1] * (moved[1] - moved[0])]
            out += weight * share * np.outer(values, [1, u, v, u * u, u * v, v * v, square])
    return out
