"""The command that makes or shows a ledger."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpfast.core.privacy import in_short, stated, total_up
from dpfast.core.traps import warn_of
from dpfast.errors import BudgetError
from dpfast.ledger import Charge, Ledger
from dpfast.ledger.journal import noted
from dpfast.mechanisms import Mechanism
from dpfast.tables import TableError

_GUARANTEE = re.compile(r": (epsilon|rho|mu) = .*?(?=>|$)>?")  # of one release, at the end of its description


def show_ledger(arguments: argparse.Namespace) -> dict[str, Any]:
    """Make a ledger of a budget, or show one."""
    amounts = {name: getattr(arguments, name) for name in ("epsilon", "rho", "mu")}
    others = {name: getattr(arguments, name) for name in ("delta", "neighbors", "composition", "per_unit")}
    given = {name: value for name, value in (amounts | others).items() if value is not None}
    ledger = Ledger(path=arguments.file, **given) if given else open_ledger(arguments.file)
    if given:
        warn_of(ledger)
    charges = [
        {"label": charge.label, "times": charge.times, **stated(charge.profile.privacy), **noted(charge.note)}
        for charge in ledger.charges
    ]
    if arguments.by is None:
        lines = [_line(charge) for charge in ledger.charges]
        by = {}
    else:
        spent = ledger.spent_by(arguments.by)
        lines = [str(spent)]
        by = {"spent_by": spent.to_columns()}
    return {
        "ledger": arguments.file,
        "budget": stated(ledger.privacy),
        "spent": stated(ledger.spent),
        "remaining": _left(ledger),
        "charges": charges,
        **by,
        "text": "\n".join([*lines, f"budget: {ledger.privacy}", f"left: {in_short(ledger.remaining)}"]),
    }


def _line(charge: Charge) -> str:
    """Return the line of a charge, with what is noted; the guarantee is that of the budget."""
    said = "; ".join(f"{name} {text}" for name, text in noted(charge.note).items() if name != "day")
    label = _GUARANTEE.sub("", charge.label.removeprefix("<")).removesuffix(">")
    day = "" if charge.note.day is None else f"{charge.note.day} "
    return f"{day}{charge.times} x {in_short(charge.profile.privacy)}: {label}" + (f" ({said})" if said else "")


def open_ledger(path: str) -> Ledger:
    """Return the ledger in a file."""
    try:
        return Ledger.open(path)
    except FileNotFoundError:
        raise TableError(f"no ledger {path}: make it with dpfast ledger {path} --epsilon ...") from None


def check_budget(ledger: Ledger | None, mechanism: Mechanism) -> None:
    """Raise a BudgetError before a long read, if the release does not fit now; the charge decides."""
    if ledger and not ledger.affords(mechanism):
        cost, remaining = in_short(mechanism.privacy), in_short(ledger.remaining)
        raise BudgetError(f"a release of {cost} does not fit: {remaining} is left")


def charged(charges: Sequence[Charge], ledger: Ledger, neighbors: str | None) -> str:
    """Return what a command was charged, and why if it is twice its epsilon, and what is left."""
    left = in_short(ledger.remaining)
    if not charges:
        return f"left: {left}"
    whole = total_up([charge.profile for charge in charges for _ in range(charge.times)])
    twice = neighbors == "add-remove" and ledger.privacy.neighbors == "replace-one"
    why = " (twice its epsilon, because the ledger is for one replaced record)" if twice else ""
    return f"charged {in_short(whole)}{why}; left: {left}"


def budget_report(path: str, ledger: Ledger) -> dict[str, Any]:
    """Return the fields of a report about the ledger that was charged."""
    return {"ledger": path, "remaining": _left(ledger)}


def _left(ledger: Ledger) -> dict[str, Any]:
    """Return what is left, rounded down, as it must not be shown rounded up."""
    left = ledger.remaining
    return {**stated(left), left.unit: _rounded_down(left.amount), "delta": _rounded_down(left.delta)}


def _rounded_down(amount: Any) -> float:
    """Return an amount to 15 digits, such as 0.3 for 0.30000000000000004, unless this is more."""
    short = f"{float(amount):.15g}"
    return float(short) if math.isfinite(amount) and Fraction(short) <= Fraction(amount) else float(amount)
