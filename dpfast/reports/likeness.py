"""Methods that are named as functions, and show their parameters."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., Any])
# What the table knows: columns, keys, the neighbours of its ledger, the generator of all releases.
_KNOWN = {"rng", "x", "X", "y", "neighbors", "labels", "keys", "partitions", "domain", "contributions"}


def like(function: Callable[..., Any], *, by: bool = False) -> Callable[[_Method], _Method]:
    """Decorate a method of a table that passes its other parameters to a function: show them, and what a release costs.

    `by` for a method that releases for groups.
    """
    whole = [*(["by"] if by else []), "epsilon", "share"]
    added = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in whole]
    added.append(Parameter("delta", Parameter.KEYWORD_ONLY, default=0.0))

    def decorate(method: _Method) -> _Method:
        own = signature(method)
        mine = [part for part in own.parameters.values() if part.kind is not Parameter.VAR_KEYWORD]
        for part in (*added, *signature(function).parameters.values()):
            if part.name not in _KNOWN and all(part.name != other.name for other in mine):
                mine.append(part.replace(kind=Parameter.KEYWORD_ONLY, annotation=Parameter.empty))
        method.__signature__ = own.replace(parameters=mine)  # type: ignore[attr-defined]
        return method

    return decorate
