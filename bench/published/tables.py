"""Synthetic tables of categories."""

import itertools
from functools import partial

import numpy as np

import dpfast as dpf
from bench.published.comparison import Case, Published

TITLE = "Synthetic tables"
TEXT = """The mean total variation distance between the pairs of columns of as many synthetic records and those of the
    records. MST: McKenna, Miklau and Sheldon 2021, a third of rho each for columns, for a tree of pairs by the
    exponential mechanism, and for these pairs, here fitted to the columns by iterative proportions in place of a
    graphical model, which for a tree has the same form. PrivBayes: Zhang and others 2017, networks of degree 1, half of
    epsilon for the parents by the exponential mechanism on distances from independence, half for Laplace noise. The
    implementation of MST and AIM in OpenDP is on the page of [other libraries](peers.md)."""
DELTA = 1e-6


def _counts(X, i, j, sizes):
    flat = np.bincount(X[:, i] * sizes[j] + X[:, j], minlength=sizes[i] * sizes[j])
    return flat.reshape(sizes[i], sizes[j]).astype(float)


def _shares(counts):
    counts = np.maximum(counts, 1e-9)
    return counts / counts.sum()


def _fitted(pair, row, column, sweeps=30):
    """The pair, scaled in turn to the shares of its row and its column."""
    for _ in range(sweeps):
        pair = pair * (row / pair.sum(axis=1))[:, None]
        pair = pair * (column / pair.sum(axis=0))
    return pair


def _drawn(generator, n, order, shares, pairs, sizes):
    """Records from a tree: `order` has (parent, child), the first with None, each after its parent."""
    made = np.empty((n, len(sizes)), np.int64)
    for parent, child in order:
        if parent is None:
            made[:, child] = generator.choice(sizes[child], n, p=shares[child])
            continue
        given = pairs[parent, child].cumsum(axis=1)
        given /= given[:, -1:]
        made[:, child] = (generator.random(n)[:, None] > given[made[:, parent]]).sum(axis=1)
    return made


def spanning_tree(generator, X, sizes, mu):
    """A third of mu**2 each: Gaussian noise on columns and on pairs, and d - 1 selections."""
    d, part = len(sizes), mu / np.sqrt(3)
    singles = [
        np.bincount(X[:, j], minlength=sizes[j]) + np.sqrt(d) / part * generator.normal(size=sizes[j]) for j in range(d)
    ]
    shares = [_shares(single) for single in singles]
    total = max(1.0, np.mean([single.sum() for single in singles]))
    # The exponential mechanism has rho = epsilon**2 / 8: part**2 / 2 for d - 1 of them.
    epsilon, groups, order = part * 2 / np.sqrt(d - 1), list(range(d)), []
    scores = {
        (i, j): np.abs(_counts(X, i, j, sizes) - total * np.outer(shares[i], shares[j])).sum()
        for i, j in itertools.combinations(range(d), 2)
    }
    for _ in range(d - 1):
        left = [pair for pair in scores if groups[pair[0]] != groups[pair[1]]]
        i, j = max(left, key=lambda pair: epsilon / 2 * scores[pair] + generator.gumbel())
        groups = [groups[i] if group == groups[j] else group for group in groups]
        order.append((i, j))
    pairs = {}
    for i, j in order:
        noisy = _counts(X, i, j, sizes) + np.sqrt(d - 1) / part * generator.normal(size=(sizes[i], sizes[j]))
        pairs[i, j] = _fitted(_shares(noisy), shares[i], shares[j])
        pairs[j, i] = pairs[i, j].T
    return _drawn(generator, round(total), _rooted(order, d), shares, pairs, sizes)


def _rooted(edges, d):
    reached, found = {0}, [(None, 0)]
    while len(reached) < d:
        for i, j in [*edges, *[(j, i) for i, j in edges]]:
            if i in reached and j not in reached:
                reached.add(j)
                found.append((i, j))
    return found


