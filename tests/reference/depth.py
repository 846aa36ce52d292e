"""Tukey depth by its definition: the least number of records in a closed half-space, over all integer normals."""

import itertools
import math

import numpy as np


def normals(codes, d):
    """Integer normals with one inside each cell of directions that the differences of codes 0..codes - 1 divide.

    The cells are cones between lines of such differences (d = 2) or of cross products of two (d = 3); the sum of the
    edges of a triangle of a cone, each no longer than these, is inside of it.
    """
    difference = codes - 1
    longest = difference * 2 if d == 2 else 3 * 2 * difference**2
    sides = range(-longest, longest + 1)
    return np.array([u for u in itertools.product(sides, repeat=d) if math.gcd(*u) == 1])


def depth(records, point, directions):
    """The depth of a point: the least number of records x with u . (x - point) >= 0."""
    products = directions @ (np.asarray(records) - np.asarray(point)).T
    return int(np.count_nonzero(products >= 0, axis=1).min())


def law(records, sizes, epsilon, floor, directions):
    """P(y) proportional to exp(epsilon / 2 * max(depth, floor)) on all points, as a dictionary."""
    points = list(itertools.product(*(range(size) for size in sizes)))
    depths = [max(depth(records, point, directions), floor) for point in points]
    top = max(depths)
    weights = [math.exp(epsilon / 2 * (value - top)) for value in depths]
    total = math.fsum(weights)
    return {point: weight / total for point, weight in zip(points, weights, strict=True)}


def points_inside(lines, limits, last):
    """The points (x, y, z) with lines . (x, y, z) <= limits and 0 <= x, z <= last, for y within +-50."""
    axes = range(last[0] + 1), range(-50, 51), range(last[1] + 1)
    return [p for p in itertools.product(*axes) if np.all(lines @ np.array(p) <= limits)]


def planar_depth(records, point):
    """The depth in a plane, in integers of any length: a least side can be turned until its edge has a record."""
    vectors = [(x - point[0], y - point[1]) for x, y in records]
    apart = [v for v in vectors if v != (0, 0)]
    sides = []
    for a, b in apart:
        across = [a * y - b * x for x, y in apart]
        along = sum(a * x + b * y > 0 for (x, y), side in zip(apart, across, strict=True) if not side)
        against = across.count(0) - along
        sides += [sum(s > 0 for s in across) + end for end in (along, against)]
        sides += [sum(s < 0 for s in across) + end for end in (along, against)]
    return len(vectors) - len(apart) + min(sides, default=0)
