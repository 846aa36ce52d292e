"""The kernel of expected gradients in normal populations, against its slow twin and its definition."""

import math

import numpy as np
import pytest

from dpfast._kernels import _populations
from tests.reference import populations

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("clip", [0.5, 2.0, math.inf])
def test_sums_like_the_slow_twin(clip):
    rng, count = np.random.default_rng(3), 30
    axes, rest = rng.normal(size=(3, 4)), np.array([1.5, 0.3])
    nodes = np.column_stack([rng.random(count), rng.normal(size=(count, 2))])
    lengths = np.column_stack([rng.random(5), 2 * rng.normal(size=5)])  # a root below 0, too
    labels, slopes = np.vstack([rng.random(count), rng.normal(size=(2, count))]), rng.random((2, count))
    found = np.zeros((4, 7))
    _populations.clipped(axes, rest, clip, nodes, lengths, labels, slopes, found)
    expected = populations.clipped(axes, rest, clip, nodes, lengths, labels, slopes)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


def plane(root, theta, truth):
    out = np.empty((2, len(theta)))
    _populations.plane(root, theta, truth, np.empty_like(out), out)
    return out


@pytest.mark.parametrize("kind", ["any", "equal", "nearly equal", "zero", "both zero", "huge", "one row"])
def test_the_plane_has_an_orthonormal_basis_and_holds_both_vectors(kind):
    rng = np.random.default_rng(4)
    theta, truth = rng.normal(size=(2, 5))
    if kind == "one row":
        theta, truth = np.array([0.0, 0.0, 0.0, 0.0, -2.0]), truth
    if kind.endswith("equal"):
        truth = theta * (1 + 1e-9 * rng.normal(size=5) * (kind != "equal"))
    if kind.endswith("zero"):
        theta, truth = np.zeros(5), truth * (kind == "zero")
    if kind == "huge":
        theta, truth = 1e200 * theta, 1e-200 * truth
    found = plane(np.eye(5), theta, truth)
    np.testing.assert_allclose(found @ found.T, np.eye(2), atol=1e-12)
    for vector in (theta, truth):
        unit = vector / max(np.abs(vector).max(), 1e-300)
        np.testing.assert_allclose(found.T @ (found @ unit), unit, atol=1e-12)


def test_the_plane_is_mapped_by_the_root():
    rng = np.random.default_rng(5)
    root, (theta, truth) = rng.normal(size=(4, 4)), rng.normal(size=(2, 4))
    root = root @ root.T
    np.testing.assert_allclose(plane(root, theta, truth), plane(np.eye(4), root @ theta, root @ truth) @ root)


def test_one_column_has_no_second_axis():
    assert plane(np.array([[2.0]]), np.array([-3.0]), np.array([0.5])).tolist() == [[-2.0], [0.0]]
