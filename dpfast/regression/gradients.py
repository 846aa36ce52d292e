"""Clipped gradients of generalised linear models with noise, and second moments of the rows of labelled records."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks
from dpfast.core.recent import recent
from dpfast.core.rounding import up
from dpfast.domains import LIMB, Ball
from dpfast.laws import DiscreteLaplace, Independent, NoisyIntegers, RoundedBall, RoundedGaussian, VectorNoise
from dpfast.mechanisms import SecondMoments
from dpfast.mechanisms.gaussian import GaussianOrPure
from dpfast.streaming import Labelled, RowProducts, RowSums, VectorSums
from dpfast.streaming.wire import DAMAGED

Values = NDArray[np.float64]

FAMILIES = ("logistic", "poisson", "huber", "multinomial")  # in the order of the kernel
_MOST_NUMBERS = 2**17  # of a release
_DIGITS = 20  # of the radius in steps, and of the size of a residual in units
_CLIP_DIGITS = 40  # of the clip in units
_MOST = 2**61  # of a sum in release codes
_MOST_SCALE = 2.0**56
_MOST_EXPONENT = 500  # of units, so that they are doubles, and their inverses and products
_MOST_LENGTH = 2.0**80  # of a vector z, in units


@dataclass(frozen=True, eq=False)
class Transform:
    """A public matrix R, which takes (x - center, 1), x the row of a record, to the vector z = (x - center, 1) R.

    Parameters
    ----------
    matrix : array_like of shape (d + 1, p)
        Finite; a copy is kept.

    Raises
    ------
    ValueError
        A matrix of a wrong shape, or with an infinity or NaN.

    Examples
    --------
    >>> from dpfast.regression import Transform
    >>> Transform([[1.0, 0.0], [0.0, 2.0]])
    <Transform of rows of 1 column to 2 numbers>
    """

    matrix: Values

    def __init__(self, matrix: ArrayLike) -> None:
        made = np.array(matrix, dtype=np.float64)
        if made.ndim != 2 or made.shape[0] < 2 or not made.shape[1]:
            raise ValueError(f"matrix must have at least two rows and one column, not the shape {made.shape}")
        if not np.isfinite(made).all():
            raise ValueError("matrix must be finite")
        made.flags.writeable = False
        object.__setattr__(self, "matrix", made)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transform) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.matrix.shape, self.matrix.tobytes()))

    def __repr__(self) -> str:
        d, p = self.matrix.shape[0] - 1, self.matrix.shape[1]
        return f"<Transform of rows of {d} column{'s' * (d > 1)} to {p} number{'s' * (p > 1)}>"


@dataclass(frozen=True, repr=False)
class GradientSums(GaussianOrPure):
    """Release the mean gradient of a generalised linear model at public coefficients, each record's clipped.

    Pure epsilon-, (epsilon, delta)- or Gaussian differential privacy under one replaced record, a row x and a label y;
    the number of records is public. The gradient of a record is r z, z = (x - center, 1) R for a public matrix R, and r
    the residual at the linear predictor t = z . coefficients: 1 / (1 + exp(-t)) - (y > 0) in a logistic model, exp(t) -
    max(y, 0) in a Poisson model, t - y moved into +-bound in a Huber regression. In a multinomial model of K classes
    there is a predictor t_k for each class, and a residual exp(t_k) / sum(exp(t)) - (y == k); the gradient is the
    matrix of all r_k z_j.

    Parameters
    ----------
    model : {"logistic", "poisson", "huber", "multinomial"}
    coefficients : sequence of p floats, or of K sequences of p floats in a multinomial model
        Public: a function of earlier releases and public numbers only.
    transform : Transform or array_like of shape (d + 1, p)
        R, public.
    domain : dpfast.domains.Ball
        The public domain of the rows. Its step is at least ``radius * 2**-20``: a finer one is made coarser.
    clip : float
        Positive, public: a record with |r| |z| above it has a smaller r; |r| is the l2 norm of the residuals of all
        classes.
    bound : float
        Positive, public: the largest magnitude of a residual. Huber's constant; for other models infinity in general.
    labels : dpfast.domains.Ball, optional
        For the model "huber": the public domain of the labels, into which they are moved. Default: all numbers.
    epsilon, delta, mu : float
        A positive epsilon for a pure guarantee, by noise of density proportional to ``exp(-epsilon |noise| / (2
        clip))``, |noise| its l2 norm. With a positive delta, or with the mu of Gaussian differential privacy as `mu`
        in place of both, Gaussian noise. Rounded down.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call: a wrong shape.

    Notes
    -----
    A release has the shape of the coefficients. A row with NaN or an infinity is the center; a record with a missing
    label, or in a multinomial model a label other than 0, 1, ..., K - 1, has r = 0.
    Privacy: z and r are rounded to integers with |r| |z| at most the clip, for any floats, and their sum is exact. So a
    replaced record changes the sum by at most 2 clip in the l2 norm, whatever R and the coefficients
    (https://dpfast.readthedocs.io/en/latest/proofs/glm.html). The standard deviation of Gaussian noise is 2 clip / (n
    mu).
    Cost: one pass over X, with (d + 1) p products for each row, and 2 K p in a multinomial model.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.regression import GradientSums
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(100_000, 2))
    >>> y = rng.random(100_000) < 1 / (1 + np.exp(-X[:, 0]))
    >>> ball = dpf.domains.Ball(1.5)
    >>> at_zero = GradientSums(
    ...     "logistic", np.zeros(3), transform=np.eye(3), domain=ball, clip=1.0, epsilon=1.0, delta=1e-6
    ... )
    >>> bool(np.abs(at_zero((X, y))[:2] - X.T @ (0.5 - y) / 100_000).max() < 0.001)
    True
    """

    model: str
    coefficients: tuple[Any, ...]
    transform: Transform = field(kw_only=True)
    domain: Ball = field(kw_only=True)
    clip: float = field(kw_only=True)
    bound: float = field(kw_only=True, default=math.inf)
    labels: Ball | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("model", self.model, FAMILIES)
        if not isinstance(self.domain, Ball):
            raise TypeError(f"domain must be a dpfast.domains.Ball, not {type(self.domain).__name__}")
        object.__setattr__(self, "transform", _transform(self.transform))
        object.__setattr__(self, "domain", self.domain.with_digits(_DIGITS))
        object.__setattr__(self, "coefficients", self._checked(self.coefficients))
        object.__setattr__(self, "clip", checks.positive("clip", self.clip))
        if self.bound != math.inf:
            object.__setattr__(self, "bound", checks.positive("bound", self.bound))
        if self.labels is not None and not isinstance(self.labels, Ball):
            raise TypeError(f"labels must be a dpfast.domains.Ball, not {type(self.labels).__name__}")
        if self.labels is not None and self.model != "huber":
            raise ValueError(f"labels must be left out for the model {self.model!r}")
        d, _ = self.transform.matrix.shape
        self.domain.check_columns(d - 1)
        if max(map(abs, (*self._exponents, math.frexp(self.domain.step)[1]))) > _MOST_EXPONENT:
            raise ValueError("clip, bound and radius must be within 2**-400 and 2**400")
        with np.errstate(over="ignore"):
            columns, constant = self.transform.matrix[:-1], self.transform.matrix[-1]
            longest = np.linalg.norm(columns) * self.domain.radius + np.linalg.norm(constant)
        if not longest <= math.ldexp(_MOST_LENGTH, self._exponents[1]):
            raise ValueError("transform must not take a row of the domain to more than 2**60 times clip / bound")
        checks.finite_scale(float(np.abs(self._theta).max()) * math.ldexp(1.0, self._exponents[1]))
        if self.scale(1) > _MOST_SCALE:
            raise ValueError(f"{self.privacy} needs noise of more than 2**56: use a larger epsilon")

    def _checked(self, coefficients: Any) -> tuple[Any, ...]:
        """Check the numbers and the shape of coefficients."""
        p = self.transform.matrix.shape[1]
        several = self.model == "multinomial"
        rows = _listed("coefficients", coefficients) if several else [coefficients]
        if several and len(rows) < 2:
            raise ValueError(f"coefficients must have a row for each of at least two classes, not {len(rows)}")
        numbers = [_numbers("coefficients", row) for row in rows]
        for row in numbers:
            if len(row) != p:
                raise ValueError(f"coefficients must have {p} entries, like the transform, not {len(row)}")
        if len(numbers) * p > _MOST_NUMBERS:
            raise ValueError(f"coefficients must be at most 2**17 numbers, not {len(numbers) * p}")
        return tuple(numbers) if several else numbers[0]

    @property
    def dimensions(self) -> int:
        return 2

    @cached_property
    def _theta(self) -> Values:
        """The coefficients as a matrix with a row for each residual of a record."""
        return np.array(self.coefficients, dtype=np.float64).reshape(-1, self.transform.matrix.shape[1])

    def __repr__(self) -> str:
        return (
            f"<GradientSums release of gradients of a {self.model} model, clipped to {self.clip!r}, of rows in a "
            f"{self.domain}: {self.privacy}>"
        )

    # ---- units and noise, public ----

    @cached_property
    def _exponents(self) -> tuple[int, int]:
        """Exponents of the units of r and of z, powers of two: the clip is 2**39 to 2**40 of their product."""
        residual = (1 if self.bound == math.inf else math.frexp(self.bound)[1]) - _DIGITS
        return residual, math.frexp(self.clip)[1] - _CLIP_DIGITS - residual

    @property
    def _clip(self) -> float:
        """The clip in units of a sum, exact, below 2**40."""
        return math.ldexp(math.frexp(self.clip)[0], _CLIP_DIGITS)

    def shift(self, n: SupportsIndex) -> int:
        """Return the release code of a sum is the sum divided by this power of two, and rounded."""
        return max(0, (checks.whole("n", n) << _CLIP_DIGITS).bit_length() - 61)

    def scale(self, n: SupportsIndex) -> float:
        """Return the standard deviation of Gaussian noise, else the scale of noise by the l2 norm, in release codes.

        Rounding to release codes adds at most 1 to the change of each sum.
        """
        return self._scale(checks.whole("n", n))

    @recent
    def _scale(self, n: int) -> float:
        count, shift = self._theta.size, self.shift(n)
        change = 2 * Fraction(self._clip) / 2**shift + (math.isqrt(count) + 1 if shift else 0)
        return up(change / Fraction(self.amount))

    def error(self, n: SupportsIndex) -> float:
        """Return the root of the expected squared noise on each number of the release: `noise_deviation`."""
        return self.noise_deviation(n)

    def noise_deviation(self, n: SupportsIndex) -> float:
        """Return the standard deviation of the noise on each number of a release, before rounding.

        Parameters
        ----------
        n : int
            The number of records, at least 1.
        """
        n = checks.whole("n", n, least=1)
        factor = 1.0 if self.gaussian_mu else math.sqrt(self._theta.size + 1)
        return factor * self.scale(n) * self._unit(n)

    def _unit(self, n: int) -> float:
        """Return a step of release codes in units of the release."""
        return math.ldexp(1 / n, self.shift(n) + sum(self._exponents))

    def _noise(self, n: int) -> VectorNoise:
        count, scale = self._theta.size, self.scale(n)
        if self.gaussian_mu:
            return Independent(RoundedGaussian(scale), count)
        return RoundedBall([scale] * count) if count > 1 else Independent(DiscreteLaplace(scale), 1)

    def _check_columns(self, d: int) -> None:
        expected = self.transform.matrix.shape[0] - 1
        if d != expected:
            raise ValueError(f"X must have {expected} columns, like the transform, not {d}")

    # ---- the release ----

    def reading(self) -> RowSums:
        residual, vector = self._exponents
        unit = math.ldexp(1.0, vector)
        steps = np.append(np.full(self.transform.matrix.shape[0] - 1, self.domain.step), 1.0)
        matrix = (self.transform.matrix * (steps[:, None] / unit)).astype(np.float32)
        add = partial(
            self.domain.add_gradients,
            family=FAMILIES.index(self.model),
            bound=self.bound,
            scale=math.ldexp(1.0, -residual),
            clip=self._clip,
            matrix=matrix,
            theta=self._theta * unit,
        )
        return _Gradients(self.domain, self._check_columns, add, (len(matrix), self._theta.size), self.labels)

    def law_of(self, summary: VectorSums) -> NoisyIntegers:
        n, shift = summary.n, self.shift(summary.n)
        high, low = summary.sums
        codes = (high << (LIMB - shift)) + ((low + (1 << shift >> 1)) >> shift)
        codes = codes.reshape(np.shape(self.coefficients))
        return NoisyIntegers(codes, noise=self._noise(n), most=_MOST, decode=partial(self._decode, n=n))

    def _decode(self, codes: NDArray[np.int64], *, n: int) -> Values:
        return np.asarray(codes * self._unit(n))


class _Gradients(RowSums):
    """The exact sums of numbers of each labelled record, which `add` adds; `shape` is (d + 1, numbers), d columns.

    Labels are moved into a ball, if one is given.
    """

    def __init__(
        self,
        domain: Ball,
        check: Callable[[int], None],
        add: Callable[..., None],
        shape: tuple[int, ...],
        labels: Ball | None = None,
    ) -> None:
        self._add, self._shape, self._labels = add, shape, labels
        super().__init__(domain, check)
        self._begin(self._shape[0] - 1)

    def _size(self, d: int) -> int:
        return self._shape[1]

    def _columns(self, size: int) -> int:
        if size != self._shape[1]:
            raise ValueError(DAMAGED)
        return self._shape[0] - 1

    def records(self, x: Any) -> Labelled:
        records = Labelled.of(x)
        self._domain.check_columns(records.columns)
        self._check(records.columns)
        return records

    def add(self, values: Labelled, threads: int) -> None:
        labels = values.labels
        if self._labels is not None:
            center, radius = float(self._labels.center_of(1)[0]), self._labels.radius
            labels = np.clip(labels.astype(np.float64), center - radius, center + radius)
        self._add(values.rows, labels, self._sums, threads)


class _RowsOfLabelled(RowProducts):
    """The exact sums of the products of codes of the rows of labelled records."""

    def records(self, x: Any) -> Any:
        return super().records(Labelled.of(x).rows)


@dataclass(frozen=True, repr=False)
class DesignMoments(SecondMoments):
    """`dpfast.SecondMoments` of the rows of records with labels, a pair (X, y) or a matrix whose last column is y.

    Parameters
    ----------
    domain, epsilon, delta, mu
        See `dpfast.SecondMoments`.
    intercept : bool
        False: without the mean of the rows, of shape (d, d), with less noise.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.regression import DesignMoments
    >>> X = np.random.default_rng(0).normal(size=(100_000, 2))
    >>> moments = DesignMoments(domain=dpf.domains.Ball(5.0), epsilon=1.0, delta=1e-6)((X, X[:, 0] > 0))
    >>> moments.shape, bool(np.abs(moments - np.eye(3)).max() < 0.1)
    ((3, 3), True)
    """

    intercept: bool = field(kw_only=True, default=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", checks.flag("intercept", self.intercept))
        super().__post_init__()

    @property
    def with_sums(self) -> bool:
        return self.intercept

    def _enough(self) -> float:
        return 0.0  # a step: the whole regression says how many records it takes

    def reading(self) -> RowProducts:
        return _RowsOfLabelled(self.domain, self._check_columns)


def _transform(given: Any) -> Transform:
    return given if isinstance(given, Transform) else Transform(given)


def _numbers(name: str, values: Any) -> tuple[float, ...]:
    """Check a sequence of finite numbers."""
    return tuple(checks.real(f"each of {name}", value) for value in _listed(name, values))


def _listed(name: str, values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{name} must be a sequence of numbers, not {type(values).__name__}") from None
