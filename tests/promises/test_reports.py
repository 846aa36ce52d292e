"""Reports: a dry run states the charges for every key of a plan, and every statistic works or says what does."""

import itertools
import re
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from dpfast.cli import main
from dpfast.cli.singles import SINGLE
from dpfast.errors import BudgetError
from dpfast.reports import ReportPlan, Table
from dpfast.reports.plans import METHODS, keys_of_plans
from dpfast.statistics.named import STATISTICS, WITH_INTERVAL
from tests.cases import every
from tests.commands import run

N = 600
KINDS = ["a", "b"]
FACTS = {
    "pay": {"bounds": [0, 100], "missing": "lower"},
    "age": {"bounds": [18, 90], "type": "integer", "missing": "lower"},
    "kind": {"categories": KINDS, "missing": "lower"},
}
# The budgets: for a record replaced, and for a person with several records, which are added or removed.
BUDGETS = {"records": {}, "persons": {"unit": ["person", 2]}}
# What a release of a statistic has besides the key that is tried.
NEEDED = {
    "column": "pay",
    "q": 0.9,
    "trim": 0.1,
    "k": 2,
    "family": "exponential",
    "features": ["age"],
    "label": "pay",
    "by": "kind",
}
BASES = {
    **{
        name: {key: NEEDED[key] for key in keys_of_plans()[name] if key in ("column", *METHODS[name])}
        for name in METHODS
    },
    "count": {"by": "kind"},
    "partitions": {"column": "kind"},
    "top_k": {"column": "kind", "k": 1},
    "mle": {"column": "pay", "family": "exponential", "bounds": [1, 100]},
    "glm": {"features": ["age"], "label": "kind"},
    "histogram": {"column": "pay", "bins": 4},
}
# The values that are tried of each key, with what they need; those of a statistic are by both names.
VALUES = {
    "aim": ["greatest", "mean"],
    "basis": ["cosine", "trigonometric"],
    "bias_correction": [False],
    "bins": [4, 8],
    "blocks": [12],
    "bounds": [[0, 60], "private"],
    "by": ["kind", ("person", {"delta": 1e-6}), (["kind", "person"], {"delta": 1e-6})],
    "center": [(30, {"radius": 100})],
    "classes": [([0, 1], {"model": "multinomial"})],
    "column": ["pay", "age"],
    "combine": ["winsorized"],
    "consistency": ["clip"],
    "coverage": [0.5],
    "definition": ["record", "linear"],
    "distribution": [([10, 60], {"method": "auto"})],
    "family": ["exponential", "poisson"],
    "features": [["age"], ["age", "kind"]],
    "guess": [{"rate": 30}],
    "intercept": [True, False],
    "interval": [True, False, 0.9],
    "k": [2, 3],
    "label": ["pay"],
    "label_bound": [50],
    "label_center": [50],
    "margin": [0.1],
    "measure": ["uniform"],
    "method": ["auto"],
    "missing": [40, "lower", "half", "drop"],
    "model": ["logistic"],
    "noise": ["auto"],
    "others": [("z", {"by": "kind"})],
    "per_key": [(1, {"by": "kind"})],
    "q": [0.5, [0.2, 0.9]],
    "radius": [100],
    "roughness": [2.0],
    "shuffle": [1],
    "smoothness": [1.5],
    "steps": [3],
    "terms": [4],
    "trim": [0.2],
    "typical": [[0.5, 0.3]],
    "within": [([20, 50], {"column": "pay"})],
    "workload": ["ranges"],
    ("count", "missing"): [("drop", {"column": "pay"})],
    ("count", "interval"): [(True, {"column": "pay"})],
    ("histogram", "roughness"): [(2.0, {"bins": "auto"})],
    ("histogram", "method"): ["perturbed"],
    ("glm", "label_bound"): [(50, {"model": "poisson", "label": "pay"})],
    ("glm", "k"): [(5, {"model": "huber", "label": "pay", "label_bound": 50})],
    ("glm", "label"): ["kind"],
    ("glm", "features"): [["age"], ["age", "pay"]],
    ("glm", "missing"): ["drop"],
    ("linear_regression", "missing"): ["drop"],
    ("mle", "missing"): [40, "drop"],
    ("mle", "blocks"): [12],
    ("top_k", "per_key"): [1],
    ("partitions", "per_key"): [1],
    ("glm", "bounds"): [[[0, 60]]],
    ("linear_regression", "bounds"): [[[0, 60]]],
    ("mle", "bounds"): [[1, 100]],
    ("partitions", "column"): ["kind", ("person", {"delta": 1e-6})],
    ("top_k", "column"): ["kind", ("person", {"delta": 1e-6})],
    ("top_k", "k"): [1, 2],
}


