"""Wasserman and Zhou (2010), as slides: the page docs/papers/wasserman-zhou.md."""

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy.stats import beta

import dpfast as dpf
from bench.pages.tables import check, paragraph, table
from bench.papers import Item, Paper, Result, histograms, kolmogorov, series, series_draws
from dpfast.densities import KolmogorovSmirnov


def power(quick):
    levels = (0.01, 0.05, 0.5)
    rows = [[f"{g:g}", f"{g * math.e:.4f}", f"{dpf.audit.power_bound(g, 1.0):.4f}"] for g in levels]
    keep = math.e / (1 + math.e)  # a test that trusts one report of randomised response has level 1 - keep
    check("power of randomised response", dpf.audit.power_bound(1 - keep, 1.0), keep, 1e-12)
    text = paragraph(
        """Bounds on the power for epsilon = 1. The second bound, 1 - exp(-epsilon) (1 - level), is the theorem for the
        complement of the test. Randomised response attains the smaller of the two."""
    )
    return Result(
        f"at level 0.5 and epsilon 1 the power is at most {dpf.audit.power_bound(0.5, 1.0):.3f}",
        "yes, but not tight",
        text + "\n" + table(["level", "theorem 3", "power_bound"], rows),
    )


def loss_by_enumeration(delta, cells, n, k):
    """The largest log-ratio of the probabilities of k draws over all data sets of n records, in fractions."""

    def law(data):
        shares = [(1 - delta) * Fraction(data.count(j), n) + delta / cells for j in range(cells)]
        return {z: math.prod(shares[j] for j in z) for z in itertools.product(range(cells), repeat=k)}

    datasets = list(itertools.product(range(cells), repeat=n))
    laws = {x: law(x) for x in datasets}
    neighbors = [(x, y) for x in datasets for y in datasets if sum(a != b for a, b in zip(x, y, strict=True)) == 1]
    return math.log(max(laws[x][z] / laws[y][z] for x, y in neighbors for z in laws[x]))


def smoothed_privacy(quick):
    found = loss_by_enumeration(Fraction(3, 10), 3, 3, 2)
    check("loss of the smoothed histogram", found, dpf.theory.smoothed_epsilon(0.3, cells=3, n=3, k=2), 1e-12)
    return Result(
        f"n = 3, m = 3, k = 2, delta = 0.3: the greatest loss of all data sets is {found:.6f}, that of condition (4)",
        "yes, and exact: the paper states it as sufficient",
    )


def _of_slope(name, agrees="yes"):
    def compute(quick):
        found, theory, _ = histograms.found_slope(name, quick)
        return Result(
            f"slope of log error against log n {found:.3f}, theorem {theory:.3f}",
            agrees,
            histograms.slope_text(name, quick),
        )

    return compute


def perturbed_distance(quick):
    found = {n: mean for n, (mean, _) in histograms.distances(quick).items()}
    (first, start), *_, (last, end) = found.items()
    return Result(
        f"sqrt(n) times the distance is {start:.3f} at n = {first:,} and {end:.3f} at n = {last:,}: rate n^(-1/2)",
        "no: max instead of min",
        histograms.distance_table(quick),
    )


def exponential_privacy(quick):
    mechanism = KolmogorovSmirnov(2, grid=dpf.Grid(0, 1, step=0.5), epsilon=1.0)
    certificate = dpf.audit.verify(mechanism, n=2, values=3)
    check("the certificate", float(certificate.holds), 1, 0)
    return Result(
        f"all data sets of 2 records on 3 points, k = 2: largest loss {float(certificate.epsilon):.4f} for epsilon = 1"
    )


