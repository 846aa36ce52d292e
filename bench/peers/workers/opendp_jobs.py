"""Jobs in OpenDP: one replaced record of a public number of records is a distance of 2, one added record of 1."""

import math
from importlib.metadata import version

import numpy as np
import opendp.prelude as dp
import serve

dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")


def _records(n, kind=float):
    """Vectors of numbers; n None is a private number of records."""
    atoms = dp.atom_domain(T=float, nan=False) if kind is float else dp.atom_domain(T="i64")
    return (dp.vector_domain(atoms, size=n), dp.symmetric_distance()), 1 if n is None else 2


def _calibrated(at_scale, d_in, epsilon, bounds=(1e-9, 1e12)):
    return at_scale(dp.binary_search_param(at_scale, d_in=d_in, d_out=epsilon, bounds=bounds))


def count(epsilon):
    space, d_in = _records(None)
    return _calibrated(lambda scale: space >> dp.t.then_count() >> dp.m.then_laplace(scale), d_in, epsilon)


def total(n, lower, upper, epsilon, integers):
    """The sum of integers, or of floats."""
    space, d_in = _records(n, int if integers else float)
    kind = int if integers else float
    clamped = space >> dp.t.then_clamp((kind(lower), kind(upper)))
    made = _calibrated(lambda scale: clamped >> dp.t.then_sum() >> dp.m.then_laplace(scale), d_in, epsilon)
    return lambda x: made(x.astype(np.int64) if integers else x)


def mean(n, lower, upper, epsilon):
    space, d_in = _records(n)
    clamped = space >> dp.t.then_clamp((lower, upper)) >> dp.t.then_mean()
    return _calibrated(lambda scale: clamped >> dp.m.then_laplace(scale), d_in, epsilon)


def private_size_mean(lower, upper, epsilon, share):
    """A sum around the middle of the bounds, and a count, which takes a share of epsilon."""
    space, d_in = _records(None)
    half, middle = (upper - lower) / 2, (upper + lower) / 2
    clamped = space >> dp.t.then_clamp((-half, half)) >> dp.t.then_sum()
    part = _calibrated(lambda scale: clamped >> dp.m.then_laplace(scale), d_in, epsilon * (1 - share))
    size = count(epsilon * share)

    def release(x):
        released = part(x - middle) / max(1, size(x))
        return middle + min(max(released, -half), half)

    return release


def variance(n, lower, upper, epsilon):
    space, d_in = _records(n)
    clamped = space >> dp.t.then_clamp((lower, upper)) >> dp.t.then_variance(ddof=0)
    return _calibrated(lambda scale: clamped >> dp.m.then_laplace(scale), d_in, epsilon)


def deviation(n, lower, upper, epsilon):
    released = variance(n, lower, upper, epsilon)
    return lambda x: math.sqrt(max(0.0, released(x)))


def quantile(q, n, lower, upper, epsilon, candidates):
    """By the exponential mechanism in its variant of noisy maxima, over evenly spaced candidates."""
    points = np.linspace(lower, upper, candidates).tolist()
    space, d_in = _records(n)

    def at_scale(scale, points):
        chosen = dp.m.then_private_quantile(dp.max_divergence(), candidates=points, alpha=q, scale=scale)
        return space >> chosen

    few = points[:2]  # the scale does not depend on the number of candidates
    scale = dp.binary_search_param(lambda scale: at_scale(scale, few), d_in=d_in, d_out=epsilon, bounds=(1e-3, 1e6))
    return at_scale(scale, points)


def quantiles(qs, n, lower, upper, epsilon, candidates):
    """One after the other, with equal parts of epsilon."""
    each = [quantile(q, n, lower, upper, epsilon / len(qs), candidates) for q in qs]
    return lambda x: sorted(release(x) for release in each)


