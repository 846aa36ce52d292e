"""``explain=``: a public text about a release, before it reads data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dpfast.mechanisms.mechanism import Mechanism
from dpfast.streaming import Chunks

Explain = bool | Callable[[str], object]
_Mechanism = TypeVar("_Mechanism", bound=Mechanism)


def explained(mechanism: _Mechanism, explain: Explain, x: Any) -> _Mechanism:
    """Return the mechanism, after printing its `Mechanism.explanation` or passing it to a function.

    Of x, it uses the length, if that is public and known without reading.
    """
    if explain is False:
        return mechanism
    if not (explain is True or callable(explain)):
        raise TypeError(f"explain must be True, False or a function of a text, not {type(explain).__name__}")
    known = hasattr(type(x), "__len__") and not isinstance(x, Chunks) and not mechanism.hides_n
    text = mechanism.explanation(len(x) if known else None)
    if explain is True:
        print(text)
    else:
        explain(text)
    return mechanism
