"""The command that releases a regression."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast import _checks
from dpfast.cli.records import UNREAD, charging, rng_of
from dpfast.domains import Ball
from dpfast.regression import glm, linear_regression
from dpfast.regression.models import model_of
from dpfast.streaming import Chunks
from dpfast.tables import Column, blocks, is_long

MODELS = ("linear", "logistic", "poisson", "huber")


def release_regression(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release the coefficients of a regression of one column on others."""
    linear, names, rng = arguments.model == "linear", arguments.features, rng_of(arguments)
    if len(set(names)) < len(names) or arguments.label in names:
        raise ValueError("--features and --label must name each column once")
    _check(arguments)
    options = {
        "radius": arguments.radius,
        "label_bound": arguments.label_bound,
        "center": arguments.center[0] if len(arguments.center) == 1 else arguments.center,
        "epsilon": arguments.epsilon,
        "delta": arguments.delta,
        "intercept": not arguments.no_intercept,
        "rng": rng,
    }
    rows = _rows(arguments)
    with charging(arguments):
        if linear:
            fit = linear_regression(rows, label_center=arguments.label_center, **options)
        else:
            fit = glm(rows, model=arguments.model, bound=arguments.bound, progress=True, **options)
    n = rows.records() if fit.n is None else fit.n
    _, _, table = str(replace(fit, names=tuple(names)))[1:-1].partition("\n")
    privacy = fit.privacy
    become = "counts as one at both centers" if linear else "has its features at the center; one without a label adds 0"
    return {
        "statistic": "regress",
        "model": arguments.model,
        "features": names,
        "label": arguments.label,
        "coefficients": fit.coefficients.tolist(),
        "intercept": float(fit.intercept),
        "standard_errors": fit.standard_errors.tolist(),
        "intercept_error": float(fit.intercept_error),
        "low": fit.interval()[:, 0].tolist(),
        "high": fit.interval()[:, 1].tolist(),
        "n": n,
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "neighbors": privacy.neighbors,
        "reading": f"read as type number; a record with {UNREAD} {become}",
        "private": arguments.seed is None,
        "text": f"{table}\n({arguments.model} regression; {n:,} records; {privacy})",
    }


def _check(arguments: argparse.Namespace) -> None:
    """Reject bad parameters before a long read."""
    d = len(arguments.features)
    if len(arguments.center) not in (1, d):
        raise ValueError(f"--center must be one number or {d}, one for each feature")
    Ball(arguments.radius, center=arguments.center[0] if len(arguments.center) == 1 else arguments.center)
    _checks.positive_down("epsilon", arguments.epsilon)
    _checks.delta_down(arguments.delta)
    for option, models in (("label_bound", ("linear", "poisson", "huber")), ("bound", ("huber",))):
        if (getattr(arguments, option) is None) == (arguments.model in models):
            verb = "needs" if arguments.model in models else "does not take"
            raise ValueError(f"--model {arguments.model} {verb} --{option.replace('_', '-')}")
    if arguments.model == "linear":
        Ball(arguments.label_bound, center=arguments.label_center)
        return
    if arguments.label_center:
        raise ValueError("--label-center is for --model linear")
    model_of(arguments.model, arguments.label_bound, arguments.bound)


def _rows(arguments: argparse.Namespace) -> Chunks:
    """Rows of the features and last the label: in memory, or read from a long file in each pass."""
    columns = [Column(name) for name in [*arguments.features, arguments.label]]

    def read() -> Iterator[NDArray[np.float64]]:
        for found in blocks(arguments.file, columns, not arguments.no_header, arguments.delimiter, True):
            yield np.column_stack(found)

    rows = Chunks(read if is_long(arguments.file) else list(read()))
    _checks.records(rows.records())
    return rows
