"""The columns of a regression, as the command line or a schema declares them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from dpfast.reports.predictors import Predictor
from dpfast.tables import TableError, schema_type


def check_type(predictor: Predictor, arguments: argparse.Namespace) -> None:
    """Raise an error unless the command line or the schema of the file declares this type."""
    found = schema_type(arguments.file, predictor.name, text=predictor.column.text)
    if predictor.column.text and found == "integer":
        raise TableError(f"the categories of {predictor.name!r}, a column of integers, must be integers")
    if found is None and not predictor.categories and arguments.type is None:
        raise ValueError(
            "CSV declares no types: give --type number for features and labels that are numbers, and for others "
            "--categories NAME=A,B,... or --label-values"
        )


def predictors_of(arguments: argparse.Namespace) -> list[Predictor]:
    """Return the features of a regression."""
    given = dict(arguments.categories)
    if len(given) < len(arguments.categories) or not set(given) <= set(arguments.features):
        raise ValueError("--categories must name features, each of them once")
    return [_checked(name, given.get(name, ()), "--categories") for name in arguments.features]


def labels_of(arguments: argparse.Namespace) -> Predictor:
    """Return the label of a regression."""
    if (arguments.label_values is None) == (arguments.model == "logistic"):
        if arguments.label_values is None:
            raise ValueError("--model logistic needs --label-values, as in --label-values no yes or --label-values 0 1")
        raise ValueError("--label-values is for --model logistic")
    return _checked(arguments.label, tuple(arguments.label_values or ()), "--label-values")


def _checked(name: str, categories: tuple[str, ...], option: str) -> Predictor:
    made = Predictor(name, categories)
    values: Sequence[Any] = made.values or categories
    if categories and (len(values) < 2 or len(set(values)) < len(values) or "" in categories):
        raise ValueError(f"{option} must give different values, at least two, for {name!r}")
    return made