def tree_quantiles(qs, n, lower, upper, epsilon, leaves):
    """From a consistent tree of counts of bins."""
    edges = np.linspace(lower, upper, leaves - 1).tolist()
    space, d_in = _records(n)
    size = n or 1000
    branching = dp.t.choose_branching_factor(size_guess=size)
    counted = (
        space
        >> dp.t.then_find_bin(edges=edges)
        >> dp.t.then_count_by_categories(categories=list(range(leaves)), null_category=False)
        >> dp.t.then_b_ary_tree(leaf_count=leaves, branching_factor=branching)
    )
    noisy = _calibrated(lambda scale: counted >> dp.m.then_laplace(scale), d_in, epsilon)
    consistent = dp.t.make_consistent_b_ary_tree(branching)
    middle = dp.t.make_quantiles_from_counts(edges, qs, interpolation="linear", F=float, TA=float)

    def release(x):
        counts = np.maximum(consistent(noisy(x)), 0)
        return middle(counts[:leaves].tolist())

    return release


def histogram(cells, epsilon, d_in):
    """Counts of codes from 0 to cells - 1, negative ones moved to 0."""
    space, _ = _records(None, int)
    counted = space >> dp.t.then_count_by_categories(categories=list(range(cells)), null_category=False)
    made = _calibrated(lambda scale: counted >> dp.m.then_laplace(scale), d_in, epsilon)
    return lambda x: np.maximum(made(x), 0)


def columns(n, d, epsilon):
    """Means of columns in [0, 1], with Laplace noise for the l1 sensitivity d / n."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    noisy = _calibrated(lambda scale: space >> dp.m.then_laplace(scale), d / n, epsilon)
    return lambda X: noisy(X.mean(axis=0))


def _gaussian_scale(sensitivity, epsilon, delta):
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)

    def at_scale(scale):
        private = dp.c.make_zCDP_to_approxDP(space >> dp.m.then_gaussian(scale))
        return dp.c.make_fix_delta(private, delta)

    bounds = (sensitivity / 10, 1e6 * sensitivity)
    scale = dp.binary_search_param(at_scale, d_in=sensitivity, d_out=(epsilon, delta), bounds=bounds)
    return scale, space >> dp.m.then_gaussian(scale)


def ball(n, radius, epsilon, delta):
    """Means of rows in an l2 ball around 0."""
    _, noisy = _gaussian_scale(2 * radius / n, epsilon, delta)
    return lambda X: noisy(X.mean(axis=0))


def second_moments(n, radius, epsilon, delta):
    """The upper triangle with entries off the diagonal times sqrt(2), which is an isometry; Gaussian noise."""
    _, noisy = _gaussian_scale(math.sqrt(2) * radius**2 / n, epsilon, delta)

    def release(X):
        d = X.shape[1]
        rows, across = np.triu_indices(d)
        weights = np.where(rows == across, 1.0, math.sqrt(2))
        released = np.zeros((d, d))
        released[rows, across] = np.asarray(noisy((X.T @ X / n)[rows, across] * weights)) / weights
        return released + np.triu(released, 1).T

    return release


def eigen_second_moments(n, d, radius, epsilon):
    """Eigenvalues and eigenvectors, pure; half of epsilon for either."""
    from opendp.extras.sklearn._make_eigendecomposition import then_private_np_eigendecomposition

    rows = dp.numpy.array2_domain(num_columns=d, size=n, norm=radius, p=2, origin=np.zeros(d), nan=False, T=float)
    space = rows, dp.symmetric_distance()
    part = np.nextafter(epsilon / 2 / (d - 1), 0)
    made = space >> then_private_np_eigendecomposition(epsilon / 2, [part] * (d - 1))

    def release(X):
        values, vectors = made(X)
        return vectors * np.maximum(values, 0) @ vectors.T / n

    return release


def components(n, d, kept, radius, epsilon):
    def release(X, directions):
        model = dp.sklearn.decomposition.PCA(
            epsilon=epsilon, row_norm=radius, n_samples=n, n_features=d, n_components=kept
        )
        return model.fit(X).components_

    return release


def line(epsilon, x_cuts, y_bounds, matchings, candidates):
    """Theil-Sen: two medians of `matchings` times the records, each with exponent 1 / scale."""
    from opendp.extras.sklearn.linear_model import _make_private_theil_sen

    made = _make_private_theil_sen(
        output_measure=dp.max_divergence(),
        x_bounds=tuple(x_cuts),
        y_bounds=tuple(y_bounds),
        scale=4 * matchings / epsilon,
        runs=matchings,
        candidates_count=candidates,
    )
    if not math.isclose(made.map(2), epsilon):
        raise SystemExit(f"the line has epsilon {made.map(2)}, not {epsilon}")
    return lambda x, y: made(np.stack([x, y], axis=1))


def select(epsilon, sensitivity):
    """The index of the largest score, by noisy maxima (permute-and-flip)."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    return _calibrated(
        lambda scale: space >> dp.m.then_noisy_max(dp.max_divergence(), scale=scale), sensitivity, epsilon, (1e-6, 1e6)
    )


