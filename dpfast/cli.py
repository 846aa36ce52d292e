"""The command line: ``dpfast COMMAND``; ``dpfast --help`` lists the commands.

Exit codes: 0 released; 2 bad arguments or file, and nothing is released (one line on standard error, without data);
3 the release could not be written, but its epsilon is spent; 130 interrupted; 1 ``verify`` found that the mechanism
violates its guarantee.

The command line and the schema of a Parquet file, which are public, decide how a column is read; its cells do not. Each
answer states the value that replaces non-numeric cells.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpfast import _checks, audit, local
from dpfast.aggregate import COMBINE, SampleAndAggregate
from dpfast.densities import Histogram, histogram, synthesize
from dpfast.densities.synthesis import METHODS
from dpfast.errors import EntropyError
from dpfast.families.user import named
from dpfast.grid import Grid, Points, unbounded
from dpfast.mechanisms import Mechanism, Quantiles
from dpfast.mechanisms.methods import mechanism_for, range_of
from dpfast.privacy import Privacy
from dpfast.statistics import (
    InterquartileRange,
    Mean,
    Median,
    Quantile,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
    WinsorizedMean,
)
from dpfast.streaming import Chunks
from dpfast.tables import TableError, open_column, read_column, schema_type

_TYPES = ("number", "integer")
_UNREAD = "empty or non-numeric cells"  # stated in each answer, whatever the cells contain
_NOT_PRIVATE = "a seed makes this reproducible, hence NOT private: for tests only"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    try:
        return _run(_parser().parse_args(argv))
    except _UnwrittenError as error:
        _warn(f"dpfast: error: {error}")
        return 3
    except KeyboardInterrupt:
        _warn("dpfast: interrupted: if a release was made, it is lost and its epsilon is spent")
        return 130


def _run(arguments: argparse.Namespace) -> int:
    try:
        if sys.stdout is None:
            raise TableError("standard output is closed: nothing is released")
        report: dict[str, Any] = arguments.run(arguments)
    except (TypeError, ValueError, OSError, TableError, MemoryError, EntropyError) as error:
        _warn(f"dpfast: error: {getattr(error, 'strerror', None) or str(error) or type(error).__name__}")
        return 2
    if getattr(arguments, "seed", None) is not None:
        _warn(f"dpfast: {_NOT_PRIVATE}")
    text = report.pop("text") + (f"\n({report['reading']})" if "reading" in report else "")
    _print((json.dumps(report) if arguments.json else text) + "\n", spent="reading" in report)
    return 0 if report.get("holds", True) else 1


class _UnwrittenError(Exception):
    """The result cannot be written."""

    def __init__(self, where: str, error: OSError, *, spent: bool) -> None:
        release = ": the release is made, and its epsilon is spent" if spent else ""
        super().__init__(f"cannot write {where}: {error.strerror}{release}")


def _print(text: str, *, spent: bool) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError, ValueError):  # the rest of the buffer would fail again when Python exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise _UnwrittenError("standard output", error, spent=spent) from None


def _warn(line: str) -> None:
    if sys.stderr is not None:
        with suppress(OSError):
            print(line, file=sys.stderr, flush=True)


class _Parser(argparse.ArgumentParser):
    """An argument parser with one-line errors that reads -1e6 as a number, not as an option."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._negative_number_matcher = re.compile(r"-(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$", re.IGNORECASE)

    def error(self, message: str) -> NoReturn:
        _warn(f"{self.prog}: error: {message}")
        raise SystemExit(2)

    def _print_message(self, message: str, file: Any = None) -> None:
        if sys.stdout is not None:  # help on request
            _print(message, spent=False)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dpfast", description="Differentially private statistics of one column of a file.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    demo = commands.add_parser("demo", help="make a payroll file and release its quartiles")
    demo.add_argument("--rows", type=_whole, default=1_000_000, help="people on the payroll (default 1,000,000)")
    demo.add_argument("--epsilon", type=_exact, default=1.0, help="total budget (default 1)")
    _common(demo)
    demo.set_defaults(run=_demo)

    for name, (words, make, method) in _SINGLE.items():
        one = commands.add_parser(name, help=f"release the {words} of a column")
        _column(one, bounded=name not in ("median", "iqr"))
        if name == "trimmed-mean":
            one.add_argument("--trim", type=_number, default=0.1, help="fraction cut from each side (default 0.1)")
        one.add_argument("--delta", type=_exact, default=0.0, help="0 (default), or more with smooth-sensitivity")
        one.add_argument("--method", default=method, help=f"default {method}")
        _common(one)
        one.set_defaults(run=_single, name=name, make=make)

    several = commands.add_parser("quantiles", help="release quantiles of a column together")
    _column(several, bounded=False)
    several.add_argument("-q", type=_number, nargs="+", default=[0.25, 0.5, 0.75], help="default 0.25 0.5 0.75")
    _common(several)
    several.set_defaults(run=_quantiles)

    fit = commands.add_parser("mle", help="release parameters of a family of distributions, fitted to a column")
    _file(fit)
    fit.add_argument("--family", required=True, choices=named(), help=f"{', '.join(named())}")
    fit.add_argument("--bounds", type=_range, nargs="+", required=True, metavar="NAME=LOWER,UPPER", help="public")
    fit.add_argument("--blocks", type=_bins, default="auto", help="a number, or auto (default), from public numbers")
    fit.add_argument("--combine", default="auto", choices=COMBINE, help="default auto")
    fit.add_argument("--no-bias-correction", action="store_true", help="do not correct the bias of block estimates")
    fit.add_argument("--shuffle", type=_whole, metavar="SEED", help="public; for a file that is sorted or drifts")
    _common(fit)
    fit.set_defaults(run=_mle)

    bars = commands.add_parser("histogram", help="release a histogram of a column")
    _column(bars)
    bars.add_argument("--bins", type=_bins, default="auto", help="a number, or auto (default), from public numbers")
    bars.add_argument(
        "--delta", type=_exact, default=0.0, help="0 (default), or more for Gaussian noise where it is less"
    )
    bars.add_argument("--plot", metavar="FILE", help="also plot it to this .png, .svg or .pdf file, with matplotlib")
    _common(bars)
    bars.set_defaults(run=_histogram)

    twins = commands.add_parser("synthesize", help="write synthetic records that resemble a column")
    _column(twins)
    twins.add_argument("-k", type=_whole, required=True, help="number of records")
    twins.add_argument("-o", "--output", metavar="FILE", required=True, help="CSV file to write")
    twins.add_argument("--method", default="perturbed", choices=METHODS, help="default perturbed")
    twins.add_argument("--bins", type=_bins, default="auto", help="a number, or auto (default), from public numbers")
    _common(twins)
    twins.set_defaults(run=_synthesize)

    check = commands.add_parser("verify", help="certify a mechanism on every small dataset; exit code 1 if broken")
    names = [*_CERTIFIED, *_LOCAL]
    check.add_argument("mechanism", metavar="MECHANISM", choices=names, help=", ".join(names))
    check.add_argument("--trim", type=_number, default=0.1, help="for trimmed and Winsorized means (default 0.1)")
    check.add_argument("-q", type=_number, default=0.5, help="for quantile (default 0.5)")
    check.add_argument("--epsilon", type=_exact, default=1.0)
    check.add_argument("--delta", type=_exact, default=0.0, help="0 (default), or more with smooth-sensitivity")
    check.add_argument(
        "--method", help="inverse-sensitivity, smooth-sensitivity or global-sensitivity; or one of a local randomiser"
    )
    check.add_argument("--bounds", type=_number, nargs=2, default=[0.0, 20.0], metavar=("LOWER", "UPPER"))
    check.add_argument("--step", type=_number, default=1.0, help="a power of two")
    check.add_argument("--records", type=_whole, default=3, help="records in each dataset (default 3)")
    check.add_argument("--values", type=_whole, default=4, help="distinct values of a record (default 4)")
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(run=_verify)
    return parser


def _column(parser: argparse.ArgumentParser, *, bounded: bool = True) -> None:
    _file(parser)
    hint = "public" if bounded else "public; not needed if n epsilon min(q, 1 - q) >= 50 for each quantile"
    parser.add_argument("--bounds", type=_number, nargs=2, required=bounded, metavar=("LOWER", "UPPER"), help=hint)
    parser.add_argument("--step", type=_number, help="granularity, a power of two; default 1 for integers, else fine")
    parser.add_argument(
        "--type", choices=_TYPES, help="type of the column, public: number (default) or integer; not needed for Parquet"
    )
    parser.add_argument("--missing", type=_number, help="value of empty or non-numeric cells (default: the least)")


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="CSV (also .gz), Parquet with pyarrow, or - for standard input")
    parser.add_argument("--column", metavar="C", help="name in the header; not needed for a file of one column")
    parser.add_argument("--no-header", action="store_true", help="the first row is data; C is a number from 1")
    parser.add_argument("--epsilon", type=_exact, required=True, help="privacy budget of this command")


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=_whole, help="reproducible, hence not private")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _exact(text: str) -> Fraction:
    """The exact value of a decimal or a ratio."""
    try:
        return _checks.rational("", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).strip()) from None


