"""Decisions in ball arithmetic: the slow path of every sampler, and the definition of its fast path.

Each function takes the word that doubles could not decide, and ``more``, which draws further words: the uniform number
that starts with the word is refined by 64 bits at a time until the balls of ``arb`` leave one outcome. A ball always
encloses the exact value, so the working precision only affects the speed. About one draw in 2**20 gets here.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate
from math import factorial, inf, nextafter, prod
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpq, fmpz

# flint's working precision is global to the process. The lock is reentrant, because a signal handler or a finalizer may
# draw, or fork, while the same thread holds it.
_precision = threading.RLock()
if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(
        before=_precision.acquire, after_in_parent=_precision.release, after_in_child=_precision.release
    )

LARGEST = 2**63 - 1
_LARGE = 2**8  # exp(-_LARGE) is below 2**-369
_MOST_BITS = 2**14  # of a formula; a double has at most 1074 bits after the point, and few formulas cancel all


@contextmanager
def working_bits(precision: int) -> Iterator[None]:
    with _precision:
        before = ctx.prec
        ctx.prec = precision
        try:
            yield
        finally:
            ctx.prec = before


def rational(x: float | Fraction) -> fmpq:
    fraction = Fraction(x)
    return fmpq(fraction.numerator, fraction.denominator)


class PartialUniform:
    """A uniform number in [0, 1) known to lie in [first, first + 1) * 2**-bits."""

    def __init__(self, first: int, bits: int, more: Callable[[], int]) -> None:
        self.first, self.bits, self._more = first, bits, more

    @property
    def lower(self) -> arb:
        return arb((fmpz(self.first), fmpz(-self.bits)))

    @property
    def upper(self) -> arb:
        return arb((fmpz(self.first + 1), fmpz(-self.bits)))

    @property
    def ball(self) -> arb:
        """The whole interval."""
        return arb((fmpz(2 * self.first + 1), fmpz(-self.bits - 1)), (fmpz(1), fmpz(-self.bits - 1)))

    def refine(self) -> None:
        self.first = (self.first << 64) | self._more()
        self.bits += 64


def floor_exponential(word: int, more: Callable[[], int], scale: float | Fraction, offset: Fraction) -> int:
    """floor(scale * E + offset) for E = -log(U), U the uniform number whose first 63 bits are the word's.

    At the ends of U's interval, scale * E + offset is never an integer: a logarithm of a rational other than 1 is
    irrational.
    """
    return _floor_exponential(word, more, rational(scale), lambda: arb(rational(offset)))


def _floor_exponential(word: int, more: Callable[[], int], scale: fmpq, offset: Callable[[], arb]) -> int:
    """floor(scale * E + offset), which is never an integer at a rational U before the floor; saturates at 2**63 - 1.

    With enough precision the floors at the ends of U's interval are decided; if they differ, U is refined.
    """

    def floor_at(u: Callable[[], arb], precision: int) -> int:
        while True:
            with working_bits(precision):
                floor = (offset() - scale * u().log()).floor().unique_fmpz()
            if floor is not None:
                return int(floor)
            precision *= 2

    u = PartialUniform(word >> 1, 63, more)
    while True:
        precision = u.bits + 192
        if u.first:
            low, high = floor_at(lambda: u.upper, precision), floor_at(lambda: u.lower, precision)
            if low == high or low > LARGEST:
                return min(low, LARGEST)
        u.refine()


@lru_cache(maxsize=256)
def staircase_r(scale: float | Fraction, s: int) -> int:
    """``ceil(s / (1 + exp(epsilon / 2)))``, epsilon = s / scale: the r of the least mean magnitude."""
    half, precision = rational(s / Fraction(scale) / 2), 192
    if half > _LARGE:
        return 1
    while True:  # the quotient is not an integer, since exp is irrational
        with working_bits(precision):
            r = (s / (1 + arb(half).exp())).ceil().unique_fmpz()
        if r is not None:
            return int(r)
        precision *= 2


@lru_cache(maxsize=256)
def staircase_is_less(scale: float | Fraction, s: int, r: int) -> bool:
    """Whether staircase noise has at most 0.95 times the mean magnitude of discrete Laplace noise of the same scale.

    The means are (r (r - 1) + s m (2 r + 2 s m + s - 1)) / (2 r - 1 + 2 s m), m = 1 / (exp(epsilon) - 1), epsilon = s /
    scale, and 1 / sinh(1 / scale). They are equal for s = 1.
    """
    step = 1 / rational(scale)
    if s == 1 or s * step > 2 * _LARGE:
        return s > 1
    precision = 192
    while True:
        with working_bits(precision):
            m = 1 / arb(s * step).expm1()
            stairs = (r * (r - 1) + s * m * (2 * r + 2 * s * m + s - 1)) / (2 * r - 1 + 2 * s * m)
            excess = stairs * 20 - 19 / arb(step).sinh()
        if not excess.contains(0):
            return bool(excess < 0)
        precision *= 2


def staircase_level(word: int, more: Callable[[], int], rate: Fraction, s: int, r: int) -> int:
    """floor(rate * E + offset), the level of staircase noise, E as in `floor_exponential`, rate = 1 / epsilon.

    It never is an integer at a rational U, because exp(-epsilon) is transcendental:
    https://dpfast.readthedocs.io/en/latest/proofs/staircase.html.
    """
    epsilon, share = 1 / rational(rate), fmpq(2 * r - 1, 2 * s)
    return _floor_exponential(word, more, rational(rate), lambda: _level_offset(epsilon, share))


@lru_cache(maxsize=256)
def staircase_offset(rate: Fraction, s: int, r: int) -> float:
    """Return the offset of `staircase_level` as a double, within 2**-53."""
    with working_bits(192):
        return float(_level_offset(1 / rational(rate), fmpq(2 * r - 1, 2 * s)))


def _level_offset(epsilon: fmpq, share: fmpq) -> arb:
    """``-log(share + (1 - share) exp(-epsilon)) / epsilon``, in [0, 1]."""
    return -(arb(1 - share) * arb(-epsilon).expm1()).log1p() / epsilon


def round_student3(word: int, more: Callable[[], int], scale: float | Fraction) -> int:
    """Return the largest k with k = 0 or U < P(|T| > (k - 1/2) / scale), U the number whose first 63 bits are the
    word's.

    T is Student's t with 3 degrees of freedom: with y = sqrt(3) scale / (k - 1/2), the probability is (2 / pi) (atan y
    - y / (1 + y**2)). Found by bisection of 0..2**63 - 1; each step is decided as in `below_exp_neg`.
    """
    u = PartialUniform(word >> 1, 63, more)
    low, high = 0, LARGEST
    while low < high:
        middle = (low + high + 1) // 2
        if _below_student_tail(u, rational(scale) / fmpq(2 * middle - 1, 2)):
            low = middle
        else:
            high = middle - 1
    return low


def _below_student_tail(u: PartialUniform, inverse: fmpq) -> bool:
    while True:
        with working_bits(u.bits + 192):
            y = inverse * arb(3).sqrt()
            edge = 2 * (y.atan() - y / (1 + y * y)) / arb.pi()
            if u.upper <= edge:
                return True
            if u.lower >= edge:
                return False
        u.refine()


def round_gaussian(word: int, more: Callable[[], int], sigma: float | Fraction) -> int:
    """Return the greatest k with k = 0 or U < P(|Z| > (k - 1/2) / sigma), U the number whose first 63 bits are the
    word's.

    Z is standard normal. Found by bisection of 0..2**63 - 1 between two ends near a candidate in doubles, which proves
    nothing; each comparison is decided as in `below_exp_neg`.
    """
    u, scale = PartialUniform(word >> 1, 63, more), rational(sigma)

    def reached(k: int) -> bool:
        return k <= 0 or (k <= LARGEST and _below_normal_tail(u, fmpq(2 * k - 1, 2) / scale))

    low = high = min(round(-NormalDist().inv_cdf(((word >> 1) + 0.5) * 2.0**-64) * Fraction(sigma)), LARGEST)
    step = 1
    while not reached(low):
        low, high, step = low - step, low, 2 * step
    while low == high or reached(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reached(middle) else (low, middle)
    return max(low, 0)


def _below_normal_tail(u: PartialUniform, z: fmpq) -> bool:
    while True:
        with working_bits(u.bits + 192):
            edge = (z / arb(2).sqrt()).erfc()
            if u.upper <= edge:
                return True
            if u.lower >= edge:
                return False
        u.refine()


def below_exp_neg(word: int, more: Callable[[], int], gamma: float | Fraction) -> bool:
    """Whether the uniform number that starts with this word is below exp(-gamma), which is 0 for gamma = inf."""
    if gamma == inf:
        return False
    u = PartialUniform(word, 64, more)
    while True:
        with working_bits(u.bits + 192):
            edge = (-arb(rational(gamma))).exp()
            if u.upper <= edge:
                return True
            if u.lower >= edge:
                return False
        u.refine()


def below(word: int, more: Callable[[], int], edge: Callable[[], arb]) -> bool:
    """Whether the uniform number that starts with this word is below an irrational edge, which is recomputed."""
    u = PartialUniform(word, 64, more)
    while True:
        with working_bits(u.bits + 192):
            limit = edge()
            if u.upper <= limit:
                return True
            if u.lower >= limit:
                return False
        u.refine()


def poisson(word: int, more: Callable[[], int], mean: Callable[[], arb]) -> int:
    """Return a Poisson number with this mean, by inversion of the word's uniform number. **Cost**
    the mean, in steps.
    """
    u = PartialUniform(word, 64, more)
    while True:
        with working_bits(u.bits + 192):
            rate, lower, upper = mean(), u.lower, u.upper
            term = (-rate).exp()
            count, edge = 0, term
            while edge <= lower:
                count += 1
                term = term * rate / count
                edge += term
            if edge >= upper:
                return count
        u.refine()


def _choose(word: int, more: Callable[[], int], weights: Callable[[], Iterator[arb]], count: int) -> int:
    """Choose among `count` weights by inversion of the word's uniform number; each pass recomputes the weights."""
    u = PartialUniform(word, 64, more)
    while True:
        with working_bits(u.bits + 192):
            total = sum(weights(), arb(0))
            lower, upper = u.lower * total, u.upper * total
            index, edge = next((i, e) for i, e in enumerate(accumulate(weights())) if not e <= lower or i == count - 1)
            if index == count - 1 or edge >= upper:
                return index
        u.refine()


