"""Means of rows, second moments, principal components and scalers."""

import math

import numpy as np

import dpfast as dpf
from bench.peers.comparison import Job, Peer
from bench.peers.jobs.counts import REPLACED

TITLE = "Vectors"
DELTA = 1e-6
TEXT = """Means of columns in [0, 1]: the mean distance of a coordinate from the exact mean. Means in a ball: the root
    mean squared length of the noise. Second moments: the root mean squared distance in the Frobenius norm. OpenDP's and
    diffprivlib's pure second moments are made of released eigenvalues and eigenvectors. Principal components: the share
    of the variance of the best two directions that the released ones lack. Scalers: the root mean squared error of the
    means and deviations of ten standard normal columns, relative to their deviation."""


def _columns():
    n, epsilon = 1000, 1.0
    for d in (2, 5, 20, 100):
        public = {"epsilon": epsilon}
        yield Job(
            f"means of {d} columns", "uniform", n, f"{epsilon:g}, {REPLACED}",
            lambda generator, d=d: (np.floor(1024 * generator.random((n, d))) / 1024,),
            lambda X: dpf.mean(X, grid=dpf.Grid(0, 1, step=2.0**-20), epsilon=epsilon),
            lambda released, X: np.abs(released - X.mean(axis=0)).mean(),
            (Peer("opendp", "columns", {**public, "n": n, "d": d}), Peer("diffprivlib", "columns", public)),
            datasets=5, rounds=400,
        )  # fmt: skip


def _in_ball(n, d):
    def draw(generator):
        X = generator.normal(size=(n, d)) / math.sqrt(d)
        return (X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None],)

    return draw


def _balls():
    for d, epsilon in ((2, 1.0), (10, 1.0), (100, 1.0), (10, 0.1), (10, 4.0)):
        n = 1000
        public = {"n": n, "radius": 1.0, "epsilon": epsilon, "delta": DELTA}
        yield Job(
            f"mean in a ball, d = {d}", "normal, cut", n, f"({epsilon:g}, {DELTA:g}), {REPLACED}", _in_ball(n, d),
            lambda X, e=epsilon: dpf.mean(X, radius=1.0, epsilon=e, delta=DELTA),
            lambda released, X: np.sum((released - X.mean(axis=0)) ** 2),
            (Peer("opendp", "ball", public), Peer("diffprivlib", "ball", public)),
            root=True, datasets=5, rounds=400,
        )  # fmt: skip


def _second_moments():
    for n, d, epsilon, delta in (
        (1000, 3, 1.0, DELTA), (1000, 10, 1.0, DELTA), (1000, 3, 1.0, 0.0), (10_000, 5, 1.0, 0.0), (1000, 5, 4.0, 0.0)
    ):  # fmt: skip
        public = {"n": n, "radius": 1.0, "epsilon": epsilon}
        if delta:
            peers = (Peer("opendp", "second_moments", {**public, "delta": delta}),)
        else:
            peers = (
                Peer("opendp", "eigen_second_moments", {**public, "d": d}),
                Peer("diffprivlib", "second_moments", public),
            )
        guarantee = f"({epsilon:g}, {delta:g})" if delta else f"{epsilon:g}"
        yield Job(
            f"second moments, d = {d}", "normal, cut", n, f"{guarantee}, {REPLACED}", _in_ball(n, d),
            lambda X, e=epsilon, delta=delta: dpf.covariance(X, radius=1.0, epsilon=e, delta=delta, centered=False),
            lambda released, X: np.sum((released - X.T @ X / len(X)) ** 2),
            peers, root=True, datasets=20, rounds=30,
        )  # fmt: skip


KEPT = 2


def _components():
    from dpfast.sklearn import PrivatePCA

    for n, d, epsilon in ((10_000, 5, 0.5), (10_000, 5, 2.0), (1000, 5, 2.0)):
        radius = 1.5 * math.sqrt(np.sum(1 / np.arange(1, d + 1) ** 2))

        def draw(generator, n=n, d=d, radius=radius):
            directions = np.linalg.qr(generator.normal(size=(d, d)))[0] / np.arange(1, d + 1)
            X = generator.normal(size=(n, d)) @ directions.T
            return X * np.minimum(1, radius / np.linalg.norm(X, axis=1))[:, None], directions

        def lacking(released, X, directions):
            captured = np.sum((np.asarray(released) @ directions) ** 2)
            return 1 - captured / np.sum(1 / np.arange(1, KEPT + 1) ** 2)

        def ours(X, directions, epsilon=epsilon, radius=radius):
            return PrivatePCA(KEPT, radius=radius, centered=False, epsilon=epsilon).fit(X).components_

        public = {"kept": KEPT, "radius": radius, "epsilon": epsilon}
        yield Job(
            f"components, d = {d}", "normal, cut", n, f"{epsilon:g}, {REPLACED}", draw, ours, lacking,
            (Peer("diffprivlib", "components", public),
             Peer("opendp", "components", {**public, "n": n, "d": d})),
            datasets=20, rounds=10,
        )  # fmt: skip


def _scalers():
    from dpfast.sklearn import PrivateStandardScaler

    for n, span, epsilon in ((10_000, 10.0, 1.0), (10_000, 4.0, 1.0), (1000, 4.0, 5.0)):

        def ours(X, span=span, epsilon=epsilon):
            model = PrivateStandardScaler(epsilon=epsilon, bounds=(-span, span)).fit(X)
            return np.array([model.mean_, model.scale_])

        public = {"lower": -span, "upper": span, "epsilon": epsilon}
        yield Job(
            "standard scaler", f"normal in [-{span:g}, {span:g}]", n, f"{epsilon:g}, {REPLACED}",
            lambda generator, n=n: (generator.normal(size=(n, 10)),), ours,
            lambda released, X: np.mean((released - np.array([X.mean(axis=0), X.std(axis=0)])) ** 2),
            (Peer("diffprivlib", "scaler", public),),
            root=True, datasets=20, rounds=30,
        )  # fmt: skip


def jobs():
    yield from _columns()
    yield from _balls()
    yield from _second_moments()
    yield from _components()
    yield from _scalers()
