"""`method="auto"` against each single method that it compares: no other library, our own alternatives."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

import dpfast as dpf
from bench.pages.chosen import typical
from bench.pages.tables import digits, size
from bench.peers.comparison import quotient, ratio
from bench.peers.jobs.counts import REPLACED
from bench.peers.jobs.local import FREQUENCIES, frequency_error, zipf
from bench.peers.jobs.means import MEANS
from bench.peers.jobs.quantiles import SINGLE
from bench.peers.records import named
from bench.peers.workers.serve import collect
from dpfast import local

TITLE = 'method="auto" against single methods'
TEXT = """The error of the method that `method="auto"` takes, divided by that of the best single method among those it
    compares: of the distance from the population value, which it minimises, and of the distance from the
    statistic of the records. In the rows with a distribution the call has the argument `distribution=`, which is
    a public assumption: "given" is the true law, "typical" the quantiles 0.05 and 0.95 to one digit. Without it the
    default is left only where another method has at most 2 % more expected error under each reference distribution. The
    means and quantiles of the tables above for one replaced record are here with typical values. The frequencies are
    those of `local.randomizer_for`, unbiased, among the methods of `local.Categorical` and `local.HashedCategorical`,
    their errors root mean squares. Ratios above 1.10 would be in bold."""
HEADINGS = ["function", "records", "bounds", "n", "epsilon", "distribution", "taken", "best", "error ratio", "of noise"]
DATASETS, RELEASES = 40, 20
TYPICAL = "typical"
LIMIT = 1.10


@dataclass(frozen=True)
class Setting:
    """A call: the function, what it takes after x, the population, and how much wider its bounds are."""

    function: str
    after: tuple
    exact: object
    records: str
    n: int
    epsilon: float
    wider: int = 1
    assumed: object = None

    def public(self):
        grid = named()[self.records].grid
        lower, width = grid.lower * self.wider, (grid.upper - grid.lower) * self.wider
        assumed = typical(named()[self.records]) if self.assumed == TYPICAL else self.assumed
        assumption = {} if assumed is None else {"distribution": assumed}
        return {"grid": dpf.Grid(lower, lower + width, step=grid.step), "epsilon": self.epsilon, **assumption}


def _trimmed(x):
    return stats.trim_mean(x, 0.1)


def _winsorized(x):
    cut = x.size // 10
    ordered = np.sort(x)
    return np.clip(ordered, ordered[cut], ordered[-cut - 1]).mean()


def _settings():
    pay, normal = stats.lognorm(0.6, scale=np.exp(10.5)), stats.norm(0, 1)
    for n in (300, 1000, 10_000):
        for records in ("normal", "lognormal", "ages", "real pay"):
            yield Setting("trimmed_mean", (0.1,), _trimmed, records, n, 1.0)
        yield Setting("trimmed_mean", (0.1,), _trimmed, "lognormal", n, 0.1, 100)
        yield Setting("trimmed_mean", (0.1,), _trimmed, "lognormal", n, 0.1, 100, pay)
        yield Setting("winsorized_mean", (0.1,), _winsorized, "lognormal", n, 1.0)
        for wider in (1, 100):
            yield Setting("mean", (), np.mean, "lognormal", n, 1.0, wider, pay)
            yield Setting("mean", (), np.mean, "normal", n, 1.0, wider, normal)
        yield Setting("median", (), np.median, "lognormal", n, 1.0, 1, pay)
        yield Setting("median", (), np.median, "normal", n, 0.1, 100, normal)
    for records, n, epsilon in MEANS:
        yield Setting("mean", (), np.mean, records, n, epsilon, 1, TYPICAL)
    for records, q, n, epsilon, neighbors in SINGLE:
        if neighbors == REPLACED:
            yield Setting(
                "quantile",
                (q,),
                lambda x, q=q: np.quantile(x, q, method="inverted_cdf"),
                records,
                n,
                epsilon,
                1,
                TYPICAL,
            )


def _line(setting, datasets, releases, seconds):
    population, public = named()[setting.records], setting.public()
    choice = dpf.explain(setting.function, *setting.after, n=setting.n, **public)
    target = setting.exact(population.even(2**18).astype(float))
    sets = [(population.sample(setting.n, seed).astype(float),) for seed in range(datasets)]
    exact = np.array([setting.exact(x) for (x,) in sets])[:, None]
    totals, noises = {}, {}
    for method, mechanism in choice.candidates.items():
        try:
            released, _ = collect(mechanism, sets, rounds=releases, seconds=seconds)
        except ValueError:  # it needs more records
            continue
        totals[method], noises[method] = np.abs(released - target), np.abs(released - exact)
    best = min(totals, key=lambda method: totals[method].mean())
    found, error = ratio(totals[choice.method], totals[best]) if totals[best].any() else (1.0, 0.0)
    least, own = min(map(np.mean, noises.values())), noises[choice.method].mean()
    noise = digits(own / least) if least else "-" if own else "1.0"
    shown = quotient(found, error)
    return [
        setting.function, setting.records, f"x {setting.wider}", size(setting.n), f"{setting.epsilon:g}",
        "-" if setting.assumed is None else TYPICAL if setting.assumed == TYPICAL else "given", choice.method, best,
        f"**{shown}**" if found > LIMIT else shown, noise,
    ]  # fmt: skip


def _frequencies(k, n, epsilon, datasets, releases, seconds):
    """The row of a randomiser of categories."""
    choice = dpf.explain(local.randomizer_for, k, epsilon=epsilon, n=n)
    sets, error, squares = [zipf(k, n)(np.random.default_rng(seed)) for seed in range(datasets)], frequency_error(k), {}
    for method, made in choice.candidates.items():
        keys = {"keys": np.arange(k)} if method == "hashed" else {}
        release = lambda x, made=made, keys=keys: made.estimate(made.randomize(x), **keys)  # noqa: E731
        released, _ = collect(release, sets, rounds=releases, seconds=seconds)
        squares[method] = np.array([[error(r, x) for r in of] for of, (x,) in zip(released, sets, strict=True)])
    best = min(squares, key=lambda method: squares[method].mean())
    found, spread = ratio(squares[choice.method], squares[best])
    found, spread = np.sqrt(found), spread / (2 * np.sqrt(found))
    shown = quotient(found, spread)
    return [
        f"frequencies, k = {k}", "Zipf 1", "-", size(n), f"{epsilon:g}", "-", choice.method, best,
        f"**{shown}**" if found > LIMIT else shown, digits(found),
    ]  # fmt: skip


def lines(*, quick, seconds):
    """The rows of the table, as texts."""
    for setting in _settings():
        if named().get(setting.records) is not None and not (quick and setting.n > 300):
            yield _line(setting, 3 if quick else DATASETS, 2 if quick else RELEASES, seconds)
    for k, n, epsilon, *_ in FREQUENCIES:
        yield _frequencies(k, n, epsilon, 3 if quick else DATASETS, 2 if quick else RELEASES, seconds)
