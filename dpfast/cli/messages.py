"""Messages of the library in the words of the command line: options instead of parameters of Python."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any

# A parameter and its value, or a parameter that begins the message.
_GIVEN = re.compile(r"\b([a-z_]+)=(\(lower, upper\)|'[^']*'|True|[-+]?\d[\d.e+-]*\d|\d)")
_FIRST = re.compile(r"^([a-z_]+)(?= (must|needs|is for)\b)")


def in_options(text: str, options: Container[str]) -> str:
    """Return a message with options instead of parameters of these names."""

    def option(found: re.Match[str]) -> str:
        name = found[1]
        if name not in options:
            return found[0]
        words = f"--{name.replace('_', '-')}"
        return words if found.re is _FIRST or found[2] == "True" else f"{words} {_value(found[2])}"

    return _FIRST.sub(option, _GIVEN.sub(option, text))


def _value(text: str) -> Any:
    if text == "(lower, upper)":
        return "LOWER UPPER"
    from dpfast.core.privacy import as_given

    try:
        return f"{as_given(float(text)):.15g}"
    except ValueError:
        return text.strip("'")
