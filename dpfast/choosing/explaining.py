"""``explain=`` and `dpfast.explain`: public texts about a release, before it reads data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Protocol, SupportsIndex, TypeVar

import numpy as np

from dpfast.choosing.choice import Choice
from dpfast.core.foreign import foreign
from dpfast.core.grid import Points
from dpfast.core.traps import warn_of
from dpfast.streaming import Chunks, records_of

Explain = bool | Callable[[str], object]


class Explained(Protocol):
    """What is explained: a mechanism, or another object with public parameters that releases."""

    def explanation(self, n: SupportsIndex | None = None) -> str: ...


_Made = TypeVar("_Made", bound=Explained)


def explained(made: _Made, explain: Explain, x: Any, choice: Choice | None = None) -> _Made:
    """Return the mechanism that releases, after printing its `Mechanism.explanation` or passing it to a function.

    Warns of traps in its parameters. The choice of the mechanism, if there was one, comes first. Of x, it uses the
    number of records, if that is public and known without reading pieces.
    """
    warn_of(made)
    if explain is not False:
        n = None if getattr(made, "hides_n", False) else x.known if isinstance(x, Chunks) else records_of(x)
        describe(made, explain, n, choice)
    return made


def describe(made: Explained, explain: Explain, n: int | None, choice: Choice | None = None) -> None:
    """Print the explanation of a release from n records after its choice, or pass it to a function."""
    if explain is not False:
        text = made.explanation(n)
        tell(text if choice is None else f"{choice.comparison}\n{text}", explain)


def split(parts: Mapping[str, float | Fraction], whole: str = "epsilon") -> str:
    """Return how a budget is split: its parts by what they are for, relative to their sum; "" for a single one."""
    total = sum(parts.values())
    first, *others = (f"{float(100 * part / total):.3g} % {{}}for {what}" for what, part in parts.items() if part)
    shown = [first.format("is "), *(other.format("") for other in others)]
    return f"Of {whole}, {', '.join(shown[:-1])} and {shown[-1]}" if others else ""


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
