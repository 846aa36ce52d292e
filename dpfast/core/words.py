"""Advice for calls whose arguments a function or a class does not take: its own words for what they may mean."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from types import FunctionType
from typing import Any

from dpfast._kernels._advice import PublicFunction

# Words of other libraries, and other words, for each parameter; a word that means several suggests all of them that the
# function has.
_MEANINGS = {
    "X": "data table frame df values array rows records sample",
    "bins": "nbins n_bins num_bins buckets n_buckets edges",
    "blocks": "n_blocks num_blocks partitions parts",
    "bounds": "range ranges limits lim clip clamp clipping interval bound domain x_bounds x_range data_range",
    "center": "mean loc location centre offset",
    "classes": "n_classes num_classes n_labels",
    "columns": "schema domains domain dtypes types features variables",
    "confidence": "level conf confidence_level alpha ci coverage",
    "contributions": "per_unit max_contributions max_groups max_partitions max_partitions_contributed limit",
    "coverage": "confidence share fraction level",
    "delta": "failure failure_probability tolerance",
    "distribution": "dist prior assumption assumed law",
    "domain": "keys categories candidates values public_keys universe",
    "by": "groupby group_by group groups labels key keys label",
    "epsilon": "eps e epsilons budget privacy privacy_budget privacy_loss",
    "explain": "verbose debug",
    "family": "model distribution dist name law likelihood",
    "grid": "bounds step resolution granularity precision points",
    "intercept": "fit_intercept add_constant constant bias",
    "k": "n num count n_samples samples num_records records rows rows_out corner delta c threshold",
    "keys": "groups group_keys categories public_keys partitions values labels domain",
    "label_bound": "y_bound y_bounds bounds_y label_bounds y_range y_norm target_bound target_bounds",
    "intercept_bounds": "bounds",
    "labels": "groups group by groupby group_by group_labels group_ids keys key label",
    "mechanism": "statistic function func agg aggregation",
    "method": "mechanism algorithm estimator how solver kind",
    "missing": "nan nans na dropna skipna na_value fill_value fillna nan_policy keep_na null nulls",
    "model": "family link loss method kind type",
    "neighbors": "neighbours neighbor neighbour adjacency relation neighboring input_metric metric",
    "pairs": "marginals edges workload tree",
    "per_unit": "max_contributions max_per_unit max_per_user limit per_user per_person most",
    "psi": "loss function score influence",
    "q": "quantile quantiles qs p prob probs probability probabilities percentile percentiles level levels alpha",
    "qs": "q quantile quantiles p probs probabilities percentiles levels",
    "radius": "data_norm norm x_norm norm_bound max_norm clip bound l2_norm l2 bounds",
    "rng": "seed random_state random_seed random generator bit_generator prng",
    "scores": "utilities utility quality values candidates counts",
    "sensitivity": "l1_sensitivity gs global_sensitivity",
    "size": "shape n samples n_samples times repeat",
    "slope_bounds": "bounds range",
    "statistic": "stat estimator function name",
    "steps": "iterations n_iter max_iter epochs n_steps",
    "terms": "n_terms num_terms degree order",
    "trim": "proportiontocut proportion fraction cut alpha tail limits p q",
    "unit": "user users user_id user_ids id ids person people privacy_id units privacy_unit",
    "within": "between bounds range where interval condition mask",
    "workers": "n_jobs jobs threads n_threads num_threads num_workers n_workers processes parallel",
    "x": "data values array a X sample records column series",
    "y": "target targets label labels response outcome",
}
_PARAMETERS: dict[str, list[str]] = {}
for _name, _words in _MEANINGS.items():
    for _word in _words.split():
        _PARAMETERS.setdefault(_word, []).append(_name)

# What to do instead where no parameter means it.
_INSTEAD = {
    "write bounds=(lower, upper)": "lower upper low high min max minimum maximum a_min a_max vmin vmax left right",
    "epsilon, delta and the bounds determine the noise": "scale sigma noise noise_scale noise_multiplier sensitivity",
    "enter a dpfast.Ledger: with ledger: ...": "accountant ledger budget_accountant",
    "records have no weights: one would increase what a record changes": "weights sample_weight w",
    "x holds numbers, one for each record; mean, sum, robust_mean and histogram take rows": "axis keepdims",
    "the release is that of ddof=0; multiply a variance by n / (n - 1) afterwards": "ddof correction",
    "the result has counts and density": "density normed",
    "a quantile is a record, that of rank ceil(q n)": "interpolation",
    "the mechanism has its epsilon": "epsilon eps",
    "by_group(mechanism, x, labels=..., keys=...) releases groups": "labels keys groups by groupby group_by group",
    "give epsilon and delta; Ledger(rho=...) is a budget in rho": "rho",
}
_NOTES = {word: note for note, words in _INSTEAD.items() for word in words.split()}

# What to do where a function has no parameter that others have, by the function and the parameter.
_ABSENT = {
    ("covariance", "missing"): "a row with NaN counts as the center; impute cells before, each from its own row",
    ("density", "neighbors"): "it is for one record replaced; histogram takes neighbors",
    ("m_estimate", "neighbors"): "it is for one record replaced; huber and trimmed_mean take neighbors",
    (
        "marginals",
        "missing",
    ): "each column says so: Categories(values, missing=key), Grid(lower, upper, missing=number)",
    ("Quantiles", "neighbors"): "it is for one record replaced; dpf.Resized(dpf.Quantiles(...), epsilon=...) hides n",
    ("robust_mean", "neighbors"): "it is for one record replaced; mean takes neighbors, also of rows",
    ("synthesize", "neighbors"): "it is for one record replaced; histogram and marginals take neighbors",
    ("theil_sen", "neighbors"): "it is for one record replaced; linear_regression takes neighbors",
}

# Names of other libraries for the functions of `dpfast`.
_FUNCTIONS = {
    "aggregate": "by_group",
    "average": "mean",
    "avg": "mean",
    "correlation": "covariance",
    "cov": "covariance",
    "groupby": "by_group",
    "hist": "histogram",
    "histogramdd": "histogram",
    "kde": "density",
    "laplace": "noise.laplace",
    "linreg": "linear_regression",
    "logistic_regression": "glm",
    "max": "quantile(x, 1, ...)",
    "maximum": "quantile(x, 1, ...)",
    "min": "quantile(x, 0, ...)",
    "minimum": "quantile(x, 0, ...)",
    "nanmean": "mean(x, missing=...)",
    "nanmedian": "median(x, missing=...)",
    "ols": "linear_regression",
    "percentile": "quantile",
    "quantiles": "quantile",
    "read_csv": "Table",
    "sd": "std",
    "stdev": "std",
    "synthetic": "synthesize",
    "table": "Table",
    "total": "sum",
    "value_counts": "partitions",
    "var": "variance",
}
# The functions of arrays that a table has no method for; its ledger is charged for them all the same.
_OF_ARRAYS = ("covariance", "m_estimate", "marginals", "robust_mean", "synthesize", "theil_sen")
# What to do with a table of records instead of a method that it does not have.
_OF_TABLES = {
    "groupby": "by=, as in median('pay', by='region')",
    "group_by": "by=, as in median('pay', by='region')",
    "by_group": "by=, as in median('pay', by='region')",
    "hist": "histogram",
    "max": "quantile(column, 1)",
    "min": "quantile(column, 0)",
    "value_counts": "count(by=column)",
    "logistic_regression": "glm",
    "save": "report().save(path)",
    "to_html": "report().to_html()",
}


def advised(value: Any) -> Any:
    """Return a public object, which advises on its arguments if it is a function."""
    return PublicFunction(value, advise) if isinstance(value, FunctionType) else value


def advise(called: Callable[..., Any], error: TypeError) -> None:
    """Add advice to the message of an error that says which arguments of a call do not fit, which is public."""
    message, own = str(error), inspect.signature(called)
    if unexpected := re.search(r"(.*got an unexpected keyword argument '(\w+)')", message):
        error.args = (f"{unexpected[1]}: {_instead_of(unexpected[2], list(own.parameters), called.__name__)}",)
    elif repeated := re.search(r"got multiple values for argument '(\w+)'", message):
        others = [name for name in own.parameters if name != repeated[1]]
        error.args = (f"{message}: {_instead_of(repeated[1], others, called.__name__)}",)
    elif re.search(r"(positional arguments? but .* given|required .*arguments?: .*)$", message):
        error.args = (f"{message}: write {_usage(called.__name__, own)}",)


def _instead_of(word: str, names: list[str], function: str) -> str:
    """Return what to write instead of a word, in a call of a function that takes these names."""
    if (function, word) in _ABSENT:
        return _ABSENT[function, word]
    known = {word.lower(), *_PARAMETERS.get(word.lower(), ())}
    meant = [name for name in names if name in known or name.lower() in known]
    if not meant and word.lower() in _NOTES:
        return _NOTES[word.lower()]
    meant = meant or get_close_matches(word, names, n=1, cutoff=0.7)
    return f"did you mean {' or '.join(map(repr, meant))}?" if meant else f"it takes {', '.join(names)}"


def _usage(name: str, own: inspect.Signature) -> str:
    """Return a call with the required parameters, and the first keyword if none is required."""
    parts = list(own.parameters.values())
    needed = [part for part in parts if part.default is part.empty]
    keywords = [part for part in parts if part.kind is part.KEYWORD_ONLY]
    if not any(part.kind is part.KEYWORD_ONLY for part in needed):
        needed += keywords[:1]
    return f"{name}({', '.join(map(_written, needed))}), and other parameters by keyword"


def _written(part: inspect.Parameter) -> str:
    """Return a parameter of a call."""
    if part.kind is part.KEYWORD_ONLY:
        return f"{part.name}=..."
    return f"*{part.name}" if part.kind is part.VAR_POSITIONAL else part.name


def misused(error: TypeError, name: str, own: inspect.Signature) -> TypeError:
    """Return the error of a call whose arguments do not bind to a signature, with what to write instead."""
    if unexpected := re.search(r"got an unexpected keyword argument '(\w+)'", str(error)):
        return TypeError(f"{name}() {unexpected[0]}: {_instead_of(unexpected[1], list(own.parameters), name)}")
    return TypeError(f"{name}(): {error}: write {_usage(name, own)}")


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return which of the names of statistics a name of another library means, or is misspelt for; None if none."""
    known = list(known)
    other = _FUNCTIONS.get(name.lower(), "")
    return other if other in known else next(iter(get_close_matches(name.lower(), known, n=1, cutoff=0.7)), None)


def no_method(name: str, methods: Iterable[str]) -> str:
    """Return the message for a method that a `Table` does not have."""
    missing = f"'Table' object has no attribute {name!r}"
    if (function := of_arrays(name)) is not None:
        return f"{missing}: {function}"
    instead = _OF_TABLES.get(name) or meant(name, methods)
    return missing + (f": did you mean {instead}?" if instead else "")


def of_arrays(name: str) -> str | None:
    """Return how to call a function of arrays that tables and plans do not have; None if it is none."""
    if name not in _OF_ARRAYS:
        return None
    return f"call dpfast.{name} of arrays under the same budget, in Python: with table.ledger: dpfast.{name}(...)"


def unknown(name: str) -> str:
    """Return the message for a name that `dpfast` does not have."""
    other = f": did you mean dpfast.{_FUNCTIONS[name]}?" if name in _FUNCTIONS else ""
    return f"module 'dpfast' has no attribute {name!r}{other}"
