"""Public numbers of a mechanism for the last number of records, kept because calls repeat it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

_Method = TypeVar("_Method", bound=Callable[..., Any])


class _Recent(NamedTuple):
    """The last n and the value for it."""

    n: int | None
    value: Any


def for_last_n(method: _Method) -> _Method:
    """Decorate a method of a frozen mechanism and a public n, None if n is private: keep its value for the last n."""
    name = f"_recent{method.__name__}"

    @wraps(method)
    def kept(self: Any, n: int | None) -> Any:
        recent = self.__dict__.get(name)
        if recent is None or recent.n != n:
            recent = self.__dict__[name] = _Recent(n, method(self, n))
        return recent.value

    return cast(_Method, kept)


def without_recent(state: Any) -> Any:
    """The state of a mechanism for copies and pickles, which hold no n; of a subclass with slots it is a pair."""
    if isinstance(state, tuple):
        return without_recent(state[0]), *state[1:]
    return state and {name: value for name, value in state.items() if not isinstance(value, _Recent)}
