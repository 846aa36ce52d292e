"""Distances of synthetic records from the distribution of one column, and of the marginals of tables.

Sections of ``bench.pages tables``.
"""

import gzip
from itertools import combinations

import numpy as np
from scipy import stats

import dpfast as dpf
from bench import pages
from bench.pages.populations import DATA
from bench.pages.tables import digits, paragraph, table

COLUMNS = {
    "normal, right bounds": (stats.norm(50, 16.7), (0, 100)),
    "normal, bounds 170 sd wide": (stats.norm(50, 1), (0, 170)),
    "lognormal": (stats.lognorm(1), (0, 1000)),
    "Pareto, 1.2": (stats.pareto(1.2), (0, 1e6)),
    "two humps": (None, (0, 100)),
}
BUDGETS = [(0.1, 1e-6), (1.0, 1e-6), (4.0, 1e-6), (1.0, 0.0)]


class Humps:
    """A mixture of 0.3 N(10, 1) and 0.7 N(80, 25)."""

    PARTS = ((0.3, stats.norm(10, 1)), (0.7, stats.norm(80, 5)))

    def rvs(self, n, random_state):
        first, second = (part.rvs(n, random_state=random_state) for _, part in self.PARTS)
        return np.where(random_state.random(n) < self.PARTS[0][0], first, second)

    def cdf(self, x):
        return sum(share * part.cdf(x) for share, part in self.PARTS)


def one_column(quick):
    """The distance of Kolmogorov and Smirnov of synthetic records from the population, by method."""
    rng, rows = np.random.default_rng(1), []
    sizes = [1000] if quick else [300, 1000, 10_000]
    runs = 2 if quick else 4
    for name, (given, bounds) in COLUMNS.items():
        law = given or Humps()
        for n in sizes:
            for epsilon in (1.0,) if quick or n != 1000 else (0.1, 1.0, 4.0):
                found = np.mean(
                    [_distances(law.rvs(n, random_state=rng), law, bounds, epsilon, rng) for _ in range(runs)], 0
                )
                rows.append([name, f"{n:,}", epsilon, *map(digits, found)])
    about = f"""Mean distance of 20,000 synthetic records from the distribution of the column (Kolmogorov and Smirnov;
        mean of {runs}), by `method="perturbed"` and "quantiles" with the same bounds, by `dpf.synthesize` without
        bounds, and of the records themselves. With bounds that fit the data, the histogram is nearer for up to 1,000
        records."""
    headings = ["column", "n", "epsilon", "histogram", "quantiles", "no bounds", "records"]
    return "\n".join(["## One column\n", paragraph(about), table(headings, rows)])


def _distances(x, law, bounds, epsilon, rng):
    options = [{"bounds": bounds, "method": "perturbed"}, {"bounds": bounds, "method": "quantiles"}, {}]
    draws = [dpf.synthesize(x, 20_000, epsilon=epsilon, rng=rng, **option) for option in options]
    return [stats.kstest(drawn, law.cdf).statistic for drawn in (*draws, x)]


def made_up(n, rng):
    """Eight columns along a tree: numbers and categories, and one that is independent."""
    age = rng.integers(18, 90, n)
    status = np.where(age > 65, "retired", np.where(rng.random(n) < 12 / age, "student", "working"))
    pay = np.where(status == "working", rng.lognormal(10, 0.6, n), rng.lognormal(8, 0.8, n))
    degree = np.clip(np.log(pay) - 7 + rng.normal(0, 0.7, n), 0, 5).astype(int)
    hours = np.where(status == "working", rng.choice([20, 40, 40, 40, 50, 60], n), 0)
    region = rng.integers(0, 6, n)
    tenure = (rng.random(n) * np.where(status == "working", (age - 17) / 2, 1)).astype(int)
    coin = rng.integers(0, 2, n)
    return {
        "age": age,
        "status": status,
        "pay": pay,
        "degree": degree,
        "hours": hours,
        "region": region,
        "tenure": tenure,
        "coin": coin,
    }


MADE_UP = {
    "age": (0, 100),
    "status": dpf.Categories(["retired", "student", "working"], missing="working"),
    "pay": dpf.Bins(),
    "degree": dpf.Categories(range(6), missing=0),
    "hours": (0, 80),
    "region": dpf.Categories(range(6), missing=0),
    "tenure": (0, 40),
    "coin": dpf.Categories([0, 1], missing=0),
}
CUTS = {
    "age": np.arange(20, 100, 5),
    "pay": np.array([1000, 3000, 10_000, 20_000, 40_000]),
    "hours": np.arange(5, 80, 10),
    "tenure": np.arange(1, 40, 4),
    "hours_per_week": np.arange(1, 99, 7),
    "capital_gain": np.array([1, 3000, 7000, 20_000]),
    "capital_loss": np.array([1, 1500, 2000]),
}


