"""Public numbers that calls with the same parameters share: the last result of a method stays with its object."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

_PREFIX = "_recent"  # of the attributes that hold them, which copies do not have

Result = TypeVar("Result")


def recent(method: Callable[..., Result]) -> Callable[..., Result]:
    """Keep the last result of a method of public numbers, which the object and the arguments determine.

    The arguments are compared by their values, so they are checked integers or the like; nobody may change the result.
    """
    name = f"{_PREFIX}_{method.__name__}"

    @wraps(method)
    def kept(self: Any, *arguments: Any) -> Result:
        found: tuple[Any, Result] | None = self.__dict__.get(name)
        if found is None or found[0] != arguments:
            found = self.__dict__[name] = arguments, method(self, *arguments)
        return found[1]

    return kept


def is_recent(name: str) -> bool:
    """Whether an attribute holds what calls have left."""
    return name.startswith(_PREFIX)