def integer_noise(epsilon, sensitivity):
    """Noise on each of a vector of integers."""
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    noisy = _calibrated(lambda scale: space >> dp.m.then_laplace(scale), sensitivity, epsilon)
    return lambda zeros: noisy(zeros.astype(np.int64))


def gaussian_scale(epsilon, delta):
    scale, _ = _gaussian_scale(1.0, epsilon, delta)
    return lambda: scale


def composed_gaussians(sigma, releases, delta):
    """The epsilon of several releases of sensitivity 1."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    together = dp.c.make_zCDP_to_approxDP(dp.c.make_composition([space >> dp.m.then_gaussian(sigma)] * releases))
    return lambda: together.map(1.0).epsilon(delta)


def composed_laplaces(scale, releases, delta):
    """The epsilon of several releases of sensitivity 1: the better of basic composition and of zCDP."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    one = space >> dp.m.then_laplace(scale)
    basic = dp.c.make_composition([one] * releases).map(1.0)
    concentrated = dp.c.make_composition([dp.c.make_pureDP_to_zCDP(one)] * releases)
    return lambda: min(basic, dp.c.make_zCDP_to_approxDP(concentrated).map(1.0).epsilon(delta))


def partitions(epsilon, delta):
    """The counts of keys that reach a threshold: what is released, by key, -1 for keys that are not.

    The stated delta of a threshold T is P(1 + noise > T), but a count of T is released
    (github.com/opendp/opendp/issues/2922): the threshold is one more than the least whose stated delta is at most
    `delta`.
    """
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.symmetric_distance()
    counted = space >> dp.t.then_count_by()
    scale = 1 / epsilon

    def at(threshold):
        return counted >> dp.m.then_laplace_threshold(scale=scale, threshold=threshold)

    while at(10**9).map(1)[0] > epsilon:
        scale = np.nextafter(scale, math.inf)
    low, high = 1, 2**20
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if at(middle).map(1)[1] <= delta else (middle, high)
    made = at(high + 1)

    def release(keys, most):
        released = np.full(most, -1.0)
        for key, size in made(keys.astype(np.int64)).items():
            released[key] = size
        return released

    return release


def randomized_categories(k, epsilon):
    """k-ary randomised response, one record at a time, and its unbiased estimate."""
    one = dp.m.make_randomized_response(categories=list(range(k)), prob=math.exp(epsilon) / (math.exp(epsilon) + k - 1))
    p, q = math.exp(epsilon) / (math.exp(epsilon) + k - 1), 1 / (math.exp(epsilon) + k - 1)

    def release(x):
        counts = np.bincount([one(int(value)) for value in x], minlength=k)
        return (counts / x.size - q) / (p - q)

    return release


def randomized_bits(epsilon):
    """The share of ones."""
    p = math.exp(epsilon) / (math.exp(epsilon) + 1)
    one = dp.m.make_randomized_response_bool(prob=p)
    return lambda x: (np.mean([one(bool(value)) for value in x]) - (1 - p)) / (2 * p - 1)


def local_laplace(epsilon):
    """The mean of numbers in [-1, 1], each with Laplace noise."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    noisy = _calibrated(lambda scale: space >> dp.m.then_laplace(scale), 2.0, epsilon)
    return lambda x: np.mean(noisy(x))


if __name__ == "__main__":
    serve.main(globals(), version("opendp"))