def coded(columns, values):
    """Each column in the cells that distances are measured on."""
    return {
        name: np.searchsorted(CUTS[name], x.astype(float), side="right")
        if name in CUTS
        else np.searchsorted(values[name], x.astype(str))
        for name, x in columns.items()
    }


def distances(records, twins):
    """Mean total variation distance of single columns, of pairs, the largest of a pair, and of some sets of three."""
    values = {name: np.unique(np.concatenate([x.astype(str), twins[name].astype(str)])) for name, x in records.items()}
    one, other = coded(records, values), coded(twins, values)
    singles = [_total_variation([one[name]], [other[name]]) for name in records]
    pairs = [_total_variation([one[a], one[b]], [other[a], other[b]]) for a, b in combinations(records, 2)]
    triples = [
        _total_variation([one[name] for name in names], [other[name] for name in names]) for names in _some_triples(one)
    ]
    return np.mean(singles), np.mean(pairs), np.max(pairs), np.mean(triples)


def _some_triples(columns):
    """At most 60 sets of three columns, evenly spaced in their order."""
    every = list(combinations(columns, 3))
    return every[:: -(-len(every) // 60)]


def _total_variation(one, other):
    sizes = [max(a.max(), b.max()) + 1 for a, b in zip(one, other, strict=True)]
    shares = [
        np.bincount(np.ravel_multi_index(cells, sizes), minlength=np.prod(sizes)) / len(cells[0])
        for cells in (one, other)
    ]
    return np.abs(shares[0] - shares[1]).sum() / 2


def _rows(label, records, domains, budgets, runs, rng):
    n = len(next(iter(records.values())))
    apart = [(name,) for name in domains]
    for epsilon, delta in budgets:
        options = {"columns": domains, "epsilon": epsilon, "delta": delta, "rng": rng}
        found = {
            pairs: np.mean(
                [distances(records, dpf.synthesize(records, n, pairs=given, **options)) for _ in range(runs)], 0
            )
            for pairs, given in (("adaptive", "adaptive"), ("tree", "tree"), ("apart", apart))
        }
        cells = [*found["adaptive"], found["tree"][1], found["tree"][3], found["apart"][1]]
        yield [label, f"{n:,}", epsilon, delta or "0", *map(digits, cells)]


HEADINGS = ["table", "n", "epsilon", "delta", "columns", "pairs", "worst pair", "triples"]
HEADINGS += ["pairs, tree", "triples, tree", "pairs, apart"]


def tables(quick):
    """Total variation distances of the marginals of synthetic tables."""
    rng, runs = np.random.default_rng(2), 1 if quick else 2
    rows = []
    for n in (2000,) if quick else (1000, 10_000):
        rows += _rows("made up", made_up(n, rng), MADE_UP, BUDGETS[:2] if quick else BUDGETS, runs, rng)
    if (DATA / "adult.csv.gz").exists() and not quick:
        records, domains = adult()
        rows += _rows("Adult", records, domains, BUDGETS, runs, rng)
    about = f"""Mean total variation distance between n synthetic records and the records (`dpf.synthesize` with
        `columns` and `pairs="adaptive"`; mean of {runs}), of single columns, of all pairs of columns, the largest of a
        pair, and of up to 60 sets of three; those of `pairs="tree"`; and that of pairs if all of the budget goes to
        single columns, which are then independent. "made up" has eight columns, one of numbers without bounds, that
        mostly depend on one another along a tree. Adult (UCI) has 13 columns and needs its file in the folder
        `DPFAST_DATA`. For large epsilon what remains is dependence beyond pairs, and bins in which numbers are
        uniform."""
    return "\n".join(["## Tables\n", paragraph(about), table(HEADINGS, rows)])


def adult():
    """The columns of Adult as text and numbers, and their domains, without use of the values of numbers."""
    with gzip.open(DATA / "adult.csv.gz", "rt") as file:
        names, *lines = (line.rstrip("\n").split(",") for line in file)
    columns = dict(zip(names, map(np.array, zip(*lines, strict=True)), strict=True))
    del columns["split"]
    numbers = {"age": (17, 90), "hours_per_week": (1, 99)}
    numbers["capital_gain"] = dpf.Bins([1, 3000, 5000, 7000, 10_000, 20_000], bounds=(0, 100_000))
    numbers["capital_loss"] = dpf.Bins([1, 1500, 1800, 2000, 3000], bounds=(0, 5000))
    records = {name: x.astype(int) if name in numbers else x for name, x in columns.items()}
    domains = {name: numbers.get(name) or dpf.Categories(np.unique(x), missing=x[0]) for name, x in records.items()}
    return records, domains


def classifiers(quick):
    """The accuracy on real records of classifiers that learned from synthetic ones."""
    if not (DATA / "adult.csv.gz").exists():
        return "## Classifiers\n\nNeeds the file of Adult in the folder `DPFAST_DATA`.\n"
    records, domains = adult()
    train, test = ({name: x[part] for name, x in records.items()} for part in (slice(32_561), slice(32_561, None)))
    rng, rows, runs = np.random.default_rng(4), [], 1 if quick else 3
    rows.append(["the records", "", *map(_percent, accuracies(train, test, domains))])
    for epsilon in (1.0,) if quick else (0.1, 0.3, 1.0, 3.0, 8.0):
        for pairs in ("adaptive", "tree"):
            options = {"columns": domains, "epsilon": epsilon, "delta": 1e-6, "pairs": pairs, "rng": rng}
            found = [accuracies(dpf.synthesize(train, **options), test, domains) for _ in range(runs)]
            rows.append([f'`pairs="{pairs}"`', epsilon, *map(_percent, np.mean(found, 0))])
    about = f"""Accuracy on 16,281 records of Adult of classifiers of the income that learned from the other 32,561
        records, or from as many synthetic ones (delta = 1e-6; mean of {runs}): logistic regression, and gradient
        boosting of scikit-learn. The majority is 76 %."""
    return "\n".join(["## Classifiers\n", paragraph(about), table(["from", "epsilon", "logistic", "boosting"], rows)])


def _percent(share):
    return f"{100 * share:.1f} %"


def accuracies(train, test, domains, label="income"):
    """The accuracy of logistic regression, on logarithms of numbers, and of gradient boosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    names = [name for name in domains if name != label]
    kinds = [isinstance(domains[name], dpf.Categories) for name in names]
    found = []
    for records in (train, test):
        codes = [
            np.searchsorted(domains[name].values, records[name].astype(str)) if kind else records[name].astype(float)
            for name, kind in zip(names, kinds, strict=True)
        ]
        wide = [
            np.eye(domains[name].size)[code] if kind else np.log1p(code)[:, None]
            for name, code, kind in zip(names, codes, kinds, strict=True)
        ]
        found.append((np.hstack(wide), np.column_stack(codes), records[label].astype(str)))
    (wide, codes, truth), (wide_test, codes_test, test_truth) = found
    if len(np.unique(truth)) < 2:
        return [float(np.mean(test_truth == truth[0]))] * 2
    logistic = LogisticRegression(max_iter=500).fit(wide, truth)
    boosting = HistGradientBoostingClassifier(categorical_features=kinds, random_state=0).fit(codes, truth)
    return logistic.score(wide_test, test_truth), boosting.score(codes_test, test_truth)


def figure(quick, path):
    """The distance of pairs against epsilon, for tables of several sizes."""
    rng, epsilons, curves = np.random.default_rng(3), [0.1, 0.3, 1.0, 3.0, 10.0], {}
    for n in (1000,) if quick else (1000, 10_000):
        records, options = made_up(n, rng), {"columns": MADE_UP, "pairs": "adaptive", "delta": 1e-6, "rng": rng}
        found = [distances(records, dpf.synthesize(records, n, epsilon=epsilon, **options))[1] for epsilon in epsilons]
        curves[f"n = {n:,}"] = epsilons, found
    draw(curves, path)


def draw(curves, path):
    """Draw the distances, (epsilons, distances) by the number of records."""
    drawing, axes = pages.pyplot().subplots(figsize=(5.6, 3.8))
    pages.draw(axes, curves)
    axes.set_title("Synthetic tables of eight columns: delta = 1e-6, one record replaced")
    axes.set(xlabel="epsilon", ylabel="total variation distance of pairs")
    pages.ticks(axes.xaxis, next(iter(curves.values()))[0])
    pages.ticks(axes.yaxis, [0.02, 0.05, 0.1, 0.2, 0.5])
    pages.legend(drawing, axes)
    pages.save(drawing, path)
