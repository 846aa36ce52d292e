"""The error to foresee of a release from so many records, in words, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from dpfast.core.traps import is_guess


class Foreseen(NamedTuple):
    """An expected absolute error, besides that of sampling, from public numbers.

    Attributes
    ----------
    size : float
        In data units, or in ranks; infinite for a release that hardly tells more than a guess.
    sampling : float
        About that of sampling, for records spread evenly over the bounds.
    ranks : bool
        Whether both are in ranks: so many records are between the release and the quantile.
    root : float
        Of a variance, what divides an error of it by that of its root for such records; 0 for others.
    even : bool
        Whether it presumes such records.
    """

    size: float
    sampling: float = 0.0
    ranks: bool = False
    root: float = 0.0
    even: bool = False

    @classmethod
    def of_rank(cls, size: float, level: float, n: int) -> Foreseen:
        """Return that of a quantile, in ranks."""
        return cls(size, math.sqrt(2 / math.pi * level * (1 - level) * n), ranks=True)

    def or_guess(self, n: int) -> Foreseen:
        """Return it, or `GUESS` for ranks that are a good part of all."""
        return GUESS if self.ranks and is_guess(self.size, n) else self

    def of_sample(self, size: int, n: int, scale: float) -> Foreseen:
        """Return the error of a release from a random sample of n records.

        It has about this size, with Laplace noise of this scale: errors of 1 / size are larger on average.
        """
        noise, left_out = self.size * (1 + 2 * (scale / size) ** 2), self.sampling * math.sqrt(max(1 - size / n, 0))
        in_all = n / size if self.ranks else 1.0
        return self._replace(size=math.hypot(noise, left_out) * in_all, even=not self.ranks)

    def of_root(self) -> Foreseen:
        """Return that of the standard deviation, from that of a variance."""
        return Foreseen(self.size / self.root, self.sampling / self.root, even=True) if self.root else self

    def in_words(self, n: int) -> str:
        """Return it as text, for n records."""
        text = three_digits(self.size)
        if self.ranks:
            return f"{text} ranks ({three_digits(100 * self.size / n)} % of n)"
        return f"{text} ({three_digits(self.size / self.root)} of the standard deviation)" if self.root else text


GUESS = Foreseen(math.inf)


def in_words(found: Mapping[int, Foreseen]) -> str:
    """Return the sentence about errors by the number of records."""
    guesses = [n for n, each in found.items() if each is GUESS]
    texts = {n: each.in_words(n) for n, each in found.items() if each is not GUESS}
    parts = [f"a guess for n = {guesses[-1]:,}{' or less' * (len(guesses) > 1)}"] if guesses else []
    if texts:
        same = (
            len(texts) > 1
            and len({f"{found[n].size:.2g}" for n in texts}) == 1
            and not any(x.ranks for x in found.values())
        )
        known = [*texts.values()][-1:] if same else [f"{text} for n = {n:,}" for n, text in texts.items()]
        parts += [f"about {known[0]}", *known[1:]]
    even = "; for records spread evenly over the bounds" if any(each.even for each in found.values()) else ""
    return f"Expected error, besides that of sampling: {', '.join(parts)}{even}"


def three_digits(number: float) -> str:
    """Return a number as text, with three digits and marks between thousands."""
    return f"{float(f'{number:.3g}'):,.12g}"
