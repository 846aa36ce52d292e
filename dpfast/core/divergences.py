"""Divergences between neighbours, by the family of a release: tight, and rounded up in ball arithmetic.

A family is a pair of laws that dominates the release and its neighbour. Proofs of all formulas, and that the Renyi
divergence of order a is at most rho a at every order:
https://dpfast.readthedocs.io/en/latest/proofs/concentration.html.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache, partial
from math import comb
from typing import NamedTuple

import scipy
from flint import arb, fmpq

from dpfast._kernels import _balls
from dpfast.core import shuffling
from dpfast.core.rounding import down


class Part(NamedTuple):
    """A part of a release.

    Attributes
    ----------
    family : str
    parameter : float
        epsilon; mu for "gaussian", rho for "concentrated", which may be a Fraction.
    steps : int
        The sensitivity in steps of the integers, for "discrete-laplace" and "staircase"; the number of integers, for
        "zero-sum-laplace"; the number of records, for "shuffled".
    r : int
        The first magnitude below the top level, for "staircase"; for "shuffled" the k of `shuffling.Batch`.
    """

    family: str
    parameter: float
    steps: int = 1
    r: float = 1

    @property
    def batch(self) -> shuffling.Batch:
        """The reports of a part that is "shuffled"."""
        return shuffling.Batch(self.parameter, self.steps, max(self.r, 2))


# ---- rho: the mean of the privacy loss, e the epsilon of the part ----


def _pure_rho(e: arb, part: Part) -> arb:
    return e * (e / 2).tanh()


def _laplace_rho(e: arb, part: Part) -> arb:
    return e + (-e).expm1()


def _discrete_laplace_rho(e: arb, part: Part) -> arb:
    step = e / part.steps
    return e + (-e).expm1() * 2 * step * (-step).exp() / -(-2 * step).expm1()


def _three_losses_rho(e: arb, part: Part) -> arb:
    most = _most_loss(e, part)
    if most * (1 + (-e / 2).exp()) ** 2 >= 1:  # always for zero-sum noise, and for the r of least mean magnitude
        return e * most * -(-e).expm1()
    return _pure_rho(e, part)


def _bounded_range_rho(e: arb, part: Part) -> arb:
    return e + _log_mean_exp(e) - 1 - e * (-e).exp() / (-e).expm1()


def _shuffled_rho(e: arb, part: Part) -> arb:
    return arb(shuffling.rho_up(part.batch))


# ---- the Renyi divergence of order a ----


def _pure_renyi(e: arb, part: Part, a: arb) -> arb:
    return e + ((-(2 * a - 1) * e).exp().log1p() - (-e).exp().log1p()) / (a - 1)


def _laplace_renyi(e: arb, part: Part, a: arb) -> arb:
    return e + ((a - 1) * (-(2 * a - 1) * e).expm1() / (2 * a - 1)).log1p() / (a - 1)


def _discrete_laplace_renyi(e: arb, part: Part, a: arb) -> arb:
    q, y = (-e / part.steps).exp(), (-(2 * a - 1) * e / part.steps).exp()
    moment = (1 - q * y + (q - y) * (-(2 * a - 1) * e).exp()) / ((1 - y) * (1 + q))
    return e + moment.log() / (a - 1)


def _three_losses_renyi(e: arb, part: Part, a: arb) -> arb:
    y = (-(a - 1) * e).exp()
    return e + (y - (1 - y) * (-a * e).expm1() * _most_loss(e, part)).log() / (a - 1)


def _most_loss(e: arb, part: Part) -> arb:
    """Return the probability of the loss epsilon, where all losses are epsilon, 0 and -epsilon."""
    return _staircase_share(e, part) if part.family == "staircase" else _zero_sum_share(e, part)


def _staircase_share(e: arb, part: Part) -> arb:
    """Of staircase noise and its shift by all steps."""
    s, top, q = part.steps, 2 * part.r - 1, (-e).exp()
    crossed = min(top, s)
    return (crossed + (s - crossed) * q) / (top + (2 * s - top) * q)


def _zero_sum_share(e: arb, part: Part) -> arb:
    """Of s integers with zero-sum Laplace noise, one up and one down by 1.

    ``A_(s-1)(x) / A_s(x)``, x = exp(-e), A_s having the coefficients ``comb(s - 1, i)**2``. It decreases in s; beyond
    256 integers it is the share of 256.
    """
    x, s = (-e).exp(), min(max(part.steps, 2), _MOST_ZERO_SUM)
    return _squared_binomials(s - 2, x) / _squared_binomials(s - 1, x)


def _squared_binomials(n: int, x: arb) -> arb:
    """Return the polynomial with the coefficients ``comb(n, i)**2``, by Horner's rule."""
    total = arb(0)
    for i in range(n + 1):
        total = total * x + math.comb(n, i) ** 2
    return total


