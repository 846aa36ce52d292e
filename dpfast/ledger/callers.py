"""Advice for releases that another library calls for one group of records after the other."""

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
    """What to do instead, for a release called for each group; "" for other callers. It reads the names of callers."""
    frame = inspect.currentframe()
    for _ in range(_OUTER):
        if frame is None or frame.f_back is None:
            return ""
        frame = frame.f_back
        name = str(frame.f_globals.get("__name__", ""))
        for module, what in _GROUPING.items():
            if name == module or name.startswith(module + "."):
                return (
                    f". It is called for each group by {what}, which is charged for each group: "
                    "dpfast.by_group(mechanism, values, labels=..., keys=...) releases all groups for one charge"
                )
    return ""
