"""The commands that release one number: what the parser needs to know of them."""

from __future__ import annotations

from dataclasses import dataclass

# The default of missing cells, in the help.
DROP, AT_BOUND = "default drop", "default lower, with a warning"
LOWER = "default lower, with a warning, or with --neighbors add-remove, which drop needs, drop"
OF_IQR = "default drop, but within --bounds, unless with --neighbors add-remove, lower, with a warning"


@dataclass(frozen=True)
class NumberCommand:
    """A command that releases one number of a column."""

    words: str  # in the help
    methods: str
    method: str = "inverse-sensitivity"
    bounded: bool = True  # whether bounds are required
    interval: bool = False
    findable: bool = False  # whether bounds may be found privately
    missing: str = LOWER  # the default of missing cells


_GLOBAL = "global-sensitivity"
SINGLE = {
    "median": NumberCommand(
        "median", "inverse-sensitivity, interpolated, smooth-sensitivity", bounded=False, interval=True, missing=DROP
    ),
    "mean": NumberCommand(
        "mean",
        "global-sensitivity, inverse-sensitivity, smooth-sensitivity, private-bounds",
        _GLOBAL,
        interval=True,
        findable=True,
        missing=DROP,
    ),
    "sum": NumberCommand("sum", "global-sensitivity, private-bounds", _GLOBAL, interval=True, findable=True),
    "std": NumberCommand(
        "standard deviation", "global-sensitivity, private-bounds, moments", _GLOBAL, interval=True, findable=True
    ),
    "trimmed-mean": NumberCommand("trimmed mean", "inverse-sensitivity, smooth-sensitivity", "auto", findable=True),
    "iqr": NumberCommand(
        "interquartile range", "inverse-sensitivity, smooth-sensitivity", bounded=False, missing=OF_IQR
    ),
}
