"""One of several candidates, by public numbers, and the rules that choices share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from dpfast.core.tabular import html_table

LOSS, _GAIN = 1.02, 0.95
_BITS, _BITS_OF_EPSILON = 3, 5  # of the numbers of records, and of the epsilons, that choices are made for


class Known(NamedTuple):
    """What is known about candidates.

    Attributes
    ----------
    headings : sequence of str
        The names of the columns.
    rows : mapping from names of candidates to sequences
        Floats are shown to three digits, integers with commas, None as unknown, text as it is.
    legend : str
        What the numbers are.
    """

    headings: tuple[str, ...] = ()
    rows: Mapping[str, tuple[float | str | None, ...]] = {}
    legend: str = ""


class Choice:
    """A mechanism that was chosen among candidates, and why: a table in terminals and notebooks. Public.

    Parameters
    ----------
    candidates : mapping from str to object
        The mechanisms by the names of their methods; the first one is the default.
    method : str
        The name of the one that is taken.
    reason : str
        Why.
    limits : mapping from str to str, optional
        Why a candidate, or a method that is none, cannot be taken.
    known : callable, optional
        Returns what is known about the candidates; called once, if the table is shown.

    Attributes
    ----------
    mechanism : object
        The mechanism that is taken.
    default : str
        The name of the default.
    """

    def __init__(
        self,
        candidates: Mapping[str, Any],
        method: str,
        reason: str,
        *,
        limits: Mapping[str, str] | None = None,
        known: Callable[[], Known] = Known,
    ) -> None:
        self.candidates, self.method, self.reason = dict(candidates), method, reason
        self.limits, self._known = dict(limits or {}), known
        self.mechanism, self.default = self.candidates[method], next(iter(self.candidates))

    @cached_property
    def known(self) -> Known:
        """What is known about the candidates."""
        return self._known()

    @property
    def table(self) -> list[list[str]]:
        """The rows of the table, headings first."""
        headings, rows, _ = self.known
        cells = {method: [_shown(cell) for cell in rows.get(method, ())] for method in (*self.candidates, *self.limits)}
        notes = {**self.limits, self.method: "taken"}
        blank = [""] * len(headings)
        return [
            ["method", *headings, ""],
            *([method, *(row or blank), notes.get(method, "")] for method, row in cells.items()),
        ]

    @property
    def comparison(self) -> str:
        """The table, what its numbers are, and the reason, as text."""
        columns = [max(map(len, column)) for column in zip(*self.table, strict=True)]
        lines = ("  ".join(map(str.ljust, row, columns)).rstrip() for row in self.table)
        return "\n".join([*lines, self._note])

    @property
    def _note(self) -> str:
        legend = f"{self.known.legend}\n" if self.known.legend else ""
        return f"{legend}Taken: {self.method}, because {self.reason}."

    def __str__(self) -> str:
        return f"{self.comparison}\n{self.mechanism!r}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        headings, *rows = self.table
        return html_table(repr(self.mechanism).strip("<>"), headings, rows, note=self._note)


def built(builders: Mapping[str, Callable[[], Any]], required: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the candidates that can be built, and the limits of the others, by their names.

    Raises
    ------
    TypeError, ValueError
        If the required one cannot be built, as for parameters that no method takes.
    """
    candidates, limits = {}, {}
    for method, build in builders.items():
        try:
            candidates[method] = build()
        except (TypeError, ValueError) as error:
            if method == required:
                raise
            limits[method] = str(error)
    return candidates, limits


def near_least(errors: Mapping[str, float]) -> list[str]:
    """Return the candidates whose error is at most 2 % above the least; none of none."""
    most = LOSS * min(errors.values(), default=0.0)
    return [method for method, error in errors.items() if error <= most]


def gainful(pool: Iterable[str], cost: Callable[[str], float], default: str) -> str:
    """Return the candidate of the least cost, or the default, if it is in the pool and costs at most 5 % more."""
    pool = list(pool)
    least = min(pool, key=cost)
    return default if default in pool and cost(least) > _GAIN * cost(default) else least


def rounded_down(n: int) -> int:
    """Return n or the next smaller number of three significant bits, so that few numbers of records need a choice."""
    shift = max(n.bit_length() - _BITS, 0)
    return n >> shift << shift


def rounded_up(epsilon: float) -> float:
    """Return epsilon or the next larger number of five significant bits, so that few epsilons need a choice.

    Errors that are compared are then off by at most 6 %. What an epsilon allows, a larger one does, too.
    """
    fraction, exponent = math.frexp(epsilon)
    return math.ldexp(math.ceil(math.ldexp(fraction, _BITS_OF_EPSILON)), exponent - _BITS_OF_EPSILON)


def _shown(cell: float | str | None) -> str:
    if cell is None:
        return "unknown"
    return cell if isinstance(cell, str) else f"{cell:,}" if isinstance(cell, int) else f"{cell:.3g}"