def bayes_network(generator, X, sizes, epsilon):
    """One replaced record moves a distance from independence, in records, by at most 3, and two counts of each pair."""
    n, d = X.shape
    joint = lambda i, j: _counts(X, i, j, sizes)  # noqa: E731
    score = lambda P: np.abs(P - np.outer(P.sum(axis=1), P.sum(axis=0)) / n).sum() / 2  # noqa: E731
    start = int(generator.integers(d))
    order, reached = [(None, start)], [start]
    for _ in range(d - 1):
        choices = [(i, j) for i in reached for j in range(d) if j not in reached]
        logarithms = [epsilon / 2 / (d - 1) / (2 * 3) * score(joint(i, j)) for i, j in choices]
        parent, child = choices[int(np.argmax(logarithms + generator.gumbel(size=len(choices))))]
        order.append((parent, child))
        reached.append(child)
    pairs = {
        (i, j): _shares(joint(i, j) + generator.laplace(0, 2 * (d - 1) / (epsilon / 2), (sizes[i], sizes[j])))
        for i, j in order[1:]
    }
    first = order[1]
    shares = {start: pairs[first].sum(axis=1)}
    return _drawn(generator, n, order, shares, pairs, sizes)


def adaptive_marginals(generator, X, sizes, mu, share=0.9):
    """Rounds: the pair or column that the model fits worst, less the noise of measuring it, then the model anew.

    The model is the joint table itself, of the largest entropy among those near the noisy marginals: there are few
    cells. A round has `share` of its rho for noise; where the model hardly moved, the next ones have four times rho.
    """
    d, rho = len(sizes), mu**2 / 2
    # In the workload of all pairs, a column counts for each pair with it, and a pair for those with one of its columns.
    cliques = {(j,): d - 1 for j in range(d)} | dict.fromkeys(itertools.combinations(range(d), 2), 2 * (d - 1))

    def marginal(table, clique):
        return table.sum(axis=tuple(set(range(d)) - set(clique))).ravel()

    exact = np.zeros(sizes)
    np.add.at(exact, tuple(X.T), 1.0)
    sigma, epsilon = np.sqrt(16 * d / (2 * share * rho)), np.sqrt(8 * (1 - share) * rho / (16 * d))
    measured, used = {}, 0.0  # the precision of all noisy counts of a clique together, and their sum by precision

    def measure(clique):
        counts, (precision, noisy) = marginal(exact, clique), measured.get(clique, (0.0, 0.0))
        noisy = noisy + (counts + sigma * generator.normal(size=counts.size)) / sigma**2
        measured[clique] = precision + 1 / sigma**2, noisy

    for j in range(d):
        measure((j,))
        used += 1 / (2 * sigma**2)
    total = max(1.0, np.mean([noisy.sum() / precision for precision, noisy in measured.values()]))
    table = _entropic(np.full(sizes, total / np.prod(sizes)), measured, total)
    while used < rho:
        left = rho - used
        if left <= 2 * (1 / (2 * sigma**2) + epsilon**2 / 8):  # the last round
            sigma, epsilon = np.sqrt(1 / (2 * share * left)), np.sqrt(8 * (1 - share) * left)
        lost = [
            weight * (np.abs(marginal(exact - table, clique)).sum() - np.sqrt(2 / np.pi) * sigma * size)
            for clique, weight in cliques.items()
            for size in [np.prod([sizes[j] for j in clique])]
        ]
        logarithms = epsilon / 2 / max(cliques.values()) * np.array(lost)
        clique = list(cliques)[np.argmax(logarithms + generator.gumbel(size=len(lost)))]
        measure(clique)
        used += (1 / (2 * sigma**2) + epsilon**2 / 8) * (1 + 1e-9)
        before, table = table, _entropic(table, measured, total)
        moved = marginal(table - before, clique)
        if np.abs(moved).sum() <= np.sqrt(2 / np.pi) * sigma * moved.size:
            sigma, epsilon = sigma / 2, epsilon * 2
    flat = generator.choice(table.size, round(total), p=(table / table.sum()).ravel())
    return np.column_stack(np.unravel_index(flat, sizes))


