"""What a reader of a release must know beside its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpfast.core.plotting import percent
from dpfast.groups.keyed import KeyedReleases
from dpfast.mechanisms import Estimate
from dpfast.reports.facts import Facts

PUBLIC_GROUPS = "Who is in which group is taken as public."
AT_BOUNDS = "One as wide as the bounds is of too few records for its epsilon."
OF_NOISE = "From low to high: what the noise can have done, 95 %."
FEW = "few"
OF_FEW = f"({FEW}): a group of so few records that its number may be far from the truth."
LEFT_OUT = "Records with a missing cell are left out."
IN_THE_MIDDLE = (
    "A record with a missing cell counts as one in the middle of the bounds: the coefficient of a column, or of a "
    "category, where many are missing is wrong."
)


def of_missing(name: str, facts: Facts, options: Mapping[str, Any], *, order: bool) -> str:
    """Return what missing cells of a column are in a release whose facts do not say it; `order` for quantiles."""
    if "missing" in options or facts.missing is not None:
        return ""
    if order and not isinstance(facts.bounds, tuple) and not {"bounds", "grid"} & set(options):
        return f"Missing cells of {name} are left out."
    return f"Missing cells of {name} count as the lower bound."


def note_of(facts: Mapping[str, Facts], result: Any, *, grouped: bool, per_unit: int | None) -> str:
    """Return what the facts of the columns of a release say, how wide its intervals are, and what is left out."""
    parts = []
    for name, each in facts.items():
        if isinstance(each.bounds, tuple):
            lower, upper = each.bounds
            parts.append(f"{name} within {lower:,g} and {upper:,g}.")
        if each.missing is not None:
            parts.append(f"Missing cells of {name}: {each.missing}.")
    estimates = list(result.values()) if isinstance(result, Mapping) else [result]
    if estimates and isinstance(estimates[0], Estimate):
        parts.append(f"From low to high: intervals of {percent(estimates[0].confidence)}.")
        parts += [] if isinstance(result, KeyedReleases) else [AT_BOUNDS]
    elif isinstance(result, KeyedReleases) and result.has_noise_intervals:
        parts.append(OF_NOISE)
    if isinstance(result, KeyedReleases) and result.few is not None:
        parts.append(OF_FEW)
    if per_unit is not None:
        parts.append(f"At most {per_unit} records of each unit: the others are left out.")
    if grouped and getattr(getattr(result, "privacy", None), "neighbors", "") == "replace-one":
        parts.append(PUBLIC_GROUPS)
    return " ".join(parts)