def _bounded_range_renyi(e: arb, part: Part, a: arb) -> arb:
    return e + (a * _log_mean_exp(a * e) - (a - 1) * _log_mean_exp((a - 1) * e) - _log_mean_exp(e)) / (a - 1)


def _shuffled_renyi(e: arb, part: Part, a: arb) -> arb:
    return shuffling.renyi(part.batch, a)


def _log_mean_exp(z: arb) -> arb:
    """log((1 - exp(-z)) / z), the logarithm of the mean of exp(-t) over t in [0, z]."""
    return (-(-z).expm1() / z).log()


class _Family(NamedTuple):
    rho: Callable[[arb, Part], arb]
    renyi: Callable[[arb, Part, arb], arb]


# Families of pure releases: the parameter is epsilon.
_PURE = {
    "pure": _Family(_pure_rho, _pure_renyi),
    "bounded-range": _Family(_bounded_range_rho, _bounded_range_renyi),
    "laplace": _Family(_laplace_rho, _laplace_renyi),
    "discrete-laplace": _Family(_discrete_laplace_rho, _discrete_laplace_renyi),
    "zero-sum-laplace": _Family(_three_losses_rho, _three_losses_renyi),
    "staircase": _Family(_three_losses_rho, _three_losses_renyi),
    "shuffled": _Family(_shuffled_rho, _shuffled_renyi),
}
# Families without a finite epsilon, and their rho.
_UNBOUNDED: dict[str, Callable[[Fraction], Fraction]] = {
    "gaussian": lambda mu: mu**2 / 2,
    "concentrated": lambda rho: rho,
}
FAMILIES = (*_PURE, *_UNBOUNDED)
WITH_STEPS = ("discrete-laplace", "staircase", "zero-sum-laplace", "shuffled")
_MOST_ZERO_SUM = 256
_MOST_MU_SQUARED = Fraction(2**20)
_STEPS = 100  # of Newton, far more than are needed but for extreme numbers
_MOST_EPSILON = Fraction(2**20)  # of the delta of a Gaussian: beyond, exp(epsilon) takes millions of bits


def has_epsilon(family: str) -> bool:
    """Whether the parameter of a family is an epsilon, of releases that are pure."""
    return family in _PURE


@lru_cache(maxsize=1024)
def rho_up(part: Part) -> Fraction:
    """Return the least rho of a part, exact for the families without epsilon, else rounded up to a double."""
    if part.family in _UNBOUNDED:
        return _UNBOUNDED[part.family](Fraction(part.parameter))
    if not part.parameter:
        return Fraction()
    rho = _PURE[part.family].rho
    return Fraction(min(part.parameter, _balls.upper(lambda: rho(arb(part.parameter), part))))


@lru_cache(maxsize=1024)
def renyi_up(part: Part, order: float) -> Fraction:
    """Return the largest Renyi divergence of an order above 1 of a part, exact or rounded up as by `rho_up`."""
    if part.family in _UNBOUNDED:
        return Fraction(order) * rho_up(part)
    if not part.parameter:
        return Fraction()
    renyi = _PURE[part.family].renyi
    return Fraction(min(part.parameter, _balls.upper(lambda: renyi(arb(part.parameter), part, arb(order)))))


@lru_cache(maxsize=1024)
def zero_sum_share_up(part: Part) -> float:
    """Return the probability of the largest loss of "zero-sum-laplace", rounded up."""
    return min(1.0, _balls.upper(lambda: _zero_sum_share(arb(part.parameter), part)))


# ---- delta at an epsilon, both at least 0 ----


def pure_delta_up(bound: Fraction, epsilon: Fraction) -> float:
    """Return the delta at epsilon of any release that is pure with a bound above epsilon, rounded up."""
    b, e = _rational(bound), _rational(epsilon)
    return min(1.0, _balls.upper(lambda: -arb(e - b).expm1() / (1 + (-arb(b)).exp())))