def _reader(make: Callable[[str], Any], what: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return make(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}") from None

    return read


_number, _whole = _reader(float, "a number"), _reader(int, "an integer")
_bins = _reader(lambda text: text if text == "auto" else int(text), "an integer or auto")


def _range(text: str) -> tuple[str, tuple[float, float]]:
    try:
        name, ends = text.split("=")
        lower, upper = map(float, ends.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be NAME=LOWER,UPPER, as in scale=0.1,50, not {text!r}") from None
    return name, (lower, upper)


def _rng(arguments: argparse.Namespace) -> np.random.Generator | None:
    return None if arguments.seed is None else np.random.default_rng(_checks.whole("seed", arguments.seed))


def _grid(arguments: argparse.Namespace) -> Grid:
    return Grid(arguments.bounds[0], arguments.bounds[1], step=arguments.step)


def _column_grid(arguments: argparse.Namespace) -> Grid:
    """The grid of a column, with step 1 if it is declared as integer; sets `type` and `missing`."""
    lower, upper = arguments.bounds
    grid = Grid(lower, upper, step=arguments.step, missing=arguments.missing)  # raises before the file is opened
    declared = schema_type(arguments.file, arguments.column)
    arguments.type = arguments.type or declared or "number"
    if arguments.step is None and arguments.type == "integer":
        grid = Grid(lower, upper, step=1.0, missing=arguments.missing)
    arguments.missing = grid.missing
    return grid


def _points(arguments: argparse.Namespace) -> Points:
    """`_column_grid`, or without --bounds the grid of floats for the type of the column; sets `type` and `missing`."""
    if arguments.bounds is not None:
        return _column_grid(arguments)
    if arguments.step is not None:
        raise ValueError("--step needs --bounds")
    arguments.type = arguments.type or schema_type(arguments.file, arguments.column) or "number"
    grid = replace(unbounded(arguments.type == "integer"), missing=arguments.missing)
    arguments.missing = grid.missing
    return grid


def _read(arguments: argparse.Namespace) -> NDArray[np.float64] | Chunks:
    x = open_column(arguments.file, arguments.column, header=not arguments.no_header, progress=True)
    if not isinstance(x, Chunks):
        _checks.records(x.size)
    return x


def _released(mechanism: Mechanism, arguments: argparse.Namespace, rng: np.random.Generator | None) -> _Released:
    """Release a statistic of the column; also return the number of records and the run times."""
    start = time.perf_counter()
    x = _read(arguments)
    if isinstance(x, Chunks):
        state = mechanism.start().read(x)
        middle = time.perf_counter()
        value, n = state.release(rng=rng), state.n
    else:
        middle = time.perf_counter()
        value, n = mechanism(x, rng=rng), x.size
    end = time.perf_counter()
    return _Released(
        value, n, f"{n:,} records, read in {_duration(middle - start)}, released in {_duration(end - middle)}"
    )


class _Released(NamedTuple):
    value: Any
    n: int
    story: str


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1e3 * seconds:.1f} ms"


# The commands that release one number: name in the help, statistic, default method.
_SINGLE: dict[str, tuple[str, Callable[[argparse.Namespace], Statistic], str]] = {
    "median": ("median", lambda arguments: Median(), "inverse-sensitivity"),
    "mean": ("mean", lambda arguments: Mean(), "global-sensitivity"),
    "trimmed-mean": ("trimmed mean", lambda arguments: TrimmedMean(arguments.trim), "inverse-sensitivity"),
    "iqr": ("interquartile range", lambda arguments: InterquartileRange(), "inverse-sensitivity"),
}

# The statistics that `verify` accepts; some have no command of their own.
_CERTIFIED = {
    **_SINGLE,
    "quantile": ("quantile", lambda arguments: Quantile(arguments.q), "inverse-sensitivity"),
    "sum": ("sum", lambda arguments: Sum(), "global-sensitivity"),
    "variance": ("variance", lambda arguments: Variance(), "global-sensitivity"),
    "winsorized-mean": ("Winsorized mean", lambda arguments: WinsorizedMean(arguments.trim), "inverse-sensitivity"),
}

# The local randomisers that `verify` accepts: one category per value, three coordinates, one frequency.
_LOCAL: dict[str, Callable[[argparse.Namespace, str], Any]] = {
    "local-binary": lambda arguments, _: local.Binary(arguments.epsilon),
    "local-categorical": lambda arguments, method: local.Categorical(arguments.values, arguments.epsilon, method),
    "local-interval": lambda arguments, method: local.Interval(
        arguments.epsilon, bounds=tuple(arguments.bounds), method=method
    ),
    "local-hypercube": lambda arguments, method: local.Hypercube(3, arguments.epsilon, method=method),
    "local-density": lambda arguments, method: local.SeriesReports(
        2, arguments.epsilon, grid=_grid(arguments), method=method
    ),
}


def _single(arguments: argparse.Namespace) -> dict[str, Any]:
    # Reject a bad parameter before a long read.
    grid, rng, statistic = _points(arguments), _rng(arguments), arguments.make(arguments)
    difference = isinstance(statistic, InterquartileRange) and not isinstance(grid, Grid)
    released = (0.25, 0.75) if difference else statistic
    mechanism = mechanism_for(released, None, None, grid, arguments.epsilon, arguments.delta, arguments.method)
    value, n, story = _released(mechanism, arguments, rng)
    value = range_of(value) if difference else value
    return {
        "statistic": arguments.name,
        "column": arguments.column,
        "value": value,
        **_context(mechanism.privacy, grid, n, arguments),
        "text": f"{statistic} = {value:.12g}  ({story}; {mechanism.privacy})",
    }


def _quantiles(arguments: argparse.Namespace) -> dict[str, Any]:
    grid, rng = _points(arguments), _rng(arguments)
    mechanism = Quantiles(arguments.q, grid=grid, epsilon=arguments.epsilon)
    released, n, story = _released(mechanism, arguments, rng)
    values = released.tolist()
    lines = [f"{q:g}-quantile = {value:.12g}" for q, value in zip(arguments.q, values, strict=True)]
    return {
        "statistic": "quantiles",
        "column": arguments.column,
        "q": arguments.q,
        "values": values,
        **_context(mechanism.privacy, grid, n, arguments),
        "text": "\n".join([*lines, f"({story}; together {mechanism.privacy})"]),
    }


def _mle(arguments: argparse.Namespace) -> dict[str, Any]:
    rng = _rng(arguments)
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
    x = _read(arguments)
    values = dict(zip(mechanism.box.names, np.atleast_1d(mechanism(x, rng=rng)).tolist(), strict=True))
    n = x.records() if isinstance(x, Chunks) else x.size
    blocks, privacy = mechanism.block_count(n), mechanism.privacy
    lines = [f"{name} = {value:.12g}" for name, value in values.items()]
    return {
        "statistic": "mle",
        "column": arguments.column,
        "family": arguments.family,
        "values": values,
        "blocks": blocks,
        "n": n,
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "neighbors": privacy.neighbors,
        "reading": f"read as type number; {_UNREAD}, or outside the support of the family, are left out",
        "private": arguments.seed is None,
        "text": "\n".join([*lines, f"({arguments.family}; {n:,} records in {blocks:,} blocks; {privacy})"]),
    }


def _histogram(arguments: argparse.Namespace) -> dict[str, Any]:
    grid, rng = _column_grid(arguments), _rng(arguments)
    options = {"bins": arguments.bins, "epsilon": arguments.epsilon, "delta": arguments.delta}
    save = _saver(arguments.plot) if arguments.plot else None
    histogram([grid.lower], grid=grid, **options)  # reject a bad parameter before a long read
    x = _read(arguments)
    if arguments.plot:
        _open_for_writing(arguments.plot)
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
        **_context(released.privacy, grid, released.n or 0, arguments),
        "text": _bars(released),
    }


