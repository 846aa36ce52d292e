"""Robustness implies privacy (slides, 2023), and the converse: the page docs/papers/robustness.md."""

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

import dpfast as dpf
from bench import pages
from bench.pages import depth_accuracy
from bench.pages.tables import check, paragraph, slope, table
from bench.papers import Item, Paper, Result
from dpfast.statistics import Median
from dpfast.theory import gaussian_mean_sample_size, implied_failure, implied_robustness, robust_sample_size

EPSILON = 1.0


def exponential_mechanism(quick):
    rows = []
    for m in (1, 10, 1000):
        chosen = math.log(1 / (1 + m * math.exp(-EPSILON))), math.log(math.exp(-EPSILON) / (math.exp(-EPSILON) + m))
        loss = chosen[0] - chosen[1]
        rows.append([m + 1, f"{loss:.4f}", f"{2 * EPSILON:g}"])
        check("loss", max(loss - 2 * EPSILON, 0), 0, 0)
    text = paragraph(
        """Loss of weights exp(epsilon q) at epsilon = 1 where one candidate has score 0 and all others -1, and
        their scores are exchanged: it tends to 2 epsilon. `dpfast.select` and `dpfast.robust.reduce` have
        exp(epsilon q / 2)."""
    )
    return Result(
        f"loss {rows[-1][1]} for epsilon = 1 and {rows[-1][0]} candidates",
        "yes, and not improvable",
        text + "\n" + table(["candidates", "loss", "lemma"], rows),
    )


def scores(quick):
    grid = dpf.Grid(0, 4, step=1)

    def of_all(data):
        return [dpf.robust.score(Median(), data, theta, 0.5, grid=grid) for theta in range(5)]

    found = dpf.audit.lipschitz(of_all, [0.0, 1.0, 3.0, 4.0], 3 if quick else 5)
    check("the score", float(found.holds), 1, 0)
    return Result(
        f"all data sets of {3 if quick else 5} records on 4 points, medians within 0.5: greatest change {found.largest}"
    )


def reduction(quick):
    grid = dpf.Grid(0, 4, step=1)
    made = {
        "median (1 column)": (dpf.InverseSensitivity(Median(), grid=grid, epsilon=EPSILON), {"n": 4, "values": 5}),
        "NestedBoxes (2 columns)": (dpf.NestedBoxes(grid=(grid, grid), epsilon=EPSILON), {"n": 3, "values": 2}),
        "TukeyDepth (2 columns)": (
            dpf.robust.TukeyDepth(grid=dpf.Grid(0, 2, step=1), dimension=2, epsilon=EPSILON),
            {"n": 3, "values": 2},
        ),
    }
    rows = []
    for name, (mechanism, sizes) in made.items():
        certificate = dpf.audit.verify(mechanism, **sizes)
        check(name, float(certificate.holds), 1, 0)
        rows.append([name, sizes["n"], f"{float(certificate.epsilon):.4f}"])
    text = paragraph("Weights exp(-epsilon s / 2), epsilon = 1: greatest loss over all data sets on few points.")
    return Result(
        f"losses {', '.join(row[2] for row in rows)} for epsilon = 1, with half of the slides' exponent",
        "yes",
        text + "\n" + table(["mechanism", "n", "loss"], rows),
    )


