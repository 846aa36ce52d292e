"""`Table`: private records with what is publicly known of their columns, a unit, and a budget for all releases."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpfast import aggregate, densities, location, mechanisms, regression
from dpfast._kernels._calls import Parameters
from dpfast.choosing import Explain
from dpfast.core import checks
from dpfast.core.traps import of_missing_cells, presuming, warn
from dpfast.core.types import Exact
from dpfast.core.words import no_method
from dpfast.groups import by_group, interval
from dpfast.groups.contributions import taken
from dpfast.groups.labels import together
from dpfast.keys import column_of
from dpfast.ledger import Ledger
from dpfast.mechanisms import Mechanism
from dpfast.mechanisms.methods import count_of, mechanism_for
from dpfast.random import RandomSource, bit_generator, is_secure
from dpfast.reports.columns import TableColumns
from dpfast.reports.costs import ReleaseCost, as_written, charged, cost_of, keys_for
from dpfast.reports.facts import Facts, facts_of
from dpfast.reports.likeness import like
from dpfast.reports.notes import (
    IN_THE_MIDDLE,
    LEFT_OUT,
    Read,
    is_within,
    named_in,
    note_of,
    of_fit,
    of_missing,
    policy_for,
    read_as,
)
from dpfast.reports.predictors import Variables, distinct
from dpfast.reports.report import Report, TableRelease
from dpfast.reports.sources import check_categories, source_of
from dpfast.statistics import (
    Count,
    Mean,
    Median,
    Quantile,
    Statistic,
    Sum,
)
from dpfast.statistics.named import STATISTICS
from dpfast.tables import Format

_ORDER = (Median, Quantile)  # need no bounds
_PUBLIC = ("bounds", "grid", "missing", "method", "distribution", "measure")  # of mechanisms of groups
_UNBOUNDED = ("median", "quantile", "iqr")
_BY_NOISE = (None, "auto", "global-sensitivity")  # methods of a mean that leaves out missing cells at no cost

# What to do where public bounds are needed, by statistic; means, sums and variances find their own.
_OTHERWISE = {
    "density": "a release of bounds finds some",
    "histogram": "a release of bounds finds some; of text, a count by this column counts its keys",
    "iqr": "private ones are not for the iqr of groups",
}


class Table:
    """A private table: records, public facts of their columns, and the budget of all releases.

    Its methods are named as the functions of dpfast. Each one reads the columns, once for all calls, takes what is
    known of them, and calls the function under the ledger.

    Parameters
    ----------
    data : frame, mapping, or path
        A frame of pandas or polars, a table of Arrow, a mapping of columns; the path of a CSV or Parquet file; a lazy
        frame of polars, a relation of DuckDB or a frame of Spark, of which one query reads the columns that `columns`
        names. Private, and never modified. The columns that are used must fit into memory.
    ledger : Ledger, optional
        The budget, whose neighbours are those of all releases. Give `ledger` or `epsilon`.
    epsilon, delta : float, optional
        The budget of a new ledger. A string or a Decimal is exact.
    neighbors : {"replace-one", "add-remove"}, optional
        Of the new ledger. "add-remove" keeps the number of records private; it is the default with a `unit`.
    unit : pair (name, int), optional
        The column that says whose record each one is, or a list of them, and the largest number of records of a unit.
        More are left out, at random, once for all releases. The guarantee is then for a unit, such as a person, with
        all its records. Default: for a record.
    columns : mapping of str to mapping, optional
        What is publicly known of columns, by name: ``type``, ``bounds``, ``step``, ``categories``, ``missing``; see
        `dpfast.reports.Facts`. It must not come from the data.
    format : mapping, optional
        How a CSV file is written: ``header``, ``delimiter``, ``encoding``, ``decimal``, ``thousands``; see
        `dpfast.tables.Format`.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes all releases reproducible, hence not private. Default: the secure generator.
    explain : bool or callable
        Of all releases, see `dpfast.median`.

    Attributes
    ----------
    ledger : Ledger
    columns : dict of str to Facts
    records : dpfast.reports.TableColumns
        The columns that were read. PRIVATE.

    Raises
    ------
    TypeError, ValueError
        For invalid parameters, before data are read.

    Notes
    -----
    Every method takes ``epsilon=`` or ``share=``, a part of the whole budget, and so of its delta where a release uses
    one. Both are for the unit of the table: a release from a unit of k records has the k-th part of epsilon for each
    record. With ``share=0.2`` five releases use up the budget exactly. Counts, private keys and ``missing="drop"`` are
    for one record added or removed: under a budget for one replaced record, which is two of these, they get half of
    epsilon. Quantiles leave missing cells out for all of it. Within bounds, missing cells of which nothing is said are
    left out where this costs nothing: of quantiles, and where the number of records is private anyway; else they count
    as the lower bound, with a warning. Methods with ``by=`` release for each group of records, for one epsilon: by a
    column, or by several. With ``categories`` of these columns the keys are public, and for one replaced record it is
    also taken as public who is in which group; else they are private, which takes half of epsilon and a delta; their
    noisy counts are in the result. With ``per_key=1`` a unit has at most one record in each group, at random: private
    keys need fewer records, and a ledger in rho or mu is charged less. All other parameters are those of the function.
    Privacy: that of the functions, added up by the ledger; for units by
    https://dpfast.readthedocs.io/en/latest/proofs/bounded-contributions.html.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> rng = np.random.default_rng(0)
    >>> data = {"pay": rng.lognormal(10.5, 0.6, 9000), "region": np.array(["north", "south", "west"] * 3000)}
    >>> columns = {"pay": {"bounds": (0, 500_000), "missing": "lower"}}
    >>> columns["region"] = {"categories": ["north", "south", "west"]}
    >>> table = dpf.Table(data, epsilon=2, columns=columns)
    >>> medians = table.interval("median", "pay", by="region", share=0.5)
    >>> list(medians), medians["north"].low < 37_000 < medians["north"].high
    (['north', 'south', 'west'], True)
    >>> 40_000 < table.mean("pay", epsilon=0.5) < 47_000
    True
    >>> table.ledger.remaining.epsilon
    0.5
    """

    def __init__(
        self,
        data: Any,
        *,
        ledger: Ledger | None = None,
        epsilon: Exact | None = None,
        delta: Exact = 0.0,
        neighbors: str | None = None,
        unit: Any = None,
        columns: Mapping[str, Any] | None = None,
        format: Mapping[str, Any] | None = None,
        rng: RandomSource = None,
        explain: Explain = False,
    ) -> None:
        self.columns = facts_of(columns)
        units, per_unit = unit_of(unit)
        if (ledger is None) == (epsilon is None):
            raise TypeError("give ledger= or epsilon=: the budget of all releases from the table")
        if ledger is None:
            default = "replace-one" if unit is None else "add-remove"
            ledger = Ledger(as_written(epsilon), as_written(delta), neighbors=neighbors or default, per_unit=per_unit)
        elif delta or neighbors:
            raise TypeError("delta and neighbors are those of the ledger: leave them out")
        elif ledger.privacy.per_unit != per_unit:
            raise ValueError(
                f"the ledger must be for the unit of the table: per_unit={per_unit}, not {ledger.privacy.per_unit}"
            )
        bit_generator(rng)
        self.ledger, self._rng, self._explain = ledger, rng, explain
        declared = [*self.columns, *(name for name in units if name not in self.columns)]
        source = source_of(data, declared, Format(**(format or {})))
        self.records = TableColumns(source, self.columns, units, ledger.privacy, rng)
        self.records.check(declared)
        check_categories(source, self.columns)
        self._releases: list[TableRelease] = []
        self._lock = threading.Lock()

    if not TYPE_CHECKING:  # which knows the methods

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(no_method(name, (each for each in dir(type(self)) if not each.startswith("_"))))

    # ---- numbers of one column ----

    @like(location.median, by=True)
    def median(self, column: str, **options: Any) -> Any:
        """Release the median: `dpfast.median`. With `by`: for each group."""
        return self._number("median", column, (), **options)

    @like(location.quantile, by=True)
    def quantile(self, column: str, q: Any, **options: Any) -> Any:
        """Release a quantile, or several: `dpfast.quantile`. With `by`: one of each group."""
        return self._number("quantile", column, (q,), **options)

    @like(location.mean, by=True)
    def mean(self, column: str, **options: Any) -> Any:
        """Release the mean: `dpfast.mean`. With `by`: for each group."""
        return self._number("mean", column, (), **options)

    @like(location.sum, by=True)
    def sum(self, column: str, **options: Any) -> Any:
        """Release the sum: `dpfast.sum`. With `by`: for each group."""
        return self._number("sum", column, (), **options)

    @like(location.variance, by=True)
    def variance(self, column: str, **options: Any) -> Any:
        """Release the variance: `dpfast.variance`. With `by`: for each group."""
        return self._number("variance", column, (), **options)

    @like(location.std, by=True)
    def std(self, column: str, **options: Any) -> Any:
        """Release the standard deviation: `dpfast.std`. With `by`: for each group."""
        return self._number("std", column, (), **options)

    @like(location.iqr, by=True)
    def iqr(self, column: str, **options: Any) -> Any:
        """Release the interquartile range: `dpfast.iqr`. With `by`, within bounds: for each group."""
        return self._number("iqr", column, (), **options)

    @like(location.trimmed_mean, by=True)
    def trimmed_mean(self, column: str, trim: float, **options: Any) -> Any:
        """Release a trimmed mean: `dpfast.trimmed_mean`. With `by`: for each group."""
        return self._number("trimmed_mean", column, (trim,), **options)

    @like(location.winsorized_mean, by=True)
    def winsorized_mean(self, column: str, trim: float, **options: Any) -> Any:
        """Release a Winsorized mean: `dpfast.winsorized_mean`. With `by`: for each group."""
        return self._number("winsorized_mean", column, (trim,), **options)

    @like(location.huber, by=True)
    def huber(self, column: str, k: float, **options: Any) -> Any:
        """Release Huber's estimate: `dpfast.huber`. With `by`: for each group."""
        return self._number("huber", column, (k,), **options)

    @like(location.count, by=True)
    def count(
        self,
        *,
        by: Any = None,
        column: str | None = None,
        within: tuple[float, float] | None = None,
        epsilon: Exact | None = None,
        share: Exact | None = None,
        delta: Exact = 0.0,
        **options: Any,
    ) -> Any:
        """Release the number of records, or of those of a column within bounds: `dpfast.count`. With `by`: of groups.

        Records with a missing cell of the column are left out if its facts say ``missing="drop"``.
        """
        if column is None and by is None:
            raise TypeError("count needs column= or by=: the column, or the columns of keys, to count records of")
        cost = self._cost(epsilon, share, delta, hides_n=True)
        missing = "drop" if self.records.facts(column).missing == "drop" else None

        def call() -> Any:
            if column is not None and by is None:
                given = {"within": within, "missing": missing, "epsilon": cost.epsilon}
                return location.count(self.records.values(column), **{**given, **self._drawn(options)})
            first = next(iter(self._labels(by).values()))
            x = np.zeros(len(column_of(first))) if column is None else self.records.values(column)
            return self._groups(by, x, lambda part: count_of(within, part, missing), cost, options)

        read = {} if column is None else {column: Read(missing=missing)}
        statistic = Count(within)
        return self._release(_title(statistic, column, by), call, by, read=read)

    @like(interval, by=True)
    def interval(
        self,
        statistic: str | Statistic,
        column: str,
        *,
        by: Any = None,
        epsilon: Exact | None = None,
        share: Exact | None = None,
        delta: Exact = 0.0,
        **options: Any,
    ) -> Any:
        """Release a statistic with an interval: `dpfast.interval`. With `by`: for each group."""
        counts, quantile = _is(statistic, "count", Count), _is(statistic, "median", _ORDER)
        free = quantile or _is(statistic, "mean", Mean)
        hides_n = counts or self.records.hides_n(_names(by or ()), column, options, free=free)
        cost = self._cost(epsilon, share, delta, hides_n=hides_n)
        free, adds = not counts and (free or cost.hides_n), _is(statistic, "sum", Sum)
        options |= policy_for(self.records.facts(column), options, free=free, adds=adds)

        def call() -> Any:
            x = self.records.values(column)
            given = self.records.parameters(column, x, order=counts or quantile, besides=options, clamps=not counts)
            if given.get("bounds") == "private" and not counts:
                raise TypeError(
                    f"an interval needs public bounds of {column!r}, a pair (lower, upper), not 'private': release the "
                    f"number alone, in a plan with interval = false, or give such bounds"
                )
            if counts:
                given = {"missing": "drop"} if given.get("missing") == "drop" else {}
            else:
                given["neighbors"] = cost.neighbors
            if by is None:
                return interval(statistic, x, **{"epsilon": cost.epsilon, **given, **self._drawn(options)})
            x, groups, part = self._grouped(by, x, cost, options)
            return interval(statistic, x, epsilon=part, **groups, **given, **self._drawn(options))

        facts = self.records.facts(column)
        note = "" if counts else of_missing(column, facts, options, order=quantile)
        read = read_as(facts, options, order=quantile)
        read = Read(missing="drop" if read.missing == "drop" else None) if counts else read
        return self._release(_title(statistic, column, by, interval=True), call, by, read={column: read}, note=note)

    # ---- distributions ----

    @like(densities.histogram)
    def histogram(self, column: str, bins: Any = "auto", **options: Any) -> Any:
        """Release a histogram of a column within its bounds: `dpfast.histogram`. Of text: `count` by it."""
        return self._simple(densities.histogram, "histogram", column, bins=bins, **options)

    @like(densities.density)
    def density(self, column: str, **options: Any) -> Any:
        """Release a density of a column within its bounds: `dpfast.density`."""
        return self._simple(densities.density, "density", column, **options)

    @like(mechanisms.bounds)
    def bounds(self, column: str, **options: Any) -> Any:
        """Release bounds of a column: `dpfast.bounds`."""
        ends = {"bound": ("lower", "upper")}
        return self._simple(mechanisms.bounds, "bounds", column, bounded=False, rows=ends, **options)

    @like(mechanisms.partitions)
    def partitions(self, column: Any, **options: Any) -> Any:
        """Release the keys of a column, or of several, with noisy counts: `dpfast.partitions`."""
        return self._keyed(mechanisms.partitions, "keys", column, "domain", **options)

    @like(mechanisms.top_k)
    def top_k(self, column: Any, k: int, **options: Any) -> Any:
        """Release the k most frequent keys of a column: `dpfast.top_k`."""
        return self._keyed(mechanisms.top_k, f"top {k} keys", column, "keys", k=k, **options)

    @like(aggregate.mle)
    def mle(self, column: str, family: Any, **options: Any) -> Any:
        """Release the parameters of a family, within public `bounds` of them: `dpfast.mle`.

        Missing cells are a number or left out: of the facts of the column, "lower" is its lower bound, and blocks leave
        missing cells out whatever the facts say.
        """
        more, note = of_fit(column, self.records.facts(column), options)
        return self._simple(
            aggregate.mle,
            f"{family} fit",
            column,
            bounded=False,
            note=note,
            rows={"parameter": named_in(family, options)},
            family=family,
            **options,
            **more,
        )

    # ---- several columns ----

    @like(regression.linear_regression)
    def linear_regression(self, features: Any, label: str, **options: Any) -> Any:
        """Release a linear regression of a column on others: `dpfast.linear_regression`.

        Features with categories have a coefficient for each but the first. Records with a missing cell are left out
        with ``missing="drop"``, of the call or of a column, and where the number of records is private anyway; else
        they count as in the middle of the bounds, with a warning if nothing is said of a column. `label_bound` is a
        public bound on the label, as for the function; default, if the label has bounds: their half width, around
        their middle.
        """
        facts = self.records.facts(label)
        clamps = isinstance(facts.bounds, tuple) and "label_bound" not in options
        if clamps:
            lower, upper = facts.bounds
            options |= {"label_bound": (upper - lower) / 2, "label_center": (lower + upper) / 2}
        words = "linear regression"
        return self._regression(regression.linear_regression, words, features, label, clamps_label=clamps, **options)

    @like(regression.glm)
    def glm(self, features: Any, label: str, *, model: str = "logistic", **options: Any) -> Any:
        """Release a generalised linear model of a column on others: `dpfast.glm`.

        Of a label with two categories, the first counts as 0 and the second as 1. Missing cells: as for
        `linear_regression`.
        """
        return self._regression(regression.glm, f"{model} regression", features, label, model=model, **options)

    # ---- reports ----

    @property
    def releases(self) -> tuple[TableRelease, ...]:
        """The releases of this table so far, with what each one cost."""
        return tuple(self._releases)

    def report(self, title: str = "Report") -> Report:
        """Return a report of all releases of this table so far, to print or to save."""
        return Report(title, self.releases, self.ledger.privacy, is_secure(self._rng), self.records.inputs)

    # ---- one release ----

    def _cost(self, epsilon: Exact | None, share: Exact | None, delta: Exact, *, hides_n: bool = False) -> ReleaseCost:
        return cost_of(self.ledger.privacy, epsilon, share, delta, hides_n=hides_n)

    def _release(
        self,
        title: str,
        call: Callable[[], Any],
        by: Any = None,
        rows: Mapping[str, tuple[Any, ...]] = MappingProxyType({}),
        read: Mapping[str, Read] = MappingProxyType({}),
        note: str = "",
    ) -> Any:
        """Call a function of dpfast under the ledger; keep its result and what it cost."""
        self.records.check([*read, *_names(by or ())])
        with self._lock:
            noting = self.ledger.noting(column=", ".join(read) or None, source=self.records.path)
            with noting, presuming(lambda: self.records.presumed(_names(by or ()))):
                result, profiles = charged(self.ledger, call)
            told = note_of(read, result, grouped=by is not None, per_unit=self.ledger.privacy.per_unit)
            told = " ".join(filter(None, [told, note]))
            self._releases.append(TableRelease(title, result, profiles, rows, tuple(_names(by or ())), told))
        return result

    def _number(
        self,
        name: str,
        column: str,
        arguments: tuple[Any, ...],
        *,
        by: Any = None,
        epsilon: Exact | None = None,
        share: Exact | None = None,
        delta: Exact = 0.0,
        **options: Any,
    ) -> Any:
        """Release a statistic of a column by the function of this name, or by `by_group`."""
        order, free = _by_order(name, by, options, self.records.facts(column))
        hides_n = self.records.hides_n(_names(by or ()), column, options, free=free)
        cost = self._cost(epsilon, share, delta, hides_n=hides_n)
        options |= policy_for(self.records.facts(column), options, free=free or cost.hides_n, adds=name == "sum")

        def call() -> Any:
            x = self.records.values(column)
            given = self.records.parameters(column, x, order=order, besides=options, hint=_OTHERWISE.get(name))
            if by is None:
                return self._call(getattr(location, name), (x, *arguments), cost, given | options)
            public = given | {k: options.pop(k) for k in _PUBLIC if k in options} | {"neighbors": cost.neighbors}
            chosen = {key: options.pop(key) for key in ("definition",) if key in options}
            make = partial(_mechanism, STATISTICS[name](*arguments, **chosen), x, public)
            found = self._groups(by, x, make, cost, options)
            return found.roots() if name == "std" else found

        several = name == "quantile" and by is None and np.ndim(arguments[0]) == 1
        rows = {"q": tuple(arguments[0])} if several else {}
        facts = self.records.facts(column)
        note, read = of_missing(column, facts, options, order=order), {column: read_as(facts, options, order=order)}
        return self._release(_title(name, column, by, *arguments), call, by, rows, read, note)

    def _simple(
        self,
        function: Callable[..., Any],
        words: str,
        column: str,
        *,
        bounded: bool = True,
        note: str = "",
        rows: Mapping[str, tuple[Any, ...]] = MappingProxyType({}),
        epsilon: Exact | None = None,
        share: Exact | None = None,
        delta: Exact = 0.0,
        **options: Any,
    ) -> Any:
        """Release by a function of one column."""
        cost = self._cost(epsilon, share, delta, hides_n=self.records.hides_n([], column, options))
        options |= policy_for(self.records.facts(column), options, free=bounded and cost.hides_n)

        def call() -> Any:
            x = self.records.values(column)
            hint = _OTHERWISE.get(function.__name__)
            given = self.records.parameters(column, x, order=not bounded, besides=options, hint=hint, clamps=bounded)
            if not bounded:
                given = {key: value for key, value in given.items() if key == "missing"}
            return self._call(function, (x,), cost, given | options)

        facts = self.records.facts(column)
        note = of_missing(column, facts, options, order=False) if bounded else note
        # Otherwise bounds are those of parameters, or the release itself.
        read = read_as(facts, options) if bounded else replace(read_as(facts, options), bounds=None)
        return self._release(_title(words, column, None), call, rows=rows, read={column: read}, note=note)

    def _keyed(
        self,
        function: Callable[..., Any],
        words: str,
        column: Any,
        keys: str,
        *,
        epsilon: Exact | None = None,
        share: Exact | None = None,
        delta: Exact = 0.0,
        **options: Any,
    ) -> Any:
        """Release by a function of keys, which are private unless the column has categories."""
        self.records.check(_names(column))
        cost = self._cost(epsilon, share, delta)
        public = self.records.categories(_names(column))
        given: dict[str, Any] = {keys: "private" if keys == "keys" else None}
        if public is not None:
            given = {keys: public}
        if self.ledger.privacy.per_unit is not None:
            given["contributions"] = self.ledger.privacy.per_unit

        def call() -> Any:
            spent = cost.for_unit() if "contributions" in given else cost
            spent = spent if public is None else spent.pure()
            labels = self._labels(column)
            if (keep := self._once(column, options)) is not None:
                labels, given["per_key"] = {name: taken(cells, keep) for name, cells in labels.items()}, 1
            keys_of = together([*labels.values()])
            return self._call(function, (keys_of,), spent, given | options)

        return self._release(_title(words, column, None), call)

    def _regression(
        self,
        function: Callable[..., Any],
        words: str,
        features: Any,
        label: str,
        *,
        clamps_label: bool = False,
        epsilon: Exact | None = None,
        share: Exact | None = None,
        delta: Exact = 0.0,
        **options: Any,
    ) -> Any:
        """Release a regression; the features have the bounds of their facts, unless a radius is given."""
        self.records.check([*_names(features), label])
        variables = Variables(_names(features), label, self.records.facts)
        drops = variables.drops(options.get("missing"), hidden=self.ledger.privacy.neighbors == "add-remove")
        cost = self._cost(epsilon, share, delta, hides_n=drops)
        clamps = "radius" not in options and "bounds" not in options
        if clamps:
            options["bounds"] = variables.bounds()
        read = variables.read(features=clamps, label=clamps_label, drops=drops)
        if drops:
            options["missing"] = "drop"

        def call() -> Any:
            rows = self.records.rows(variables.all)
            if not drops:
                warn(of_missing_cells([each.name for each in variables.unsaid if not self.records.is_full(each)]))
            return self._call(function, (rows[:, :-1], rows[:, -1]), cost, options).named(variables.names)

        title, note = f"{words} of {label} on {', '.join(_names(features))}", LEFT_OUT if drops else IN_THE_MIDDLE
        return self._release(title, call, read=read, note=note)

    def _call(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], cost: ReleaseCost, options: Mapping[str, Any]
    ) -> Any:
        """Call a function with the parameters that it has."""
        return function(*arguments, epsilon=cost.epsilon, **self._drawn(cost.parameters_for(function, options)))

    def _drawn(self, options: Mapping[str, Any]) -> dict[str, Any]:
        if "rng" in options:  # a report says whether all its releases are private
            raise TypeError("rng is for all releases of a table: Table(..., rng=)")
        return {"rng": self._rng, "explain": self._explain, **options}

    # ---- groups ----

    def _labels(self, by: Any) -> dict[str, Any]:
        return self.records.labels(_names(by))

    def _once(self, by: Any, options: dict[str, Any]) -> NDArray[np.bool_] | None:
        """Return which records are kept if a unit has at most one for each key; None without ``per_key=1``."""
        if checks.one_or_none("per_key", options.pop("per_key", None)) is None:
            return None
        if self.ledger.privacy.per_unit is None:
            raise TypeError("per_key=1 is for a table with a unit, of which it keeps one record for each key")
        return self.records.once_per_key(_names(by))

    def _grouped(self, by: Any, x: Any, cost: ReleaseCost, options: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
        """Return the records of groups, the parameters of the groups, and what is left of epsilon for each record."""
        labels, keep = self._labels(by), self._once(by, options)
        per_unit, per_key = self.ledger.privacy.per_unit, None if keep is None else 1
        keyed, part = keys_for(
            _names(by), self.records.categories(_names(by)), cost, per_unit=per_unit, per_key=per_key
        )
        if keep is not None:
            labels, x = {name: taken(cells, keep) for name, cells in labels.items()}, taken(x, keep)
            keyed |= {"contributions": per_unit, "per_key": 1}
        return x, {"labels": labels, **keyed}, part

    def _groups(
        self, by: Any, x: Any, make: Callable[[Any], Mechanism], cost: ReleaseCost, options: dict[str, Any]
    ) -> Any:
        x, groups, part = self._grouped(by, x, cost, options)
        return by_group(make(part), x, **groups, **self._drawn(options))


def _mechanism(statistic: Any, x: Any, public: Mapping[str, Any], part: Any) -> Mechanism:
    """Return the mechanism of a statistic, as the function of its name would make it."""
    return mechanism_for(statistic, x, Parameters(epsilon=part, **public))


def _by_order(name: str, by: Any, options: Mapping[str, Any], facts: Facts) -> tuple[bool, bool]:
    """Return whether a statistic needs the order of the records only, and whether it leaves out missing cells at no
    cost: quantiles by their ranks, and means within public bounds.
    """
    order = name in _UNBOUNDED and options.get("definition", "record") == "record" and (by is None or name != "iqr")
    method, assumes = options.get("method"), options.get("distribution") is not None
    ranks = order and name != "iqr" and method in (None, "auto", "inverse-sensitivity") and not assumes
    by_noise = name == "mean" and method in _BY_NOISE and not assumes and is_within(facts, options)
    return order, ranks or by_noise


def _is(statistic: Any, name: str, kind: Any) -> bool:
    """Whether a statistic, given by its name or as an object, is of a kind."""
    return isinstance(statistic, kind) or (isinstance(statistic, str) and statistic == name)


def _names(columns: Any) -> list[str]:
    """Return the names of one column or several different ones."""
    return [columns] if isinstance(columns, str) else distinct(list(columns))


def unit_of(unit: Any) -> tuple[tuple[str, ...], int | None]:
    """Return the columns of a unit, and the largest number of records of one."""
    if unit is None:
        return (), None
    if isinstance(unit, str) or not isinstance(unit, (tuple, list)) or len(unit) != 2:
        raise TypeError("unit must be a column and the most records of a unit, as in unit=('person', 5)")
    return tuple(_names(unit[0])), checks.whole("records of a unit", unit[1], least=1)


def _title(statistic: Any, column: Any, by: Any, *arguments: Any, interval: bool = False) -> str:
    """Return what a release is, in words."""
    words = str(statistic).replace("_", " ")
    if isinstance(statistic, Count) and statistic.within is not None:
        words = "count within {:g} and {:g}".format(*statistic.within)
    if arguments:
        words += f" {', '.join(map(str, np.atleast_1d(arguments[0]).tolist()))}"
    of = "" if column is None else f" of {', '.join(_names(column))}"
    return words + of + ("" if by is None else f" by {', '.join(_names(by))}") + (", with interval" if interval else "")
