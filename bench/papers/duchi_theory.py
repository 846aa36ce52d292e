"""Duchi, Jordan and Wainwright (2018): the inequalities and their corollaries, computed."""

import itertools
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from bench import pages
from bench.pages.tables import check, digits, paragraph, size, slope, table
from bench.papers import Result, duchi_drawing
from dpfast import Grid, local, theory

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0)


# ---- figure 3: the error of tests ----


def channels(epsilon):
    """The exact laws of reports of two records, by name."""
    interval = local.Interval(bounds=(0, 1), epsilon=epsilon)
    category = local.Categorical(10, epsilon)
    sign, signs = local.Hypercube(1, epsilon, method="majority"), local.Hypercube(4, epsilon, method="majority")
    return {
        "one bit": [sign.law(v) for v in ([1.0], [-1.0])],
        "codebook of [0, 1]": [interval.law(v) for v in (0.0, 1.0)],
        "one of 10 categories": [category.law(v) for v in (0, 1)],
        "four signs": [signs.law(v) for v in ([1.0] * 4, [-1.0] * 4)],
    }


def bayes_error(laws):
    """Least error of a test between two laws that are equally likely a priori."""
    one, other = (np.exp(law.logpmf(law.outcomes())) for law in laws)
    return float(np.minimum(one, other).sum() / 2)


@lru_cache
def testing_errors():
    """For each epsilon the errors by channel, "Laplace" noise on [0, 1] by formula."""
    found = {}
    for epsilon in EPSILONS:
        errors = {name: bayes_error(laws) for name, laws in channels(epsilon).items()}
        found[epsilon] = {**errors, "Laplace noise": math.exp(-epsilon / 2) / 2}
    return found


def draw_testing(quick, path):
    """Figure 3: the bound for every channel, and the error for some."""
    figure, [ax] = duchi_drawing.panels(1, 1, size=(5.6, 4.2))
    epsilons = np.linspace(0.01, 5, 100)
    bound = [theory.local_testing_error(epsilon=float(e)) for e in epsilons]
    ax.plot(epsilons, bound, color="black", ls="-", label="least error, every mechanism")
    found = testing_errors()
    colors = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#D55E00")
    for name, color, marker in zip(next(iter(found.values())), colors, "osvD^", strict=True):
        errors = [each[name] for each in found.values()]
        ax.plot(EPSILONS, errors, ls="", marker=marker, color=color, fillstyle="none", label=name)
    ax.set(xlabel="epsilon, local privacy", ylabel="error of the best test", ylim=(0, 0.52))
    ax.set_title("Which of two values does a person have?\nOne report, even odds")
    pages.legend(figure, ax)
    pages.save(figure, path)


def testing(quick):
    found = testing_errors()
    names = list(next(iter(found.values())))
    body = []
    for epsilon, errors in found.items():
        least = theory.local_testing_error(epsilon=epsilon)
        check(f"least error, epsilon = {epsilon}", min(errors.values()), least, 1e-6)
        body.append([f"{epsilon:g}", f"{least:.4f}", *(f"{errors[name]:.4f}" for name in names)])
    text = """Error of the best test between two values of a person, equally likely a priori, from one report: the bound
        for every mechanism, and the exact error for the laws of the library, for two values that are farthest apart."""
    return Result(
        "the bound 1 / (1 + exp(epsilon)) is attained by one bit; the other mechanisms disclose less",
        text=paragraph(text) + "\n" + table(["epsilon", "bound", *names], body),
    )


# ---- section 3: pairs ----


def contraction(quick):
    """Theorem 1 and Corollary 3: random channels against the bound, whose best form is a linear programme's optimum."""
    rng, rows = np.random.default_rng(1), []
    for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0):
        largest = 0.0
        for _ in range(200 if quick else 4000):
            channel = np.exp(epsilon * rng.integers(0, 2, (3, 3)))
            weights = np.linalg.lstsq(channel, np.ones(3), rcond=None)[0]
            if (weights > 1e-9).all() and np.allclose(channel @ weights, 1):
                p, q = rng.dirichlet(np.full(3, 0.5), 2)
                told = [law @ channel * weights for law in (p, q)]
                divergence = ((told[0] - told[1]) * np.log(told[0] / told[1])).sum()
                bound = theory.local_contraction(np.abs(p - q).sum() / 2, epsilon=epsilon)
                largest = max(largest, divergence / bound)
        check(f"Theorem 1, epsilon = {epsilon}", max(largest, 1.0), 1.0, 1e-9)
        forms = [theory.local_contraction(0.1, epsilon=epsilon, form=f) for f in ("exact", "sharp", "published")]
        rows.append([f"{epsilon:g}", *map(digits, forms), f"{forms[2] / forms[0]:.1f}", f"{largest:.3f}"])
    text = """Sum of both divergences of the reports, for total variation 0.1: the best bound, its limit for close
        laws, and the published one; their ratio; the largest ratio of the divergence to the best bound over random
        extremal channels with three reports."""
    headings = ["epsilon", "exact", "sharp", "published", "published / exact", "largest found / exact"]
    return Result(
        f"holds; the published bound is {float(rows[0][4]):.1f} to {float(rows[-1][4]):.0f} times the best one, which "
        "has a closed form",
        "yes, and not tight",
        paragraph(text) + "\n" + table(headings, rows),
    )


