"""``dpf.glm`` against scikit-learn's fit without privacy, with two classes and four, and a gradient against a mean."""

import numpy as np
from sklearn.linear_model import LogisticRegression

import dpfast as dpf
from bench.asv.timed import Timed
from dpfast.regression import GradientSums


class Logistic(Timed):
    """A whole fit."""

    params = (["dpfast", "dpfast, pure", "scikit-learn"], [(1_000_000, 20), (30_000, 100)])
    param_names = ("line", "shape")
    timeout = 300

    def setup(self, line, shape):
        rng = np.random.default_rng(0)
        x = rng.normal(size=shape)
        y = rng.random(shape[0]) < 1 / (1 + np.exp(-x @ rng.normal(size=shape[1]) / np.sqrt(shape[1])))
        options = {"radius": 2 * np.sqrt(shape[1]), "epsilon": 1.0}
        self.run = {
            "dpfast": lambda: dpf.glm(x, y, delta=1e-6, **options),
            "dpfast, pure": lambda: dpf.glm(x, y, **options),
            "scikit-learn": lambda: LogisticRegression(C=np.inf).fit(x, y),
        }[line]


class Multinomial(Timed):
    """A whole fit with four classes."""

    params = (["dpfast", "dpfast, pure", "scikit-learn"], [(1_000_000, 20), (30_000, 100)])
    param_names = ("line", "shape")
    timeout = 300

    def setup(self, line, shape):
        rng = np.random.default_rng(0)
        x = rng.normal(size=shape)
        y = np.argmax(x @ rng.normal(size=(shape[1], 4)) / np.sqrt(shape[1]) + rng.gumbel(size=(shape[0], 4)), axis=1)
        options = {"model": "multinomial", "classes": 4, "radius": 2 * np.sqrt(shape[1]), "epsilon": 1.0}
        self.run = {
            "dpfast": lambda: dpf.glm(x, y, delta=1e-6, **options),
            "dpfast, pure": lambda: dpf.glm(x, y, **options),
            "scikit-learn": lambda: LogisticRegression(C=np.inf).fit(x, y),
        }[line]


class Gradient(Timed):
    """The release of one gradient, with a square transform; that of four classes, too."""

    params = (["dpfast", "dpfast, 4 classes", "X.mean(axis=0)", "X @ R"], [(1_000_000, 5), (1_000_000, 20)])
    param_names = ("line", "shape")

    def setup(self, line, shape):
        rng, d = np.random.default_rng(0), shape[1]
        x, r = rng.normal(size=shape), rng.normal(size=(d + 1, d + 1))
        y = (rng.random(shape[0]) < 0.5).astype(float)
        ball = dpf.domains.Ball(2 * np.sqrt(d))
        options = {"transform": r, "domain": ball, "clip": 4.0, "epsilon": 1.0}
        one = GradientSums("logistic", np.zeros(d + 1), **options)
        several = GradientSums("multinomial", np.zeros((4, d + 1)), **options)
        self.run = {
            "dpfast": lambda: one((x, y)),
            "dpfast, 4 classes": lambda: several((x, y)),
            "X.mean(axis=0)": lambda: x.mean(axis=0),
            "X @ R": lambda: x @ r[:d],
        }[line]