def exponential_bound(quick):
    n, k, runs, rng = 30_000, 100, 10 if quick else 100, np.random.default_rng(11)
    law, peak, away = beta(10, 10), beta(10, 10).pdf(0.5), []
    mechanism = KolmogorovSmirnov(k, grid=dpf.Grid(0, 1), epsilon=1.0)
    for _ in range(runs):
        away.append(histograms.kolmogorov_distance(mechanism(rng.beta(10, 10, n), rng=rng), law.cdf))
    rows = []
    for far in (0.03, 0.05, 0.1, 0.15, 0.2, 0.3):
        bound = dpf.theory.exponential_tail(far, n=n, k=k, epsilon=1.0, peak=peak)
        found = np.mean(np.array(away) > far)
        check(f"P(distance > {far})", max(found - bound, 0.0), 0.0, 3 / math.sqrt(runs))
        rows.append([f"{far:g}", f"{found:.2f}", f"{bound:.2g}"])
    trusted = next(row[0] for row in rows if float(row[2]) < 0.05)
    text = paragraph(
        f"""Probability that the distance of the released records from Beta(10, 10) is above d: {runs} releases of k =
        {k} records from n = {n:,}, epsilon = 1, and the bound, with the exact probability of the event in (10)."""
    )
    return Result(
        f"the bound holds: it is below 0.05 at d = {trusted}; the farthest of {runs} releases was at {max(away):.3f}",
        "yes, but loose",
        text + "\n" + table(["d", "found", "bound"], rows),
    )


def exponential_rate(quick):
    slopes, _ = kolmogorov.found_slopes(quick)
    k = kolmogorov.root_of_size(10_000, beta(10, 10).pdf(0.5)) ** 2
    found = ", ".join(f"{value:.3f} ({name})" for name, value in slopes.items())
    return Result(
        f"slope of the distance from the data {found}: faster than -1/3; at n = 1e4 the theorem has k = {k:.0f}",
        "the rate holds but is not attained; its constants do not follow",
        kolmogorov.section(quick),
    )


def series_sensitivities(quick):
    rows = []
    for m in (1, 2, 8, 40):
        slides = 2 * math.sqrt(m)  # c0^2 m 2 / n over the norm of c0 sqrt(m), c0^2 = 2: see the text
        found = [dpf.theory.series_sensitivity(m, basis=basis, norm=2) for basis in ("cosine", "trigonometric")]
        check("Lemma 13", max(max(found) - 4 * m, 0), 0, 1e-9)
        rows.append([m, f"{4 * m}", f"{math.sqrt(2) * slides:.3f}", *(f"{value:.3f}" for value in found)])
    text = paragraph(
        """n times the l2 sensitivity of the coefficients: Lemma 13, 2 c0^2 m with c0^2 = 2; the triangle inequality, 2
        c0 sqrt(m); and the largest over all pairs of points."""
    )
    return Result(
        "the exact sensitivity is at most 2 c0 sqrt(m) / n, smaller than the lemma's by a factor of c0 sqrt(m) or more",
        "yes, but loose",
        text + "\n" + table(["m", "Lemma 13", "2 c0 sqrt(m)", "cosine", "trigonometric"], rows),
    )


def _losses(mechanism):
    rows = []
    for m in (1, 2, 10, 40):
        found = [
            dpf.theory.series_published_loss(m, 1.0, mechanism=mechanism, basis=b) for b in ("cosine", "trigonometric")
        ]
        rows.append([m, *(f"{value:.3f}" for value in found)])
    return rows


def series_weight(quick):
    rows = _losses("exponential")
    text = paragraph("Provable loss of weights exp(-epsilon xi / Delta) at epsilon = 1, Delta = 2 c0^2 m / n.")
    return Result(
        f"provable loss {rows[0][1]} epsilon for one term; at most epsilon for two or more, because Lemma 13 is loose",
        "no: a factor of 2 is missing",
        text + "\n" + table(["m", "cosine", "trigonometric"], rows),
    )


def series_noise(quick):
    rows = _losses("perturbation")
    text = paragraph("Exact loss of Laplace noise of scale c0 m / (n epsilon) on m coefficients, at epsilon = 1.")
    return Result(
        f"loss {rows[0][1]} epsilon for one term, {rows[-1][1]} epsilon for 40 (cosine)",
        "no: the scale is too small",
        text + "\n" + table(["m", "cosine", "trigonometric"], rows),
    )


