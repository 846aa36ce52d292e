"""Labels of classes: their counts with noise, and the places of named ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast import keys
from dpfast.core import checks, containers
from dpfast.core.rounding import root_up, up
from dpfast.laws import DiscreteLaplace, Independent, IntegerNoise, NoisyIntegers, RoundedGaussian
from dpfast.mechanisms.gaussian import GaussianOrPure
from dpfast.streaming import Counts, Labelled

Integers = NDArray[np.int64]

_MOST = 2**61  # of a count with noise
_MOST_SCALE = 2.0**56
_MOST_CLASSES = 2**16
_BLOCK = 2**14  # labels that are counted at a time


@dataclass(frozen=True, repr=False)
class LabelShares(GaussianOrPure):
    """Release the share of each class among the labels of records, a pair (X, y) or a matrix whose last column is y.

    Pure epsilon-, (epsilon, delta)- or Gaussian differential privacy under one replaced record; the number of records
    is public.

    Parameters
    ----------
    classes : int
        The public number of classes K, 2 to 2**16. Labels are 0, 1, ..., K - 1; another label is of no class.
    epsilon, delta, mu : float
        A positive epsilon for a pure guarantee. With a positive delta, or with the mu of Gaussian differential privacy
        as `mu` in place of both, Gaussian noise. Rounded down.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call: a wrong shape.

    Notes
    -----
    A release has the shape (K,). Privacy: a replaced record moves one label from one class to another, so the vector of
    counts changes by at most sqrt(2) in the l2 norm and by 2 in the l1 norm. The standard deviation of the noise on a
    count is sqrt(2) / mu, or sqrt(8) / epsilon of discrete Laplace noise
    (https://dpfast.readthedocs.io/en/latest/proofs/glm.html).
    Cost: one pass over y.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.regression import LabelShares
    >>> y = np.repeat([0, 1, 2], [50_000, 30_000, 20_000])
    >>> LabelShares(3, epsilon=1.0)((np.zeros((100_000, 1)), y)).round(2)
    array([0.5, 0.3, 0.2])
    """

    classes: int

    def __post_init__(self) -> None:
        super().__post_init__()
        classes = checks.whole("classes", self.classes, least=2)
        if classes > _MOST_CLASSES:
            raise ValueError(f"classes must be at most 2**16, not {classes}")
        object.__setattr__(self, "classes", classes)
        if self.scale > _MOST_SCALE:
            raise ValueError(f"{self.privacy} needs noise of more than 2**56: use a larger epsilon")

    @property
    def dimensions(self) -> int:
        return 2

    def __repr__(self) -> str:
        return f"<LabelShares release of the shares of {self.classes} classes: {self.privacy}>"

    @property
    def scale(self) -> float:
        """The standard deviation of Gaussian noise on a count, else the scale of Laplace noise."""
        return root_up(2 / Fraction(self.gaussian_mu) ** 2) if self.gaussian_mu else up(2 / Fraction(self.amount))

    def error(self, n: SupportsIndex) -> float:
        """Return the root of the expected squared noise on each share: `noise_deviation`. That of sampling is not
        included.
        """
        return self.noise_deviation(n)

    def noise_deviation(self, n: SupportsIndex) -> float:
        """Return the standard deviation of the noise on each share, before rounding.

        Parameters
        ----------
        n : int
            The number of records, at least 1.
        """
        return (1.0 if self.gaussian_mu else math.sqrt(2)) * self.scale / checks.whole("n", n, least=1)

    def reading(self) -> Counts:
        return Counts((self.classes + 1,), _labels, partial(_counted, self.classes))

    def law_of(self, summary: tuple[Integers, int]) -> NoisyIntegers:
        counts, n = summary
        noise: IntegerNoise = RoundedGaussian(self.scale) if self.gaussian_mu else DiscreteLaplace(self.scale)
        return NoisyIntegers(counts[:-1], noise=Independent(noise, self.classes), most=_MOST, decode=lambda k: k / n)


def _labels(x: Any) -> NDArray[Any]:
    return Labelled.of(x).labels


def _counted(classes: int, labels: NDArray[Any], threads: int) -> Integers:
    """Return the number of labels of each class, and of others."""
    counts = np.zeros(classes + 1, np.int64)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        for start in range(0, len(labels), _BLOCK):
            y = labels[start : start + _BLOCK].astype(np.float64)
            y[~((y >= 0) & (y < classes) & (y == np.trunc(y)))] = classes
            counts += np.bincount(y.astype(np.intp), minlength=classes + 1)
    return counts


def named_classes(classes: Any, model: str) -> tuple[Any, ...] | None:
    """Return the labels of the classes of a model; None for a number of classes."""
    if classes is None or (hasattr(classes, "__index__") and np.ndim(classes) == 0):
        return None
    if not containers.is_sequence(classes) and not isinstance(classes, np.ndarray):
        raise TypeError(f"classes must be a number or a list of labels, not {type(classes).__name__}")
    labels = tuple(classes.tolist() if isinstance(classes, np.ndarray) else classes)
    if len(labels) < 2 or (model == "logistic" and len(labels) > 2):
        most = "two labels for the model 'logistic'" if model == "logistic" else "at least two labels"
        raise ValueError(f"classes must be {most}, not {len(labels)}")
    return labels


def class_places(y: Any, classes: tuple[Any, ...]) -> NDArray[np.float64]:
    """Return 0, 1, ... for labels of the classes, and NaN for others."""
    if y is None:
        raise TypeError("named classes need y: in chunks, labels are the numbers 0, 1, ... of the classes")
    places = keys.lookup(y, classes, "classes")
    return np.where(places < 0, np.nan, places)