@lru_cache(maxsize=1024)
def gaussian_delta_up(mu_squared: Fraction, epsilon: Fraction) -> float:
    """``Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu)``, rounded up: the delta of a Gaussian.

    Beyond an epsilon of 2**20 it is the delta there.
    """
    if not mu_squared:
        return 0.0
    square, e = _rational(mu_squared), _rational(min(epsilon, _MOST_EPSILON))

    return min(1.0, _balls.upper(lambda: _gaussian_delta(arb(square).sqrt(), arb(e))))


def _gaussian_delta(mu: arb, e: arb) -> arb:
    near, far = ((e / mu + sign * mu / 2) / arb(2).sqrt() for sign in (-1, 1))
    return (near.erfc() - e.exp() * far.erfc()) / 2


def new_keys_delta_up(mu_squared: Fraction, new: int, reach: Fraction, epsilon: Fraction) -> float:
    """Return the delta of a Gaussian and `new` keys, each seen with p = P(Z > reach) in one data set, never in the
    other.

    The larger one of both directions, rounded up; it increases in mu_squared and in `new`.
    https://dpfast.readthedocs.io/en/latest/proofs/partitions.html
    """
    square, e, r = _rational(mu_squared), _rational(min(epsilon, _MOST_EPSILON)), _rational(reach)

    def hidden() -> arb:
        """-log of the probability that all new keys stay unseen."""
        return -new * (-(arb(r) / arb(2).sqrt()).erfc() / 2).log1p()

    def appear() -> arb:
        s = hidden()
        rest = _gaussian_delta(arb(square).sqrt(), e + s) if mu_squared else arb(0)
        return -(-s).expm1() + (-s).exp() * rest

    def vanish() -> arb:
        return _gaussian_delta(arb(square).sqrt(), e - hidden())

    found = _balls.upper(appear)
    return min(1.0, max(found, _balls.upper(vanish)) if mu_squared else found)


def concentrated_delta_up(rho: Fraction, epsilon: Fraction) -> float:
    """Return a delta that rho implies at epsilon, ``exp((a - 1)(a rho - epsilon)) (1 - 1/a)**a / (a - 1)``, rounded up.

    It holds at every a > 1, and is computed at one near the minimum.
    """
    if not rho:
        return 0.0
    r, e, excess = _rational(rho), _rational(epsilon), arb(_best_excess(rho, epsilon))

    def delta() -> arb:
        a = 1 + excess
        return (excess * (a * r - e) - (1 + 1 / excess).log() * a).exp() / excess

    return min(1.0, _balls.upper(delta))


def _best_excess(rho: Fraction, epsilon: Fraction) -> float:
    """Return the a - 1 where the derivative (2 a - 1) rho - epsilon + log(1 - 1/a) of the logarithm is 0, nearly."""
    r, e = float(rho), float(min(epsilon, Fraction(sys.float_info.max)))
    low, high = -60.0, 500.0  # of its binary logarithm
    for _ in range(60):
        middle = (low + high) / 2
        excess = 2.0**middle
        low, high = (low, middle) if (2 * excess + 1) * r - e - math.log1p(1 / excess) > 0 else (middle, high)
    return float(2.0**high)


def _rational(x: Fraction) -> fmpq:
    return fmpq(x.numerator, x.denominator)


@lru_cache(maxsize=1024)
def gaussian_mu_down(epsilon: float, delta: float) -> float:
    """Return the greatest mu whose delta at epsilon is at most delta, a positive double, rounded down."""
    target = Fraction(epsilon)

    def fits(mu: float) -> bool:
        return gaussian_delta_up(Fraction(mu) ** 2, target) <= delta

    low = high = _near_mu(min(epsilon, float(_MOST_EPSILON)), delta)
    reach = 2.0**-50
    while fits(high):
        low, high, reach = high, high * (1 + reach), 16 * reach
    while not fits(low):
        high, low, reach = low, low / (1 + reach), 16 * reach
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _near_mu(epsilon: float, delta: float) -> float:
    """Return the mu whose delta at epsilon is delta, mostly to a few units in the last place: about where balls decide.

    By Newton's steps of the logarithms. With a and b for ``(epsilon / mu -+ mu / 2) / sqrt(2)`` the delta is ``exp(-a *
    a) (erfcx(a) - erfcx(b)) / 2``, and its derivative ``exp(-a * a) / sqrt(2 pi)``. The first mu is not above the
    result, as the delta is at most ``exp(-a * a) / 2`` for a >= 0.
    """
    z = math.sqrt(2 * max(-math.log(2 * delta), 0.0))
    mu = max(2 * epsilon / (z + math.sqrt(z * z + 2 * epsilon)), sys.float_info.min)
    for _ in range(_STEPS):
        a, b = ((epsilon / mu + sign * mu / 2) / math.sqrt(2) for sign in (-1, 1))
        rest = float(scipy.special.erfcx(a) - scipy.special.erfcx(b))
        if not 0 < rest < math.inf:
            break
        step = (math.log(2 * delta) + a * a - math.log(rest)) * rest / mu * math.sqrt(math.pi / 2)
        mu = max(mu * math.exp(min(max(step, -1.0), 700.0)), sys.float_info.min)
        if abs(step) < 2.0**-50:
            break
    return min(mu, 2.0**100)