def le_cam(quick):
    """Proposition 1 against the exact error of the best test of n reports of one bit."""
    rows = []
    for epsilon, n in itertools.product((0.1, 0.5, 1.0), (10, 1000)):
        for t in (0.1, 1.0):
            keep = (1 + t * math.tanh(epsilon / 2)) / 2
            counts = np.arange(n + 1)
            logs = np.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in counts])
            one = np.exp(logs + counts * math.log(keep) + (n - counts) * math.log1p(-keep))
            best = np.minimum(one, one[::-1]).sum() / 2
            bounds = [theory.local_le_cam(1.0, t, epsilon=epsilon, n=n, form=f) for f in ("exact", "published")]
            check("Proposition 1", max(max(bounds) - best, 0.0), 0.0, 1e-12)
            rows.append([f"{epsilon:g}", n, f"{t:g}", *(f"{b:.4f}" for b in bounds), f"{best:.4f}"])
    text = """Error of tests between two laws of a bit at total variation t: the lower bound, with the best
        contraction and with the published one, and the exact error of the best test of n reports of randomised
        response."""
    return Result(
        "the bound holds; at epsilon 0.5, n = 10 and t = 1 it is "
        f"{theory.local_le_cam(1.0, 1.0, epsilon=0.5, n=10):.2f}, as published "
        f"{theory.local_le_cam(1.0, 1.0, epsilon=0.5, n=10, form='published'):.2f}",
        text=paragraph(text)
        + "\n"
        + table(["epsilon", "n", "t", "bound", "published constants", "best test of randomised response"], rows),
    )


def mean_bounds(quick):
    rows, sizes = [], [10**4, 10**6, 10**8]
    for k in (1.5, 2.0, 4.0, math.inf):
        lower = [theory.local_mean_lower_bound(n, epsilon=0.5, moment=k) for n in sizes]
        upper = [theory.local_mean_upper_bound(n, epsilon=0.5, moment=k) for n in sizes]
        found, expected = slope(sizes, lower), 1 / k - 1
        check(f"Corollary 1, k = {k}", found, expected, 0.02)
        published = theory.local_mean_lower_bound(sizes[1], epsilon=0.5, moment=k, form="published")
        rows.append(
            [
                "∞" if k == math.inf else f"{k:g}",
                digits(published),
                digits(lower[1]),
                digits(upper[1]),
                f"{found:.3f}",
                f"{expected:.3f}",
            ]
        )
    text = """Mean squared error for E|X|^k <= 1 at n = 1e6, epsilon = 0.5: lower bounds for every mechanism, upper
        bound of `local.mean`, and the slope of the lower bound in n from 1e4 to 1e8. The paper's constants are not
        given."""
    headings = ["k", "lower, published constants", "lower", "upper", "slope", "Corollary 1"]
    return Result(
        f"upper / lower at n = 1e6: {float(rows[1][3]) / float(rows[1][2]):.0f} for k = 2; slopes as in the corollary",
        text=paragraph(text) + "\n" + table(headings, rows),
    )


