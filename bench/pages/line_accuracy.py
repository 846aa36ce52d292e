"""Lines through records of two numbers, and regressions of real pay: dpfast, OpenDP, diffprivlib, no privacy."""

import math
from functools import cache, partial

import numpy as np

import dpfast as dpf
from bench import pages
from bench.pages.linear_accuracy import ERRORS, peer
from bench.pages.populations import DATA
from bench.pages.tables import digits, paragraph, size, table
from dpfast.regression.slopes import slopes_of_pairs

try:
    import opendp.prelude as opendp
    from opendp.extras.sklearn.linear_model import _make_private_theil_sen as opendp_line

    opendp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
except ImportError:
    opendp = None

SLOPE, INTERCEPT, DELTA = 1.7, 1.0, 1e-6
X_BOUND, Y_BOUND = 3.0, 9.0  # public, for methods that need them
CUTS, CANDIDATES, RUNS = (-3.0, 3.0), 1000, 30  # OpenDP's: the best of several in the first setting
SEED = 20261122
TESTED = 20_000  # rows of the pay, not in the fits
PAY = DATA / "uc_pay_2010_2023.csv.gz"
PAY_BOUNDS = np.array([0, 0, -1, 0, 0, 0]), np.array([3, 0.6, 1, 1, 1, 1])  # of columns
PAY_RESIDUAL = 0.2  # the bound of residuals in Huber's loss


def _released(fit):
    return fit.coefficients[0], fit.intercept


def _theil_sen(x, y, seed, *, epsilon, **options):
    return _released(dpf.theil_sen(x, y, epsilon=epsilon, rng=np.random.PCG64(seed), **options))


def _moments(x, y, seed, *, epsilon, delta):
    public = {"radius": X_BOUND, "label_bound": Y_BOUND, "epsilon": epsilon, "delta": delta}
    return _released(dpf.linear_regression(x[:, None], y, rng=np.random.PCG64(seed), **public))


@cache
def _opendp_measurement(epsilon):
    """Two medians of RUNS times the records, each with exponent 1 / scale; 2 for one replaced record."""
    made = opendp_line(
        output_measure=opendp.max_divergence(),
        x_bounds=CUTS,
        y_bounds=(-Y_BOUND, Y_BOUND),
        scale=4 * RUNS / epsilon,
        runs=RUNS,
        candidates_count=CANDIDATES,
    )
    if not math.isclose(made.map(2), epsilon):
        raise SystemExit(f"OpenDP's line has epsilon {made.map(2)}, not {epsilon}")
    return made


def _opendp(x, y, seed, *, epsilon):
    np.random.seed(seed)  # noqa: NPY002  # the source of its pairs
    return _opendp_measurement(epsilon)(np.stack([x, y], axis=1))


def _diffprivlib(x, y, seed, *, epsilon):
    bounds = {"bounds_X": (-X_BOUND, X_BOUND), "bounds_y": (-Y_BOUND, Y_BOUND)}
    model = peer.LinearRegression(epsilon=epsilon, random_state=seed, **bounds).fit(x[:, None], y)
    return model.coef_[0], model.intercept_


def _exact(x, y, seed):
    """Theil-Sen without privacy, with as many pairs."""
    k = dpf.TheilSen(epsilon=1.0).matching_count(len(x))
    slope = np.median(slopes_of_pairs(x.copy(), y.copy(), k, (-math.inf, math.inf)))
    return slope, np.median(y - slope * x)