_MOST_LINES, _BAR = 40, 50


def _bars(released: Histogram) -> str:
    """One line for each bin, or for several bins with their noisy counts added."""
    weights, edges = released.weights, released.edges
    starts = range(0, weights.size, -(-weights.size // _MOST_LINES))
    sums = [int(weights[i : i + starts.step].sum()) for i in starts]
    most = max(sums)
    ends = [edges[min(i + starts.step, weights.size)] for i in starts]
    rows = [
        f"{edges[i]:>12.6g} .. {end:<12.6g}{total:>12,} {'#' * round(_BAR * total / most)}"
        for i, end, total in zip(starts, ends, sums, strict=True)
    ]
    warning = ["the noise exceeds the error of a uniform density: use fewer bins"] if released.noise_dominates else []
    return "\n".join([*rows, *warning, f"({released.n:,} records in {weights.size} bins; {released.privacy})"])


def _saver(path: str) -> Callable[[Histogram], None]:
    """Return a function that plots a histogram to a file."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise TableError("a plot requires matplotlib: pip install 'dpfast[plot]'") from None
    figure = Figure(figsize=(6, 4), layout="constrained")
    if Path(path).suffix[1:] not in figure.canvas.get_supported_filetypes():
        raise TableError(f"cannot plot to {path}: use .png, .svg or .pdf")

    def save(released: Histogram) -> None:
        released.plot(figure.subplots())
        with _writing(path):
            figure.savefig(path)

    return save


def _open_for_writing(path: str) -> None:
    """Check that a file can be written, before a release is made."""
    try:
        Path(path).open("a").close()
    except OSError as error:
        raise TableError(f"cannot write {path}: {error.strerror}") from None


@contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _UnwrittenError(path, error, spent=True) from None


def _synthesize(arguments: argparse.Namespace) -> dict[str, Any]:
    grid, rng, k = _column_grid(arguments), _rng(arguments), _checks.whole("k", arguments.k, least=1)
    options = {"grid": grid, "epsilon": arguments.epsilon, "method": arguments.method, "bins": arguments.bins}
    synthesize([grid.lower], 1, **options)  # reject a bad parameter before a long read
    x = _read(arguments)
    _open_for_writing(arguments.output)
    records = synthesize(x, k, **options, rng=rng)
    n = x.records() if isinstance(x, Chunks) else x.size
    with _writing(arguments.output), Path(arguments.output).open("w", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerow([arguments.column or "value"])
        file.writelines(f"{value!r}\n" for value in records.tolist())
    privacy = Privacy(_checks.positive_down("epsilon", arguments.epsilon))
    return {
        "statistic": "synthesize",
        "column": arguments.column,
        "k": k,
        "method": arguments.method,
        "output": arguments.output,
        **_context(privacy, grid, n, arguments),
        "text": f"{k:,} synthetic records in {arguments.output}  (from {n:,} records; {privacy})",
    }


def _context(privacy: Privacy, grid: Points, n: int, arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "n": n,
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "neighbors": privacy.neighbors,
        "step": grid.step if isinstance(grid, Grid) else None,
        "type": arguments.type,
        "missing": arguments.missing,
        "reading": f"read as type {arguments.type}; {_UNREAD} count as {arguments.missing:.12g} (--missing)",
        "private": arguments.seed is None,
    }


def _verify(arguments: argparse.Namespace) -> dict[str, Any]:
    mechanism: Any
    if arguments.mechanism in _LOCAL:
        mechanism = _LOCAL[arguments.mechanism](arguments, arguments.method or "auto")
    else:
        _, make, default = _CERTIFIED[arguments.mechanism]
        method = default if arguments.method is None else arguments.method
        grid, statistic = _grid(arguments), make(arguments)
        mechanism = mechanism_for(statistic, None, None, grid, arguments.epsilon, arguments.delta, method)
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


# The payroll of the demo: lognormal yearly pay in whole cents, from public parameters.
_MEDIAN_PAY, _SPREAD, _MOST_PAY = 48_000.0, 0.55, 1_000_000.0
_QUARTILES = (0.25, 0.5, 0.75)


def _demo(arguments: argparse.Namespace) -> dict[str, Any]:
    rows = _checks.whole("rows", arguments.rows, least=1)
    grid = Grid(0.0, _MOST_PAY)
    mechanism = Quantiles(_QUARTILES, grid=grid, epsilon=arguments.epsilon)
    with tempfile.TemporaryDirectory(prefix="dpfast-demo-") as folder:
        path = Path(folder) / "payroll.csv"
        _warn(f"writing {rows:,} made-up salaries to {path} ...")
        pay = np.random.default_rng(arguments.seed).lognormal(np.log(_MEDIAN_PAY), _SPREAD, rows)
        with path.open("w") as file:
            file.write("employee,pay\n")
            file.writelines(f"{i},{amount:.2f}\n" for i, amount in enumerate(pay.tolist(), 1))
        x = read_column(str(path), "pay", progress=True)
    rng = _rng(arguments)
    mechanism(x[:1000], rng=rng)  # the first call creates the generator of its thread
    start = time.perf_counter()
    values = mechanism(x, rng=rng).tolist()
    middle = time.perf_counter()
    exact = np.quantile(x, _QUARTILES)
    end = time.perf_counter()
    privacy = mechanism.privacy
    header = f"{'quartile':<10}{'private (dpfast)':>18}{'not private (numpy)':>22}"
    lines = [f"{q:<10g}{value:>18,.2f}{true:>22,.2f}" for q, value, true in zip(_QUARTILES, values, exact, strict=True)]
    times = f"{'time':<10}{1e3 * (middle - start):>15.1f} ms{1e3 * (end - middle):>19.1f} ms"
    guarantee = f"guarantee: {privacy}"
    return {
        "q": _QUARTILES,
        "values": values,
        "numpy": exact.tolist(),
        "milliseconds": 1e3 * (middle - start),
        "numpy_milliseconds": 1e3 * (end - middle),
        "n": rows,
        "epsilon": privacy.epsilon,
        "private": arguments.seed is None,
        "text": "\n".join([header, *lines, times, guarantee]),
    }
