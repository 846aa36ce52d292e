"""The law of noise on symmetric matrices of integers, as vectors of the entries on and above the diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import _samplers
from dpfast.laws.vectors import VectorNoise

_UNIT = 2.0**-53  # the relative error of an operation


class WishartDifference(VectorNoise):
    """The difference of two Wishart matrices, each entry in a scale of its own and rounded.

    With G and H of shape (side, side + 1) and independent standard normal entries, the entries ``scales[k] (G G' - H
    H')[i, j]``, rounded to integers, in the order of `numpy.triu_indices`, up to the number of scales.

    Parameters
    ----------
    side : int
    scales : sequence of float or Fraction
        At most one for each entry on and above the diagonal.

    Notes
    -----
    The density of scale (G G' - H H') at A is at most ``exp(tr(P) / (2 scale))`` times that at A + P or A - P, for P
    positive semidefinite (https://dpfast.readthedocs.io/en/latest/proofs/covariance.html). Probabilities have no closed
    form.
    """

    def __init__(self, side: int, scales: Sequence[float | Fraction]) -> None:
        super().__init__(len(scales))
        self.side, self.scales = side, tuple(scales)
        self._above = np.stack(np.triu_indices(side))[:, : len(scales)]
        self._rounded = np.array([float(scale) for scale in scales])

    def logpmf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        raise TypeError("the probabilities of differences of Wishart matrices have no closed form")

    def fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        rows = max(_WORDS // (2 * self.side * (self.side + 1)), 1)
        for start in range(0, len(out), rows):
            self._fill(source, out[start : start + rows])

    def _fill(self, source: np.random.BitGenerator, out: NDArray[np.int64]) -> None:
        words = np.empty((len(out), 2, self.side, self.side + 1), np.uint64)
        _samplers.fill_words(source, words.reshape(-1))
        entries, errors = _wishart_differences(words)
        i, j = self._above
        values = self._rounded * entries[:, i, j]
        nearest = np.rint(values)
        margins = self._rounded * errors[:, i, j] + 2.0**-50
        with np.errstate(invalid="ignore"):  # an infinite error of an unusable word
            decided = (np.abs(values - nearest) < 0.5 - margins) & (np.abs(values) < 2.0**51)
        out[:] = np.where(decided, nearest, 0.0)
        for row in np.flatnonzero(~decided.all(axis=1)):
            self._complete(source, words[row], np.flatnonzero(~decided[row]), out[row])

    def _complete(
        self,
        source: np.random.BitGenerator,
        words: NDArray[np.uint64],
        places: NDArray[np.intp],
        out: NDArray[np.int64],
    ) -> None:
        """Decide the entries at these places in ball arithmetic, from the same words."""
        from dpfast._kernels._vector_balls import round_wishart

        i, j = self._above[:, places].tolist()
        wanted = zip(i, j, (self.scales[place] for place in places), strict=True)
        out[places] = round_wishart(words.tolist(), lambda: _samplers.next_word(source), wanted)


_WORDS = 2**14  # drawn at a time, or those of one matrix


def _wishart_differences(words: NDArray[np.uint64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """G G' - H H' in doubles for words of shape (m, 2, side, side + 1), and bounds of the errors.

    A normal number z of the word m is within 16 |z| u + 10 u + 1.5 / m of the exact one, u = 2**-53
    (https://dpfast.readthedocs.io/en/latest/proofs/rounded-gaussian.html), and unknown for m below 2**12. The errors of
    the products and sums are at most n u, n the number of operations, times the sum of the magnitudes; those of the
    bounds are below 2**-20 of them.
    """
    sizes = _samplers.normal_of_words(words.reshape(-1)).reshape(words.shape)
    known = words >= 2**12
    sizes[~known] = 0.0
    errors = 16 * _UNIT * sizes + 10 * _UNIT + 1.5 / (words | np.uint64(1)).astype(np.float64)
    normals = np.where(words & np.uint64(1), -sizes, sizes)
    products = normals @ normals.swapaxes(-1, -2)
    entries = products[:, 0] - products[:, 1]
    operations = words.shape[-1] + 8
    bounds = (sizes @ (2 * errors + operations * _UNIT * sizes).swapaxes(-1, -2)) + errors @ errors.swapaxes(-1, -2)
    bounds = np.maximum(bounds, bounds.swapaxes(-1, -2)).sum(axis=1)
    bounds[~known.all(axis=(1, 2, 3))] = math.inf
    return entries, (1 + 2.0**-20) * bounds
