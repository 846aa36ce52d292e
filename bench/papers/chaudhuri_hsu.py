"""Chaudhuri and Hsu (2012): the page docs/papers/chaudhuri-hsu.md."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.stats import norm

import dpfast as dpf
from bench import pages
from bench.pages.tables import check, digits, paragraph, table
from bench.papers import Item, Paper, Result, smooth_bounds
from dpfast.statistics import Mean, Median, TrimmedMean

EPSILON, CONFIDENCE = 1.0, 0.95


def exact_error(mechanism, x, target):
    """E|release - target| for these records, from the law."""
    law = mechanism.law(np.asarray(x, float))
    codes = np.arange(law.support[0], law.support[1] + 1)
    return float(law.pmf(codes) @ np.abs(np.asarray(law.value(codes)) - target))


def influence(quick):
    x = np.random.default_rng(0).uniform(-1, 1, 1001)
    ends = {"bounds": (-10.0, 10.0)}
    rows, scale = [], Fraction(1, 1001)
    for name, statistic in (("mean", Mean()), ("trimmed mean, 10 %", TrimmedMean(0.1)), ("median", Median())):
        found = dpf.theory.gross_error_sensitivity(statistic, x, scale, **ends)
        rows.append([name, f"{found:.3f}", f"{dpf.theory.influence_function(statistic, x, 0.5, scale):.3f}"])
    text = paragraph(
        """1001 records of U[-1, 1], records between -10 and 10, scale 1 / n: the gross-error sensitivity, and the
        influence of a record at 0.5. The influence of a mean grows with the bounds, that of the others does not."""
    )
    return Result(
        f"exact for a sample, at every scale: mean {rows[0][1]}, median {rows[2][1]} for records between -10 and 10",
        "yes",
        text + "\n" + table(["statistic", "gross-error sensitivity", "influence at 0.5"], rows),
    )


def _errors_of_both(epsilon, n):
    """Exact errors of the better of two private means for F = all records 0, and for G of theorem 1."""
    p, zeros = float(dpf.theory.lower_bound_scale(epsilon=epsilon, n=n)), np.zeros(n)
    mechanism = dpf.GlobalSensitivity(Mean(), grid=dpf.Grid(0, 1, step=1), epsilon=epsilon)
    weights = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    at_g = sum(
        weight * exact_error(mechanism, [1] * k + [0] * (n - k), p)
        for k, weight in enumerate(weights)
        if weight > 1e-12
    )
    return exact_error(mechanism, zeros, 0.0), at_g


def first_theorem(quick):
    rows = []
    for epsilon, n in ((0.3, 20), (0.1, 20), (0.1, 100), (0.05, 100)):
        bound = dpf.theory.lower_bound(1.0, epsilon=epsilon, n=n)
        of_f, of_g = _errors_of_both(epsilon, n)
        check("theorem 1", max(bound - max(of_f, of_g), 0), 0, 0)
        rows.append([epsilon, n, f"{bound:.5f}", f"{of_f:.4f}", f"{of_g:.4f}", f"{max(of_f, of_g) / bound:.0f}"])
    text = paragraph(
        """Records 0 or 1, F = all records 0, G = (1 - rho) F + rho delta_1 with rho = ceil(ln 2 / (2 epsilon)) / n: the
        bound rho / 16 and the exact expected error of the mean with discrete Laplace noise under both. No private
        estimator has both errors below the bound; half the distance of F and G, 8 times the bound, is attained by a
        constant."""
    )
    ratios = [int(row[5]) for row in rows]
    return Result(
        f"the larger error of a private mean is {min(ratios)} to {max(ratios)} times the bound",
        "yes; n must be at least ceil(ln 2 / (2 alpha)), which is not stated",
        text + "\n" + table(["epsilon", "n", "bound", "error, F", "error, G", "larger error / bound"], rows),
    )


def first_example(quick):
    rows, sizes = [], np.unique(np.geomspace(20, 1e8, 3000).astype(int)).tolist()
    for epsilon in (0.05, 0.2):
        for variance in (1e-2, 1e-4):
            bounds = [dpf.theory.lower_bound(0.5, epsilon=epsilon, n=n) for n in sizes]
            larger = [
                n for n, bound in zip(sizes, bounds, strict=True) if bound > math.sqrt(2 * variance / math.pi / n)
            ]
            order = 1 / (variance * epsilon**2)
            last = f"{max(larger):,}" if larger else "none"
            rows.append([epsilon, variance, last, f"{math.pi / 2 * order:,.0f}", f"{order:,.0f}"])
    text = paragraph(
        """Means of records in [0, 1] (a = 1), normal approximation of the error without privacy. Bound: the greatest n
        at which theorem 1, with its constants, exceeds that error. Laplace: the n at which the mean magnitude of
        Laplace noise, 1 / (n epsilon), equals it. Order: a^2 / (Var alpha^2)."""
    )
    return Result(
        f"Laplace noise dominates up to n = {math.pi / 2:.2f} a^2 / (Var alpha^2); the constants of theorem 1 are "
        "far smaller",
        "yes in order",
        text + "\n" + table(["epsilon", "variance", "n by theorem 1", "n by Laplace noise", "order"], rows),
    )


def second_theorem(quick):
    rows = []
    for epsilon in (0.5, 1.0):
        mechanism = dpf.InverseSensitivity(Median(), grid=dpf.Grid(0, 64, step=1), epsilon=epsilon)
        for n in (1, 2, 5, 10):
            bound = dpf.theory.pure_lower_bound(64.0, epsilon=epsilon, n=n)
            worst = max(exact_error(mechanism, [tau] * n, tau) for tau in range(0, 65, 4))
            check("theorem 2", max(bound - worst, 0), 0, 0)
            rows.append([epsilon, n, f"{bound:.4g}", f"{worst:.4g}", f"{worst / bound:.0f}"])
    text = paragraph(
        """Point masses in [0, 64]: the bound, and the greatest expected error of the median by inverse sensitivity,
        from its law. The mechanism decreases like exp(-epsilon n / 2) times the range, the bound like exp(-epsilon n).
        """
    )
    return Result(
        "the bound holds for the median by inverse sensitivity at all point masses; both decrease exponentially in n",
        "yes",
        text + "\n" + table(["epsilon", "n", "bound", "greatest error", "ratio"], rows),
    )


RANGES = (10, 10**2, 10**3, 10**4, 10**5, 10**6)
NUMBERS = (10, 40, 160)


@lru_cache
def uniform_medians(quick):
    """For each n, and each R of RANGES: mean errors of private medians, of medians, and theorem 2."""
    runs, found, rng = 10 if quick else 400, {}, np.random.default_rng(3)
    for n in NUMBERS:
        rows = []
        for reach in RANGES:
            mechanism = dpf.InverseSensitivity(Median(), grid=dpf.Grid(-reach - 1, reach + 1), epsilon=EPSILON)
            private, plain = [], []
            for _ in range(runs):
                gamma = rng.uniform(-reach, reach)
                x = gamma + rng.uniform(-1, 1, n)
                private.append(np.abs(mechanism.release(x, size=50, rng=rng) - gamma).mean())
                plain.append(abs(np.median(x) - gamma))
            bound = dpf.theory.pure_lower_bound(2.0 * reach, epsilon=EPSILON, n=n)
            rows.append((reach, np.mean(private), np.mean(plain), bound))
        found[n] = rows
    return found


def second_example(quick):
    found = uniform_medians(quick)
    rows = [
        [n, f"{reach:,}", digits(private), digits(plain), digits(bound)]
        for n, lines in found.items()
        for reach, private, plain, bound in lines
    ]
    few, many = ({reach: private for reach, private, *_ in found[n]} for n in (10, 160))
    text = paragraph(
        f"""Uniform records on [gamma - 1, gamma + 1], gamma uniform in [-R, R], epsilon = {EPSILON:g}: mean error of
        the median by inverse sensitivity, of the median without privacy, and theorem 2 for a range of 2 R (for the
        worst gamma), {10 if quick else 400} data sets of 50 releases."""
    )
    return Result(
        f"n = 10: the error grows from {digits(few[10])} at R = 10 to {digits(few[10**6])} at R = 1e6; n = 160: it is "
        f"{digits(many[10])} and {digits(many[10**6])}",
        "yes; the n that suffices grows only as log R",
        text + "\n" + table(["n", "R", "private", "not private", "theorem 2"], rows),
    )


def draw_second_example(quick, path):
    drawn, ax = pages.pyplot().subplots(figsize=(5.6, 4.4))
    for marker, (n, lines) in zip(pages.MARKERS, uniform_medians(quick).items(), strict=False):
        reach, private, plain, bound = zip(*lines, strict=True)
        [line] = ax.loglog(reach, private, marker, linestyle="-", label=f"n = {n}, private")
        ax.loglog(reach, plain, ":", color=line.get_color(), label=f"n = {n}, not private")
        if n == NUMBERS[0]:
            ax.loglog(reach, bound, "--", color=line.get_color(), label=f"n = {n}, Theorem 2")
    ax.set_title(f"Medians of U[gamma - 1, gamma + 1]: epsilon = {EPSILON:g}, one record replaced")
    ax.set(xlabel="R: gamma lies in [-R, R]", ylabel="mean error", ylim=(1e-3, 1e6))
    pages.legend(drawn, ax)
    pages.save(drawn, path)


def group_lemma(quick):
    rows = []
    for k in (1, 5, 20):
        delta, alpha, p = 1e-3, 0.1, 0.4
        slides = math.exp(-k * alpha) * p - delta / -math.expm1(-alpha)
        exact = 1 - dpf.theory.implied_failure(k, 1 - p, epsilon=alpha, delta=delta)
        check("lemma 2", max(slides - exact, 0), 0, 1e-12)
        rows.append([k, f"{slides:.5f}", f"{exact:.5f}"])
    text = paragraph(
        """Least probability of an event of probability 0.4 after k records are replaced, alpha = 0.1, delta = 1e-3. The
        second bound is attained ([proof](../proofs/private-implies-robust.md))."""
    )
    return Result(
        "the lemma holds; delta / (exp(alpha) - 1) suffices in place of delta / (1 - exp(-alpha))",
        "yes, but not tight",
        text + "\n" + table(["k", "lemma 2", "implied_failure"], rows),
    )


def m_estimator_loss(psi, epsilon):
    """The greatest loss over the pairs of data sets {a, 60}, {0, a} on 61 points."""
    mechanism, codes = dpf.MEstimator(psi, grid=dpf.Grid(0, 60, step=1), epsilon=epsilon), np.arange(61)
    laws = ([mechanism.law(x).logpmf(codes) for x in ([a, 60.0], [0.0, a])] for a in range(1, 60))
    return max(float(np.abs(mine - theirs).max()) for mine, theirs in laws)


def m_estimator_privacy(quick):
    rows = []
    kinds = {
        "sign (median)": dpf.psi.Pinball(0.5),
        "Huber, k = 1": dpf.psi.Huber(1.0),
        "Huber, k = 3": dpf.psi.Huber(3.0),
    }
    for (name, psi), expected in zip(kinds.items(), (1.951, 1.918, 1.786), strict=True):
        published, ours = (m_estimator_loss(psi, factor * EPSILON) for factor in (2.0, 1.0))
        check("published", published, expected, 5e-4)
        check("corrected", max(ours - EPSILON, 0), 0, 1e-9)
        rows.append([name, f"{published:.3f}", f"{ours:.3f}"])
    text = paragraph(
        """Greatest loss for epsilon = 1 over neighbours {a, 60} and {0, a} on the points 0, 1, ..., 60, uniform prior:
        with exp(-n alpha |Psi| / (2 K)), as published, which is the law of dpfast at twice the epsilon, and with 4 K,
        as in dpfast."""
    )
    return Result(
        f"published: loss up to {max(row[1] for row in rows)} for alpha = 1; with 4 K at most "
        f"{max(row[2] for row in rows)}",
        "no: off by a factor of 2",
        text + "\n" + table(["psi", "as published", "dpfast"], rows),
    )


def fourth_theorem(quick):
    eta, error = (1 - CONFIDENCE) / 3, 0.1
    derivative = 2 * norm.cdf(1) - 1  # of Psi for Huber's psi with k = 1 and N(0, 1)
    slope_of_slope = norm.pdf(0) - norm.pdf(2)
    e2 = min(0.5, derivative / (6 * slope_of_slope))
    plug_in = math.ceil(
        (norm.isf(eta / 2) * 1.11 / e2) ** 2
    )  # the deviation of Huber's estimate is below 1.11 / sqrt(n)
    public = {
        "epsilon": EPSILON,
        "confidence": CONFIDENCE,
        "bound": 1.0,
        "derivative": derivative,
        "distribution_radius": 1.0,
        "parameter_radius": 1.0,
        "distribution_lipschitz": 2.0,
        "parameter_lipschitz": slope_of_slope,
        "plug_in_sample_size": plug_in,
        "width": 20.0,
    }
    sizes = [dpf.theory.m_estimator_sample_size(error, corrected=fixed, **public) for fixed in (True, False)]
    mechanism = dpf.MEstimator(dpf.psi.Huber(1.0), grid=dpf.Grid(-10, 10, step=2.0**-8), epsilon=EPSILON)
    rows, rng = [], np.random.default_rng(9)
    for n in (sizes[0] // 16, sizes[0] // 4, sizes[0]):
        added = []
        for _ in range(10 if quick else 100):
            x = rng.normal(size=n)
            without = dpf.MEstimator(dpf.psi.Huber(1.0), grid=mechanism.grid, epsilon=1e4)(x, rng=rng)
            added.append(abs(mechanism(x, rng=rng)) - abs(without))
        rows.append([f"{n:,}", f"{np.quantile(added, CONFIDENCE):.4f}"])
    check("theorem 4", max(float(rows[-1][1]) - error, 0), 0, 0)
    text = paragraph(
        f"""Huber's estimate, k = 1, of N(0, 1), uniform prior of width 20, epsilon = 1: added error at most {error:g}
        with probability {CONFIDENCE:g} needs n = {sizes[0]:,} (as published, {sizes[1]:,}). Found: the 95 % quantile of
        the added error."""
    )
    return Result(
        f"n = {sizes[0]:,} suffices for an added error of {error:g}; found {rows[-1][1]} there and {rows[0][1]} "
        "at a sixteenth",
        "yes, with alpha / 2 for alpha",
        text + "\n" + table(["n", "added error, found"], rows),
    )


@lru_cache
def linear_errors(quick):
    rows, rng, runs = [], np.random.default_rng(10), 200 if quick else 4000
    mechanism = dpf.GlobalSensitivity(Mean(), grid=dpf.Grid(-0.5, 0.5), epsilon=EPSILON)
    for n in (100, 1000) if quick else (100, 1000, 10_000):
        away = [abs(mechanism(rng.beta(10, 10, n) - 0.5, rng=rng)) for _ in range(runs)]
        public = {"variance": 1 / 84, "epsilon": EPSILON, "n": n, "confidence": CONFIDENCE}
        bounds = [dpf.theory.linear_upper_bound(0.5, corrected=fixed, **public) for fixed in (True, False)]
        found = float(np.quantile(away, CONFIDENCE))
        check("theorem 5", max(found - bounds[0], 0), 0, 0)
        order = math.sqrt(1 / 84 / n) + 1 / (n * EPSILON)
        rows.append([f"{n:,}", f"{found:.5f}", f"{bounds[0]:.5f}", f"{bounds[1]:.5f}", f"{found / order:.2f}"])
    return rows


def fifth_theorem(quick):
    rows = linear_errors(quick)
    text = paragraph(
        """Means of Beta(10, 10) - 1/2, R = 1, epsilon = 1: 95 % quantile of the error with Laplace noise of scale S /
        epsilon, the theorem for this noise, and as published for twice the noise."""
    )
    return Result(
        f"the bound holds; at n = {rows[-1][0]} found {rows[-1][1]}, bound {rows[-1][2]}, as published {rows[-1][3]}",
        "yes; 2 / alpha suffices where the paper has 4 / alpha",
        text + "\n" + table(["n", "found", "theorem 5, S / epsilon", "as published"], [row[:4] for row in rows]),
    )


def fourth_example(quick):
    rows = linear_errors(quick)
    ratios = [float(row[4]) for row in rows]
    text = paragraph("The same errors over sigma / sqrt(n) + R / (alpha n).")
    return Result(
        f"the 95 % error is {min(ratios):.2f} to {max(ratios):.2f} times sigma / sqrt(n) + R / (alpha n)",
        "yes",
        text + "\n" + table(["n", "found", "ratio"], [[row[0], row[1], row[4]] for row in rows]),
    )


PAPER = Paper(
    "chaudhuri-hsu",
    "Chaudhuri and Hsu: convergence rates for differentially private estimation",
    "K. Chaudhuri and D. Hsu, Convergence rates for differentially private statistical estimation, ICML 2012.",
    "Lower bounds for private estimators by the gross-error sensitivity and by the range of the target, and upper "
    "bounds for noise of smooth sensitivity and for the exponential mechanism. In the paper, alpha is what dpfast "
    "calls epsilon. It has no tables, and no figures.",
    (
        Item(
            "Definitions 2 and 3: influence function and gross-error sensitivity",
            "The change of a functional per mass moved to a point, in the limit and at a scale rho; its greatest "
            "modulus.",
            ("dpfast.theory.influence_function", "dpfast.theory.gross_error_sensitivity"),
            influence,
        ),
        Item(
            "Theorem 1: lower bound by the gross-error sensitivity",
            "For alpha < ln 2 / 2 and delta < alpha / 23 every (alpha, delta)-private estimator has an expected error "
            "of at least rho GES_rho / 16 for F or for some G within rho of it, rho = ceil(ln 2 / (2 alpha)) / n.",
            ("dpfast.theory.lower_bound", "dpfast.theory.lower_bound_scale"),
            first_theorem,
        ),
        Item(
            "Example 1: mean of bounded records",
            "For records in [0, a] the private error exceeds that without privacy up to n of order a^2 / (Var "
            "alpha^2).",
            ("dpfast.theory.lower_bound",),
            first_example,
        ),
        Item(
            "Theorem 2: lower bound by the range",
            "If the target can be anywhere in [l, l'], every alpha-private estimator has an expected error of at least"
            " (l' - l) / (4 (2 + exp(alpha n))) for some distribution.",
            ("dpfast.theory.pure_lower_bound",),
            second_theorem,
        ),
        Item(
            "Example 2: medians of uniform distributions",
            "For uniform distributions on [gamma - 1, gamma + 1], gamma in [-R, R], the error of private medians grows"
            " with R, that of the median does not.",
            ("dpfast.theory.pure_lower_bound", "dpfast.median", "bench.papers.chaudhuri_hsu.uniform_medians"),
            second_example,
            draw=draw_second_example,
            caption="Mean error of medians against R, with and without privacy, and Theorem 2",
        ),
        Item(
            "Lemma 2: several records",
            "P(A(D) in S) >= exp(-k alpha) P(A(D') in S) - delta / (1 - exp(-alpha)) if k records differ.",
            ("dpfast.theory.implied_failure",),
            group_lemma,
        ),
        Item(
            "Proposition 1: privacy of smooth sensitivity",
            "Laplace noise of scale 2 SS / alpha with beta = alpha / (2 ln(1 / delta)) is (alpha, delta)-private.",
            ("dpfast.smooth.valid_region",),
            smooth_bounds.published_constants,
            error="only for alpha up to 6.7 (delta 0.1) to 12 (delta 1e-8). Beyond, neighbours whose smooth "
            "sensitivities differ by exp(beta) have a divergence above delta. dpfast has exact constants for "
            "every epsilon.",
        ),
        Item(
            "Equation (3): the estimator",
            "A = T(F_n) + (2 / alpha) SS_beta(T, F_n) Z, Z standard Laplace.",
            ("dpfast.SmoothSensitivity", "dpfast.SmoothSensitivity.as_published"),
            smooth_bounds.smooth_estimator,
        ),
        Item(
            "Lemma 1: bound on the smooth sensitivity",
            "With probability 1 - eta, SS_beta <= max(2 Gamma_n / n, R exp(-beta (sqrt(n ln(2 / eta) / 2) - 1))).",
            ("dpfast.theory.smooth_sensitivity_bound",),
            smooth_bounds.lemma_of_paper,
        ),
        Item(
            "Theorem 3: error of the estimator",
            "With probability 1 - 2 eta, |A - T(F)| <= |T(F_n) - T(F)| + (2 ln(1 / eta) / alpha) times the bound of "
            "Lemma 1.",
            ("dpfast.theory.smooth_upper_bound",),
            smooth_bounds.third_theorem,
        ),
        Item(
            "Example 3: median of uniform distributions",
            "Gamma_n = 1/2 for the median and U[gamma - 1, gamma + 1], so the error is of order 1 / (alpha n).",
            ("dpfast.theory.gross_error_sensitivity", "dpfast.smooth.smooth_sensitivity"),
            smooth_bounds.third_example,
            error="Condition 2 takes all distributions near F, some of which have no mass around the median: Gamma_n "
            "grows as sqrt(n). The smooth sensitivity is 2 ln(1 / delta) / (e alpha f n), so that the error is "
            "of order ln(1 / delta) / (alpha^2 n). At F itself the gross-error sensitivity is 1, because the "
            "interval has length 2. Inverse sensitivity does attain 1 / (alpha n).",
        ),
        Item(
            "Proposition 3: privacy of M-estimators",
            "The density proportional to mu(theta) exp(-n alpha |Psi(F_n, theta)| / (2 K)) is alpha-private.",
            ("dpfast.MEstimator", "dpfast.audit.verify"),
            m_estimator_privacy,
            error="one record changes n |Psi| by up to 2 K, not K, so that the density is 2 alpha-private. dpfast has "
            "4 K for symmetric psi.",
        ),
        Item(
            "Theorem 4: records for M-estimators",
            "The number of records after which the exponential mechanism adds an error of at most epsilon.",
            ("dpfast.theory.m_estimator_sample_size", "dpfast.m_estimate"),
            fourth_theorem,
            error="alpha must be alpha / 2, because of Proposition 3. Condition 4 excludes the median, whose Psi has "
            "no derivative in the sample.",
        ),
        Item(
            "Theorem 5: linear functionals",
            "|A - T(F)| is at most a Bernstein bound plus 4 GES ln(2 / eta) / (alpha n), with probability 1 - 2 eta.",
            ("dpfast.theory.linear_upper_bound", "dpfast.mean"),
            fifth_theorem,
        ),
        Item(
            "Example 4: mean",
            "For records in an interval of length R the bound is of order sigma / sqrt(n) + R / (alpha n).",
            ("dpfast.theory.linear_upper_bound",),
            fourth_example,
        ),
        Item(
            "Appendix E: exponent p",
            "If Gamma is bounded over all distributions within sqrt(ln(2 / eta) / (2 n)) + n^-p of F, Lemma 1 holds "
            "with R exp(-beta (n^(1-p) - 1)).",
            ("dpfast.theory.smooth_sensitivity_bound", "dpfast.theory.smooth_upper_bound"),
            smooth_bounds.appendix,
            draw=smooth_bounds.draw_appendix,
            caption="Bounds on the smooth sensitivity of a trimmed mean by the exponent p, and smooth sensitivities "
            "found",
        ),
    ),
)
