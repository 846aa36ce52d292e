"""The commands that release one number: what the parser needs to know of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Single:
    """A command that releases one number of a column."""

    words: str  # in the help
    method: str = "inverse-sensitivity"
    bounded: bool = True  # whether bounds are required
    interval: bool = False
    hides_n: bool = True  # whether it can


SINGLE = {
    "median": Single("median", bounded=False, interval=True),
    "mean": Single("mean", "global-sensitivity", interval=True),
    "sum": Single("sum", "global-sensitivity", interval=True),
    "std": Single("standard deviation", "global-sensitivity", interval=True, hides_n=False),
    "trimmed-mean": Single("trimmed mean", "auto"),
    "iqr": Single("interquartile range", bounded=False),
}