def _entropic(table, measured, total, steps=60):
    """Mirror descent of the squares of the distances from the noisy marginals, in units of their noise."""
    step, logarithms = 1 / total, np.log(np.maximum(table, 1e-300))

    def loss(table):
        value, slope = 0.0, np.zeros(table.shape)
        for clique, (precision, noisy) in measured.items():
            away = table.sum(axis=tuple(set(range(table.ndim)) - set(clique)), keepdims=True)
            away = away - noisy.reshape(away.shape) / precision
            value, slope = value + precision / 2 * (away**2).sum(), slope + precision * away
        return value, slope

    value, slope = loss(table)
    for _ in range(steps):
        moved = logarithms - step * slope
        moved += np.log(total) - np.log(np.exp(moved - moved.max()).sum()) - moved.max()
        other = np.exp(moved)
        found = loss(other)
        if found[0] < value:
            table, logarithms, step, (value, slope) = other, moved, 1.5 * step, found
        else:
            step /= 2
    return table


def _distance(released, X):
    sizes = X.max(axis=0) + 1
    found = []
    for i, j in itertools.combinations(range(X.shape[1]), 2):
        size = max(sizes[j], released[:, j].max() + 1)
        both = [np.bincount(Z[:, i] * size + Z[:, j], minlength=size * size * 20) / len(Z) for Z in (released, X)]
        found.append(np.abs(both[0] - both[1]).sum() / 2)
    return np.mean(found)


def _draw(generator, n, sizes):
    """A chain of columns, each near the one before, and two columns that depend on two others."""
    X = np.empty((n, len(sizes)), np.int64)
    X[:, 0] = generator.binomial(sizes[0] - 1, 0.3, n)
    for j in range(1, len(sizes)):
        near = X[:, j - 1] + generator.integers(0, 2, n) + (X[:, j - 2] > 1 if j > 2 else 0)
        X[:, j] = np.where(generator.random(n) < 0.7, near % sizes[j], generator.integers(0, sizes[j], n))
    return (X,)


def _ours(X, sizes, **public):
    names = [f"c{j}" for j in range(len(sizes))]
    columns = {name: dpf.Categories(range(size), missing=0) for name, size in zip(names, sizes, strict=True)}
    made = dpf.marginals(dict(zip(names, X.T, strict=True)), columns, **public).sample(len(X))
    return np.column_stack([np.asarray(made[name]) for name in names]).astype(np.int64)


def cases():
    for sizes, n, epsilon in (
        ((4, 6, 3, 5, 4), 3000, 0.5),
        ((8, 5, 6, 3, 7, 4), 15_000, 1.0),
        ((6, 4, 5, 3, 5, 3), 20_000, 0.1),
    ):
        shared = {"draw": partial(_draw, n=n, sizes=sizes), "error": _distance, "datasets": 8, "rounds": 4}
        records, mu = f"{len(sizes)} columns", dpf.theory.gaussian_mu(epsilon, DELTA)
        small = [Published("AIM", partial(adaptive_marginals, sizes=sizes, mu=mu))] if np.prod(sizes) < 10_000 else []
        public = {"neighbors": "add-remove", "epsilon": epsilon, "delta": DELTA}
        yield Case(
            "table", records, n, f"({epsilon:g}, {DELTA:g}), add-remove",
            ours=partial(_ours, sizes=sizes, **public), **shared,
            algorithms=(
                Published("MST", partial(spanning_tree, sizes=sizes, mu=mu)),
                *small,
            ),
        )  # fmt: skip
        yield Case(
            "table", records, n, f"{epsilon:g}", ours=partial(_ours, sizes=sizes, epsilon=epsilon), **shared,
            algorithms=(Published("PrivBayes", partial(bayes_network, sizes=sizes, epsilon=epsilon)),),
        )  # fmt: skip