def choose_exponent(word: int, more: Callable[[], int], exponents: Sequence[Fraction | float]) -> int:
    """Draw the index i with probability exp(-y_i) / sum_j exp(-y_j), by inversion of the word's uniform number.

    An exponent of inf has probability 0. At least one exponent is finite.
    """
    candidates: list[int] = []
    places: list[int] = []  # index of each candidate's exponent among the distinct ones
    distinct: dict[Fraction, int] = {}
    for i, y in enumerate(exponents):
        if isinstance(y, Fraction):
            candidates.append(i)
            places.append(distinct.setdefault(y, len(distinct)))
    rationals = [rational(y) for y in distinct]

    def weights() -> Iterator[arb]:
        powers = [(-arb(y)).exp() for y in rationals]
        return (powers[place] for place in places)

    return candidates[_choose(word, more, weights, len(candidates))]


def choose_level(
    word: int, more: Callable[[], int], widths: Sequence[int], epsilon: float, total: int, depth: int = 0
) -> int:
    """Draw the level t with weight (1 - q) q**(t + depth) widths[t], or n with weight q**(n + depth) total.

    q = exp(-epsilon / 2), n = len(widths). Level 0 has the weight (1 - q**(depth + 1)) widths[0].
    """
    rate = rational(Fraction(epsilon) / 2)

    def weights() -> Iterator[arb]:
        q, power = (-arb(rate)).exp(), (-arb(rate * depth)).exp()
        loss = -((-arb(rate)).expm1())
        for t, width in enumerate(widths):
            yield (loss * power if t else -((-arb(rate * (depth + 1))).expm1())) * width
            power *= q
        yield power * total

    return _choose(word, more, weights, len(widths) + 1)


