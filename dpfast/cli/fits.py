"""The command that fits a family of distributions."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from dpfast.aggregate import SampleAndAggregate
from dpfast.cli.budgets import check_budget
from dpfast.cli.records import UNREAD, charging, guaranteed, read, rng_of, tell
from dpfast.streaming import records_of


def release_fit(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release the parameters of a family."""
    rng = rng_of(arguments)
    names = [name for name, _ in arguments.bounds]
    if len(set(names)) < len(names):
        raise ValueError("bounds must name each parameter once")
    mechanism = SampleAndAggregate(
        arguments.family,
        bounds=arguments.bounds,
        epsilon=arguments.epsilon,
        blocks=arguments.blocks,
        bias_correction=not arguments.no_bias_correction,
        combine=arguments.combine,
        shuffle=arguments.shuffle,
    )
    check_budget(arguments.ledger, mechanism)
    x = read(arguments)
    tell(mechanism, arguments, x)
    with charging(arguments):
        released = np.atleast_1d(mechanism(x, rng=rng)).tolist()
    values = dict(zip(mechanism.box.names, released, strict=True))
    n = records_of(x)
    blocks, privacy = mechanism.block_count(n), mechanism.privacy
    lines = [f"{name} = {value:.12g}" for name, value in values.items()]
    return {
        "statistic": "mle",
        "column": arguments.column,
        "family": arguments.family,
        "values": values,
        "blocks": blocks,
        "n": n,
        **guaranteed(privacy),
        "reading": f"read as type number; {UNREAD}, or outside the support of the family, are left out",
        "private": arguments.seed is None,
        "text": "\n".join([*lines, f"({arguments.family}; {n:,} records in {blocks:,} blocks; {privacy})"]),
    }
