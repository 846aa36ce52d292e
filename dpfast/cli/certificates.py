"""The command that certifies a mechanism."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from dpfast import audit, local
from dpfast._kernels._calls import Parameters
from dpfast.cli.numbers import STATISTICS
from dpfast.cli.records import grid_of
from dpfast.cli.singles import SINGLE
from dpfast.mechanisms.methods import mechanism_for
from dpfast.statistics import (
    Quantile,
    Statistic,
    Variance,
    WinsorizedMean,
)

# The statistics that `verify` accepts, with their methods; some have no command of their own.
_CERTIFIED: dict[str, tuple[Callable[[argparse.Namespace], Statistic], str]] = {
    **{name: (make, SINGLE[name].method) for name, make in STATISTICS.items() if name != "std"},
    "quantile": (lambda arguments: Quantile(arguments.q), "inverse-sensitivity"),
    "variance": (lambda arguments: Variance(), "global-sensitivity"),
    "winsorized-mean": (lambda arguments: WinsorizedMean(arguments.trim), "inverse-sensitivity"),
}

# The local randomisers that `verify` accepts: one category per value, three coordinates, 16 cells, one frequency.
_LOCAL: dict[str, Callable[[argparse.Namespace, str], Any]] = {
    "local-binary": lambda arguments, _: local.Binary(arguments.epsilon),
    "local-categorical": lambda arguments, method: local.Categorical(arguments.values, arguments.epsilon, method),
    "local-interval": lambda arguments, method: local.Interval(
        arguments.epsilon, bounds=tuple(arguments.bounds), method=method
    ),
    "local-hypercube": lambda arguments, method: local.Hypercube(3, arguments.epsilon, method=method),
    "local-square-wave": lambda arguments, _: local.SquareWave(grid_of(arguments), arguments.epsilon, cells=16),
    "local-density": lambda arguments, method: local.SeriesReports(
        2, arguments.epsilon, grid=grid_of(arguments), method=method, basis="trigonometric"
    ),
}


def verify(arguments: argparse.Namespace) -> dict[str, Any]:
    """Certify a mechanism on every small dataset."""
    mechanism: Any
    if arguments.mechanism in _LOCAL:
        mechanism = _LOCAL[arguments.mechanism](arguments, arguments.method or "auto")
    else:
        make, default = _CERTIFIED[arguments.mechanism]
        method = default if arguments.method is None else arguments.method
        grid, statistic = grid_of(arguments), make(arguments)
        mechanism = mechanism_for(statistic, None, Parameters(None, grid, arguments.epsilon, arguments.delta, method))
    certificate = audit.verify(mechanism, n=arguments.records, values=arguments.values)
    return {
        "mechanism": arguments.mechanism,
        "claimed_epsilon": certificate.claim.epsilon,
        "claimed_delta": certificate.claim.delta,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "pairs": certificate.pairs,
        "worst": certificate.worst,
        "holds": certificate.holds,
        "text": f"{mechanism!r}\n{certificate}",
    }


CERTIFIED = [*_CERTIFIED, *_LOCAL]
