"""Errors of `dpfast.mle` by sums and by blocks, and the choice between them: for ``bench.pages efficiency``."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import dpfast as dpf
from bench.pages.tables import paragraph, size, table
from dpfast.aggregate.choice import choice_between

EPSILONS = (0.1, 1.0, 4.0)
RECORDS = {300: 200, 10**4: 120, 10**6: 24}  # and the number of simulated datasets
CLOSE = 1.1


@dataclass(frozen=True)
class Setting:
    """A family, the true parameters, how to draw records, and bounds of several widths."""

    family: str
    truth: dict[str, float]
    draw: Callable
    bounds: tuple[dict[str, tuple[float, float]], ...]


SETTINGS = (
    Setting("bernoulli", {"p": 0.02}, lambda rng, n: rng.random(n) < 0.02, ({"p": (0.001, 0.4)}, {"p": (0, 1)})),
    Setting("poisson", {"mean": 20.0}, lambda rng, n: rng.poisson(20, n), ({"mean": (10, 40)}, {"mean": (0, 500)})),
    Setting("geometric", {"p": 0.3}, lambda rng, n: rng.geometric(0.3, n), ({"p": (0.1, 0.9)}, {"p": (0.01, 0.99)})),
    Setting(
        "exponential", {"mean": 1.0}, lambda rng, n: rng.exponential(1, n),
        ({"mean": (0.2, 5)}, {"mean": (0.04, 25)}, {"mean": (0, 25)}),
    ),
    Setting(
        "pareto", {"shape": 2.0}, lambda rng, n: 1 + rng.pareto(2, n), ({"shape": (0.5, 8)}, {"shape": (0.08, 50)}),
    ),
    Setting(
        "normal", {"mean": 1.0, "sd": 2.0}, lambda rng, n: rng.normal(1, 2, n),
        ({"mean": (-5, 5), "sd": (0.5, 8)}, {"mean": (-50, 50), "sd": (0.08, 50)}),
    ),
    Setting(
        "lognormal", {"mu": 1.0, "sigma": 0.5}, lambda rng, n: rng.lognormal(1, 0.5, n),
        ({"mu": (-1, 3), "sigma": (0.2, 1.5)}, {"mu": (-10, 10), "sigma": (0.02, 12.5)}),
    ),
    Setting(
        "gamma", {"shape": 2.0, "scale": 2.0}, lambda rng, n: rng.gamma(2, 2, n),
        ({"shape": (0.5, 8), "scale": (0.5, 8)}, {"shape": (0.08, 50), "scale": (0.08, 50)}),
    ),
    Setting(
        "beta", {"a": 2.0, "b": 4.0}, lambda rng, n: rng.beta(2, 4, n),
        ({"a": (0.5, 8), "b": (0.5, 8)}, {"a": (0.08, 50), "b": (0.16, 100)}),
    ),
)  # fmt: skip


def compared(setting, n, runs, rng):
    """For each bounds and epsilon: the ratio of the errors of sums and blocks, and what "auto" takes."""
    cases = {}
    for i, bounds in enumerate(setting.bounds):
        for epsilon in EPSILONS:
            blocks = dpf.SampleAndAggregate(setting.family, bounds=bounds, epsilon=epsilon)
            sums = dpf.SufficientStatistics(setting.family, bounds=bounds, epsilon=epsilon, planned_n=n)
            cases[i, epsilon] = (sums, blocks), choice_between(blocks, n, None).method
    truth, errors = np.array([*setting.truth.values()]), {key: ([], []) for key in cases}
    for _ in range(runs):
        x = setting.draw(rng, n)
        for key, (mechanisms, _) in cases.items():
            for found, mechanism in zip(errors[key], mechanisms, strict=True):
                found.append(np.atleast_1d(mechanism(x, rng=rng)) - truth)
    ratios = {}
    for key, found in errors.items():
        of_sums, of_blocks = (np.mean(np.square(part), axis=0) for part in found)
        ratios[key] = float(np.exp(np.log(of_sums / of_blocks).mean())), cases[key][1]
    return ratios


def section(quick):
    """Sums against blocks, and the choice of "auto"."""
    rng, rows, worse, counted = np.random.default_rng(20261122), [], [], 0
    records = {300: 20} if quick else RECORDS
    for setting in SETTINGS:
        found = {n: compared(setting, n, runs, rng) for n, runs in records.items()}
        for i, bounds in enumerate(setting.bounds):
            for epsilon in EPSILONS:
                cells = []
                for n in records:
                    ratio, method = found[n][i, epsilon]
                    cells.append(f"{ratio:.2g} {method}")
                    loss = np.sqrt(ratio if method == "sums" else 1 / ratio)
                    counted += 1
                    if loss > CLOSE:
                        worse.append(
                            f"{setting.family}, {_text(bounds)}, epsilon {epsilon:g}, n = {size(n)}: {loss:.2f}"
                        )
                truth = ", ".join(f"{name} {value:g}" for name, value in setting.truth.items())
                rows.append([f"{setting.family}, {truth}", _text(bounds), f"{epsilon:g}", *cells])
    losses = f"It is more in {len(worse)}: {'; '.join(worse)}." if worse else ""
    text = f"""
    Mean squared error of `SufficientStatistics` over that of `SampleAndAggregate`, the geometric mean over the
    parameters, and the method that `dpfast.mle` takes with `method="auto"`, which depends on public numbers only.
    {", ".join(f"{runs} datasets of n = {size(n)}" for n, runs in records.items())}: an entry has an error of some 10 %
    for few records and up to a third for many, less where it is near 1. In {counted - len(worse)} of {counted} entries
    the root mean squared error of the method taken is at most {CLOSE:g} times that of the other one. {losses}
    """
    headings = ["family and truth", "bounds", "epsilon", *(f"n = {size(n)}" for n in records)]
    return f"## Sums or blocks\n\n{paragraph(text)}\n{table(headings, rows)}"


def _text(bounds):
    return ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in bounds.items())
