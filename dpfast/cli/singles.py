"""The commands that release one number: what the parser needs to know of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NumberCommand:
    """A command that releases one number of a column."""

    words: str  # in the help
    method: str = "inverse-sensitivity"
    bounded: bool = True  # whether bounds are required
    interval: bool = False
    findable: bool = False  # whether bounds may be found privately


SINGLE = {
    "median": NumberCommand("median", bounded=False, interval=True),
    "mean": NumberCommand("mean", "global-sensitivity", interval=True, findable=True),
    "sum": NumberCommand("sum", "global-sensitivity", interval=True, findable=True),
    "std": NumberCommand("standard deviation", "global-sensitivity", interval=True, findable=True),
    "trimmed-mean": NumberCommand("trimmed mean", "auto", findable=True),
    "iqr": NumberCommand("interquartile range", bounded=False),
}
