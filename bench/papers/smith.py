"""Smith (2008): the page docs/papers/smith.md."""

import math
from functools import lru_cache

import numpy as np

import dpfast as dpf
from bench import pages
from bench.pages import likelihood_accuracy as likelihood
from bench.pages.tables import check, digits, paragraph, size, table
from bench.papers import Item, Paper, Result

SETTINGS = likelihood.SETTINGS[:4]


def smith_blocks(n, epsilon):
    """k of order n^(3/5) epsilon^(-2/5)."""
    return max(1, round(n**0.6 / epsilon**0.4))


def as_published(setting, n, epsilon):
    """Algorithm 1: the plain mean of k estimates, clamped at the bounds."""
    options = {"blocks": smith_blocks(n, epsilon), "combine": "mean", "margin": 0}
    return likelihood.mechanism(setting, epsilon, **options)


@lru_cache
def block_errors(quick):
    """For each family and length b of a block: b I times the mean squared error, and b times the bias, raw and "
    "corrected."""
    rng, records, found = np.random.default_rng(2008), 2 * 10**5 if quick else 10**7, {}
    for setting in SETTINGS:
        low, high = setting.bounds
        release = likelihood.mechanism(setting, 1.0, combine="mean", margin=0)
        for b in (20, 100, 500):
            x = setting.draw(rng, records // b * b)
            rows = []
            for corrected in (False, True):
                t = release.family.estimates((x,), x.size // b, release.box, corrected=corrected, workers=1)[:, 0]
                away = np.clip(t, low, high) - setting.truth
                information = likelihood.information(setting, release)
                rows.append((b * information * np.mean(away**2), b * away.mean(), b * away.std() / math.sqrt(t.size)))
            found[setting.name, b] = rows
    return found


def maximum_likelihood(quick):
    rows, last = [], []
    for (name, b), ((error, *_), (corrected, *_)) in block_errors(quick).items():
        rows.append([name, b, f"{error:.3f}", f"{corrected:.3f}"])
        if b == 500:
            last.append(error)
    check("lemma 2.1", last, 1.0, 0.25 if quick else 0.06)
    text = paragraph(
        """Mean squared error times b I for samples of b records, clamped at the bounds of the parameter: the
        maximum-likelihood estimate, and with its bias corrected."""
    )
    return Result(
        f"at 500 records {min(last):.2f} to {max(last):.2f} times 1 / (n I), four families",
        "yes",
        text + "\n" + table(["family", "b", "raw", "corrected"], rows),
    )


def bias_correction(quick):
    rows, raw_of, corrected_of = [], [], []
    for (name, b), ((_, raw, error), (_, corrected, left)) in block_errors(quick).items():
        rows.append([name, b, f"{raw:.3f} ({error:.3f})", f"{corrected:.3f} ({left:.3f})"])
        if b == 100:
            raw_of.append(abs(raw))
            corrected_of.append(abs(corrected) - 4 * left)
            check(f"bias of {name}", max(corrected_of[-1], 0), 0, 0.1 * abs(raw))
    text = paragraph("b times the bias, with standard errors: the correction removes the term of order 1 / b.")
    return Result(
        f"b times the bias at b = 100: {min(raw_of):.2f} to {max(raw_of):.2f} raw; corrected, less than a "
        "tenth of that",
        "yes; the correction leaves order b^(-2), the paper has b^(-3/2)",
        text + "\n" + table(["family", "b", "raw", "corrected"], rows),
    )


def algorithm(quick):
    n, epsilon, setting = 10_000, 1.0, SETTINGS[0]
    release = as_published(setting, n, epsilon)
    x = setting.draw(np.random.default_rng(1), n)
    k, width = release.block_count(n), setting.bounds[1] - setting.bounds[0]
    found = release.release(x, size=2000 if quick else 100_000, rng=np.random.default_rng(2))
    deviation = np.asarray(found).std()
    expected = math.sqrt(2) * width / (k * epsilon)
    check("deviation of the noise", deviation / expected, 1.0, 0.1 if quick else 0.02)
    return Result(
        f"exponential rate, n = {n:,}, k = {k}: deviation of the noise {deviation:.5f}, sqrt(2) Lambda / (k epsilon) = "
        f"{expected:.5f}",
        "yes",
        paragraph(
            """`SampleAndAggregate(family, blocks=k, combine="mean", margin=0)` is Algorithm 1 on a grid, with exact
            noise. The defaults differ: blocks by public numbers, estimates of scales averaged as logarithms, and
            clamped somewhat beyond the bounds; `dpfast.mle` takes noisy sums instead where they have less error."""
        ),
    )


def privacy(quick):
    losses = []
    for blocks in (1, 2, 4):
        mechanism = dpf.SampleAndAggregate("bernoulli", bounds=(0, 1), step=0.25, epsilon=1.0, blocks=blocks)
        certificate = dpf.audit.verify(mechanism, n=4, values=2, grids=dpf.Grid(0, 1, step=1))
        check("the certificate", float(certificate.holds), 1, 0)
        losses.append(float(certificate.epsilon))
    return Result(
        f"all data sets of 4 bits, epsilon = 1: losses {', '.join(f'{loss:.4f}' for loss in losses)} for k = 1, "
        "2, 4 blocks"
    )


RECORDS = (10**4, 10**5, 10**6, 10**7)


@lru_cache
def efficiencies(quick):
    """For each family and epsilon: n I times the mean squared error, as published and by default, for each n."""
    rng, found = np.random.default_rng(2008_09), {}
    for setting in SETTINGS[:2] if quick else SETTINGS:
        for epsilon in (1.0, 4.0):
            rows = [], []
            for n in RECORDS[:2] if quick else RECORDS:
                made = as_published(setting, n, epsilon), likelihood.mechanism(setting, epsilon)
                for row, release in zip(rows, made, strict=True):
                    row.append(likelihood.efficiency(setting, release, n, rng, quick))
            found[setting.name, epsilon] = rows
    return found


def efficiency(quick):
    rows, ends = [], []
    for (name, epsilon), both in efficiencies(quick).items():
        for method, values in zip(("Algorithm 1", "default"), both, strict=True):
            rows.append([name, f"{epsilon:g}", method, *(f"{value:.3f}" for value in values)])
            check(f"{name}, {method}: falling", max(values[-1] - values[0], 0), 0, 0.05)
        ends.append((both[0][-1], both[1][-1]))
    published, default = (max(values) for values in zip(*ends, strict=True))
    records = RECORDS[:2] if quick else RECORDS
    text = paragraph(
        """Mean squared error times n I: 1 is that of the maximum-likelihood estimate without privacy. Algorithm 1
        with k = n^(3/5) epsilon^(-2/5) blocks, and the defaults of `SampleAndAggregate`. Variance and bias are
        those of simulated blocks, at most 500,000 or 1e7 records in each entry, the variance of the noise is exact;
        the simulation error is about 0.02, and 0.05 for n = 1e7 and the default. The page on [maximum
        likelihood](../results/efficiency.md) has more families, other methods and coverages."""
    )
    return Result(
        f"at n = {size(records[-1])} the ratio is at most {published:.2f} with Algorithm 1 and {default:.2f} by "
        "default, "
        "falling towards 1",
        "yes",
        text + "\n" + table(["family", "epsilon", "method", *(f"n = {size(n)}" for n in records)], rows),
    )


# Exponential rate 1 in [0.2, 5]: second-order terms of the variance and, without correction, of the bias of a block.
EXPONENTIAL = {"information": 1.0, "width": 4.8, "v2": 2.0}


def smallest_epsilon(quick):
    rows = []
    for power in (0.1, 1 / 6, 0.3):
        for n in (10**6, 10**9, 10**12):
            epsilon = n**-power
            blocks = float(n**0.6 / epsilon**0.4)
            published, best = (
                dpf.theory.aggregate_efficiency(n, epsilon=epsilon, blocks=k, **EXPONENTIAL) for k in (blocks, None)
            )
            rows.append([f"n^(-{power:.3g})", size(n), digits(published), digits(best)])
    raw = dpf.theory.aggregate_efficiency(10**9, epsilon=1.0, blocks=10**5.4, b1=1.0, **EXPONENTIAL)
    text = paragraph(
        f"""Mean squared error times n I by theory, exponential rate: k = n^(3/5) epsilon^(-2/5), and the best k,
        of order (n / epsilon)^(2/3). Without bias correction, at n = 1e9, epsilon = 1 and the same k, the ratio is
        {raw:.1f}, and it grows as n^(1/5)."""
    )
    more = paragraph(
        """By the bound of the proof on the bias, b^(-3/2) in blocks of b records, the best k is n^(3/5) epsilon^(-2/5)
        and the excess n^(-1/5) epsilon^(-6/5), so that epsilon must be above n^(-1/6). With an analytic correction the
        bias is b^(-2), the best k is of order (n / epsilon)^(2/3), the excess n^(-1/3) epsilon^(-2/3), and epsilon
        above n^(-1/2) suffices."""
    )
    return Result(
        "with the best k the ratio tends to 1 for epsilon = n^(-0.3) too; with k = n^(3/5) epsilon^(-2/5) it does not",
        "yes, but not the smallest epsilon",
        text + "\n" + table(["epsilon", "n", "Algorithm 1", "best k"], rows) + "\n" + more,
    )


def picture(quick):
    return Result("a diagram of Algorithm 1 without numbers; the blocks are those of `SampleAndAggregate`", "yes")


def draw(quick, path):
    drawn, panels = pages.pyplot().subplots(1, 2, figsize=(6.4, 4.0), sharex=True, sharey=True)
    records = RECORDS[:2] if quick else RECORDS
    for place, (method, ax) in enumerate(zip(("Algorithm 1, k = n^(3/5)", "default"), panels, strict=True)):
        for marker, ((name, epsilon), found) in zip(pages.MARKERS * 2, efficiencies(quick).items(), strict=False):
            if epsilon == 1:
                ax.loglog(records, found[place], marker=marker, label=name)
        ax.axhline(1, color="gray", ls=":", label="best without privacy")
        ax.set(title=method, xlabel="number of records n")
        pages.ticks(ax.yaxis, [1, 2, 5, 10, 20])
    panels[0].set_ylabel("mean squared error times n I")
    drawn.suptitle("Maximum likelihood by sample and aggregate: epsilon = 1, one record replaced", fontsize="medium")
    pages.legend(drawn, panels[0], ncols=3)
    pages.save(drawn, path)


PAPER = Paper(
    "smith",
    "Smith: efficient, differentially private point estimators",
    "A. Smith, Efficient, differentially private point estimators, arXiv 0809.4794, 2008.",
    "Maximum likelihood by sample and aggregate: the mean of bias-corrected estimates of blocks of the records, with "
    "Laplace noise. Formulas are lost in the text that this page was made from; those given here were derived "
    "again from "
    "its proofs. Lambda is the width of the public range of the parameter, I the Fisher information of one record.",
    (
        Item(
            "Lemma 2.1: efficiency of maximum likelihood",
            "The maximum-likelihood estimate has mean squared error (1 + o(1)) / (n I).",
            ("bench.papers.smith.block_errors", "dpfast.families.AdditiveFamily"),
            maximum_likelihood,
        ),
        Item(
            "Lemma 2.2: bias correction",
            "Subtracting an estimate of the leading term of the bias leaves the variance and a bias of order n^(-3/2).",
            ("bench.papers.smith.block_errors", "dpfast.SampleAndAggregate"),
            bias_correction,
        ),
        Item(
            "Algorithm 1: sample and aggregate",
            "The mean of the corrected estimates of k blocks plus Laplace noise of scale Lambda / (k epsilon).",
            ("dpfast.SampleAndAggregate", "dpfast.mle"),
            algorithm,
        ),
        Item("Figure 1: the estimator", "A diagram of Algorithm 1.", ("dpfast.SampleAndAggregate",), picture),
        Item(
            "Lemma 3.2: privacy",
            "Algorithm 1 is epsilon-differentially private for every number of blocks.",
            ("dpfast.SampleAndAggregate", "dpfast.audit.verify"),
            privacy,
        ),
        Item(
            "Lemma 3.3: asymptotic efficiency",
            "With k of order n^(3/5) blocks the ratio of the mean squared error to 1 / (n I) tends to 1.",
            ("bench.papers.smith.efficiencies", "dpfast.theory.aggregate_efficiency"),
            efficiency,
            draw=draw,
            caption="Mean squared error relative to that of the best estimator without privacy, against n",
        ),
        Item(
            "Theorem 3.1: small epsilon",
            "The estimator is efficient as long as epsilon tends to 0 slowly enough.",
            ("dpfast.theory.aggregate_efficiency", "dpfast.theory.block_count", "dpfast.theory.block_excess"),
            smallest_epsilon,
        ),
    ),
)