def accuracy(quick):
    eta0, confidence, margin, reach = 0.1, 0.95, 0.05, 1000.0
    rows = []

    def alpha(eta):
        """Of coordinate-wise medians of N(mu, I) whose empirical distributions are within the margin."""
        return np.where(eta < 0.4, ndtri(np.minimum(0.5 + margin + eta, 0.96)), 2 * reach)

    for d in (1, 5) if quick else (1, 5, 20):
        risk = (1 - confidence) / 2
        empirical = math.ceil(math.log(2 * d / risk) / (2 * margin**2))  # Dvoretzky, Kiefer, Wolfowitz, Massart
        reduced = robust_sample_size(alpha, eta0, dimension=d, epsilon=EPSILON, confidence=confidence)
        n, radius, rng = max(empirical, reduced), float(alpha(np.array(eta0))), np.random.default_rng(d)
        mechanism = dpf.NestedBoxes(grid=dpf.Grid(-reach, reach), epsilon=EPSILON, radius=radius)
        away = [np.abs(mechanism(rng.normal(size=(n, d)), rng=rng)).max() for _ in range(20 if quick else 400)]
        inside = float(np.mean(np.array(away) <= 2 * radius))
        check(f"within 2 alpha, d = {d}", max(confidence - inside, 0), 0, 0)
        rows.append(
            [d, empirical, reduced, f"{2 * radius:.3f}", f"{np.quantile(away, confidence):.3f}", f"{inside:.3f}"]
        )
    text = paragraph(
        f"""Coordinate-wise medians of N(mu, I) in the maximum norm, |mu| <= {reach:g}, eta0 = {eta0:g}, epsilon =
        1: records for alpha to hold with probability 0.975, records by `robust_sample_size`, the promised error 2
        alpha(eta0), and the 95 % quantile of the errors of `NestedBoxes` at the larger number, with the share of
        releases within the promise."""
    )
    headings = ["d", "n for alpha", "n by reduction", "2 alpha(eta0)", "found", "share within"]
    more = paragraph(
        """The slides' weights are 2 epsilon-private: for epsilon the denominator is eta epsilon / 2. The library takes
        the sum over the scores in place of the maximum, whose constant is not stated."""
    )
    return Result(
        f"errors at the promised n: 95 % quantile at most {max(float(row[4]) for row in rows):.3f}, promised "
        f"{rows[0][3]}",
        "yes; at true epsilon n is twice as large",
        text + "\n" + table(headings, rows) + "\n" + more,
    )


def robust_fact(quick):
    text, ratio = depth_accuracy.outliers(quick)
    return Result(
        f"the error of Tukey depth is at most {ratio:.1f} times eta for eta = 1 % to 10 %, n = 4000, d = 2",
        "yes",
        text,
    )


def gaussian_rates(quick):
    text, ratio = depth_accuracy.rates(quick)
    widths, d = (1e1, 1e3, 1e6, 1e9), 20
    needed = [gaussian_mean_sample_size(1.0, dimension=d, epsilon=EPSILON, width=2 * r) for r in widths]
    rises = np.diff(needed) / np.diff(np.log(widths))
    check("records per log R", rises, 4 * d / EPSILON, d / EPSILON)
    dimensions = [2, 8, 32, 128]
    by_d = [gaussian_mean_sample_size(0.2, dimension=d, epsilon=EPSILON, width=2e3) for d in dimensions]
    rows = [["R", 1.0, f"{r:g}", d, n] for r, n in zip(widths, needed, strict=True)]
    rows += [["d", 0.2, "1000", d, n] for d, n in zip(dimensions, by_d, strict=True)]
    more = paragraph(
        f"""Records that suffice for an error in every coordinate, by `gaussian_mean_sample_size` for medians in boxes:
        for a large error {rises[-1] / d:.1f} d / epsilon records more for each factor e in R (half of the records must
        outweigh the rest of the bounds: 4 d / epsilon), and more with d (slope of the logarithms
        {slope(dimensions[1:], by_d[1:]):.2f} from d = 8 to 128)."""
    )
    return Result(
        f"error by depth, d = 2, 3, n epsilon >= 100: at most {ratio:.2f} times sqrt(d / n) + d / (n epsilon); "
        f"{rises[-1] / d:.1f} d / epsilon records for each factor e in R",
        "yes for d = 2, 3; beyond, medians lose sqrt((d + 2) / 3)",
        text + "\n" + more + "\n" + table(["varied", "error", "R", "d", "n"], rows),
    )


