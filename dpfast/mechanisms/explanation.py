"""``explain=`` and `dpfast.explain`: public texts about a release, before it reads data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from dpfast.core.foreign import foreign
from dpfast.core.grid import Points
from dpfast.core.tabular import html_table
from dpfast.core.traps import warn_of
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.streaming import Chunks, records_of

Explain = bool | Callable[[str], object]
_Mechanism = TypeVar("_Mechanism", bound=Mechanism)


class Comparison(ABC):
    """Candidates, the one that was taken, and why: public, and a table in terminals and notebooks."""

    method: str
    reason: str
    mechanism: Any

    @property
    @abstractmethod
    def table(self) -> list[list[str]]:
        """The rows of the table, headings first."""

    @property
    @abstractmethod
    def legend(self) -> str:
        """What the numbers of the table are."""

    @property
    def comparison(self) -> str:
        """The table, what its numbers are, and the reason, as text."""
        columns = [max(map(len, column)) for column in zip(*self.table, strict=True)]
        lines = ("  ".join(map(str.ljust, row, columns)).rstrip() for row in self.table)
        return "\n".join(lines) + f"\n{self._note}"

    @property
    def _note(self) -> str:
        return f"{self.legend}Taken: {self.method}, because {self.reason}."

    def __str__(self) -> str:
        return f"{self.comparison}\n{self.mechanism!r}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        headings, *rows = self.table
        return html_table(repr(self.mechanism).strip("<>"), headings, rows, note=self._note)


def explained(mechanism: _Mechanism, explain: Explain, x: Any, comparison: object = None) -> _Mechanism:
    """Return the mechanism, after printing its `Mechanism.explanation` or passing it to a function.

    Warns of traps in its parameters. A comparison of mechanisms, if there is one, comes first. Of x, it uses the
    number of records, if that is public and known without reading pieces.
    """
    warn_of(mechanism)
    if explain is False:
        return mechanism
    n = None if mechanism.hides_n else x.known if isinstance(x, Chunks) else records_of(x)
    text = mechanism.explanation(n)
    if comparison is not None:
        text = f"{comparison}\n{text}"
    tell(text, explain)
    return mechanism


def explain_bounds(points: Points, release: Any, explain: Explain) -> None:
    """Explain releases that are at a bound of the grid; nothing for others. A function of the released values."""
    values = np.asarray(release, dtype=np.float64)
    for name, end in (("lower", points.lower), ("upper", points.upper)):
        count = np.count_nonzero(values == end)
        if count:
            what = "The release is" if values.ndim == 0 else f"{count} of {values.size} releases are"
            tell(
                f"{what} at the {name} bound, {end:.9g}: the statistic may be there or beyond, or there may be too few "
                f"records for this epsilon.",
                explain,
            )


def tell(text: str, explain: Explain) -> None:
    """Print a text, or pass it to a function, if there is something to explain."""
    if explain is False:
        return
    if not (explain is True or callable(explain)):
        raise TypeError(f"explain must be True, False or a function of a text, not {type(explain).__name__}")
    if explain is True:
        print(text)
    else:
        with foreign():
            explain(text)
