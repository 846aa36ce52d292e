"""What a reader of a release must know beside its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpfast.aggregate.blocks import ranges_of
from dpfast.core.grid import Grid
from dpfast.core.plotting import percent
from dpfast.densities import Histogram
from dpfast.families.user import family_of
from dpfast.groups.keyed import KeyedReleases
from dpfast.mechanisms import Estimate
from dpfast.mechanisms.released import ENDLESS
from dpfast.regression.fit import Fit
from dpfast.reports.facts import Facts

PUBLIC_SIZES = "These sizes are public anyway, because another release takes who is in which group as public."
PUBLIC_GROUPS = "Who is in which group is taken as public."
NOTHING = (
    "Where a value is no information, its interval is as wide as the bounds: there are too few records for its epsilon."
)
NO_BOUND = (
    "Where there is no information, or no bound, there are too few numbers for the epsilon, as in a column of text."
)
BEYOND = "values beyond count as the nearer bound"
OF_NOISE = "From low to high: what the noise can have done, 95 %."
OF_BINS = "Counts are noisy; the outer bins have all that is less, and all that is more, too."
OF_COEFFICIENTS = "Errors are standard errors. From low to high: intervals of 95 %."
FEW = "few"
NO_INTERVAL = (
    "There is no interval: the noise depends on the bounds that are found. Numbers beyond these count as them, which "
    "may shift the result, most where many records are equal."
)
MEDIAN_STANDS = (
    "Missing cells of {0} are replaced by a median that is released first: if half of a group or more are missing, its "
    "number means nothing."
)
OF_FEW = f"({FEW}) marks a group of so few records that its number may be far from the truth."
LEFT_OUT = "Records with a missing cell are left out."
IN_THE_MIDDLE = (
    "A record with a missing cell counts as one in the middle of the bounds. If many are missing, the coefficients are "
    "wrong."
)
GENERAL = (NOTHING, NO_BOUND, OF_FEW, OF_BINS, OF_NOISE, OF_COEFFICIENTS, PUBLIC_GROUPS)  # alike in all releases
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
    step : float or None
        To the multiples of which values are rounded; None for the default of the bounds.
    """

    bounds: Any = None
    missing: float | str | None = None
    step: float | None = None


def read_as(facts: Facts, options: Mapping[str, Any], *, order: bool = False) -> Read:
    """Return how a call reads a column: parameters of the call take the place of the facts of the column.

    `order` for quantiles, which find no private bounds.
    """
    bounds = None if "grid" in options else options.get("bounds", facts.bounds)
    bounds = None if order and bounds == "private" else bounds
    return Read(bounds, options.get("missing", facts.missing), None if "bounds" in options else facts.step)


def says_missing(facts: Facts, options: Mapping[str, Any]) -> bool:
    """Whether a call or the facts of a column say what missing cells are."""
    return "missing" in options or "grid" in options or facts.missing is not None


def is_within(facts: Facts, options: Mapping[str, Any]) -> bool:
    """Whether a call is within public bounds, those of its own or of the facts."""
    return isinstance(options.get("bounds", facts.bounds), (tuple, list))


def policy_for(facts: Facts, options: Mapping[str, Any], *, free: bool, adds: bool = False) -> dict[str, Any]:
    """Return the policy for missing cells of which nothing is said: within bounds they are left out if this is `free`.

    It is for means and quantiles, and where the number of records is private anyway. A sum, which `adds`, takes 0.
    """
    if not is_within(facts, options) or says_missing(facts, options):
        return {}
    if free:
        return {"missing": "drop"}
    return {"missing": 0.0} if adds and _has_zero(options.get("bounds", facts.bounds)) else {}


def _has_zero(bounds: Any) -> bool:
    """Whether 0 is within bounds; False for wrong ones, which the call refuses."""
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        return False
    return low <= 0 <= high


def of_missing(name: str, facts: Facts, options: Mapping[str, Any], *, order: bool) -> str:
    """Return what missing cells of a column are in a release whose facts do not say it; `order` for quantiles."""
    if says_missing(facts, options):
        return ""
    bounds = options.get("bounds", facts.bounds)
    if order and not isinstance(bounds, (tuple, list)):
        return left_out(name)
    if isinstance(bounds, str):
        return MEDIAN_STANDS.format(name)
    return f"Missing cells of {name} count as the lower bound."


def _of_widest(estimate: Estimate) -> str:
    """Return what an interval that is as wide as it can be means; "" for one whose range has no ends."""
    if estimate.bounds is None or math.isinf(estimate.bounds[1]):
        return ""
    return NO_BOUND if estimate.bounds[1] >= ENDLESS else NOTHING


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


def named_in(family: Any, options: dict[str, Any]) -> tuple[str, ...]:
    """Return the parameters that a fit releases, and set their bounds by name in its options."""
    options["bounds"] = ranges_of(family_of(family), options.get("bounds"))
    return tuple(name for name, _ in options["bounds"])


def left_out(name: str) -> str:
    """Return the words about missing cells of a column that are no records."""
    return f"Missing cells of {name} are left out."


def note_of(read: Mapping[str, Read], result: Any, *, grouped: bool, per_unit: int | None) -> str:
    """Return how the columns of a release are read, how wide its intervals are, and what is left out."""
    parts = []
    for name, each in read.items():
        if isinstance(each.bounds, (tuple, list)):
            lower, upper = each.bounds
            step = each.step or Grid(lower, upper).step
            coarse = f", rounded to multiples of {step:,g}" if step > 1 or each.step else ""
            parts.append(f"{name} within {lower:,g} and {upper:,g}{coarse}: {BEYOND}.")
        if each.missing is not None:
            word = each.missing if isinstance(each.missing, str) else f"{each.missing:,g}"
            parts.append(left_out(name) if word == "drop" else f"Missing cells of {name}: {word}.")
    estimates = list(result.values()) if isinstance(result, Mapping) else [result]
    if estimates and isinstance(estimates[0], Estimate):
        parts.append(f"From low to high: intervals of {percent(estimates[0].confidence)}.")
        parts += filter(None, [_of_widest(estimates[0])])
    elif isinstance(result, Histogram):
        parts += [OF_BINS, OF_NOISE]
    elif isinstance(result, Fit):
        parts.append(OF_COEFFICIENTS)
    elif isinstance(result, KeyedReleases) and result.has_noise_intervals:
        parts.append(OF_NOISE)
    elif any(each.bounds == "private" for each in read.values()):
        parts.append(NO_INTERVAL)
    if isinstance(result, KeyedReleases) and result.few is not None:
        parts.append(OF_FEW)
    if per_unit is not None:
        parts.append(
            f"All numbers are of the records that are kept: at most {per_unit} of each unit, chosen at random."
        )
    if grouped and getattr(getattr(result, "privacy", None), "neighbors", "") == "replace-one":
        parts.append(PUBLIC_GROUPS)
    return " ".join(parts)