def flip_level(words: Sequence[int], more: Callable[[], int], sizes: Sequence[int], epsilon: float, depth: int) -> int:
    """Return the level t of the greatest -log(1 - U_t**(1 / sizes[t])) - epsilon / 2 * exponent(t), U_t the word's
    number.

    exponent(t) is t + depth for t > 0, and 0 for t = 0. Levels of size 0 do not count. All levels that may be the
    greatest are refined, in order.
    """
    rate = rational(Fraction(epsilon) / 2)
    uniforms = {t: PartialUniform(int(word), 64, more) for t, word in enumerate(words) if sizes[t]}

    def value(u: arb, t: int) -> arb:
        if not u > 0:
            return arb(0) - rate * (t + depth if t else 0)
        return -((-((u.log() / int(sizes[t])).expm1())).log()) - rate * (t + depth if t else 0)

    while True:
        precision = max(u.bits for u in uniforms.values()) + 192
        with working_bits(precision):
            bottoms = {t: value(u.lower, t) for t, u in uniforms.items()}
            best = reduce(lambda a, b: b if bottoms[b] > bottoms[a] else a, bottoms)
            rivals = [
                t
                for t, u in uniforms.items()
                if t != best and not (u.first + 1 < 1 << u.bits and value(u.upper, t) < bottoms[best])
            ]
        if not rivals:
            return best
        for t in sorted([best, *rivals]):
            uniforms[t].refine()


