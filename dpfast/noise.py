"""Exact noise for arrays of integers and of floats on a grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _balls, _knorm, _samplers
from dpfast.core import checks, containers
from dpfast.core.grid import Grid, check_grid, check_number
from dpfast.core.spending import NOISE, refuse
from dpfast.core.traps import of_noise, warn
from dpfast.random import BLOCK, RandomSource, bit_generator, over_blocks, stream

_MOST_NOISE = 2**62


@overload
def laplace(
    scale: float | Fraction,
    size: None = None,
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> int: ...


@overload
def laplace(
    scale: float | Fraction,
    size: SupportsIndex | tuple[SupportsIndex, ...],
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> NDArray[np.int64]: ...


def laplace(
    scale: float | Fraction,
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> Any:
    """Draw exact rounded Laplace noise on the integers: round(scale * L), L standard Laplace.

    ``P(0) = 1 - exp(-1/(2 scale))``, ``P(z) = exp(-|z|/scale) sinh(1/(2 scale))``.

    Parameters
    ----------
    scale : float or Fraction
        In (0, 2**56], in units of the integers; its exact value is used.
    size : int or tuple of ints, optional
        The shape. Default: one draw.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the draws reproducible, hence not private. Default: the secure generator.
    workers : int
        The number of threads; for a given rng the draws do not depend on it.

    Returns
    -------
    int, or ndarray of int64
        Saturated at +-(2**63 - 1), which a scale of 2**56 reaches with probability e**-128: clamp the noisy values, or
        this event reveals the data.

    Notes
    -----
    Privacy: an integer of sensitivity s plus this noise is (s / scale)-DP: it is the continuous Laplace mechanism,
    rounded (https://dpfast.readthedocs.io/en/latest/proofs/rounded-laplace.html). Cost: about 0.4 times
    ``Generator.laplace``. Draws are decided in doubles with a proved bound, or else in ball arithmetic (about scale *
    2**-47 of the draws, below 2**-12 of them at any scale), so the time depends on the draws; timing is outside the
    guarantee.

    References
    ----------
    Dwork, McSherry, Nissim and Smith 2006.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.noise.laplace(10.0, (2, 3)).shape
    (2, 3)
    """
    refuse(NOISE)
    steps = checks.scale(scale)
    if size is None:
        checks.threads(workers)
        return _samplers.one_rounded_laplace(bit_generator(None) if rng is None else stream(rng), steps)
    return _fill(_samplers.fill_rounded_laplace, steps, size, rng, workers)


@overload
def discrete_laplace(
    scale: float | Fraction,
    size: None = None,
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> int: ...


@overload
def discrete_laplace(
    scale: float | Fraction,
    size: SupportsIndex | tuple[SupportsIndex, ...],
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> NDArray[np.int64]: ...


def discrete_laplace(
    scale: float | Fraction,
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> Any:
    """Draw exact discrete Laplace (two-sided geometric) noise: ``P(z) = tanh(1/(2 scale)) exp(-|z|/scale)``.

    Parameters, returns and cost are those of `laplace` (with twice the words). Privacy: an integer of sensitivity s
    plus this noise is (s / scale)-DP for a public scale; it cannot replace `laplace` if the scale depends on data
    (https://dpfast.readthedocs.io/en/latest/proofs/discrete-laplace.html).

    References
    ----------
    Ghosh, Roughgarden and Sundararajan 2009.
    """
    refuse(NOISE)
    steps = checks.scale(scale)
    if size is None:
        checks.threads(workers)
        return _samplers.one_discrete_laplace(bit_generator(None) if rng is None else stream(rng), steps)
    return _fill(_samplers.fill_discrete_laplace, steps, size, rng, workers)


@overload
def staircase(
    scale: float | Fraction,
    sensitivity: SupportsIndex,
    size: None = None,
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> int: ...


@overload
def staircase(
    scale: float | Fraction,
    sensitivity: SupportsIndex,
    size: SupportsIndex | tuple[SupportsIndex, ...],
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> NDArray[np.int64]: ...


def staircase(
    scale: float | Fraction,
    sensitivity: SupportsIndex,
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> Any:
    """Draw exact discrete staircase noise: the least mean magnitude for an integer of this sensitivity.

    ``P(z)`` is proportional to ``exp(-epsilon floor(1 + (|z| - r) / s))``, with s = sensitivity, epsilon = s / scale
    and ``r = ceil(s / (1 + exp(epsilon / 2)))``, which minimises the mean of ``|z|``. With s = 1 it is discrete
    Laplace.

    Parameters
    ----------
    scale : float or Fraction
        In (0, 2**56], in units of the integers; its exact value is used.
    sensitivity : int
        In 1..2**56, public: the most that one record changes the integer. It is the period of the law, which is not
        private for a larger change.
    size, rng, workers
        See `laplace`.

    Returns
    -------
    int, or ndarray of int64
        Saturated at +-(2**63 - 1), which a scale of 2**56 reaches with probability e**-128.

    Notes
    -----
    Privacy: an integer of this sensitivity plus this noise is (sensitivity / scale)-DP. The noise has more rho and
    larger Renyi divergences than that of `discrete_laplace` of the same scale
    (https://dpfast.readthedocs.io/en/latest/proofs/staircase.html), and a smaller mean of ``|z|``: for sensitivity 10
    by 4 % at epsilon 1, 15 % at 2, 45 % at 4 and 97 % at 8. Cost: two words a draw.

    References
    ----------
    Geng and Viswanath 2016, "The optimal noise-adding mechanism in differential privacy"; mechanisms-d 3 of the
    specification.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.noise.staircase(2.5, 10, (2, 3)).shape
    (2, 3)
    """
    refuse(NOISE)
    s, checked = checks.period(sensitivity), checks.scale(scale)
    r = _balls.staircase_r(checked, s)

    def fill(source: BitGenerator, scale: float | Fraction, out: NDArray[np.int64]) -> None:
        _samplers.fill_staircase(source, scale, s, r, out)

    return _fill(fill, checked, size, rng, workers)


@overload
def geometric(
    scale: float | Fraction,
    size: None = None,
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> int: ...


@overload
def geometric(
    scale: float | Fraction,
    size: SupportsIndex | tuple[SupportsIndex, ...],
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> NDArray[np.int64]: ...


def geometric(
    scale: float | Fraction,
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> Any:
    """Draw exactly from a geometric distribution: ``P(k) = (1 - exp(-1/scale)) exp(-k/scale)``, k = 0, 1, ...

    This is the distribution of floor(scale * E), E standard exponential.

    Parameters, returns and cost are those of `laplace`. One-sided noise is not private by itself.
    """
    refuse(NOISE)
    steps = checks.scale(scale)
    if size is None:
        checks.threads(workers)
        return _samplers.one_geometric(bit_generator(None) if rng is None else stream(rng), steps)
    return _fill(_samplers.fill_geometric, steps, size, rng, workers)


def add_laplace(
    values: ArrayLike, *, scale: float | Fraction, grid: Grid, rng: RandomSource = None, workers: int = 1
) -> NDArray[np.float64]:
    """Add independent rounded Laplace noise to floats on a public grid.

    Parameters
    ----------
    values : array_like
        Private data of any shape, first clamped and rounded to `grid`; NaN goes to ``grid.missing``.
    scale : float or Fraction
        In data units; ``scale / grid.step`` at most 2**56.
    grid : Grid
    rng, workers
        See `laplace`.

    Returns
    -------
    ndarray of float64
        With the shape of `values`; every entry is an integer multiple of ``grid.step``. It is not clamped after the
        noise, so that sums are unbiased; clamping the result is free postprocessing.

    Notes
    -----
    Privacy: if one record changes the rounded vector by at most s in the l1 norm, the release is (s / scale)-DP.
    Rounding may add one step to each entry that a record changes: s_real + step * entries is always a valid s.
    Cost: three passes over memory and the draws.

    Examples
    --------
    >>> import dpfast as dpf
    >>> noisy = dpf.noise.add_laplace([1.25, 7.5], scale=2.0, grid=dpf.Grid(0, 10, step=0.25))
    >>> bool((noisy % 0.25 == 0).all())
    True
    """
    refuse(NOISE)
    return _add(_samplers.fill_rounded_laplace, "scale", scale, values, grid, rng, workers)


@overload
def gaussian(
    sigma: float | Fraction,
    size: None = None,
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> int: ...


@overload
def gaussian(
    sigma: float | Fraction,
    size: SupportsIndex | tuple[SupportsIndex, ...],
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> NDArray[np.int64]: ...


def gaussian(
    sigma: float | Fraction,
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> Any:
    """Draw exact rounded Gaussian noise on the integers: round(sigma * Z), Z standard normal.

    ``P(z) = Phi((z + 1/2) / sigma) - Phi((z - 1/2) / sigma)``, Phi the normal distribution function.

    Parameters
    ----------
    sigma : float or Fraction
        In (0, 2**56], in units of the integers; its exact value is used.
    size, rng, workers
        See `laplace`.

    Returns
    -------
    int, or ndarray of int64
        Saturated at +-(2**63 - 1), which a sigma of 2**56 reaches with probability e**-8192.

    Notes
    -----
    Privacy: a vector of integers of sensitivity D in the l2 norm plus independent noise of this law is the continuous
    Gaussian mechanism, rounded (https://dpfast.readthedocs.io/en/latest/proofs/rounded-gaussian.html). With mu = D /
    sigma it is mu-GDP, (mu**2 / 2)-zCDP, and (epsilon, delta)-DP for ``delta = Phi(mu/2 - epsilon/mu) - exp(epsilon)
    Phi(-mu/2 - epsilon/mu)``. Cost: about 0.5 times ``Generator.standard_normal``. Draws are decided in doubles with a
    proved bound, or else in ball arithmetic (about sigma * 2**-48 of the draws, below 2**-13 at any sigma), so the time
    depends on the draws; timing is outside the guarantee.

    References
    ----------
    Balle and Wang 2018; Dong, Roth and Su 2022.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.noise.gaussian(10.0, (2, 3)).shape
    (2, 3)
    """
    refuse(NOISE)
    steps = checks.scale(sigma, name="sigma")
    if size is None:
        checks.threads(workers)
        return _samplers.one_rounded_gaussian(bit_generator(None) if rng is None else stream(rng), steps)
    return _fill(_samplers.fill_rounded_gaussian, steps, size, rng, workers)


def add_gaussian(
    values: ArrayLike, *, sigma: float | Fraction, grid: Grid, rng: RandomSource = None, workers: int = 1
) -> NDArray[np.float64]:
    """Add independent rounded Gaussian noise to floats on a public grid.

    Parameters
    ----------
    values : array_like
        Private data of any shape: clamped and rounded to `grid` first, NaN to ``grid.missing``.
    sigma : float or Fraction
        In data units; ``sigma / grid.step`` at most 2**56.
    grid : Grid
    rng, workers
        See `laplace`.

    Returns
    -------
    ndarray of float64
        The shape of `values`; every entry is an integer multiple of ``grid.step``. Entries are not clamped after the
        noise, so that sums remain unbiased.

    Notes
    -----
    Privacy: if one record changes the rounded vector by at most D in the l2 norm, the release is (D / sigma)-GDP, with
    the guarantees of `gaussian`. Rounding itself may add one step to each entry that a record touches: D_real + step
    * sqrt(entries) is always enough. Cost: three passes over memory and the draws.

    Examples
    --------
    >>> import dpfast as dpf
    >>> noisy = dpf.noise.add_gaussian([1.25, 7.5], sigma=2.0, grid=dpf.Grid(0, 10, step=0.25))
    >>> bool((noisy % 0.25 == 0).all())
    True
    """
    refuse(NOISE)
    return _add(_samplers.fill_rounded_gaussian, "sigma", sigma, values, grid, rng, workers)


def box(
    scales: Sequence[float | Fraction] | NDArray[np.float64],
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> NDArray[np.int64]:
    """Draw exact noise on vectors of d integers by the norm of a box: round(z), z of density as follows.

    The density is proportional to ``exp(-max_i |z_i| / scales_i)``. ``|z_i|`` has the expectation ``scales_i (d + 1) /
    2``, against ``scales_i d`` for independent Laplace noise of the same guarantee.

    Parameters
    ----------
    scales : sequence of floats or Fractions, or ndarray
        One for each of the d coordinates, in (0, 2**56], in units of the integers; their exact values are used.
    size : int or tuple of ints, optional
        The shape of an array of vectors. Default: one vector.
    rng, workers
        See `laplace`.

    Returns
    -------
    ndarray of int64, of shape ``(*size, d)``
        Saturated at +-(2**63 - 1): clamp the noisy values, or this event reveals the data.

    Notes
    -----
    Privacy: a vector of integers plus this noise is epsilon-DP if its difference between neighbours always lies in the
    box of half-widths w_i and the scales are w_i / epsilon: it is the continuous K-norm mechanism, rounded
    (https://dpfast.readthedocs.io/en/latest/proofs/knorm.html). The coordinates are not independent: release a whole
    vector or a function of it. Coordinates are decided in doubles with a proved bound, or else in ball arithmetic
    (about d scale * 2**-49 of them), so the time depends on the draws; timing is outside the guarantee.

    References
    ----------
    Hardt and Talwar 2010; Awan and Slavkovic 2021.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.noise.box([10.0, 10.0, 2.5], 4).shape
    (4, 3)
    """
    refuse(NOISE)
    return _fill_rows(_knorm.fill_box, checks.scales(scales), size, rng, workers)


def ball(
    scales: Sequence[float | Fraction] | NDArray[np.float64],
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    *,
    rng: RandomSource = None,
    workers: int = 1,
) -> NDArray[np.int64]:
    """Draw exact noise on vectors of d integers by the norm of an ellipsoid: round(z), z of density as follows.

    The density is proportional to ``exp(-sqrt(sum_i (z_i / scales_i)**2))``; the standard deviation of z_i is
    ``scales_i sqrt(d + 1)``.

    Parameters, returns and cost are those of `box`; the probability of ball arithmetic is about sqrt(d) scale * 2**-45
    for each coordinate.

    Notes
    -----
    Privacy: a vector of integers plus this noise is epsilon-DP if its difference between neighbours always lies in the
    l2 ball of radius R and all scales are R / epsilon: it is the continuous K-norm mechanism, rounded
    (https://dpfast.readthedocs.io/en/latest/proofs/knorm.html). For an ellipsoid of semi-axes R_i the scales are R_i /
    epsilon. The coordinates are not independent: release a whole vector or a function of it.

    References
    ----------
    Hardt and Talwar 2010; Awan and Slavkovic 2021.

    Examples
    --------
    >>> import dpfast as dpf
    >>> dpf.noise.ball([10.0, 10.0, 10.0], 4).shape
    (4, 3)
    """
    refuse(NOISE)
    return _fill_rows(_knorm.fill_ball, checks.scales(scales), size, rng, workers)


def _add(
    kernel: Callable[..., None],
    name: str,
    scale: float | Fraction,
    values: ArrayLike,
    grid: Grid,
    rng: RandomSource,
    workers: int,
) -> NDArray[np.float64]:
    """Return the rounded values plus noise of this scale, in data units."""
    check_grid(grid)
    check_number(grid)
    steps = checks.scale(scale, grid.step, name)
    workers = checks.threads(workers)
    bit_generator(rng)  # reject wrong parameters before reading data
    warn(of_noise(float(scale), grid.step))
    array = containers.numbers("values", values)
    codes = grid.encode(array.reshape(-1))
    noise = _fill(kernel, steps, codes.size, rng, workers)
    np.clip(noise, -_MOST_NOISE, _MOST_NOISE, out=noise)  # the sum must not overflow,
    noise += codes
    limit = _MOST_NOISE - grid.size
    np.clip(noise, -limit, limit, out=noise)  # nor reveal the data at the limit of the noise
    with np.errstate(over="ignore"):  # 2**62 steps may overflow float64
        return grid.decode(noise).reshape(array.shape)


def _fill(
    kernel: Callable[..., None],
    scale: float | Fraction,
    size: SupportsIndex | tuple[SupportsIndex, ...] | None,
    rng: RandomSource,
    workers: int,
) -> Any:
    """Draw an array of a checked scale in blocks, each from its own stream."""
    shape, threads = checks.shape(size), checks.threads(workers)
    out = np.empty(math.prod(shape), np.int64)
    over_blocks(lambda source, block: kernel(source, scale, out[block]), rng, out.size, BLOCK, threads)
    return int(out[0]) if size is None else out.reshape(shape)


def _fill_rows(
    kernel: Callable[..., None],
    scales: NDArray[Any],
    size: SupportsIndex | tuple[SupportsIndex, ...] | None,
    rng: RandomSource,
    workers: int,
) -> NDArray[np.int64]:
    """Draw an array of vectors with checked scales in blocks of rows, each from its own stream."""
    shape, threads = checks.shape(size), checks.threads(workers)
    out = np.empty((math.prod(shape), scales.size), np.int64)
    rows = max(BLOCK // scales.size, 1)
    over_blocks(lambda source, block: kernel(source, scales, out[block]), rng, len(out), rows, threads)
    return out.reshape(*shape, scales.size)
