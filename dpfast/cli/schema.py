"""The JSON Schema of what the commands print with --json, one definition for each command."""

from __future__ import annotations

import argparse
import json
from typing import Any

from dpfast.ledger.journal import NOTED

_NUMBER, _TEXT, _WHOLE, _FLAG = ({"type": name} for name in ("number", "string", "integer", "boolean"))


def _or_null(kind: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [kind, {"type": "null"}]}


def _array(*kinds: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": kinds[0] if len(kinds) == 1 else {"anyOf": list(kinds)}}


def _among(*words: str | None) -> dict[str, Any]:
    return {"enum": list(words)}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


_NUMBERS, _TEXTS = _array(_NUMBER), _array(_TEXT)
_KEYS = _array(_TEXT, _WHOLE, _array(_TEXT, _WHOLE))
_GUARDED = {"delta": _NUMBER, "neighbors": _TEXT, "per_unit": _or_null(_WHOLE)}
_AMOUNTS = _object(_GUARDED, {"epsilon": _NUMBER, "rho": _NUMBER, "mu": _NUMBER})
_GUARANTEE = {
    "epsilon": _NUMBER,
    "delta": _NUMBER,
    "neighbors": _among("replace-one", "add-remove"),
    "reading": _TEXT,
    "private": _FLAG,
}
_CHARGED = {"ledger": _TEXT, "remaining": _AMOUNTS}
_COLUMN = {
    **_GUARANTEE,
    "column": _or_null(_TEXT),
    "n": _or_null(_WHOLE),
    "step": _or_null(_NUMBER),
    "type": _among("number", "integer"),
    "missing": {"anyOf": [_NUMBER, _among("lower", "half", "drop", None)]},  # None: a median that is released first
}
_COUNT = {
    **_GUARANTEE,
    "column": _or_null(_TEXT),
    "within": _or_null(_NUMBERS),
    "missing": _or_null(_among("drop")),
}
_END = _or_null(_NUMBER)  # null: it has no bound
_INTERVAL = {"low": _END, "high": _END, "confidence": _NUMBER}
_ENDS = _array(_END)
_INTERVALS = {"low": _ENDS, "high": _ENDS, "confidence": _NUMBER, "counts": _array(_WHOLE), "few": _array(_FLAG)}


_PART = _object(
    {"title": _TEXT, "privacy": _AMOUNTS}, {"note": _TEXT, "columns": {"type": "object"}, "explanation": _TEXTS}
)
_SPENT = {"privacy": _AMOUNTS, "budget": _AMOUNTS, "releases": _array(_PART)}


def _release(statistic: list[str], fields: dict[str, Any], more: dict[str, Any] | None = None) -> dict[str, Any]:
    return _object({"statistic": _among(*statistic), **fields}, {**(more or {}), **_CHARGED})


DEFINITIONS: dict[str, Any] = {
    "number": _release(
        ["median", "mean", "sum", "std", "trimmed-mean", "iqr", "quantile"], {**_COLUMN, "value": _NUMBER}, _INTERVAL
    ),
    "count": _release(
        ["count"],
        {**_COUNT, "value": _WHOLE},
        _INTERVAL,
    ),
    "quantiles": _release(["quantiles"], {**_COLUMN, "q": _NUMBERS, "values": _NUMBERS}),
    "groups": _release(
        ["median", "mean", "sum", "std", "trimmed-mean", "iqr", "quantile", "quantiles"],
        {**_COLUMN, "group_by": _TEXTS, "keys": _KEYS, "values": _array(_or_null(_NUMBER), _array(_or_null(_NUMBER)))},
        {"q": _NUMBERS, **_INTERVALS},
    ),
    "groups of counts": _release(
        ["count"], {**_COUNT, "group_by": _TEXTS, "keys": _KEYS, "values": _array(_WHOLE)}, _INTERVALS
    ),
    "partitions": _release(
        ["partitions"],
        {**_GUARANTEE, "columns": _TEXTS, "keys": _KEYS, "counts": _array(_WHOLE), "contributions": _WHOLE},
    ),
    "mle": _release(
        ["mle"],
        {
            **_GUARANTEE,
            "column": _or_null(_TEXT),
            "family": _TEXT,
            "values": {"type": "object", "additionalProperties": _NUMBER},
            "blocks": _WHOLE,
            "n": _WHOLE,
        },
    ),
    "regress": _release(
        ["regress"],
        {
            **_GUARANTEE,
            "model": _among("linear", "logistic", "poisson", "huber"),
            "features": _TEXTS,
            "label": _TEXT,
            "coefficients": _NUMBERS,
            "intercept": _NUMBER,
            "standard_errors": _NUMBERS,
            "intercept_error": _NUMBER,
            "low": _NUMBERS,
            "high": _NUMBERS,
            "n": _or_null(_WHOLE),
        },
    ),
    "histogram": _release(
        ["histogram"],
        {
            **_COLUMN,
            "edges": _NUMBERS,
            "counts": _array(_WHOLE),
            "density": _NUMBERS,
            "noise_dominates": _FLAG,
        },
    ),
    "synthesize": _release(["synthesize"], {**_COLUMN, "k": _WHOLE, "method": _TEXT, "output": _TEXT}),
    "report": _release(
        ["report"], {"title": _TEXT, "guarantee": _TEXT, "private": _FLAG, **_SPENT, "output": _or_null(_TEXT)}
    ),
    "dry-run": _object(
        {"statistic": _among("dry-run"), "title": _TEXT, "records": _or_null(_WHOLE), **_SPENT},
        {"ledger": _TEXT, "remaining": _AMOUNTS},
    ),
    "demo": _object(
        {
            "q": _NUMBERS,
            "values": _NUMBERS,
            "numpy": _NUMBERS,
            "milliseconds": _NUMBER,
            "numpy_milliseconds": _NUMBER,
            "n": _WHOLE,
            "epsilon": _NUMBER,
            "private": _FLAG,
        }
    ),
    "ledger": _object(
        {
            "ledger": _TEXT,
            "budget": _AMOUNTS,
            "spent": _AMOUNTS,
            "remaining": _AMOUNTS,
            "charges": {
                "type": "array",
                "items": _object(
                    {"label": _TEXT, "times": _WHOLE, **_GUARDED},
                    {"epsilon": _NUMBER, "rho": _NUMBER, "mu": _NUMBER, **dict.fromkeys(NOTED, _TEXT)},
                ),
            },
        },
        {"spent_by": {"type": "object"}},
    ),
    "verify": _object(
        {
            "mechanism": _TEXT,
            "claimed_epsilon": _NUMBER,
            "claimed_delta": _NUMBER,
            "epsilon": _NUMBER,
            "delta": _NUMBER,
            "pairs": _WHOLE,
            "worst": {},
            "holds": _FLAG,
        }
    ),
}

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "The reports of the dpfast commands",
    "anyOf": [{"$ref": f"#/$defs/{name}"} for name in DEFINITIONS],
    "$defs": DEFINITIONS,
}


def schema(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the schema of all reports."""
    return {"text": json.dumps(SCHEMA, indent=2)}