def series_exponential(quick):
    found, expected, text = series_draws.rates(series.true(series_draws.GAMMA), quick)
    slopes, _ = series.found_slopes(quick)
    perturbed = slopes[series_draws.GAMMA, 1.0]
    return Result(
        f"slope {found:.3f}, theorem {expected:.3f}, at epsilon = 1; that of the perturbed series is {perturbed:.3f}",
        "faster than the bound, for n up to 1e5",
        text,
    )


def series_perturbed(quick):
    slopes, _ = series.found_slopes(quick)
    found = "; ".join(
        f"smoothness {s:g}: {value:.3f}, theorem {-2 * s / (2 * s + 1):.3f}"
        for (s, epsilon), value in slopes.items()
        if epsilon == 1
    )
    return Result(f"slopes at epsilon = 1: {found}", "yes", series.rates(quick) + "\n" + series.projection(quick))


def first_table(quick):
    l2, ks = "L2", "Kolmogorov-Smirnov"
    smoothed, perturbed = (histograms.found_slope(name, quick)[0] for name in ("smoothed", "perturbed"))
    (_, start), *_, (_, end) = ((n, mean) for n, (mean, _) in histograms.distances(quick).items())
    sizes = list(histograms.distances(quick))
    moved = math.log(end / start) / math.log(sizes[-1] / sizes[0]) - 0.5
    smoothed_ks = histograms.found_slope("smoothed distance", quick)[0]
    exponential = kolmogorov.found_slopes(quick)[0]["Beta(2, 3)"]
    rows = [
        ["smoothed histogram", l2, "n^(-2/(2r+3))", "-0.400", f"{smoothed:.3f}"],
        ["smoothed histogram", ks, "sqrt(log n) n^(-2/(6+r))", "-0.286", f"{smoothed_ks:.3f}"],
        ["perturbed histogram", l2, "n^(-2/(2+r))", "-0.667", f"{perturbed:.3f}"],
        ["perturbed histogram", ks, "min(sqrt(log n / n), log n n^(-2/(2+r)))", "-0.5 (max)", f"{moved:.3f}"],
        ["exponential mechanism", l2, "NA", "", ""],
        ["exponential mechanism", ks, "n^(-1/3)", "-0.333", f"{max(exponential, -0.5):.3f}"],
        ["minimax", l2, "n^(-2/(2+r))", "-0.667", ""],
        ["minimax", ks, "n^(-1/2)", "-0.5", ""],
    ]
    text = paragraph(
        f"""The slides' rates, their exponents for r = 1 without logarithms, and slopes found by the simulations of
        theorems 6 to 12, Lipschitz densities. The slope of the exponential mechanism is that of the distance from
        the distribution: the distance from the data decreases faster ({exponential:.3f}) than that of the data,
        n^(-1/2)."""
    )
    return Result(
        "slopes within 0.05 of the rates, two entries aside",
        "no: perturbed histogram, Kolmogorov-Smirnov (max); exponential mechanism (n^(-1/2))",
        text + "\n" + table(["release", "distance", "slides", "exponent, r = 1", "slope found"], rows),
    )


def second_table(quick):
    slopes, _ = series.found_slopes(quick)
    rows = []
    for s in series.SMOOTHNESS:
        rows += [
            [f"{s:g}", "exponential mechanism", "n^(-s/(2s+1))", f"{-s / (2 * s + 1):.3f}", "not drawn"],
            [f"{s:g}", "perturbed series", "n^(-2s/(2s+1))", f"{-2 * s / (2 * s + 1):.3f}", f"{slopes[s, 1.0]:.3f}"],
            [f"{s:g}", "minimax", "n^(-2s/(2s+1))", f"{-2 * s / (2 * s + 1):.3f}", ""],
        ]
    text = paragraph("""Smoothness s, one column, integrated squared error: the slopes of theorem 15 at epsilon = 1.""")
    return Result(
        "the perturbed series has the minimax rate",
        "yes; the exponential mechanism is not drawn",
        text + "\n" + table(["s", "release", "slides", "exponent", "slope found"], rows),
    )


