"""Sparse means: Corollary 5 of Duchi, Jordan and Wainwright, and the two rounds that section 4.2.2 hopes for."""

import numpy as np

from bench import pages
from bench.pages.tables import check, digits, paragraph, table
from bench.papers import Result, duchi_drawing
from dpfast import local, theory

D, SPARSITY, EPSILON = 100, 2, 2.0
MEANS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.9)
_FOUND = {}


def two_rounds(x, rng):
    """Half of the people are asked about all coordinates, the others about those found."""
    half = len(x) // 2
    first = local.sparse_mean(x[:half], epsilon=EPSILON, threshold="hard", rng=rng)
    kept = np.flatnonzero(first)
    estimate = np.zeros(x.shape[1])
    if kept.size:
        people = local.Hypercube(kept.size, EPSILON)
        estimate[kept] = np.clip(people.estimate(people.randomize(x[half:, kept], rng=rng)), -1, 1)
    return estimate


def size(quick):
    return (10_000, 4) if quick else (100_000, 40)


def rows(quick):
    """{mean: {method: squared errors of the runs}} for two coordinates of this mean, the others even signs."""
    if quick not in _FOUND:
        (n, runs), rng, found = size(quick), np.random.default_rng(3), {}
        truth = np.zeros(D)
        for mean in MEANS[::3] if quick else MEANS:
            truth[:SPARSITY] = mean
            errors = {"one round": [], "two rounds": []}
            for _ in range(runs):
                x = rng.integers(0, 2, (n, D), dtype=np.int8)
                x += x
                x -= 1
                x[:, :SPARSITY] = np.where(rng.random((n, SPARSITY)) < (1 + mean) / 2, 1, -1)
                one = local.sparse_mean(x, epsilon=EPSILON, threshold="hard", rng=rng)
                errors["one round"].append(((one - truth) ** 2).sum())
                errors["two rounds"].append(((two_rounds(x, rng) - truth) ** 2).sum())
            found[mean] = errors
        _FOUND[quick] = found
    return _FOUND[quick]


def bounds(n):
    return [theory.local_sparse_mean_lower_bound(n, D, epsilon=EPSILON, interactive=i) for i in (False, True)]


def draw(quick, path):
    """Squared error against the size of the coordinates, with both lower bounds."""
    (n, runs), found = size(quick), rows(quick)
    figure, [ax] = duchi_drawing.panels(1, 1, size=(5.6, 4.2))
    for name, look in (("one round", "published"), ("two rounds", "better")):
        errors = [np.mean(found[mean][name]) for mean in found]
        duchi_drawing.line(ax, look, name, list(found), errors)
    for bound, dash, name in zip(bounds(n), ("--", ":"), ("one round", "any rounds"), strict=True):
        ax.axhline(bound, color="black", ls=dash, lw=1, label=f"lower bound, {name}, worst mean")
    ax.set(xscale="log", yscale="log", xlabel=f"mean of {SPARSITY} of {D} coordinates", ylabel="squared error")
    ax.set_title(f"n = {n:,}, {EPSILON:g}-locally private, {runs} runs")
    pages.ticks(ax.xaxis, (0.02, 0.05, 0.1, 0.2, 0.5))
    pages.legend(figure, ax)
    pages.save(figure, path)


def corollary(quick):
    body = []
    for n, d in ((10**5, 100), (10**7, 100), (10**7, 10_000)):
        lower = [theory.local_sparse_mean_lower_bound(n, d, epsilon=0.5, form=f) for f in ("published", "sharp")]
        upper = theory.local_sparse_mean_bound(n, d, 1, epsilon=0.5)
        check("Corollary 5", int(lower[0] < lower[1] < upper), 1, 0)
        body.append([f"{n:,}", f"{d:,}", *map(digits, (*lower, upper)), f"{upper / lower[1]:.0f}"])
    text = """Squared error for one nonzero coordinate, vectors in [-1, 1]^d, epsilon = 0.5: lower bounds for mechanisms
        without interaction; upper bound 4 lambda^2 of `local.sparse_mean`, with probability 0.95."""
    headings = ["n", "d", "lower, published constants", "lower", "upper", "upper / lower"]
    return Result(
        f"order d log(2 d) / (n epsilon^2) on both sides, {body[1][-1]} apart at n = 1e7 and d = 100",
        text=paragraph(text) + "\n" + table(headings, body),
    )


def rounds(quick):
    (n, runs), found = size(quick), rows(quick)
    body, worst = [], {"one round": 0.0, "two rounds": 0.0}
    for mean, errors in found.items():
        means = {name: float(np.mean(values)) for name, values in errors.items()}
        worst = {name: max(worst[name], value) for name, value in means.items()}
        body.append([f"{mean:g}", *map(digits, means.values()), digits(SPARSITY * mean**2)])
    without, lower = bounds(n)
    check("worst errors are above the bounds", int(worst["one round"] > without and worst["two rounds"] > lower), 1, 0)
    strong = found[max(found)]
    gain = np.mean(strong["one round"]) / np.mean(strong["two rounds"])
    price = worst["two rounds"] / worst["one round"]
    threshold = theory.local_sparse_threshold(n, D, epsilon=EPSILON)
    text = f"""{SPARSITY} of {D} coordinates with the given mean, the others even signs; n = {n:,}, epsilon =
        {EPSILON:g}, {runs} runs; mean squared error of `local.sparse_mean` with hard thresholds, of two rounds of
        half of the people each, where the second is asked about the coordinates that the first found, and of the
        estimate 0. The threshold is {threshold:.3f} for one round. Lower bounds on the worst error: {digits(without)}
        without interaction, {digits(lower)} for any number of rounds."""
    least, error = theory.local_sparse_rounds_bound(n, D, SPARSITY, epsilon=EPSILON)
    found_all = [mean for mean in found if mean > least]
    check(
        "bound of two rounds", max((np.max(found[mean]["two rounds"]) for mean in found_all), default=0.0), 0.0, error
    )
    why = f"""**What two rounds do.** If every nonzero coordinate is above {least:.3f}, the first round finds exactly
        these with probability 0.975 or more, and the squared error is at most {digits(error)} with probability 0.95
        (`local_sparse_rounds_bound`); one round has {digits(4 * SPARSITY * threshold**2)}
        (`local_sparse_mean_bound`). In the worst case two rounds gain nothing in order but a factor log(2 d):
        `local_sparse_mean_lower_bound(..., interactive=True)` is of order d / (n epsilon^2) for every mechanism, as
        each report, however chosen, spreads its information over the d coordinates that might be the one. Where the
        first round, with half of the people, does not find the coordinates, two rounds lose. So `local.sparse_mean`
        has one round; a second one is two lines: `sparse_mean` of half of the rows with hard thresholds, and
        `Hypercube` of the kept columns of the others."""
    return Result(
        f"coordinates of mean {max(found):g}: two rounds have 1/{gain:.0f} of the error; in the worst case "
        f"{price:.1f} times the error of one round",
        "the hope holds for large coordinates only: the dimension stays in the minimax error",
        paragraph(text) + "\n" + table(["mean", "one round", "two rounds", "estimate 0"], body) + "\n" + paragraph(why),
    )
