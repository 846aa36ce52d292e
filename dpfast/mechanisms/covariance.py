"""Second moments and covariance matrices of records in rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._calls import Parameters
from dpfast.choosing import Explain, explained
from dpfast.core import checks
from dpfast.core.types import Exact, Records
from dpfast.domains import Ball
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.methods import kept
from dpfast.mechanisms.products import NoisyProducts, Values
from dpfast.mechanisms.resized import resized
from dpfast.mechanisms.usefulness import enough_for_error
from dpfast.random import RandomSource
from dpfast.streaming import Chunks, names_of_columns


@dataclass(frozen=True, repr=False)
class _RowMoments(NoisyProducts):
    """The products of the codes of rows without labels."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} release of rows in a {self.domain}: {self.privacy}>"

    def _explained_missing(self) -> str:
        return "A row with NaN or an infinity counts as the center of the ball"

    def _enough(self) -> float:
        """By a mean square, whose value is R**2 / (d + 2) for rows spread evenly over the ball of radius R."""
        d = self.domain.columns or 1
        deviations = self.noise_deviation(1, dimension=d)[:d, :d]
        return enough_for_error(float(deviations.max()) / self.domain.radius / self.domain.radius, spread=1 / (d + 2))

    def weight(self, d: SupportsIndex) -> int:
        """Return the number c in place of 1 in a = (v, c), for which sensitivity and noise are computed; 0 without
        sums.

        ``c**2`` is about ``most / (2 sqrt(d))``, which is close to the best unless the mean of the rows is near 0 or
        near the surface of the ball (https://dpfast.readthedocs.io/en/latest/proofs/covariance.html).
        """
        count = checks.whole("d", d, least=1)
        return max(1, math.isqrt(math.isqrt(self.domain.most**2 // (4 * count)))) if self.with_sums else 0

    def _weights(self, d: int) -> tuple[Fraction, ...]:
        return Fraction(1), Fraction(self.weight(d))


@dataclass(frozen=True, repr=False)
class SecondMoments(_RowMoments):
    """Release the mean of the rows around a public center and the mean of their products, as one symmetric matrix.

    Pure epsilon- or (epsilon, delta)-differential privacy under one replaced record (row); the number of records is
    public. The release has the shape (d + 1, d + 1): the mean of a a' over all rows x, a = (x - center, 1), with noise
    on all entries but the last, which is 1. Linear regression and principal components are post-processing.

    Parameters
    ----------
    domain : dpfast.domains.Ball
        The public domain of the rows, in data units. Its step is at least ``radius * 2**-23``: a finer one is made
        coarser.
    epsilon : float
        Positive; rounded down to a double.
    delta : float
        0 for a pure guarantee, by the difference of two Wishart matrices; positive for Gaussian noise. Rounded down.
    mu : float, optional
        In place of epsilon and delta: the mu of Gaussian differential privacy, for Gaussian noise. Rounded down.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call: a wrong shape; once n is known: n times the number of
        steps in the radius is 2**61 or more.

    Notes
    -----
    Privacy: the sum of a a' is a matrix of integers, computed exactly; the 1 counts as a public number c, with which
    the last column has less noise and the others more. One record changes the sum by b b' - a a': at most sqrt(2) (N +
    c**2) in the Frobenius norm and 2 (N + c**2) in the nuclear norm, N the largest squared norm of a row. Gaussian
    noise has the standard deviation (N + c**2) / mu off the diagonal and sqrt(2) times that on it, for the largest mu
    that epsilon and delta allow. For delta = 0 the noise is (N + c**2) / epsilon times G G' - H H', where G and H have
    independent standard normal entries and one column more than rows. No float decides the noise
    (https://dpfast.readthedocs.io/en/latest/proofs/covariance.html).
    Cost: one pass over X, for 20 to 100 columns 1.4 times ``X.T @ X``.

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang 2014, "Analyze Gauss"; Balle and Wang 2018.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> X = np.random.default_rng(0).normal(size=(100_000, 3)) * [3, 2, 1]
    >>> mechanism = dpf.SecondMoments(domain=dpf.domains.Ball(10.0), epsilon=1.0, delta=1e-6)
    >>> mechanism
    <SecondMoments release of rows in a ball of radius 10.0 around 0.0, step 1.9073486328125e-06: \
epsilon = 1, delta = 1e-06 for one record replaced (the number of records is public)>
    >>> moments = mechanism(X)
    >>> moments.shape, bool(np.abs(moments[:3, :3] - X.T @ X / 100_000).max() < 0.1)
    ((4, 4), True)
    """

    def _release(self, moments: Values, d: int) -> Values:
        return np.asarray(moments * self._units(d) * self._units(d)[:, None])


@dataclass(frozen=True, repr=False)
class Covariance(_RowMoments):
    """Release the covariance matrix of the rows, NumPy's ``ddof=0``, or their second moments around a public center.

    Pure epsilon- or (epsilon, delta)-differential privacy under one replaced record (row); the number of records is
    public.

    Parameters
    ----------
    domain, epsilon, delta, mu
        See `SecondMoments`, also for errors, privacy, cost and references.
    centered : bool
        Whether around the mean of the rows, which is released with the products and subtracted. False: around the
        center of the ball, with less noise.
    psd : bool
        Whether to replace negative eigenvalues by 0: the nearest positive semidefinite matrix. It is no farther in
        the Frobenius norm from the covariance of the rows of the ball, but not unbiased.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> X = np.random.default_rng(0).normal(size=(100_000, 3)) * [3, 2, 1] + 5
    >>> mechanism = dpf.Covariance(domain=dpf.domains.Ball(12.0, center=5.0), epsilon=1.0, delta=1e-6)
    >>> bool(np.abs(mechanism(X) - np.diag([9, 4, 1])).max() < 0.2)
    True
    """

    centered: bool = field(kw_only=True, default=True)
    psd: bool = field(kw_only=True, default=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "centered", checks.flag("centered", self.centered))
        object.__setattr__(self, "psd", checks.flag("psd", self.psd))
        super().__post_init__()

    @property
    def with_sums(self) -> bool:
        return self.centered

    def error(self, n: SupportsIndex, *, dimension: SupportsIndex | None = None) -> Values:
        """Return the root of the expected squared noise on each entry, in data units, before ``psd=True``.

        With ``centered=True`` it is that for rows whose mean is the center of the ball; a mean at a distance m from it
        adds noise of about twice m times that on the mean.

        Parameters
        ----------
        n, dimension
            See `noise_deviation`.

        Returns
        -------
        ndarray of shape (d, d)

        Examples
        --------
        >>> import dpfast as dpf
        >>> mechanism = dpf.Covariance(domain=dpf.domains.Ball(10.0), epsilon=1.0, delta=1e-6)
        >>> mechanism.error(100_000, dimension=2).round(4)
        array([[0.0081, 0.0057],
               [0.0057, 0.0081]])
        """
        noise = self.noise_deviation(n, dimension=dimension)
        if not self.centered:
            return noise
        products, squares = noise[:-1, :-1], noise[:-1, -1] ** 2
        of_means = np.outer(squares, squares) + 2 * np.diag(squares**2)  # normal: E e**4 is three times its variance
        return np.sqrt(products**2 + of_means)

    def _release(self, moments: Values, d: int) -> Values:
        covariance = moments[..., :d, :d]
        if self.centered:
            mean = moments[..., :d, d:]
            covariance = covariance - mean * np.swapaxes(mean, -1, -2)
        if self.psd:
            values, vectors = np.linalg.eigh(covariance)
            covariance = (vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
            covariance = (covariance + np.swapaxes(covariance, -1, -2)) / 2
        return np.asarray(covariance * self.domain.step * self.domain.step)


def covariance(
    X: Records | Chunks,
    *,
    radius: float,
    epsilon: Exact,
    center: float | Sequence[float] = 0.0,
    delta: Exact = 0.0,
    centered: bool = True,
    psd: bool = True,
    step: float | None = None,
    neighbors: str = "replace-one",
    rng: RandomSource = None,
    workers: int = 1,
    explain: Explain = False,
) -> NDArray[np.float64]:
    """Release the covariance matrix of rows, (epsilon, delta)-differentially private for one replaced row.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Private data, a record in each row: floats, integers or booleans of any strides, never modified. A row with NaN
        or an infinity is the center. n >= 1 and d >= 1 are public. Also `dpfast.Chunks` of such arrays.
    radius : float
        Public bound on the distance of a row from the center, in the l2 norm, chosen without knowledge of X; rows
        farther away are moved to it.
    epsilon : float
        Positive.
    center : float or d floats
        Public: a guess of the mean of the rows.
    delta : float
        0 for a pure guarantee; positive for Gaussian noise, which has less error.
    centered : bool
        Whether to subtract the mean of the rows, which is released, too. False: the mean of (x - center)(x - center)',
        with less noise.
    psd : bool
        Whether to replace negative eigenvalues by 0.
    step : float, optional
        A power of two: the granularity of a row. Default, and at least: about ``radius * 2**-23``.
    neighbors : {"replace-one", "add-remove"}
        "add-remove" protects the addition or removal of a row, by `dpfast.Resized`: the number of rows is private.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the data; the result does not depend on it.
    explain : bool or callable
        See `dpfast.median`.

    Returns
    -------
    ndarray of shape (d, d)
        Symmetric. ``np.linalg.eigh`` of it gives private principal components at no further cost of privacy.

    Raises
    ------
    TypeError, ValueError
        Parameters of a wrong type or out of range, X empty or of a wrong shape; never because of the values in X.

    Notes
    -----
    Privacy: `Covariance` (https://dpfast.readthedocs.io/en/latest/proofs/covariance.html). The standard deviation of
    the noise in each entry off the diagonal is about ``radius**2 / (n mu)``, mu from epsilon and delta, or
    ``radius**2 sqrt(2 d) / (n epsilon)`` for delta = 0; on the diagonal it is sqrt(2) times that. Cost: one pass over
    X, for 20 to 100 columns 0.4 to 0.9 times ``np.cov(X, rowvar=False)``.

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang 2014, "Analyze Gauss: optimal bounds for privacy-preserving principal component
    analysis".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100_000, 2)) @ [[2.0, 1.0], [0.0, 1.0]]
    >>> release = dpf.covariance(X, radius=10.0, epsilon=1.0, delta=1e-6)
    >>> bool(np.abs(release - [[4, 2], [2, 2]]).max() < 0.1)
    True
    """

    def made() -> Mechanism:
        ball = Ball(radius, center=center, step=step)
        exact, allowed = checks.positive_down("epsilon", epsilon), checks.delta_down(delta)
        of = partial(Covariance, domain=ball, delta=allowed, centered=centered, psd=psd)
        if checks.choice("neighbors", neighbors, ("replace-one", "add-remove")) == "replace-one":
            return of(epsilon=exact)
        return resized(lambda part: of(epsilon=part), epsilon=exact)

    public = Parameters(epsilon=epsilon, delta=delta, neighbors=neighbors)
    mechanism = kept(("covariance", radius, center, centered, psd, step), public, made)
    names_of_columns(X)  # refuses two of one name
    release: NDArray[np.float64] = explained(mechanism, explain, X)(X, rng=rng, workers=workers)
    return release
