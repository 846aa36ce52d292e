"""The release of sums of products of rows and labels, and the linear regression from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.core import checks, containers
from dpfast.core.recent import recent
from dpfast.domains import Ball
from dpfast.mechanisms import NoisyProducts
from dpfast.regression.fit import Fit
from dpfast.streaming import LabelledProducts

_PARTS = 64  # of 1 in the weight of labels
_ROUNDING = 2.0**-24  # of a code, in radii
GREATEST = 2.0**200  # coefficient, in label bounds per radius

Values = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class RegressionMoments(NoisyProducts):
    """Release the means of all products of columns and label, as one symmetric matrix, for least squares.

    Pure epsilon- or (epsilon, delta)-differential privacy under one replaced record, a row and its label; the number of
    records is public. The release has the shape (d + 2, d + 2): the mean of a a' over all records (x, y), a = (x -
    center, y - label center, 1), with noise on all entries but the last, which is 1. `fit` makes a regression of it.

    Parameters
    ----------
    domain : dpfast.domains.Ball
        The public domain of the rows, in data units.
    labels : dpfast.domains.Ball
        The public domain of the labels, as rows of one column: ``Ball(label_bound, center=label_center)``.
    epsilon : float
        Positive; rounded down to a double.
    delta : float
        0 for a pure guarantee; positive for Gaussian noise. Rounded down.
    intercept : bool
        False: a has no 1, the release has the shape (d + 1, d + 1) and less noise, and the fit goes through the
        centers.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call: a wrong shape; once n is known: n times the number of
        steps in a radius is 2**61 or more.

    Notes
    -----
    Records: a pair (X, y), or a matrix whose last column is y. A record with NaN or an infinity is at both centers; a
    row or a label outside its ball is moved into it.
    Privacy: the sum of a a' is a matrix of integers, computed exactly, where the label and the 1 count with public
    weights s and c. One record changes it by at most sqrt(2) M in the Frobenius norm and 2 M in the nuclear norm, M = N
    + s**2 L + c**2, N and L the largest squared codes of a row and of a label. Noise: Gaussian, the difference of two
    Wishart matrices, or for one column and delta = 0 noise of density falling with the Frobenius norm. No float decides
    the noise (https://dpfast.readthedocs.io/en/latest/proofs/regression-sums.html).
    Cost: one pass; see `linear_regression`.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100_000, 2))
    >>> y = X @ [1.0, -2.0] + rng.normal(size=100_000)
    >>> ball, labels = dpf.domains.Ball(1.5), dpf.domains.Ball(6.0)
    >>> mechanism = dpf.RegressionMoments(domain=ball, labels=labels, epsilon=1.0, delta=1e-6)
    >>> moments = mechanism((X, y))
    >>> moments.shape, bool(np.abs(mechanism.fit(moments, 100_000).coefficients - [1, -2]).max() < 0.1)
    ((4, 4), True)
    """

    labels: Ball = field(kw_only=True)
    intercept: bool = field(kw_only=True, default=True)

    def __post_init__(self) -> None:
        if not isinstance(self.labels, Ball):
            raise TypeError(f"labels must be a dpfast.domains.Ball, not {type(self.labels).__name__}")
        if self.labels.columns not in (None, 1):
            raise ValueError(f"labels must be a ball of one column, not {self.labels.columns}")
        object.__setattr__(self, "labels", self.labels.for_products())
        object.__setattr__(self, "intercept", checks.flag("intercept", self.intercept))
        super().__post_init__()
        largest = GREATEST * (self.labels.radius / self.domain.radius)
        for size in (1.0, *np.abs(self.domain.center_of(self.domain.columns or 1)).tolist()):
            checks.finite_scale(largest * size * (largest * size))

    def __repr__(self) -> str:
        constant = "" if self.intercept else ", no intercept"
        return (
            f"<RegressionMoments release of rows in a {self.domain}, labels in a {self.labels}{constant}: "
            f"{self.privacy}>"
        )

    @property
    def with_sums(self) -> bool:
        return self.intercept

    @property
    def _balls(self) -> tuple[Ball, ...]:
        return self.domain, self.labels

    def _explained_missing(self) -> str:
        return "A record with NaN or an infinity counts as one at both centers"

    def weights(self, d: SupportsIndex) -> tuple[Fraction, Fraction]:
        """Return the public weights s of the label and c of the 1, in codes
        (https://dpfast.readthedocs.io/en/latest/proofs/regression-sums.html).
        """
        d, most = checks.whole("d", d, least=1), self.domain.most
        label = (math.sqrt(3 + 4 * d) - 1) / (2 * d) * most / self.labels.most
        constant = math.isqrt(most // (2 * d))
        return (
            Fraction(max(1, round(_PARTS * math.sqrt(label))), _PARTS),
            Fraction(max(1, constant) if self.intercept else 0),
        )

    def _weights(self, d: int) -> tuple[Fraction, ...]:
        return Fraction(1), *self.weights(d)

    def _by_norm(self, d: int) -> bool:
        return not self.gaussian_mu and self._side(d) < 4

    def pure_is_quieter(self, d: SupportsIndex) -> bool:
        """Whether noise for ``delta=0`` and the same epsilon has less deviation, for all entries; public."""
        if not self.gaussian_mu or self.epsilon is None:
            return False
        side = self._side(checks.whole("d", d, least=1))
        variance = side * (side + 1) // 2 - self.with_sums + 1 if side < 4 else 2 * (side + 1)
        return variance * self.gaussian_mu * self.gaussian_mu < self.epsilon * self.epsilon

    def reading(self) -> LabelledProducts:
        return LabelledProducts(self.domain, self.labels, self._check_columns)

    def _release(self, moments: Values, d: int) -> Values:
        return np.asarray(moments * self._units(d) * self._units(d)[:, None])

    @recent
    def enough_for(self, d: int) -> float:
        """Return about the least number of records of d columns from which a fit tells more than the bounds.

        The noise on the d sums of a feature times the label is then half of the largest that these can be, L R /
        sqrt(d + 2) for each record, if rows and labels are spread evenly over their balls. In simulations with that,
        28, 66, 220 and 664 records at epsilon = 1 for 1, 2, 5 and 10 columns, fits are about as far from the line as
        the mean label is.
        """
        deviations = self.noise_deviation(1, dimension=d)[:d, -1]
        relative = float(np.linalg.norm(deviations / self.domain.radius)) / self.labels.radius
        return 2 * relative * math.sqrt(d + 2)

    def fit(self, moments: ArrayLike, n: SupportsIndex) -> Fit:
        """Return the least-squares fit of a release, with a ridge for the noise: post-processing, without cost of
        privacy.

        Parameters
        ----------
        moments : array_like of shape (d + 2, d + 2)
            A release of this mechanism, of shape (d + 1, d + 1) without an intercept.
        n : int
            The public number of records of the release.

        Returns
        -------
        Fit

        Notes
        -----
        Around the means, let A be the matrix of second moments of the rows and b the vector of their products with the
        label. The coefficients are (A A + k I)^-1 A b, with the negative eigenvalues of A set to 0: the posterior mean
        for b = A theta + noise, where the coefficients are independent with a variance that fits b and A, and k is the
        ratio of the variance of the noise to it. For large n it is least squares. Errors: to first order, of the noise
        and of sampling, and of the ridge, for coefficients as large as least squares without a ridge has them, plus
        their errors. They are conditional on a constant variance of the residuals.
        """
        matrix = containers.numbers("moments", moments).astype(np.float64)
        d = matrix.shape[0] - 1 - self.with_sums if matrix.ndim == 2 else 0
        if d < 1 or matrix.shape != (self._side(d),) * 2:
            raise ValueError(f"moments must be a release of this mechanism, not of shape {matrix.shape}")
        self.plan(count := checks.whole("n", n))  # reject an n that is not supported
        return self.fit_with(matrix, self.noise_deviation(count, dimension=d), count)

    def fit_with(self, matrix: Values, deviations: Values, count: int) -> Fit:
        """Return the fit of moments with noise of these deviations, such as the mean of several releases."""
        d = len(matrix) - 1 - self.with_sums
        radii = np.array([self.domain.radius] * d + [self.labels.radius] + [1.0] * self.with_sums)
        matrix, deviations = (part / radii / radii[:, None] for part in (matrix, deviations))
        estimates, covariance = _solved(matrix, deviations, count, d)
        # From units of the balls, around their centers, to data units.
        slope = self.labels.radius / self.domain.radius
        units = np.diag([slope] * d + [self.labels.radius])
        units[d, :d] = -slope * self.domain.center_of(d)
        values, errors = units @ estimates, units @ covariance @ units.T
        values[d] += self.labels.center_of(1)[0]
        deviation = np.sqrt(np.maximum(np.diag(errors), 0.0))
        return Fit(values[:d], float(values[d]), deviation[:d], float(deviation[d]), self.privacy, count, errors)


def _noise(deviations: Values, d: int, constant: bool) -> Values:
    """Return the variances of the noise on (x, 1) (x, 1)' and, in the last column, on (x, 1) y."""
    noise = np.zeros((d + 1, d + 2))
    kept = [*range(d), d + 1] if constant else list(range(d))
    noise[np.ix_([*range(len(kept))], [*range(len(kept))])] = deviations[np.ix_(kept, kept)] ** 2
    noise[: len(kept), d + 1] = deviations[kept, d] ** 2
    noise[:d] += _ROUNDING**2
    return noise


def _of_scores(noise: Values, squares: Values) -> Values:
    """Return the variances of the products with the label minus those with a coefficient for each column of (x, 1),
    given the squares of these coefficients.
    """
    return noise[:, -1] + noise[:, :-1] @ squares


def _prior(
    noise: Values, centered: Values, eigenvalues: Values, products: Values, label_mean: float
) -> tuple[float, float]:
    """Return the mean square of a coefficient, as the products show it, and the ridge that fits it."""
    d = len(products)
    fixed = float(np.sum(centered**2 @ _of_scores(noise, np.append(np.zeros(d), label_mean**2))))
    each = float(np.sum(centered**2 @ (noise[:, :d] @ np.ones(d))))
    spread = float(np.sum(noise[:d, :d]))
    size = max(float(np.sum(eigenvalues**2)) - spread, float(np.sum(eigenvalues)) ** 2 / d, 0.01 * spread)
    prior = max(float(products @ products) - fixed, fixed) / size  # at least what the noise would hide
    return prior, (fixed / prior + each) / d


def _solved(moments: Values, deviations: Values, n: int, d: int) -> tuple[Values, Values]:
    """Return the coefficients and the constant, and their covariance, from the means of a a' and the noise's
    deviations.

    The noise on different entries is uncorrelated, and that of b - A theta follows from it.
    """
    constant = len(moments) > d + 1
    mean, label_mean = (moments[:d, d + 1], moments[d, d + 1]) if constant else (np.zeros(d), 0.0)
    second = moments[:d, :d] - np.outer(mean, mean)
    products = moments[:d, d] - mean * label_mean
    label = max(moments[d, d] - label_mean**2, 0.0)
    raw, vectors = np.linalg.eigh(second)
    eigenvalues = np.maximum(raw, 0.0)

    noise = _noise(deviations, d, constant)
    centered = np.column_stack([np.eye(d), -mean])  # from products with (x, 1) to those with x - mean
    prior, ridge = _prior(noise, centered, raw, products, label_mean)
    inverse = eigenvalues / (eigenvalues**2 + ridge)
    solve, left = (vectors * inverse) @ vectors.T, 1 - inverse * eigenvalues

    slopes = solve @ products
    estimates = np.append(slopes, label_mean - mean @ slopes)
    residual = min(max(label - 2 * slopes @ products + slopes @ second @ slopes, 0.0), label)
    design = np.zeros((d + 1, d + 1))
    design[:d, :d] = (vectors * eigenvalues) @ vectors.T
    if constant:
        full = np.append(mean, 1.0)
        design += np.outer(full, full)

    def errors(squares: Values) -> Values:
        """Return the covariance of the errors of the products, for coefficients and a constant of these squares."""
        scores = noise[:, : d + 1] * np.outer(estimates, estimates)
        np.fill_diagonal(scores, _of_scores(noise, squares))
        return np.asarray(scores + residual / n * design)

    # The square of the coefficient along each eigenvector, as least squares without a ridge has it, with its error; of
    # an eigenvalue hidden by its noise, as if it were just visible.
    across = centered.T @ vectors
    weights = vectors**2
    blur = 2 * np.sum(weights * (noise[:d, :d] @ weights), axis=0) - np.diag(noise)[:d] @ weights**2
    seen = (products @ vectors) ** 2 + np.sum(across * (errors(estimates**2) @ across), axis=0)
    squares = np.maximum(prior, seen / (np.maximum(eigenvalues**2, 2 * blur) - blur))

    lost = vectors * (left * np.sqrt(squares))
    linear = np.vstack([solve @ centered, -mean @ solve @ centered + np.append(np.zeros(d), float(constant))])
    shrunk = np.vstack([lost, -mean @ lost])
    unseen = np.append(np.sum(lost**2, axis=1), 0.0)
    covariance = linear @ errors(estimates**2 + unseen) @ linear.T + shrunk @ shrunk.T
    return estimates, covariance
