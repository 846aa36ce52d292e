"""Messages of the library in the words of the command line: options instead of parameters of Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# A parameter and its value, or a parameter that begins the message.
_GIVEN = re.compile(r"\b([a-z_]+)=(\(lower, upper\)|'[^']*'|True|[-+]?\d[\d.e+-]*\d|\d)")
_FIRST = re.compile(r"^([a-z_]+)(?= (must|needs|is for)\b)")


_OF_COLUMNS = ("bounds", "categories", "missing")  # of reports, which have them by column
_IN_PLANS = (*_OF_COLUMNS, "delta", "interval", "method", "neighbors", "step")


def in_options(text: str, options: Mapping[str, Any]) -> str:
    """Return a message with options instead of parameters of these names; of a report with a plan, with its keys."""
    planned = options.get("plan") is not None

    def option(found: re.Match[str]) -> str:
        name = found[1]
        if planned and name in _IN_PLANS and found.re is _GIVEN:
            return f"{name} = {_in_plan(found[2])}"
        if name not in options:
            return found[0]
        if "plan" in options and name in _OF_COLUMNS and found.re is _GIVEN:
            return f"--{name} COLUMN={str(_value(found[2])).replace(' ', ',')}"
        words = f"--{name.replace('_', '-')}"
        return words if found.re is _FIRST or found[2] == "True" else f"{words} {_value(found[2])}"

    return _FIRST.sub(option, _GIVEN.sub(option, text))


def _in_plan(text: str) -> str:
    """Return a value of Python in TOML."""
    return {"(lower, upper)": "[lower, upper]", "True": "true", "False": "false"}.get(text, text.replace("'", '"'))


def _value(text: str) -> Any:
    if text == "(lower, upper)":
        return "LOWER UPPER"
    from dpfast.core.privacy import as_given

    try:
        return f"{as_given(float(text)):.15g}"
    except ValueError:
        return text.strip("'")