def without_range(quick):
    rng, rows, n, d = np.random.default_rng(20), [], 2000, 3
    for center in (0.0, 1e3, 1e6, 1e9):
        errors = []
        for _ in range(5 if quick else 100):
            x = center + rng.normal(size=(n, d))
            found = dpf.robust_mean(x, epsilon=EPSILON, delta=1e-6, step=2.0**-10, width=1.0, rng=rng)
            errors.append(math.inf if found is None else np.abs(found - center).max())
        rows.append([f"{center:g}", f"{np.median(errors):.4f}", f"{np.mean(np.isinf(errors)):.2f}"])
    text = paragraph(
        f"""Greatest error of a coordinate of `robust_mean` without bounds, N(mu, I), n = {n}, d = {d}, epsilon = 1,
        delta = 1e-6: median over {5 if quick else 100} data sets, and the share of refused releases."""
    )
    return Result(
        f"no R: median error {rows[0][1]} at |mu| = 0 and {rows[-1][1]} at 1e9",
        "yes",
        text + "\n" + table(["mu in each coordinate", "median error", "refused"], rows),
    )


# The median of N(0, 1) by inverse sensitivity within wide bounds, under an adversary who moves the least records up.
RECORDS, REACH = 1001, 1000.0
ALPHAS = (0.15, 0.25)


def _failure(x, alpha):
    """The exact probability of an error above alpha: lower tails of the law and of its mirror image."""
    grid = dpf.Grid(-REACH, REACH)
    mechanism = dpf.InverseSensitivity(Median(), grid=grid, epsilon=EPSILON)
    below = grid.encode(np.array([-alpha])) - 1
    return sum(float(np.asarray(mechanism.law(values).cdf(below)).ravel()[0]) for values in (x, -x))


@lru_cache
def attacked(quick):
    """For each alpha: replaced records, exact failure probabilities, and bounds; means over the same data sets."""
    rng, found = np.random.default_rng(21), {}
    data = np.sort(rng.normal(size=(5 if quick else 40, RECORDS)), axis=1)
    for alpha in ALPHAS:
        clean = float(np.mean([_failure(x, alpha) for x in data]))
        rows = []
        for t in range(0, 121, 40 if quick else 5):
            y = data.copy()
            y[:, :t] = REACH
            exact = float(np.mean([_failure(x, alpha) for x in y]))
            bound = implied_failure(t, clean, epsilon=EPSILON)
            check(f"failure, t = {t}", max(exact - bound, 0), 0, 1e-12)
            rows.append((t, exact, bound))
        found[alpha] = rows
    return found


def converse(quick):
    rows = []
    for alpha, points in attacked(quick).items():
        implied = implied_robustness(alpha, points[0][2], n=RECORDS, epsilon=EPSILON)
        tolerated = max(t for t, exact, _ in points if exact <= 0.05)
        rows.append(
            [
                alpha,
                f"{points[0][2]:.1e}",
                implied.replaced,
                f"{implied.contamination:.1%}",
                f"{implied.mixture:.1%}",
                tolerated,
            ]
        )
    text = paragraph(
        f"""Median of N(0, 1) by inverse sensitivity, n = {RECORDS}, bounds +-{REACH:g}, epsilon = 1: the
        probability of an error above alpha without an adversary (exact, mean of {5 if quick else 40} data sets),
        the implied number of replaced records for which it stays below 0.05, as a fraction of the records and for
        mixtures, and the number that it tolerates when the adversary moves the least records to the upper bound (in
        steps of {40 if quick else 5}). The bound counts the normaliser of the law, which hardly changes here: that
        alone is a factor of 2. Other private mechanisms attain it ([proof](../proofs/private-implies-robust.md))."""
    )
    first = rows[-1]
    return Result(
        f"a private median with error {first[0]} and failure probability {first[1]} tolerates {first[2]} of "
        f"{RECORDS} records "
        f"by the theorem, {first[5]} in fact",
        "yes: the slides do not state it; the library does",
        text + "\n" + table(["alpha", "failure", "implied t", "t / n", "mixture", "tolerated t"], rows),
    )