def methods(epsilon):
    """Functions of x, y and a seed that return a slope and an intercept."""
    found = {
        "`theil_sen`": partial(_theil_sen, epsilon=epsilon),
        "`theil_sen`, bounds": partial(
            _theil_sen, epsilon=epsilon, slope_bounds=(-5, 5), intercept_bounds=(-Y_BOUND, Y_BOUND)
        ),
        "`linear_regression`": partial(_moments, epsilon=epsilon, delta=0.0),
        "`linear_regression`, delta": partial(_moments, epsilon=epsilon, delta=DELTA),
    }
    if opendp is not None:
        found["OpenDP, Theil-Sen"] = partial(_opendp, epsilon=epsilon)
    if peer is not None:
        found["diffprivlib"] = partial(_diffprivlib, epsilon=epsilon)
    found["least squares, no privacy"] = lambda x, y, seed: tuple(np.polyfit(x, y, 1))
    found["Theil-Sen, no privacy"] = _exact
    return found


def errors(kind, n, epsilon, runs):
    """For each method the root mean squared error of the line at a new x, which is standard normal."""
    rng, found = np.random.default_rng(SEED), {}
    for seed in range(runs):
        x = rng.normal(size=n)
        y = INTERCEPT + SLOPE * x + ERRORS[kind](rng, n)
        for name, fit in methods(epsilon).items():
            slope, intercept = fit(x, y, seed)
            found.setdefault(name, []).append((slope - SLOPE) ** 2 + (intercept - INTERCEPT) ** 2)
    return {name: math.sqrt(np.mean(squares)) for name, squares in found.items()}


def lines(quick):
    """One table: errors of lines by the law of the errors, n and epsilon."""
    rows = []
    for kind in ERRORS:
        for n in (1000,) if quick else (1000, 10_000):
            for epsilon in (1.0,) if quick else (0.5, 2.0):
                runs = 3 if quick else {1000: 60, 10_000: 20}[n]
                found = errors(kind, n, epsilon, runs)
                rows.append([kind, size(n), f"{epsilon:g}", *map(digits, found.values())])
    text = f"""One x, standard normal, and y = {INTERCEPT:g} + {SLOPE:g} x + error: the root mean squared error of the
        line at a new x, over 60 and 20 samples for the two n. Public for methods that need bounds: x within
        {X_BOUND:g} and y within {Y_BOUND:g} of 0, slopes within 5; `theil_sen` has a column without bounds. One
        replaced record, delta = {DELTA:g} where stated, else 0. OpenDP's regression has {RUNS} matchings,
        {CANDIDATES} candidates and x bounds of +-{CUTS[1]:g}, the best of six settings at n = 1000, normal errors and
        epsilon 0.5. Records beyond the bounds are clipped, which moves least squares."""
    return "\n".join(["## Lines", "", paragraph(text), table(["errors", "n", "epsilon", *found], rows)])


@cache
def _pay():
    """Pay in units of 100,000 dollars: columns base, overtime, year and campuses, and the label gross, shuffled."""
    year, campus, gross, base, overtime = np.loadtxt(PAY, delimiter=",", skiprows=1, usecols=(0, 1, 3, 4, 5)).T
    columns = [base / 1e5, overtime / 1e5, (year - 2016.5) / 6.5, *(campus == c for c in (1, 2, 3))]
    order = np.random.default_rng(SEED).permutation(len(gross))
    return np.column_stack(columns)[order], (gross / 1e5)[order]


def pay(quick):
    """One table: errors of predictions of the pay of others; left out without its file."""
    if not PAY.exists():
        return f"## Pay\n\nLeft out: {PAY.name} is not in the folder DPFAST_DATA.\n"
    X, y = _pay()
    fresh, target, X, y = X[:TESTED], y[:TESTED], X[TESTED:], y[TESTED:]
    rows = []
    for n in (1000,) if quick else (1000, 10_000, 100_000):
        for epsilon in (1.0,) if quick else (0.5, 2.0):
            found = {}
            for seed in range(2 if quick else 20):
                part = np.random.default_rng(seed).choice(len(y), n, replace=False)
                for name, (b, a) in _pay_fits(X[part], y[part], epsilon, seed).items():
                    found.setdefault(name, []).append(np.mean(np.abs(target - fresh @ b - a)))
            rows.append([size(n), f"{epsilon:g}", *(f"{1e5 * np.mean(each):,.0f}" for each in found.values())])
    text = f"""Gross pay at the University of California on base pay, overtime, year and campus (six columns;
        `theil_sen`: base pay alone), from random rows: the mean distance in dollars of the prediction for
        {TESTED:,} other rows from their pay, mean of 20 fits. In units of 100,000 dollars, with the year from -1 to 1
        and a column of 0 and 1 for each of three campuses. Public: base and gross pay are up to 300,000 and overtime up
        to 60,000 dollars; rows are clamped to these bounds, which diffprivlib takes, and the center and the radius are
        those of the box. Huber's loss: residuals are moved into +-{1e5 * PAY_RESIDUAL:,.0f} dollars. For most people
        gross pay is base pay, the line that a median finds."""
    return "\n".join(["## Pay", "", paragraph(text), table(["n", "epsilon", *found], rows)])


