"""The commands of histograms and synthetic records."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpfast.cli.output import released_to, show
from dpfast.cli.records import charging, column_grid, context, read, rng_of, warn_of_cells
from dpfast.core import checks
from dpfast.core.privacy import Privacy
from dpfast.core.traps import trying
from dpfast.densities import Histogram, histogram, synthesize
from dpfast.densities.cells import is_whole
from dpfast.ledger.outputs import Output
from dpfast.streaming import records_of
from dpfast.tables import TableError


def release_histogram(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release a histogram of a column."""
    grid, rng = column_grid(arguments), rng_of(arguments)
    options = {"bins": arguments.bins, "epsilon": arguments.epsilon, "delta": arguments.delta}
    options["neighbors"] = arguments.neighbors
    save = _saver(arguments) if arguments.plot else None
    with trying():
        histogram([grid.lower], grid=grid, **options)  # reject a bad parameter before a long read
    x = read(arguments)
    warn_of_cells(arguments)
    with charging(arguments):
        released = histogram(x, grid=grid, rng=rng, **options)
    if save:
        save(released)
    return {
        "statistic": "histogram",
        "column": arguments.column,
        "edges": released.edges.tolist(),
        "counts": released.counts.tolist(),
        "density": released.density.tolist(),
        "noise_dominates": released.noise_dominates,
        **context(released.privacy, grid, released.n, arguments),
        "text": _bars(released),
    }


_MOST_LINES, _BAR = 40, 50


def _bars(released: Histogram) -> str:
    """One line for each bin, or for several bins with their noisy counts added."""
    weights, edges = released.weights, released.edges
    starts = range(0, weights.size, -(-weights.size // _MOST_LINES))
    sums = [int(weights[i : i + starts.step].sum()) for i in starts]
    most = max(sums)
    half = 0.5 if is_whole(released.cells.grids[0]) else 0.0  # whole numbers are shown instead of edges
    ends = [(edges[i] + half, edges[min(i + starts.step, weights.size)] - half) for i in starts]
    rows = [
        f"{f'{low:>12.6g}' if low == high else f'{low:>12.6g} .. {high:<12.6g}':<28}{total:>12,} "
        f"{'#' * round(_BAR * total / most)}"
        for (low, high), total in zip(ends, sums, strict=True)
    ]
    warning = ["the noise exceeds the error of a uniform density: use fewer bins"] if released.noise_dominates else []
    records = "records" if released.n is None else f"{released.n:,} records"
    return "\n".join([*rows, *warning, f"({records} in {weights.size} bins; {released.privacy})"])


def _saver(arguments: argparse.Namespace) -> Callable[[Histogram], None]:
    """Return a function that plots a histogram to a file."""
    path = arguments.plot
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise TableError("a plot requires matplotlib: pip install 'dpfast[plot]'") from None
    figure = Figure(figsize=(6, 4), layout="constrained")
    if Path(path).suffix[1:] not in figure.canvas.get_supported_filetypes():
        raise TableError(f"cannot plot to {path}: use .png, .svg or .pdf")
    output = _output(path, arguments)

    def save(released: Histogram) -> None:
        released.plot(figure.subplots())
        with released_to(output) as made:
            figure.savefig(made, format=Path(path).suffix[1:])

    return save


def _output(path: str, arguments: argparse.Namespace) -> Output:
    """Return the file at a path, which none of the files that the command reads may be."""
    return Output(path, [arguments.file, arguments.ledger_file], force=arguments.force)


def _csv(name: str, values: list[float]) -> str:
    """Return a column as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([name])
    text.writelines(f"{value!r}\n" for value in values)
    return text.getvalue()


def write_synthetic(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write synthetic records to a file."""
    grid, rng, k = column_grid(arguments), rng_of(arguments), checks.whole("k", arguments.k, least=1)
    options = {"grid": grid, "epsilon": arguments.epsilon, "method": arguments.method, "bins": arguments.bins}
    with trying():
        synthesize([grid.lower], 1, **options)  # reject a bad parameter before a long read
    if aside := arguments.output == "-":
        if arguments.json:
            raise ValueError("--json and -o - would both write to standard output")
    else:
        output = _output(arguments.output, arguments)
    x = read(arguments)
    warn_of_cells(arguments)
    with charging(arguments):
        records = synthesize(x, k, **options, rng=rng)
    n = records_of(x)
    lines = _csv(arguments.column or "value", records.tolist())
    if aside:
        show(lines, spent=True)
    else:
        with released_to(output) as made, made.open("w", encoding="utf-8") as file:
            file.write(lines)
    privacy = Privacy(checks.positive_down("epsilon", arguments.epsilon))
    return {
        "statistic": "synthesize",
        "column": arguments.column,
        "k": k,
        "method": arguments.method,
        "output": arguments.output,
        **context(privacy, grid, n, arguments),
        "aside": aside,
        "text": f"{k:,} synthetic records in {arguments.output}  (from {n:,} records; {privacy})",
    }
