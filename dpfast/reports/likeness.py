"""Methods that are named as functions, and show their parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, cast

from dpfast.core.words import misused

_Method = TypeVar("_Method", bound=Callable[..., Any])
# What the table knows: columns, keys, the neighbours of its ledger, the generator of all releases.
_KNOWN = {"rng", "x", "X", "y", "neighbors", "labels", "keys", "partitions", "domain", "contributions"}

_REFUSED = ("rng", "by")  # with words of their own where they are not taken


def like(function: Callable[..., Any], *, by: bool = False) -> Callable[[_Method], _Method]:
    """Decorate a method of a table that passes its other parameters to a function: show them, and what a release costs.

    A call with other parameters is refused, with what to write instead. `by` for a method that releases for groups.
    """
    whole = [*(["by", "others", "per_key"] if by else []), "epsilon", "share"]
    added = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in whole]
    added.append(Parameter("delta", Parameter.KEYWORD_ONLY, default=0.0))

    def decorate(method: _Method) -> _Method:
        own = signature(method)
        mine = [part for part in own.parameters.values() if part.kind is not Parameter.VAR_KEYWORD]
        for part in (*added, *signature(function).parameters.values()):
            if part.name not in _KNOWN and all(part.name != other.name for other in mine):
                mine.append(part.replace(kind=Parameter.KEYWORD_ONLY, annotation=Parameter.empty))
        shown = own.replace(parameters=mine)

        @wraps(method)
        def checked(*arguments: Any, **options: Any) -> Any:
            try:
                shown.bind(*arguments, **{name: value for name, value in options.items() if name not in _REFUSED})
            except TypeError as error:
                raise misused(error, method.__name__, _without_self(shown)) from None
            return method(*arguments, **options)

        checked.__signature__ = shown  # type: ignore[attr-defined]
        return cast(_Method, checked)

    return decorate


def _without_self(shown: Signature) -> Signature:
    return shown.replace(parameters=list(shown.parameters.values())[1:])