def records():
    rng = np.random.default_rng(0)
    pay = rng.gamma(5, 8, N).round(2)
    pay[rng.random(N) < 0.24] = np.nan
    kinds = rng.choice([*KINDS, "c"], N).astype(object)
    return {"pay": pay, "age": rng.integers(18, 90, N), "kind": kinds, "person": rng.integers(0, 250, N)}


DATA = records()


def outcome(make):
    """Return what a call returns, or its error without the numbers of what was made before it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return make()
        except (TypeError, ValueError, BudgetError) as error:
            return f"{type(error).__name__}: {error}"


def compared(budget, releases, columns=FACTS, **more):
    """Return the charge of a plan, which the dry run states and the ledger has; the same error from both, if any."""
    given = {"epsilon": 20, "delta": 1e-4, "columns": columns, "records": N, **BUDGETS[budget], **more}
    plan = ReportPlan(**given, releases=releases)
    foreseen, ledger = outcome(plan.dry_run), plan.ledger()
    rest = ReportPlan(columns=plan.columns, releases=releases, unit=plan.unit)
    made = outcome(lambda: rest.run(DATA, ledger=ledger))
    if isinstance(foreseen, str) or isinstance(made, str):
        assert foreseen == made
        assert not ledger.charges
        return foreseen
    assert foreseen.privacy == made.privacy
    assert [each.privacy for each in foreseen.releases] == [each.privacy for each in made.releases]
    assert [each.title for each in foreseen.releases] == [each.title for each in made.releases]
    spent, stated = ledger.spent, foreseen.privacy
    assert (spent.epsilon, spent.delta) == pytest.approx((stated.epsilon, stated.delta), rel=1e-13)
    return stated


# What is refused, by statistic and key; None stands for every key.
REFUSED = {
    ("density", None): "density is for one record replaced: it needs a table with neighbors='replace-one'",
    ("density", "bounds"): r"bounds must be a pair \(lower, upper\)",
    ("histogram", "bounds"): r"bounds must be a pair \(lower, upper\)",
    ("histogram", "roughness"): "bins='auto' is for a public number of records, which is private here: give a number",
    ("median", "bounds"): "quantiles by inverse sensitivity need no bounds: leave out bounds='private'",
    ("quantile", "bounds"): "quantiles by inverse sensitivity need no bounds: leave out bounds='private'",
    **{
        ("mle", key): f"{key} is a parameter of blocks, which are" for key in ("blocks", "combine", "margin", "shuffle")
    },
}
EVERYWHERE = {
    "per_key": "per_key=1 is for a table with a unit, of which it keeps one record for each key",
    "missing": "missing='half' needs neighbors='replace-one', .* give a number, or 'drop'",
}


@pytest.mark.parametrize("name", METHODS)
def test_a_dry_run_states_the_charges_for_every_key(name):
    """For each key of the schema, within each kind of budget: a new key fails until it has a value here."""
    for key in keys_of_plans()[name]:
        charged = 0
        for value in VALUES.get((name, key), VALUES[key]):
            value, more = value if isinstance(value, tuple) else (value, {})
            release = {"statistic": name, **BASES[name], **more, key: value, "epsilon": 5}
            for budget in BUDGETS:
                found = compared(budget, (release,))
                if isinstance(found, str):
                    allowed = [REFUSED.get((name, None)), REFUSED.get((name, key)), EVERYWHERE.get(key)]
                    assert any(words and re.search(words, found) for words in allowed), (key, value, budget, found)
                else:
                    charged += 1
                    assert 0 < found.epsilon <= 5 * (1 + 1e-12)
                    assert found.delta <= more.get("delta", 0.0)
        assert charged, key


# Values of the keys of columns and of plans, with what else a plan then has.
OF_COLUMNS = {
    "type": ["number", "integer"],
    "bounds": [[0, 50], "private"],
    "step": [0.5],
    "categories": [["x", "y"]],
    "missing": [40, "lower", "half", "drop"],
}
OF_PLANS = {
    "title": ["Pay"],
    "epsilon": [3, "1/3"],
    "delta": [1e-6],
    "neighbors": ["replace-one", "add-remove"],
    "unit": [["person", 1], ["person", 3], [["person", "kind"], 2]],
    "columns": [FACTS],
    "format": [{"delimiter": ";"}],
    "records": [N],
}
ALL = (
    {"statistic": "median", "column": "pay", "by": "kind", "share": 0.25},
    {"statistic": "mean", "column": "pay", "share": 0.25},
    {"statistic": "count", "by": "kind", "share": "0.2"},
    {"statistic": "quantile", "column": "age", "q": [0.2, 0.8], "share": 0.1},
    {"statistic": "linear_regression", "features": ["age", "kind"], "label": "pay", "share": 0.1},
)


@every("key", keys_of_plans()["[columns.NAME]"])
def test_a_dry_run_states_the_charges_for_every_fact(key):
    for value in OF_COLUMNS[key]:
        name = "kind" if key == "categories" else "pay"
        columns = {**FACTS, name: FACTS[name] | {key: value}}
        for budget in BUDGETS:
            releases = ALL[:-1] if value == "private" else ALL  # a regression needs bounds
            found = compared(budget, releases, columns)
            if value == "half" and budget == "persons":
                assert re.search(EVERYWHERE["missing"], found)
            else:
                assert found.epsilon == pytest.approx(20 * sum(float(each["share"]) for each in releases))


@every("key", keys_of_plans()["plan"])
def test_a_dry_run_states_the_charges_for_every_key_of_a_plan(key):
    for value in OF_PLANS[key]:
        found = compared("records", ALL, **{key: value})
        whole = Fraction(value) if key == "epsilon" else 20
        assert found.epsilon == pytest.approx(float(whole * Fraction("0.9")))


KEYS = {"no groups": {}, "public keys": {"by": "kind"}, "private keys": {"by": "person", "delta": 1e-6}}


@pytest.mark.parametrize("name", [*STATISTICS, "count"])
def test_every_statistic_by_groups_and_with_intervals(name):
    """Alone and by groups; those without an interval say so."""
    base = {"statistic": name, **BASES[name], "column": "pay", "epsilon": 5}
    for (words, groups), interval, budget in itertools.product(KEYS.items(), (True, False), BUDGETS):
        releases = ({**base, **groups, "interval": interval},)
        if interval and name not in WITH_INTERVAL:
            with pytest.raises(ValueError, match="has no interval: leave out interval, which is for mean, median, qu"):
                compared(budget, releases)
        else:
            assert compared(budget, releases).epsilon == pytest.approx(5), (words, interval, budget)


@every("name", ["mean", "sum", "variance", "std", "trimmed_mean"])
def test_groups_within_private_bounds(name):
    for groups, missing, budget in itertools.product(KEYS.values(), ("lower", "drop"), BUDGETS):
        release = {"statistic": name, **BASES[name], **groups, "bounds": "private", "missing": missing, "epsilon": 5}
        assert compared(budget, (release,)).epsilon == pytest.approx(5), (groups, missing, budget)


# What the commands of one statistic take besides, and the commands that their users may look for.
COMMANDS = {
    **{name: ["--bounds", "0", "100"] for name in SINGLE},
    "quantiles": ["--bounds", "0", "100", "-q", "0.9"],
    "count": [],
}
GROUPS = {"no groups": [], "public keys": ["KEYS"], "private keys": ["private", "--delta", "1e-6"]}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_by_groups_and_with_intervals(name, tmp_path, capsys):
    path, keys = tmp_path / "x.csv", tmp_path / "keys"
    rows = zip(DATA["pay"], DATA["kind"], strict=True)
    path.write_text("pay,kind\n" + "".join(f"{'' if np.isnan(pay) else pay},{kind}\n" for pay, kind in rows))
    keys.write_text("".join(f"{kind}\n" for kind in KINDS))
    hidden = [] if name == "count" else ["--neighbors", "add-remove"]
    shared = [str(path), "--column", "pay", "--epsilon", "5", "--missing", "drop", *COMMANDS[name], *hidden]
    for (words, groups), interval in itertools.product(GROUPS.items(), ([], ["--interval"])):
        by = [] if not groups else ["--group-by", "kind", "--keys", *(str(keys) if x == "KEYS" else x for x in groups)]
        refused = bool(interval) and name in SINGLE and not SINGLE[name].interval
        code, _, err = run(capsys, name, *shared, *by, *interval)
        assert code == (2 if refused else 0), (words, interval)
        known = "no interval is known for this statistic: median, mean, sum, std, count, quantiles have --interval"
        assert (known in err) == refused


@every(
    "words, told",
    [
        ("variance", "dpfast report FILE --release 'variance of COLUMN' releases it"),
        ("huber", "dpfast report FILE --release 'huber K of COLUMN' releases it"),
        ("winsorized-mean", "dpfast report FILE --release 'winsorized-mean TRIM of COLUMN' releases it"),
        ("glm", "no command 'glm': demo, median"),
        ("quantile", "did you mean quantiles?"),
    ],
)
def test_a_statistic_without_a_command_is_in_reports(words, told, capsys):
    with pytest.raises(SystemExit):
        main([words, "x.csv"])
    assert told in capsys.readouterr().err


@every("name", ["covariance", "m_estimate", "marginals", "robust_mean", "synthesize", "theil_sen"])
def test_functions_of_arrays_say_how_to_call_them(name):
    told = re.escape(
        f"call dpfast.{name} of arrays under the same budget, in Python: with table.ledger: dpfast.{name}(...)"
    )
    with pytest.raises(AttributeError, match=told):
        getattr(Table(DATA, epsilon=1), name)
    with pytest.raises(ValueError, match=f"release 1: no plan has {name}: {told}"):
        ReportPlan(releases=({"statistic": name},))


def test_an_interval_with_parameters_of_a_number_alone():
    for key, value in (("method", "auto"), ("definition", "linear"), ("measure", "uniform"), ("q", [0.1, 0.9])):
        release = {"statistic": "quantile", "column": "pay", "q": 0.9, key: value, "interval": True, "epsilon": 5}
        told = "several quantiles are released together" if key == "q" else f"'{key}' is for the number alone"
        with pytest.raises(ValueError, match=f"release 1, quantile, has no interval: {told}, with interval = false"):
            ReportPlan(releases=(release,))


def test_no_keys_are_an_answer():
    """Whether a selection of private keys finds some is private: nothing is refused if it does not."""
    table = Table({"pay": [1.0] * 4, "kind": list("abcd")}, epsilon=9, delta=1e-5, columns={"pay": {"bounds": (0, 9)}})
    assert dict(table.count(by="kind", share=0.2)) == {}
    for interval in (False, True):
        for name in ("mean", "median", "std", "sum"):
            call = partial(table.interval, name) if interval else getattr(table, name)
            assert dict(call("pay", by="kind", share=0.1)) == {}
    assert "| kind |" in table.report().to_markdown()
