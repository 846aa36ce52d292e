"""The command that releases a regression."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.cli.predictors import check_type, labels_of, predictors_of
from dpfast.cli.records import UNREAD, charging, check_columns, format_of, guaranteed, hides_n, rng_of
from dpfast.core import checks
from dpfast.core.tabular import finite
from dpfast.core.traps import of_missing_cells, warn
from dpfast.domains import Ball
from dpfast.regression import glm, linear_regression
from dpfast.regression.fit import Fit
from dpfast.regression.linear import Public
from dpfast.regression.models import model_of
from dpfast.reports.predictors import Predictor
from dpfast.streaming import Chunks
from dpfast.tables import blocks, is_long

_CENTERED = "has its features at the center; one without a label adds 0"
MODELS = ("linear", "logistic", "poisson", "huber")


def release_regression(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release the coefficients of a regression of one column on others."""
    rng = rng_of(arguments)
    _settle(arguments)
    if len({*arguments.features, arguments.label}) <= len(arguments.features):
        raise ValueError("--features and --label must name each column once")
    features = predictors_of(arguments)
    names = [name for feature in features for name in feature.names]
    _check(arguments, len(names))
    label = labels_of(arguments)
    for predictor in [*features, label]:
        check_type(predictor, arguments)
    check_columns(arguments, [*arguments.features, arguments.label])
    if arguments.missing is None:
        warn(of_missing_cells([*arguments.features, arguments.label], "at the centers"))
    rows, n = _rows(arguments, [*features, label])
    with charging(arguments):
        fit = replace(_fitted(rows, arguments, rng), names=tuple(names))
    become = "counts as one at its centers" if arguments.model == "linear" else _CENTERED
    if arguments.missing == "drop":
        become = "is left out"
    return {
        "statistic": "regress",
        "model": arguments.model,
        "features": names,
        "label": arguments.label,
        **_released(fit),
        "n": n,
        **guaranteed(fit.privacy),
        "reading": f"{_reading([*features, label])}; a record with {UNREAD} {become}",
        "private": arguments.seed is None,
        "text": _text(fit, arguments.model, n),
    }


def _fitted(rows: Chunks, arguments: argparse.Namespace, rng: np.random.Generator | None) -> Fit:
    """Release the regression of the last column of rows on the others."""
    options = {
        "radius": arguments.radius,
        "label_bound": arguments.label_bound,
        "center": arguments.center[0] if len(arguments.center) == 1 else arguments.center,
        "epsilon": arguments.epsilon,
        "delta": arguments.delta,
        "intercept": not arguments.no_intercept,
        "neighbors": arguments.neighbors,
        "missing": "drop" if arguments.missing == "drop" else None,
        "rng": rng,
    }
    if arguments.model == "linear":
        method = arguments.method or "auto"
        return linear_regression(rows, label_center=arguments.label_center, method=method, **options)
    return glm(rows, model=arguments.model, k=arguments.k, progress=True, **options)


def _released(fit: Fit) -> dict[str, Any]:
    """Return the numbers of a fit by their names in the answer."""
    low, high = fit.interval().T
    return {
        "coefficients": fit.coefficients.tolist(),
        "intercept": float(fit.intercept),
        "standard_errors": finite(fit.standard_errors.tolist()),
        "intercept_error": finite(float(fit.intercept_error)),
        "low": finite(low.tolist()),
        "high": finite(high.tolist()),
    }


def _text(fit: Fit, model: str, n: int | None) -> str:
    """Return the table of a fit, and what it is of."""
    _, _, table = str(fit)[1:-1].partition("\n")
    records = "" if n is None else f"{n:,} records; "
    return f"{table}\n({model} regression; {records}{fit.privacy})"


def _settle(arguments: argparse.Namespace) -> None:
    """Set whether the number of records is private, as it is if some are left out, and what missing cells are then."""
    if arguments.neighbors is None:
        arguments.neighbors = "add-remove" if arguments.missing == "drop" else "replace-one"
    if hides_n(arguments) and arguments.missing is None:
        arguments.missing = "drop"


def _reading(predictors: Sequence[Predictor]) -> str:
    """How cells are read."""
    listed = [predictor.name for predictor in predictors if predictor.categories]
    what = f" but {', '.join(listed)}, whose unlisted cells are missing" if listed else ""
    return f"read as type number{what}"


def _check(arguments: argparse.Namespace, d: int) -> None:
    """Reject bad parameters of a regression on d columns before a long read."""
    if len(arguments.center) not in (1, d):
        raise ValueError(f"--center must be one number or {d}, one for each feature, or each category after the first")
    Ball(arguments.radius, center=arguments.center[0] if len(arguments.center) == 1 else arguments.center)
    checks.positive_down("epsilon", arguments.epsilon)
    checks.delta_down(arguments.delta)
    needed = {"label_bound": ("poisson", "huber"), "k": ("huber",)}
    taken = {**needed, "label_bound": ("linear", "poisson", "huber"), "method": ("linear",)}
    for option, models in taken.items():
        if getattr(arguments, option) is None:
            verb = "needs" if arguments.model in needed.get(option, ()) else ""
        else:
            verb = "" if arguments.model in models else "does not take"
        if verb:
            raise ValueError(f"--model {arguments.model} {verb} --{option.replace('_', '-')}")
    if arguments.missing == "drop" and not hides_n(arguments):
        raise ValueError("--missing drop makes the number of records private: it needs --neighbors add-remove")
    if arguments.model == "linear":
        method, constant = arguments.method or "auto", not arguments.no_intercept
        bounds = arguments.label_bound, arguments.label_center
        Public.of(method, *bounds, arguments.epsilon, arguments.delta, constant)
        return
    if arguments.label_center:
        raise ValueError("--label-center is for --model linear")
    model_of(arguments.model, arguments.label_bound, arguments.k)


def _rows(arguments: argparse.Namespace, predictors: Sequence[Predictor]) -> tuple[Chunks, int | None]:
    """Return the rows of the features, last the label, and their number, None if it is private: in memory, or read from
    a long file in each pass.
    """
    columns = [predictor.column for predictor in predictors]
    format = format_of(arguments)

    def read() -> Iterator[NDArray[np.float64]]:
        yield np.empty((0, sum(len(predictor.names) for predictor in predictors)))  # of a file without records
        for found in blocks(arguments.file, columns, format, True):
            parts = [predictor.numbers(cells) for predictor, cells in zip(predictors, found, strict=True)]
            yield np.column_stack(parts)

    rows = Chunks(read if is_long(arguments.file) else list(read()))
    return rows, None if hides_n(arguments) else checks.records(rows.records())