def choose_box(
    word: int,
    more: Callable[[], int],
    columns: Callable[[], Iterable[Sequence[int]]],
    epsilon: float,
    count: int,
) -> int:
    """Draw the box t with weight (1 - q) q**t volume(t), t < count - 1, or the last with q**t volume(t).

    q = exp(-epsilon / 2); a volume is the product of its widths; `columns()` yields an array of widths for each column.
    """
    rate = rational(Fraction(epsilon) / 2)

    @lru_cache(maxsize=1)
    def products(precision: int) -> list[arb]:
        q, power = (-arb(rate)).exp(), arb(1)
        loss = -((-arb(rate)).expm1())
        volumes = []
        for _ in range(count - 1):
            volumes.append(loss * power)
            power *= q
        volumes.append(power)
        for widths in columns():
            volumes = [volume * int(width) for volume, width in zip(volumes, widths, strict=True)]
        return volumes

    return _choose(word, more, lambda: iter(products(ctx.prec)), count)


def choose_piece(
    word: int, more: Callable[[], int], pieces: Sequence[tuple[int, int, int]], rate: float | Fraction
) -> int:
    """Draw the index i with weight ``length exp(-rate excess) / closest`` of the i-th (length, excess, closest)."""
    exponent = rational(rate)

    def weights() -> Iterator[arb]:
        for length, excess, closest in pieces:
            yield (-arb(exponent * excess)).exp() * fmpq(length, closest)

    return _choose(word, more, weights, len(pieces))


def choose_weight(word: int, more: Callable[[], int], weights: Iterable[float]) -> int:
    """Draw the index i with probability w_i / sum_j w_j, in integers, with the exact values of the doubles."""
    cumulative = list(accumulate(map(_in_least_units, weights)))
    u = PartialUniform(word, 64, more)
    while True:
        lower, upper = (n * cumulative[-1] for n in (u.first, u.first + 1))
        index = bisect_right(cumulative, lower >> u.bits)
        if cumulative[index] << u.bits >= upper:
            return index
        u.refine()


def _in_least_units(weight: float) -> int:
    """Return a double as a multiple of 2**-1074."""
    numerator, denominator = weight.as_integer_ratio()
    return (numerator << 1074) // denominator


def goes_anywhere(word: int, more: Callable[[], int], epsilon: float, cap: int, vectors: int, chain: Fraction) -> bool:
    """Return True with probability w / (w + chain), w = exp(-epsilon cap / 2) vectors."""
    rate = rational(Fraction(epsilon) / 2)
    return _choose(word, more, lambda: iter(((-arb(rate * cap)).exp() * vectors, arb(rational(chain)))), 2) == 0


def keeps(
    word: int, more: Callable[[], int], epsilon: float, score: int, cap: int, proposed: Callable[[], arb]
) -> bool:
    """Return True with probability (q**score - q**cap) / proposed(), q = exp(-epsilon / 2), score < cap."""
    rate = rational(Fraction(epsilon) / 2)
    u = PartialUniform(word, 64, more)
    while True:
        with working_bits(u.bits + 192):
            edge = (-arb(rate * score)).exp() * -((-arb(rate * (cap - score))).expm1()) / proposed()
            if u.upper <= edge:
                return True
            if u.lower >= edge:
                return False
        u.refine()


def proposed_weight(
    odds: Sequence[tuple[float, npt.NDArray[np.float64]]], counts: Sequence[int], total: Fraction
) -> Callable[[], arb]:
    """Return the total times the probability of these choices, weight / sum of weights each, over the product of
    counts.

    A function of the working precision: an exact product would have as many digits as all weights together.
    """
    numerators = [fmpz(_in_least_units(weight)) for weight, _ in odds]
    denominators = [fmpz(_sum_in_least_units(weights)) for _, weights in odds] + [fmpz(count) for count in counts]

    def weight() -> arb:
        return prod(map(arb, numerators), start=arb(rational(total))) / prod(map(arb, denominators), start=arb(1))

    return weight


def _sum_in_least_units(weights: npt.NDArray[np.float64]) -> int:
    """Return the sum of normal doubles, or zeros, as a multiple of 2**-1074, exact for less than 2**26 of them."""
    if len(weights) < 64:
        return sum(map(_in_least_units, weights.tolist()))
    mantissas, exponents = np.frexp(weights)
    digits = np.ldexp(mantissas, 53).astype(np.int64)
    shifts = exponents + 1021
    high, low = (np.bincount(shifts, part).tolist() for part in (digits >> 27, digits & (2**27 - 1)))
    return sum(((int(a) << 27) + int(b)) << shift for shift, (a, b) in enumerate(zip(high, low, strict=True)) if a or b)


