"""Public numbers of a mechanism for the last number of records, kept because calls repeat it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Value = TypeVar("Value")


class _Recent:
    """The last n and the value for it. Copies and pickles of a mechanism start without: they hold no n."""

    __slots__ = ("n", "value")

    def __init__(self, n: int | None = None, value: Any = None) -> None:
        self.n, self.value = n, value

    def __reduce__(self) -> Any:
        return _Recent, (-1,)


def for_last_n(method: Callable[[Any, int | None], Value]) -> Callable[[Any, int | None], Value]:
    """Decorate a method of a frozen mechanism and a public n, None if n is private: keep its value for the last n."""
    name = f"_recent{method.__name__}"

    @wraps(method)
    def kept(self: Any, n: int | None) -> Value:
        recent = self.__dict__.get(name)
        if recent is None or recent.n != n:
            recent = self.__dict__[name] = _Recent(n, method(self, n))
        return recent.value  # type: ignore[no-any-return]

    return kept
