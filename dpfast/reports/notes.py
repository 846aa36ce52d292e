"""What a reader of a release must know beside its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpfast.core.plotting import percent
from dpfast.groups.keyed import KeyedReleases
from dpfast.mechanisms import Estimate
from dpfast.reports.facts import Facts
from dpfast.reports.pages import ENDLESS

PUBLIC_GROUPS = "Who is in which group is taken as public."
AT_BOUNDS = "One as wide as the bounds is of too few records for its epsilon."
NO_BOUND = "One without bounds is of too few numbers for its epsilon, as of a column of text."
OF_NOISE = "From low to high: what the noise can have done, 95 %."
FEW = "few"
OF_FEW = f"({FEW}): a group of so few records that its number may be far from the truth."
LEFT_OUT = "Records with a missing cell are left out."
IN_THE_MIDDLE = (
    "A record with a missing cell counts as one in the middle of the bounds: the coefficient of a column, or of a "
    "category, where many are missing is wrong."
)
_OF_BLOCKS = ("blocks", "combine", "margin", "shuffle")  # parameters of fits of blocks


@dataclass(frozen=True)
class Read:
    """How a release reads a column.

    Parameters
    ----------
    bounds : pair of float, "private" or None
        Where its values are clamped.
    missing : float, str or None
        What a missing cell is; None if nothing is said.
    """

    bounds: Any = None
    missing: float | str | None = None


def read_as(facts: Facts, options: Mapping[str, Any]) -> Read:
    """Return how a call reads a column: parameters of the call take the place of the facts of the column."""
    bounds = None if "grid" in options else options.get("bounds", facts.bounds)
    return Read(bounds, options.get("missing", facts.missing))


def of_missing(name: str, facts: Facts, options: Mapping[str, Any], *, order: bool) -> str:
    """Return what missing cells of a column are in a release whose facts do not say it; `order` for quantiles."""
    if "missing" in options or facts.missing is not None:
        return ""
    if order and not isinstance(facts.bounds, tuple) and not {"bounds", "grid"} & set(options):
        return left_out(name)
    return f"Missing cells of {name} count as the lower bound."


def _of_widest(estimate: Estimate, *, clamped: bool) -> list[str]:
    """Return what an interval that is as wide as it can be means."""
    if estimate.bounds is not None and ENDLESS <= estimate.bounds[1] < math.inf:
        return [NO_BOUND]
    return [AT_BOUNDS] if clamped else []


def of_fit(name: str, facts: Facts, options: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return what a fit needs besides its options to read missing cells as the facts say, and a note of them.

    Sums take a number or leave missing cells out, and blocks always leave them out.
    """
    if "missing" in options:
        return {}, ""
    if options.get("method") == "blocks" or any(option in options for option in _OF_BLOCKS):
        return {"missing": None}, left_out(name)
    if facts.missing in (None, "drop"):
        return {}, ""
    if facts.filled is None:
        raise ValueError(
            f"a fit takes a number or 'drop' for missing cells, not the {facts.missing!r} of {name!r}: give missing= "
            f"of the release"
        )
    return {"missing": facts.filled}, ""


def left_out(name: str) -> str:
    """Return the words about missing cells of a column that are no records."""
    return f"Missing cells of {name} are left out."


def note_of(read: Mapping[str, Read], result: Any, *, grouped: bool, per_unit: int | None) -> str:
    """Return how the columns of a release are read, how wide its intervals are, and what is left out."""
    parts = []
    for name, each in read.items():
        if isinstance(each.bounds, (tuple, list)):
            lower, upper = each.bounds
            parts.append(f"{name} within {lower:,g} and {upper:,g}.")
        if each.missing is not None:
            word = each.missing if isinstance(each.missing, str) else f"{each.missing:,g}"
            parts.append(f"Missing cells of {name}: {word}.")
    estimates = list(result.values()) if isinstance(result, Mapping) else [result]
    if estimates and isinstance(estimates[0], Estimate):
        parts.append(f"From low to high: intervals of {percent(estimates[0].confidence)}.")
        if isinstance(result, Estimate):
            parts += _of_widest(result, clamped=any(each.bounds is not None for each in read.values()))
    elif isinstance(result, KeyedReleases) and result.has_noise_intervals:
        parts.append(OF_NOISE)
    if isinstance(result, KeyedReleases) and result.few is not None:
        parts.append(OF_FEW)
    if per_unit is not None:
        parts.append(f"At most {per_unit} records of each unit: the others are left out.")
    if grouped and getattr(getattr(result, "privacy", None), "neighbors", "") == "replace-one":
        parts.append(PUBLIC_GROUPS)
    return " ".join(parts)
