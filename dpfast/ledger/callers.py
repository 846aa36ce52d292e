"""Advice for releases that another library calls for one group of records after another."""

from __future__ import annotations

import inspect

# Modules that call a function for each group, and what their users write.
_GROUPING = {
    "pandas.core.groupby": "a groupby of pandas",
    "polars.dataframe.group_by": "a group_by of polars",
    "polars.lazyframe.group_by": "a group_by of polars",
}
_OUTER = 64  # calls above the release: those of the other libraries are next to it


def advice_for_callers() -> str:
    """Return a hint for a release that is called for each group, else "". It reads the module names of the callers."""
    frame = inspect.currentframe()
    for _ in range(_OUTER):
        if frame is None or frame.f_back is None:
            return ""
        frame = frame.f_back
        name = str(frame.f_globals.get("__name__", ""))
        for module, what in _GROUPING.items():
            if name == module or name.startswith(module + "."):
                return (
                    f". Here {what} calls it for each group, and each call is charged: "
                    "dpfast.by_group(mechanism, values, labels=..., keys=...) releases all groups for one charge"
                )
    return ""