def first_figure(quick):
    found = histograms.simulation(histograms.runs(quick))
    worst = max(np.max(np.abs(errors[:, 1])) for errors in found.values())
    return Result(
        f"all 64 errors agree with an implementation that has continuous noise (standard errors up to {worst:.4f})",
        "yes in shape and order; the picture's numbers are not in the slides' text",
        histograms.errors(quick),
    )


PAPER = Paper(
    "wasserman-zhou",
    "Wasserman and Zhou: a statistical framework for differential privacy",
    "L. Wasserman and S. Zhou, A statistical framework for differential privacy, JASA 2010; items and numbers are "
    "those of the slides by Y. Yu, 2015.",
    "Synthetic records from histograms, from the exponential mechanism and from orthogonal series, and how fast their "
    "distribution approaches that of the data. In the slides, alpha is what dpfast calls epsilon. Neighbours differ in"
    " one replaced record.",
    (
        Item(
            "Theorem 3: power of tests",
            "Under alpha-differential privacy a test of level gamma about one record has power at most gamma "
            "exp(alpha).",
            ("dpfast.audit.power_bound",),
            power,
        ),
        Item(
            "Theorem 5: privacy of the smoothed histogram",
            "k draws from the mixture of the histogram and the uniform density are alpha-private if k log((1 - delta) "
            "m / (n delta) + 1) <= alpha.",
            ("dpfast.theory.smoothed_epsilon", "dpfast.theory.smoothed_delta", "dpfast.synthesize"),
            smoothed_privacy,
        ),
        Item(
            "Theorem 6: smoothed histogram, Kolmogorov-Smirnov distance",
            "With m = n^(r/(6+r)), k = n^(4/(6+r)), delta = m k / (n alpha), the distance is of order sqrt(log n) "
            "n^(-2/(6+r)).",
            ("bench.papers.histograms.smoothed_distance",),
            _of_slope("smoothed distance"),
        ),
        Item(
            "Theorem 7: smoothed histogram, squared L2 distance",
            "With m = n^(r/(2r+3)), k = n^((r+2)/(2r+3)), delta = n^(-1/(r+3)), the error is of order n^(-2/(2r+3)).",
            ("dpfast.theory.smoothed_mise", "bench.papers.histograms.smoothed_error"),
            _of_slope("smoothed", "the rate: yes; delta: no"),
            error="delta must be m k / (n alpha), which is of order n^(-1/(2r+3)), by the slides' own condition (5). "
            "The rate is right with it, and is the square of this delta.",
        ),
        Item(
            "Theorem 8 (1): perturbed histogram, squared L2 distance",
            "With m = n^(r/(2+r)) and k >= n, the error is of order n^(-2/(2+r)), the minimax rate.",
            (
                "dpfast.densities.PerturbedHistogram",
                "dpfast.theory.perturbed_mise",
                "bench.papers.histograms.perturbed_error",
            ),
            _of_slope("perturbed"),
        ),
        Item(
            "Theorem 8 (2): perturbed histogram, Kolmogorov-Smirnov distance",
            "With m = n^(r/(2+r)), the distance is of order min(log n n^(-2/(2+r)), sqrt(log n / n)).",
            ("bench.papers.histograms.distances",),
            perturbed_distance,
            error="the minimum must be the maximum. For r = 1 the minimum is log n n^(-2/3), which would beat the "
            "minimax rate n^(-1/2).",
        ),
        Item(
            "Theorem 9: privacy of the exponential mechanism",
            "Weights exp(-alpha xi(x, z) / (2 Delta)) are alpha-private.",
            ("dpfast.densities.KolmogorovSmirnov", "dpfast.audit.verify"),
            exponential_privacy,
        ),
        Item(
            "Theorem 11: accuracy by small ball probabilities",
            "P(distance > d) <= C^k exp(-3 alpha d / (16 Delta)) / R(k, d / 2) + O(n^-c), C the maximum density.",
            ("dpfast.theory.exponential_tail", "dpfast.theory.small_ball_probability"),
            exponential_bound,
        ),
        Item(
            "Theorem 12: exponential mechanism, Kolmogorov-Smirnov distance",
            "With k = (3 alpha n / B)^(2/3), B = log C, the distance is of order 2 (B / (3 alpha n))^(1/3).",
            (
                "dpfast.theory.exponential_distance",
                "dpfast.densities.KolmogorovSmirnov",
            ),
            exponential_rate,
            error="with these constants the bound of Theorem 11 is C^(7 k / 8), which grows; it vanishes for less than"
            " an eighth of this k. With k of order n^(1/2) Theorem 11 itself gives the rate n^(-1/2), the "
            "minimax rate.",
        ),
        Item(
            "Lemma 13: sensitivity of the series",
            "The l2 distance of the estimated densities changes by at most 2 c0^2 m / n.",
            ("dpfast.theory.series_sensitivity",),
            series_sensitivities,
        ),
        Item(
            "Equation (17): exponential mechanism for the series",
            "Weights exp(-alpha xi / Delta), Delta = 2 c0^2 m / n.",
            ("dpfast.theory.series_published_loss",),
            series_weight,
            error="equation (8) has 2 Delta in the exponent. Without the 2 the mechanism is alpha-private only where "
            "the bound on Delta is loose by a factor of 2, which one term is not.",
        ),
        Item(
            "Theorem 14: exponential mechanism for the series",
            "With k of order sqrt(n) draws the squared error is of order n^(-gamma/(2 gamma+1)), gamma > 1.",
            ("bench.papers.wasserman_zhou.series_exponential",),
            series_exponential,
        ),
        Item(
            "Perturbation of the series: noise",
            "Laplace noise of scale c0 m / (n alpha) on each of the m coefficients is alpha-private.",
            ("dpfast.theory.series_published_loss", "dpfast.SeriesCoefficients"),
            series_noise,
            error="the l1 sensitivity is up to 2 c0 m / n, so this scale is private only at up to 2 alpha. dpfast uses"
            " the exact sensitivity.",
        ),
        Item(
            "Theorem 15: perturbed series",
            "With k >= n draws the squared error is of order n^(-2 gamma/(2 gamma+1)), the minimax rate, gamma > 1.",
            ("dpfast.SeriesCoefficients", "dpfast.theory.series_error", "dpfast.theory.series_terms"),
            series_perturbed,
        ),
        Item(
            "Table 1: rates for Lipschitz densities",
            "The rates of theorems 6, 7, 8 and 12 next to the minimax rates.",
            ("bench.papers.histograms.smoothed_error", "bench.papers.histograms.distances"),
            first_table,
            error="the entry of the perturbed histogram in Kolmogorov-Smirnov distance: see Theorem 8 (2). The entry "
            "of the exponential mechanism is an upper bound: see Theorem 12.",
        ),
        Item(
            "Table 2: rates for smooth densities",
            "The rates of theorems 14 and 15 next to the minimax rate.",
            ("bench.papers.series.found_slopes",),
            second_table,
        ),
        Item(
            "Figure 1: error against bins",
            "Mean integrated squared error of the perturbed histogram and of the histogram itself for Beta(10, 10), n "
            "= 100 and 1000, alpha = 0.1 and 0.01: privacy inflates the error, and makes it more sensitive to the "
            "bins.",
            ("dpfast.densities.PerturbedHistogram", "bench.papers.histograms.perturbed_mise"),
            first_figure,
            draw=histograms.figure,
            caption="Mean integrated squared error against bins, with and without noise",
        ),
    ),
)