def truncation(quick):
    """Equation (10): spec figures of the mean squared error, X = 0.3 + a Student t with 3 degrees of freedom."""
    n, epsilon, runs, rng = 20_000, 1.0, 40 if quick else 600, np.random.default_rng(5)
    options = {"as published": {"method": "laplace", "truncation": "paper"}, "best T, Laplace": {"method": "laplace"}}
    options["best T, one bit"] = {"method": "two-point"}
    errors = {name: [] for name in options}
    for _ in range(runs):
        x = 0.3 + math.sqrt((1 - 0.09) / 3) * rng.standard_t(3, n)
        for name, chosen in options.items():
            errors[name].append((local.mean(x, epsilon=epsilon, moment=2, rng=rng, **chosen) - 0.3) ** 2)
    rows = []
    for name, chosen in options.items():
        t = theory.local_truncation(n, epsilon=epsilon, moment=2, **chosen)
        bound = theory.local_mean_upper_bound(n, epsilon=epsilon, moment=2, **chosen)
        error, deviation = np.mean(errors[name]), np.std(errors[name]) / math.sqrt(runs)
        check(f"bound of equation (10), {name}", max(error - bound, 0.0), 0.0, 4 * deviation)
        rows.append([name, f"{t:.3f}", f"{error:.4f} ± {deviation:.4f}", f"{bound:.4f}"])
    ratio = np.mean(errors["as published"]) / np.mean(errors["best T, Laplace"])
    text = f"""Mean of 0.3 + 0.55 t_3, n = {n:,}, epsilon = 1, k = 2: {runs} runs. The published T = (n
        epsilon^2)^(1/2k) has the right rate; the best T minimises the bound, with the sharp bias (k - 1)^(k - 1) /
        k^k T^(1 - k)."""
    return Result(
        f"the published T = {rows[0][1]} has {ratio:.0f} times the squared error of the best T = {rows[1][1]}",
        "no: right rate, wrong constant",
        paragraph(text) + "\n" + table(["truncation", "T", "mean squared error", "proved bound"], rows),
    )


def median_bounds(quick):
    rows, rng = [], np.random.default_rng(6)
    n, runs = 10_000, 20 if quick else 400
    x = rng.lognormal(0, 1, (runs, n))
    ordered = np.exp(np.sqrt(2) * _normal_quantiles())
    least = np.abs(ordered - 1).mean()
    for epsilon, width in itertools.product((0.5, 1.0, 2.0), (1.5, 4.0, 16.0)):
        protocol = local.MedianDescent(bounds=(0, width), epsilon=epsilon, steps="minimax")
        gaps = [np.abs(ordered - protocol(row, rng=rng)).mean() - least for row in x]
        lower = theory.local_median_lower_bound(n, epsilon=epsilon, width=width)
        upper = theory.local_median_upper_bound(n, epsilon=epsilon, width=width)
        check("Corollary 2: gap below the bound", max(np.mean(gaps) - upper, 0.0), 0.0, 1e-12)
        rows.append([f"{epsilon:g}", f"{width:g}", *map(digits, (lower, np.mean(gaps), upper))])
    text = f"""E|X - estimate| - E|X - median| for lognormal(0, 1) values in [0, r], n = {n:,}: the lower bound for
        the worst law, the mean of {runs} runs of (11) for this law, and the upper bound for every law, sqrt(2) r c /
        sqrt(n)."""
    ratio = theory.local_median_upper_bound(n, epsilon=0.5, width=4.0) / theory.local_median_lower_bound(
        n, epsilon=0.5, width=4.0
    )
    return Result(
        f"both bounds hold; they are a factor of {ratio:.0f} apart",
        text=paragraph(text) + "\n" + table(["epsilon", "r", "lower bound", "gap of (11)", "upper bound"], rows),
    )


def _normal_quantiles():
    from scipy.special import ndtri

    return ndtri((np.arange(2000) + 0.5) / 2000) / np.sqrt(2)


# ---- section 4: balls and cubes ----


def fano(quick):
    """Theorem 2 for random laws of four hypotheses and random channels."""
    rng, rows = np.random.default_rng(2), []
    signs = np.array(list(itertools.product((-1, 1), repeat=3)))
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        largest = {"published": 0.0, "sharp": 0.0}
        for _ in range(300 if quick else 5000):
            channel = np.exp(epsilon * rng.integers(0, 2, (3, 3)))
            weights = np.linalg.lstsq(channel, np.ones(3), rcond=None)[0]
            if not ((weights > 1e-9).all() and np.allclose(channel @ weights, 1)):
                continue
            laws = rng.dirichlet(np.ones(3), 4)
            told = laws @ (channel * weights)
            information = (told * np.log(told / told.mean(0))).sum(1).mean()
            correlation = (((laws - laws.mean(0)) @ signs.T) ** 2).mean(0).max()
            unit = math.expm1(epsilon) ** 2 * correlation
            for form, factor in (("published", 1), ("sharp", 8)):
                largest[form] = max(largest[form], information * factor / unit)
        check(f"Theorem 2, epsilon = {epsilon}", max(largest["sharp"], 1.0), 1.0, 1e-9)
        rows.append([f"{epsilon:g}", f"{largest['published']:.3f}", f"{largest['sharp']:.3f}"])
    text = """Information of one report about which of four laws, relative to the bound (E - 1)^2 times the
        correlation, and to an eighth of it: the largest of random laws and random extremal channels."""
    return Result(
        f"holds; the largest share of the published bound is {rows[0][1]} at epsilon 0.1: our 1/8 is nearly best",
        "yes, with room for a factor of 8",
        paragraph(text) + "\n" + table(["epsilon", "of the published bound", "of local_fano's"], rows),
    )