def keep_threshold(epsilon: float, odds: Fraction) -> int:
    """Return a lower bound, almost always the floor, of ``2**64 odds e**epsilon / (odds e**epsilon + 1)``."""
    with working_bits(256):
        weight = arb(rational(odds)) * arb(rational(min(epsilon, 2.0**20))).exp()
        threshold = (arb(2) ** 64 * weight / (weight + 1)).lower().floor().unique_fmpz()
    assert threshold is not None  # the lower end of a ball is a number
    return int(threshold)


def keeps_path(
    word: int,
    more: Callable[[], int],
    rate: Fraction,
    first: int,
    length: int | None,
    proposed: Fraction,
    odds: Sequence[tuple[float, Iterable[float]]],
    jumps: Sequence[tuple[Fraction, int]],
) -> bool:
    """Return True with probability exp(-rate first) (1 - exp(-rate length)) * true / (proposed * odds).

    true is the product of c**j / j! over the jumps (c, j); odds is the product of weight / sum of weights. If length is
    None, the second factor is 1.
    """
    numerator, denominator = proposed.denominator, proposed.numerator
    for weight, weights in odds:
        numerator *= sum(map(_in_least_units, weights))
        denominator *= _in_least_units(weight)
    for c, j in jumps:
        numerator *= c.numerator**j
        denominator *= c.denominator**j * factorial(j)
    u = PartialUniform(word, 64, more)
    while True:
        with working_bits(u.bits + 192):
            slices = (-arb(rational(rate * first))).exp()
            if length is not None:
                slices *= -((-arb(rational(rate * length))).expm1())
            edge = slices * arb(fmpz(numerator)) / arb(fmpz(denominator))
            if u.upper <= edge:
                return True
            if u.lower >= edge:
                return False
        u.refine()


def smoothing(cells: int, n: int, k: int, epsilon: float) -> int:
    """``ceil(2**64 m / (m + n (exp(epsilon / k) - 1)))``: the least weight of the uniform density, in units of 2**-64.

    With it, k draws from a smoothed histogram of m cells lose at most epsilon
    (https://dpfast.readthedocs.io/en/latest/proofs/smoothed-histogram.html).
    """
    if epsilon / k > 700:  # exp(700) n > 2**64 m
        return 1
    rate, precision = rational(Fraction(epsilon) / k), 128
    while True:  # the quotient is not an integer, since exp is irrational
        with working_bits(precision):
            units = (arb(cells) * 2**64 / (cells + n * arb(rate).expm1())).ceil().unique_fmpz()
        if units is not None:
            return int(units)
        precision *= 2


def tested_bound(epsilon: float, delta: float, score: int, base: int) -> int:
    """The bound delta e^(epsilon score / 2) base / (e^(epsilon / 2) + e^epsilon), rounded down to an integer."""
    rate = rational(Fraction(epsilon) / 2)
    with working_bits(192):
        bound = rational(delta) * arb(rate * score).exp() * base / (arb(rate).exp() + arb(2 * rate).exp())
        mantissa, exponent = map(int, bound.lower().man_exp())
    return mantissa << exponent if exponent >= 0 else mantissa >> -exponent


def tested_threshold(epsilon: float, delta: float) -> int:
    """The least m >= 0, or one more, with e^(-epsilon m) / (1 + e^-epsilon) <= delta."""
    rate = rational(epsilon)
    with working_bits(192):
        least = -(rational(delta) * (1 + (-arb(rate)).exp())).log() / rate
        mantissa, exponent = map(int, least.upper().man_exp())
    return max(0, mantissa << exponent if exponent >= 0 else -(-mantissa >> -exponent))


def upper(formula: Callable[[], arb]) -> float:
    """Return the value of a formula as a double, rounded up; infinity if no working precision gives digits of it."""
    precision = 128
    while True:
        with working_bits(precision):
            ball = formula()
            if ball.rel_accuracy_bits() >= 64 or precision > _MOST_BITS:
                return _double_up(ball)
        precision *= 2


def _double_up(ball: arb) -> float:
    top = ball.upper()
    if not top.is_finite():
        return inf
    double = float(top)
    return double if top <= arb(double) else nextafter(double, inf)
