"""Jobs in diffprivlib. Sensitivities of its means and variances are for one replaced record, n public; of its counts
and histograms for one added or removed record."""

import math
from importlib.metadata import version

import diffprivlib.tools as tools
import numpy as np
import serve
from diffprivlib import BudgetAccountant, mechanisms, models
from diffprivlib.models.utils import covariance_eig


def count(epsilon):
    """Of n nonzero values among 2 n, far from the ends of the range to which it clamps."""
    return lambda x: tools.count_nonzero(np.repeat([True, False], x.size), epsilon=epsilon)


def total(lower, upper, epsilon, integers):
    kind, bounds = (int, (int(lower), int(upper))) if integers else (float, (lower, upper))
    return lambda x: tools.sum(x.astype(kind), epsilon=epsilon, bounds=bounds, dtype=kind)


def mean(lower, upper, epsilon):
    return lambda x: tools.mean(x, epsilon=epsilon, bounds=(lower, upper))


def variance(lower, upper, epsilon):
    return lambda x: tools.var(x, epsilon=epsilon, bounds=(lower, upper))


def deviation(lower, upper, epsilon):
    return lambda x: tools.std(x, epsilon=epsilon, bounds=(lower, upper))


def quantile(q, lower, upper, epsilon):
    return lambda x: tools.quantile(x, q, epsilon=epsilon, bounds=(lower, upper))


def quantiles(qs, lower, upper, epsilon):
    return lambda x: np.sort(tools.quantile(x, qs, epsilon=epsilon, bounds=(lower, upper)))


def histogram(cells, epsilon):
    """Counts of codes from 0 to cells - 1."""
    return lambda x: tools.histogram(x, epsilon=epsilon, bins=cells, range=(-0.5, cells - 0.5))[0]


def columns(epsilon):
    return lambda X: tools.mean(X, epsilon=epsilon, bounds=(0.0, 1.0), axis=0)


def _gaussians(sensitivity, epsilon, delta):
    return mechanisms.GaussianAnalytic(epsilon=epsilon, delta=delta, sensitivity=sensitivity)


def ball(n, radius, epsilon, delta):
    """Means of rows in an l2 ball around 0: equal independent noise on each coordinate."""
    noise = _gaussians(2 * radius / n, epsilon, delta)
    return lambda X: [noise.randomise(float(value)) for value in X.mean(axis=0)]


def second_moments(n, radius, epsilon):
    def release(X):
        values, vectors = covariance_eig(X, epsilon=epsilon, norm=radius)
        return vectors * values @ vectors.T / n

    return release


def components(kept, radius, epsilon):
    make = lambda: models.PCA(kept, epsilon=epsilon, data_norm=radius, centered=True)  # noqa: E731
    return lambda X, directions: make().fit(X).components_


def scaler(lower, upper, epsilon):
    def release(X):
        model = models.StandardScaler(epsilon=epsilon, bounds=(lower, upper)).fit(X)
        return [model.mean_, model.scale_]

    return release


def linear(limit, label_bound, epsilon):
    def release(X, y):
        bounds = {"bounds_X": (-limit * np.ones(X.shape[1]), limit * np.ones(X.shape[1]))}
        model = models.LinearRegression(epsilon=epsilon, bounds_y=(-label_bound, label_bound), **bounds).fit(X, y)
        return [*model.coef_, model.intercept_]

    return release


def logistic(radius, epsilon, penalty):
    def release(X, y, *others):
        options = {"C": penalty, "max_iter": 1000}
        model = models.LogisticRegression(epsilon=epsilon, data_norm=radius, **options).fit(X, y)
        return [*model.coef_[0], model.intercept_[0]]

    return release


def select(epsilon, sensitivity, method):
    made = {"exponential": mechanisms.Exponential, "permute-and-flip": mechanisms.PermuteAndFlip}[method]
    return lambda scores: made(epsilon=epsilon, sensitivity=sensitivity, utility=scores.tolist()).randomise()


def integer_noise(epsilon, sensitivity):
    noise = mechanisms.Geometric(epsilon=epsilon, sensitivity=sensitivity)
    return lambda zeros: [noise.randomise(0) for _ in zeros]


def gaussian_scale(epsilon, delta):
    noise = _gaussians(1.0, epsilon, delta)
    return lambda: noise._scale  # the standard deviation has no public name


def composed_laplaces(scale, releases, delta):
    """The epsilon of several releases of sensitivity 1, by its accountant."""
    accountant = BudgetAccountant(slack=delta)
    for _ in range(releases):
        accountant.spend(1 / scale, 0)
    return lambda: accountant.total()[0]


def randomized_bits(epsilon):
    p = math.exp(epsilon) / (math.exp(epsilon) + 1)
    one = mechanisms.Binary(epsilon=epsilon, value0="0", value1="1")

    def release(x):
        ones = sum(one.randomise("1" if value else "0") == "1" for value in x)
        return (ones / x.size - (1 - p)) / (2 * p - 1)

    return release


if __name__ == "__main__":
    serve.main(globals(), version("diffprivlib"))