def ball_means(quick):
    rows = []
    for epsilon, d in itertools.product((0.5, 1.0, 4.0), (10, 1000)):
        n = 10**6
        lower = [theory.local_ball_mean_lower_bound(n, d, epsilon=epsilon, form=f) for f in ("published", "sharp")]
        upper = theory.local_ball_mean_upper_bound(n, d, epsilon=epsilon)
        best = local.L2Ball(d, epsilon, method="privunit").second_moment / n
        check("Corollary 4", int(lower[0] < lower[1] < min(upper, best)), 1, 0)
        figures = [f"{value:.2g}" for value in (*lower, best, upper)]
        rows.append([f"{epsilon:g}", d, *figures, f"{upper / lower[1]:.0f}"])
    text = """Mean squared error for vectors of norm 1 at n = 1e6: lower bounds for every mechanism, interactive or
        not, with the published constant of Theorem 3 and with ours; the worst errors of PrivUnit and of (25); the
        last by ours."""
    headings = ["epsilon", "d", "lower, published constants", "lower", "PrivUnit", "upper: (25)", "upper / lower"]
    return Result(
        f"order d / (n epsilon^2) on both sides; {rows[2][-1]} apart at epsilon 1, d = 10; the bound is not "
        "restricted to mechanisms without interaction",
        "yes; like the paper's, our lower bound is loose for epsilon between 1 and log d, where later "
        "work has the sharp order d / (n epsilon)",
        paragraph(text) + "\n" + table(headings, rows),
    )


def laplace_ball(quick):
    rows = []
    for d in (1, 10, 100, 1000):
        noise = 2 * d * (2 * math.sqrt(d)) ** 2
        half = local.L2Ball(d, 1.0).second_moment
        rows.append([d, digits(half), digits(noise), f"{noise / half:.1f}"])
    text = """Second moment of one report of a unit vector, epsilon = 1: the half-space mechanism, and Laplace noise
        of scale 2 sqrt(d) / epsilon, as the l1 distance of two vectors of the unit ball is at most 2 sqrt(d)."""
    return Result(
        f"Laplace noise costs d times more, {rows[-1][3]} times at d = 1000",
        text=paragraph(text) + "\n" + table(["d", "(25)", "Laplace", "ratio"], rows),
    )


def half_space(quick):
    """Equation (25): the length, and unbiasedness by simulation."""
    rng, n, rows = np.random.default_rng(7), 20_000 if quick else 400_000, []
    for d in (1, 2, 3, 10, 100):
        people = local.L2Ball(d, 1.0)
        length = math.sqrt(people.second_moment)
        c = 1 / math.tanh(0.5)
        published = c * math.sqrt(math.pi) / 2 * d * math.exp(math.lgamma((d - 1) / 2 + 1) - math.lgamma(d / 2 + 1))
        check(f"B, d = {d}", length / published, 1.0, 1e-9)
        v = np.full(d, 0.7 / math.sqrt(d))
        mean = people.estimate(people.randomize(np.tile(v, (n, 1)), rng=rng))
        away = math.sqrt(((mean - v) ** 2).sum() / ((length**2 - 0.49) / n))
        check(f"unbiased, d = {d}", away, 1.0, 5.0)
        rows.append([d, f"{length:.6f}", f"{published:.6f}", f"{d / (d + 1):.3f}", f"{away:.2f}"])
    text = f"""epsilon = 1, radius 1: the length of a report; the published B; what the mean of the reports would be
        multiplied by if Z were uniform in the half ball, as appendix I.2 says; distance of the mean of {n:,} reports
        from the vector, in units of its standard deviation."""
    return Result(
        "the published B is right for Z on the sphere",
        "yes, on the sphere",
        paragraph(text) + "\n" + table(["d", "length", "published B", "half ball", "distance"], rows),
    )