def _pay_fits(X, y, epsilon, seed):
    """The coefficients and the intercept of each method."""
    (lower, upper), found = PAY_BOUNDS, {}
    middle = (lower + upper) / 2
    rows, gross = np.clip(X, lower, upper), y - 1.5
    public = {"radius": np.linalg.norm(upper - middle), "center": middle, "label_bound": 1.5, "epsilon": epsilon}
    huber = {"model": "huber", "bound": PAY_RESIDUAL, **public}
    for ending, delta in (("", 0.0), (", delta", DELTA)):
        options = {"delta": delta, "rng": np.random.PCG64(seed)}
        found[f"`linear_regression`{ending}"] = _coefficients(dpf.linear_regression(rows, gross, **public, **options))
        found[f"`glm`, Huber{ending}"] = _coefficients(dpf.glm(rows, gross, **huber, **options))
    if peer is not None:
        bounds = {"bounds_X": (lower.tolist(), upper.tolist()), "bounds_y": (0.0, 3.0)}
        model = peer.LinearRegression(epsilon=epsilon, random_state=seed, **bounds).fit(X, y)
        found["diffprivlib"] = model.coef_, model.intercept_
    exact = np.linalg.lstsq(np.column_stack([X, np.ones(len(y))]), y, rcond=None)[0]
    found["least squares, no privacy"] = exact[:6], exact[6]
    for name, fit in (("`theil_sen`", partial(_theil_sen, epsilon=epsilon)), ("Theil-Sen, no privacy", _exact)):
        slope, intercept = fit(X[:, 0], y, seed)
        found[name] = slope * np.eye(6)[0], intercept
    return found


def _coefficients(fit):
    """The coefficients, and the intercept for labels that are not centered at 1.5."""
    return fit.coefficients, fit.intercept + 1.5


def figure(quick, path):
    """The error of a line against n, at epsilon 1."""
    ns = (300, 1000) if quick else (300, 1000, 3000, 10_000)
    found = [errors("normal", n, 1.0, 2 if quick else max(12, min(60, 60_000 // n))) for n in ns]
    draw({name.replace("`", ""): (ns, [each[name] for each in found]) for name in found[0]}, path)


def draw(curves, path):
    """Draw the errors, (n, errors) by the name of a method. Those without privacy are thin and have no markers."""
    drawing, axes = pages.pyplot().subplots(figsize=(5.6, 4.6))
    plain = {"marker": "", "linewidth": 1.2}
    looks = {
        "least squares, no privacy": {**plain, "color": "black", "linestyle": ":"},
        "Theil-Sen, no privacy": {**plain, "color": "0.4", "linestyle": "--"},
    }
    pages.draw(axes, curves, **looks)
    axes.set_title("Lines through n records, normal errors: epsilon = 1, one record replaced")
    axes.set(xlabel="number of records n", ylabel="error of the line")
    pages.ticks(axes.xaxis, next(iter(curves.values()))[0])
    pages.ticks(axes.yaxis, [0.02, 0.05, 0.1, 0.2, 0.5, 1])
    pages.legend(drawing, axes)
    pages.save(drawing, path)
