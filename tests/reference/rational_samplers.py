"""Discrete Laplace and Gaussian samplers by fair dice alone, and their exact laws by listing all paths.

They follow the descriptions of Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (2020),
algorithms 1 to 3, which SampCert proves in Lean. All numbers are rational.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

from mpmath import mp, mpf

Below = Callable[[int], int]  # a uniform integer in 0..n - 1


def words_below(word: Callable[[], int]) -> Below:
    """A uniform integer from words of 64 bits, by rejection."""

    def below(n: int) -> int:
        words = (n.bit_length() + 63) // 64
        last = 2 ** (64 * words) // n * n
        while True:
            drawn = sum(word() << 64 * i for i in range(words))
            if drawn < last:
                return drawn % n

    return below


class Dice:
    """What the samplers draw from."""

    def __init__(self, below: Below) -> None:
        self.below = below

    def coin(self, p: Fraction) -> bool:
        return self.below(p.denominator) < p.numerator

    def exp_coin(self, gamma: Fraction) -> bool:
        """Heads with probability exp(-gamma): algorithm 1."""
        while gamma > 1:
            if not self.small_exp_coin(Fraction(1)):
                return False
            gamma -= 1
        return self.small_exp_coin(gamma)

    def small_exp_coin(self, gamma: Fraction) -> bool:
        tosses = 1
        while self.coin(gamma / tosses):
            tosses += 1
        return tosses % 2 == 1

    def laplace(self, scale: Fraction) -> int:
        while (drawn := laplace_attempt(self, scale)) is None:
            pass
        return drawn

    def gaussian(self, variance: Fraction) -> int:
        while (drawn := gaussian_attempt(self, variance)) is None:
            pass
        return drawn


def laplace_attempt(dice: Any, scale: Fraction) -> int | None:
    """One round of algorithm 2: ``P(z)`` proportional to ``exp(-|z| / scale)``, or None to start again."""
    t, s = scale.numerator, scale.denominator
    low = dice.below(t)
    if not dice.exp_coin(Fraction(low, t)):
        return None
    high = 0
    while dice.exp_coin(Fraction(1)):
        high += 1
    size = (low + t * high) // s
    negative = dice.coin(Fraction(1, 2))
    if negative and size == 0:
        return None
    return -size if negative else size


def gaussian_attempt(dice: Any, variance: Fraction) -> int | None:
    """One round of algorithm 3: ``P(z)`` proportional to ``exp(-z**2 / (2 variance))``, or None to start again."""
    t = _floor_sqrt(variance) + 1
    drawn = dice.laplace(Fraction(t))
    return drawn if dice.exp_coin((abs(drawn) - variance / t) ** 2 / (2 * variance)) else None


def _floor_sqrt(x: Fraction) -> int:
    root = 0
    while (root + 1) ** 2 <= x:
        root += 1
    return root


# ---- exact laws ----


class Branch(Exception):
    """A draw beyond the choices that a path has made, with the probabilities of its outcomes."""


class Path:
    """Dice that repeat given choices, and raise `Branch` for the next one."""

    def __init__(self, choices: list[Any]) -> None:
        self.choices, self.place = choices, 0

    def _next(self, outcomes: dict[Any, mpf]) -> Any:
        if self.place == len(self.choices):
            raise Branch(outcomes)
        self.place += 1
        return self.choices[self.place - 1]

    def below(self, n: int) -> int:
        return self._next({i: mpf(1) / n for i in range(n)})

    def coin(self, p: Fraction) -> bool:
        heads = mpf(p.numerator) / p.denominator
        return self._next({True: heads, False: 1 - heads})

    def exp_coin(self, gamma: Fraction) -> bool:
        return self._next(exp_coin_law(gamma))

    def laplace(self, scale: Fraction) -> int:
        return self._next(laplace_law(scale))


class _SmallCoins(Path):
    """A path of which the parts of `exp_coin` are the choices."""

    exp_coin = Dice.exp_coin

    def small_exp_coin(self, gamma: Fraction) -> bool:
        return self._next(_small_exp_coin_law(gamma))


class _Tosses(Path):
    """A path of which the tosses of `small_exp_coin` are the choices."""

    small_exp_coin = Dice.small_exp_coin


@cache
def _small_exp_coin_law(gamma: Fraction) -> dict[bool, mpf]:
    return law(lambda dice: dice.small_exp_coin(gamma), kind=_Tosses)


@cache
def exp_coin_law(gamma: Fraction) -> dict[bool, mpf]:
    """The law of algorithm 1, by all its paths."""
    return law(lambda dice: dice.exp_coin(gamma), kind=_SmallCoins)


@cache
def laplace_law(scale: Fraction) -> dict[int, mpf]:
    return law(lambda dice: laplace_attempt(dice, scale))


@cache
def gaussian_law(variance: Fraction) -> dict[int, mpf]:
    return law(lambda dice: gaussian_attempt(dice, variance))


def law(attempt: Callable[[Any], Any], *, kind: type[Path] = Path, least: float = 1e-20) -> dict[Any, mpf]:
    """The law of an attempt that is repeated until it is not None; paths below `least` in probability are left out."""
    found: dict[Any, mpf] = {}
    with mp.workdps(40):
        for outcome, p in _paths(attempt, kind, [], mpf(1), mpf(least)):
            found[outcome] = found.get(outcome, mpf(0)) + p
        found.pop(None, None)
        total = mp.fsum(found.values())
        return {outcome: p / total for outcome, p in found.items()}


def _paths(
    attempt: Callable[[Any], Any], kind: type[Path], choices: list[Any], p: mpf, least: mpf
) -> Iterator[tuple[Any, mpf]]:
    try:
        yield attempt(kind(choices)), p
    except Branch as branch:
        [outcomes] = branch.args
        for choice, share in outcomes.items():
            if p * share >= least:
                yield from _paths(attempt, kind, [*choices, choice], p * share, least)