def published_cube_loss(d, ratio):
    """The largest log-ratio of (26) as published, exactly: ties are in both half-cubes; ratio = exp(epsilon)."""
    half = 2 ** (d - 1) + (math.comb(d, d // 2) // 2 if d % 2 == 0 else 0)
    keep = ratio / (1 + ratio)
    pmf = {}
    for agree in range(d + 1):
        inside, outside = (2 * agree >= d), (2 * agree <= d)
        pmf[agree] = (keep * inside + (1 - keep) * outside) / half
    assert sum(math.comb(d, agree) * p for agree, p in pmf.items()) == 1
    return math.log(max(pmf.values()) / min(pmf.values()))


def cube(quick):
    rows = []
    for epsilon, ratio in (
        ("0.1", Fraction(1105170918, 10**9)),
        ("1", Fraction(2718281828, 10**9)),
        ("4", Fraction(5459815, 10**5)),
    ):
        for d in (2, 3, 4, 27):
            loss = published_cube_loss(d, ratio)
            expected = math.log(1 + ratio) if d % 2 == 0 else math.log(ratio)
            check(f"loss of (26), d = {d}", loss, expected, 1e-9)
            people = local.Hypercube(d, float(epsilon), method="majority")
            t = math.comb(2 * (d // 2), d // 2) / 4 ** (d // 2)
            c = 1 / math.tanh(float(epsilon) / 2)
            published = c / t if d % 2 else c * (1 + 1 / t)
            rows.append([epsilon, d, f"{loss:.4f}", f"{math.sqrt(people.second_moment / d):.4f}", f"{published:.4f}"])
    text = """The largest log-ratio of probabilities of (26) as published, by exact enumeration; B of `Hypercube`,
        whose ties are in the smaller half; the published B."""
    return Result(
        "for even d the published mechanism has loss log(1 + exp(epsilon)): 0.744 at epsilon 0.1, never below log 2; "
        "for odd d it is right. With ties in the smaller half it is private, and B is smaller, too: c / t - 1",
        "no: for even d it is not private",
        paragraph(text) + "\n" + table(["epsilon", "d", "loss as published", "B of Hypercube", "published B"], rows),
    )


# ---- section 5: cubes of hypotheses ----


def mixtures(quick):
    """Theorem 3 and Proposition 3 as published, for the three signs of docs/proofs/local-lower-bounds.md."""
    epsilon, rows = 1.0, []
    keep = 1 / (1 + math.exp(-epsilon))
    for n in (1, 2, 10, 100, 1000):
        counts = np.arange(n + 1)
        logs = np.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in counts])

        def law(p, logs=logs, counts=counts, n=n):
            return np.exp(logs + counts * math.log(p) + (n - counts) * math.log1p(-p))

        plus, minus = (law(keep) + law(1 - keep)) / 2, law(0.5)
        positive = (plus > 0) & (minus > 0)
        divergence = ((plus - minus)[positive] * np.log(plus[positive] / minus[positive])).sum()
        wrong = np.minimum(plus, minus).sum() / 2
        rows.append([n, f"{divergence:.4f}", "0", f"{wrong + 1:.4f}", "1.5"])
    check("Theorem 3 is false", int(float(rows[1][1]) > 0.02 and float(rows[-1][3]) < 1.01), 1, 0)
    text = """Three signs v; a person's bit has mean (1 + v_1) v_2 v_3 / 2; n reports of randomised response at
        epsilon = 1. Sum of both divergences of the mixtures over v_1 = 1 and v_1 = -1, and Theorem 3's bound on it;
        least mean number of wrong signs, and Proposition 3's lower bound on it."""
    sharp = theory.local_assouad(0.5, 3, 9.0, epsilon=epsilon, n=1)
    headings = ["n", "divergence", "Theorem 3", "wrong signs", "Proposition 3"]
    return Result(
        f"for n = 1000 reports {rows[-1][3]} of three signs are wrong, and the proposition says at least 1.5; with the "
        f"correlation of neighbours the bound is {sharp:.2f} at n = 1 and 0 for large n, as it should be",
        "no: false from two reports on",
        paragraph(text) + "\n" + table(headings, rows),
    )


def logistic_bounds(quick):
    rows = []
    for epsilon, d in itertools.product((0.5, 1.0), (3, 10, 100)):
        n = 10**7
        lower = [theory.local_logistic_lower_bound(n, d, epsilon=epsilon, form=f) for f in ("published", "sharp")]
        limit = 16 * local.L2Ball(d, epsilon, radius=math.sqrt(d)).second_moment / n  # H = I / 4 at 0
        check("Corollary 6", int(lower[0] < lower[1] < limit), 1, 0)
        rows.append([f"{epsilon:g}", d, *map(digits, (*lower, limit)), f"{limit / lower[1]:.0f}"])
    text = """Squared error of the d coefficients at n = 1e7, features in {-1, 1}^d: lower bounds for every mechanism;
        the limit of (31) with (25) for coefficients near 0, by Lemma 2; the last by ours."""
    return Result(
        f"order d^2 / (n epsilon^2) on both sides, {rows[3][-1]} apart at epsilon 1 and d = 3",
        "yes, with the correlation of neighbours in the proof",
        paragraph(text)
        + "\n"
        + table(["epsilon", "d", "lower, published constants", "lower", "limit of (31)", "limit / lower"], rows),
    )


def descent(quick):
    """Lemma 2 and (31) for a logistic model in three dimensions: n times the squared error against its limit."""
    n, runs, rng = (4000, 20, np.random.default_rng(8)) if quick else (100_000, 200, np.random.default_rng(8))
    truth, rows = np.array([1.0, -0.5, 0.5]), []
    corners = np.array(list(itertools.product((-1, 1), repeat=3))) / math.sqrt(3)
    p = 1 / (1 + np.exp(-corners @ truth))
    inverse = np.linalg.inv((corners * (p * (1 - p))[:, None]).T @ corners / 8)
    for epsilon in (2.0, 4.0):
        protocol = local.GradientDescent(3, epsilon, norm="l2", radius=1.0, bound=5.0)
        errors = []
        for _ in range(runs):
            k = rng.integers(0, 8, n)
            y = rng.random(n) < p[k]
            errors.append(((protocol(corners[k], y, rng=rng) - truth) ** 2).sum())
        limit = local.L2Ball(3, epsilon).second_moment / 3 * np.trace(inverse @ inverse)
        found, deviation = n * np.mean(errors), n * np.std(errors) / math.sqrt(runs)
        check("Lemma 2", found / limit, 1.0 if not quick else found / limit, 0.5)
        rows.append([f"{epsilon:g}", f"{found:,.0f} ± {deviation:,.0f}", f"{limit:,.0f}", f"{found / limit:.2f}"])
    text = f"""Logistic regression with three features on the unit sphere, one report of (25) per person, n = {n:,},
        {runs} runs: n times the mean squared error, and its limit, trace of B^2 / d H^-2."""
    return Result(
        f"at n = {n:,} the error is {rows[0][-1]} (epsilon 2) and {rows[1][-1]} (epsilon 4) times its limit",
        "yes, as a limit",
        paragraph(text) + "\n" + table(["epsilon", "n times squared error", "limit", "ratio"], rows),
    )


def density_bounds(quick):
    rows, sizes = [], [10**6, 10**8, 10**10]
    for smoothness in (1.0, 2.0, 3.0):
        options = {"epsilon": 0.5, "smoothness": smoothness}
        lower = [theory.local_density_lower_bound(n, **options) for n in sizes]
        published = theory.local_density_lower_bound(sizes[0], form="published", **options)
        terms = range(2, 400, 2)
        upper = min(
            local.SeriesReports(k, 0.5, grid=Grid(0, 1), method="one-frequency", basis="trigonometric").mise_bound(
                sizes[0], smoothness=smoothness, roughness=1.0
            )
            for k in terms
        )
        found, expected = slope(sizes, lower), -smoothness / (smoothness + 1)
        check(f"Corollary 7, smoothness {smoothness}", found, expected, 0.04)
        rows.append([f"{smoothness:g}", *map(digits, (published, lower[0], upper)), f"{found:.3f}", f"{expected:.3f}"])
    text = f"""Integrated squared error at n = {size(sizes[0])}, epsilon = 0.5, sum of j^(2 s) b_j^2 at most 1: lower
        bounds for every mechanism; the upper bound for one random frequency per person, with the best number of
        terms; slope of the lower bound in n up to {size(sizes[-1])}."""
    headings = ["smoothness s", "lower, published constants", "lower", "upper", "slope", "Corollary 7"]
    return Result(
        f"upper / lower is {float(rows[0][3]) / float(rows[0][2]):.0f} at s = 1; slopes as in the corollary",
        text=paragraph(text) + "\n" + table(headings, rows),
    )
