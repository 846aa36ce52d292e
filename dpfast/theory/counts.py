"""The noise on the counts of a histogram, chosen from public numbers, and its variance."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, SupportsIndex

from dpfast.core import checks
from dpfast.core.divergences import gaussian_mu_down
from dpfast.core.rounding import root_up
from dpfast.laws import DiscreteLaplace, Independent, RoundedGaussian, VectorNoise, ZeroSumLaplace

# How one record changes the counts, in the l1 norm, and in the l2 norm squared: a replaced record leaves one cell and
# enters another.
CHANGED_COUNTS = {"replace-one": 2, "add-remove": 1}
# Up to this number of cells, Laplace noise under replacement is drawn given that its sum is 0.
MOST_BALANCED = 64
NOISES = ("auto", "discrete-laplace", "gaussian")


class CountNoise(NamedTuple):
    """The noise on the counts of a histogram, the variance of each, and for Gaussian noise its scale, else None."""

    law: VectorNoise
    variance: float
    sigma: float | None = None


def count_noise(
    cells: int | None, *, epsilon: float, delta: float = 0.0, neighbors: str = "replace-one", noise: str = "auto"
) -> CountNoise:
    """Return the noise on each of the counts of a perturbed histogram; for "auto" the one with less variance.

    Laplace noise has a scale of exactly the l1 change divided by epsilon. The standard deviation of Gaussian noise is a
    double not below the l2 change divided by `gaussian_mu_down`. None for cells stands for any number above 64.
    """
    checks.choice("neighbors", neighbors, tuple(CHANGED_COUNTS))
    checks.choice("noise", noise, NOISES)
    if noise == "gaussian" and not delta:
        raise ValueError("delta must be positive for Gaussian noise, not 0.0")
    return _count_noise(MOST_BALANCED + 1 if cells is None else cells, epsilon, delta, neighbors, noise)


@lru_cache(maxsize=1024)
def _count_noise(cells: int, epsilon: float, delta: float, neighbors: str, noise: str) -> CountNoise:
    changed = CHANGED_COUNTS[neighbors]
    scale = changed / Fraction(epsilon)
    if neighbors == "replace-one" and cells <= MOST_BALANCED:
        balanced = ZeroSumLaplace(cells, scale)
        laplace = CountNoise(balanced, balanced.variance)
    else:
        each = DiscreteLaplace(scale)
        laplace = CountNoise(Independent(each, cells), each.variance)
    if noise == "discrete-laplace" or not delta:
        return laplace
    sigma = root_up(changed / Fraction(gaussian_mu_down(epsilon, delta)) ** 2)
    normal = RoundedGaussian(sigma)
    gaussian = CountNoise(Independent(normal, cells), normal.variance, sigma)
    return min(gaussian, laplace, key=lambda chosen: chosen.variance) if noise == "auto" else gaussian


def noise_variance(
    epsilon: float,
    *,
    cells: SupportsIndex | None = None,
    delta: float = 0.0,
    neighbors: str = "replace-one",
    noise: str = "auto",
) -> float:
    """Variance of the noise on each count of a perturbed histogram.

    Parameters
    ----------
    epsilon : float
        Positive.
    cells : int, optional
        The number of cells, at least 1. Default: any number above 64.
    delta : float
        In [0, 1).
    neighbors : {"replace-one", "add-remove"}
    noise : {"auto", "discrete-laplace", "gaussian"}
        See `dpfast.densities.PerturbedHistogram`.

    Returns
    -------
    float
        For independent Laplace noise ``1 / (2 sinh(1 / (2 scale))^2)``, about 2 scale^2, with scale 2 / epsilon or 1 /
        epsilon. Under replacement up to 64 counts have noise of sum 0, whose variance is less: by a factor of 4.3, 2.5
        and 1.9 for 2, 3 and 4 cells at epsilon 1, 1.04 for 64 cells; 0 for a single cell.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> import dpfast as dpf
    >>> round(dpf.theory.noise_variance(0.1), 2), round(dpf.theory.noise_variance(0.1, cells=3), 2)
    (799.83, 333.17)
    >>> round(dpf.theory.noise_variance(0.1, delta=1e-6, noise="gaussian"), 2)
    2636.14
    """
    epsilon, delta = checks.positive_down("epsilon", epsilon), checks.delta_down(delta)
    number = None if cells is None else checks.whole("cells", cells, least=1)
    return count_noise(number, epsilon=epsilon, delta=delta, neighbors=neighbors, noise=noise).variance