def draw_converse(quick, path):
    drawn, panels = pages.pyplot().subplots(1, 2, figsize=(6.4, 3.8), sharey=True)
    for (alpha, points), ax in zip(attacked(quick).items(), panels, strict=True):
        t, exact, bound = (np.array(values) for values in zip(*points, strict=True))
        ax.semilogy(t / RECORDS, exact, "o-", label="exact, records moved up")
        ax.semilogy(t / RECORDS, bound, "--", label="bound that privacy implies")
        ax.axhline(0.05, color="gray", ls=":", label="0.05")
        ax.set(title=f"error above {alpha:g}", xlabel="fraction of replaced records", ylim=(1e-15, 3))
        ax.set_xticks([0, 0.04, 0.08, 0.12])
    panels[0].set_ylabel("failure probability")
    drawn.suptitle(f"Median of N(0, 1), n = {RECORDS}: epsilon = 1, one record replaced", fontsize="medium")
    pages.legend(drawn, panels[0], ncols=3)
    pages.save(drawn, path)


PAPER = Paper(
    "robustness",
    "Robustness implies privacy, and the converse",
    "S. Cockerell and A. Jayant, Robustness implies privacy in statistical estimation, slides, 2023, on S. B. "
    "Hopkins, G. Kamath, M. Majid and S. Narayanan, STOC 2023; for the converse, K. Georgiev and S. B. Hopkins, "
    "Privacy induces robustness, 2022.",
    "A robust estimator becomes a private one by the exponential mechanism with a score that counts replaced "
    "records; a private estimator is robust. The items of the slides have no numbers. eta is the fraction of the n "
    "records that an adversary replaces, alpha(eta) the error of the robust estimator.",
    (
        Item(
            "Lemma, exponential mechanism: privacy",
            "Weights exp(epsilon q) are (2 epsilon Delta q, 0)-private.",
            ("dpfast.select",),
            exponential_mechanism,
        ),
        Item(
            "Score: sensitivity",
            "The score, the least number of records to replace to bring the estimate within alpha(eta0) of theta, "
            "changes by at most 1.",
            ("dpfast.robust.score", "dpfast.audit.lipschitz"),
            scores,
        ),
        Item(
            "Lemma, robust-private reduction: privacy",
            "Weights exp(-epsilon s) are (2 epsilon, 0)-private.",
            ("dpfast.robust.reduce", "dpfast.NestedBoxes", "dpfast.robust.TukeyDepth", "dpfast.InverseSensitivity"),
            reduction,
        ),
        Item(
            "Theorem, accuracy: records for twice the robust error",
            "The release is within 2 alpha(eta0) with probability 1 - 2 beta if n is at least the maximum over eta "
            ">= eta0 of (d log(2 alpha(eta) / alpha(eta0)) + log(1 / beta) + O(log eta n)) / (eta epsilon).",
            ("dpfast.theory.robust_sample_size", "dpfast.NestedBoxes"),
            accuracy,
        ),
        Item(
            "Fact: robust Gaussian means",
            "For N(mu, I), robust estimation has an error of order c + eta with n of order d / c^2.",
            ("dpfast.robust.TukeyDepth", "bench.pages.depth_accuracy.outliers"),
            robust_fact,
        ),
        Item(
            "Theorem, Gaussian mean: records",
            "An epsilon-private estimate of the mean of N(mu, I), |mu| <= R, within alpha takes n of order d / "
            "alpha^2 + d / (alpha epsilon) + d log R / epsilon, up to logarithms.",
            (
                "dpfast.robust.TukeyDepth",
                "dpfast.theory.depth_error",
                "dpfast.theory.gaussian_mean_sample_size",
                "bench.pages.depth_accuracy.rates",
            ),
            gaussian_rates,
        ),
        Item(
            "Theorem, Gaussian mean with delta: no range",
            "With delta, log R becomes log(1 / delta).",
            ("dpfast.robust_mean", "dpfast.robust.RangeFreeBoxes"),
            without_range,
        ),
        Item(
            "Converse: private implies robust",
            "A private estimator with a failure probability of exp(-eta epsilon n) has the same error if an "
            "adversary replaces a fraction of about eta of the records.",
            ("dpfast.theory.implied_robustness", "dpfast.theory.implied_failure", "dpfast.theory.required_failure"),
            converse,
            draw=draw_converse,
            caption="Failure probability of a private median against the fraction of replaced records, and the "
            "implied bound",
        ),
    ),
)