def range_of_mu_down(mu_squared: Fraction) -> float:
    """``2 log(Phi(mu / 2) / Phi(-mu / 2))``, rounded down: the greatest range of a privacy loss that is mu-Gaussian.

    https://dpfast.readthedocs.io/en/latest/proofs/cliques.html
    """
    square = _rational(min(mu_squared, _MOST_MU_SQUARED))

    def minus() -> arb:
        half = arb(square).sqrt() / arb(8).sqrt()
        return 2 * (half.erfc() / (-half).erfc()).log()

    return -_balls.upper(minus)


# ---- releases of bounded range on the same records, made independently: docs/proofs/independent-columns.md ----


_MOST_RANGE = 2.0**10  # of epsilon: beyond, delta is not used
_MOST_TIMES = 256  # releases whose delta is computed exactly, in time proportional to the square of their number
_BISECTED = 1 + 2.0**-20


@lru_cache(maxsize=256)
def bounded_range_epsilon_down(epsilon: float, delta: float, times: int) -> float:
    """Return the greatest range, to one part in 2**20, for which this many independent releases are (epsilon,
    delta)-private.

    Of more than 256 releases the delta is bounded by rho, and the range is 5 to 10 percent less than the greatest one.
    """
    target, allowed = Fraction(epsilon), Fraction(delta)
    low = down(target / times)
    if not delta or epsilon > _MOST_RANGE:
        return low

    def fits(part: float) -> bool:
        if times * Fraction(part) <= target:
            return True
        if times > _MOST_TIMES:
            return concentrated_delta_up(times * rho_up(Part("bounded-range", part)), target) <= allowed
        return all(excess <= allowed for excess in _bounded_range_excesses(part, times, target))

    near = 2 * gaussian_mu_down(epsilon, delta) / math.sqrt(times)
    while not fits(near):
        near /= 2
    low = max(low, near)
    high = 2 * low or 5e-324
    while fits(high):
        low, high = high, 2 * high
    while high > low * _BISECTED and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def bounded_range_delta_up(part: float, times: int, epsilon: Fraction) -> float:
    """Return the least delta at epsilon of this many independent releases, each with a range of `part`, rounded up."""
    return max(_bounded_range_excesses(part, times, epsilon), default=0.0)


def _bounded_range_excesses(part: float, times: int, epsilon: Fraction) -> Iterator[float]:
    """Yield the terms, rounded up, whose maximum is the delta of `bounded_range_delta_up`; those that may exceed 0."""
    range_, target = Fraction(part), _rational(epsilon)
    low_losses = (low for low in range(times) if (times - low) * range_ > epsilon)
    for low in sorted(low_losses, key=lambda low: abs(2 * low - times)):  # the greatest is near the middle
        yield min(1.0, _balls.upper(partial(_excess, _rational(range_), times, low, target)))


def _excess(part: fmpq, times: int, low: int, epsilon: fmpq) -> arb:
    """``sum over i <= low of (P(i) - exp(epsilon) Q(i))``, i the number of releases whose loss is t - part, not t.

    Under Q the number is binomial. t is the best one for this `low`, and all terms are positive.
    """
    t = (epsilon + (low + 1) * part) / (times + 1)
    share = (-arb(t)).expm1() / (-arb(part)).expm1()
    others = arb(part - t).expm1() / arb(part).expm1()  # 1 - share
    mass = comb(times, low) * share**low * others ** (times - low)
    above = arb(((times - low) * part - epsilon) / (times + 1)).expm1()  # P(i) / Q(i) / exp(epsilon) - 1
    odds, growth, step = others / share, arb(part).exp(), arb(part).expm1()
    total = mass * above
    for i in range(low, 0, -1):
        mass *= odds * i / (times - i + 1)
        above = above * growth + step
        total += mass * above
    return total * arb(epsilon).exp()
