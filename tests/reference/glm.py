"""Slow twins of the private gradient descent: gradients by libm, reports by the randomisers themselves, exact laws."""

import itertools
import math
from fractions import Fraction

import numpy as np

from dpfast import local
from tests.reference import hypercube


def meant(row, radius, norm):
    """The features that a row means, in units of the radius."""
    row = [float(v) for v in row]
    if norm == "linf":
        return np.array([0.0 if math.isnan(v) else min(max(v / radius, -1.0), 1.0) for v in row])
    if any(map(math.isnan, row)):
        return np.zeros(len(row))
    if any(map(math.isinf, row)):
        limit = np.array([math.copysign(1.0, v) if math.isinf(v) else 0.0 for v in row])
        return limit / np.linalg.norm(limit)
    largest = max(map(abs, row)) or 1.0
    size = math.sqrt(math.fsum((v / largest) ** 2 for v in row)) * largest
    return np.array(row) / max(size, radius)


def residual(model, t, y, clip):
    """A'(t) less the label, clipped."""
    y = 0.0 if math.isnan(y) else y
    if model == "logistic":
        value = 1 / (1 + math.exp(-t)) - (y > 0)
    else:
        value = t - y if model == "linear" else math.exp(t) - max(y, 0.0)
    return min(max(value, -clip), clip)


def gradient(protocol, theta, row, y):
    """What a person's report is about, in units of the radius."""
    x = np.append(meant(row, protocol.radius, protocol.norm), [1.0] * protocol.intercept)
    return residual(protocol.model, float(x @ theta), float(y), protocol.clip) * x


def moved(protocol, theta, vector, i):
    """theta after report i, decoded as `vector`: against it by the length of a step, back into the ball."""
    theta = theta - protocol.step(i) * vector / np.linalg.norm(vector)
    return theta * min(1.0, protocol.bound / max(float(np.linalg.norm(theta)), 1e-300))


def descend(protocol, X, y, report):
    """The thetas sent to people, then the last one; the device sends `report(gradient)`."""
    thetas = [np.zeros(protocol.d + protocol.intercept)]
    for i, (row, label) in enumerate(zip(X, y, strict=True), 1):
        z = protocol.randomizer.decode(report(gradient(protocol, thetas[-1], row, label)))
        thetas.append(moved(protocol, thetas[-1], z, i))
    return thetas


def signs_law(randomizer, g):
    """The exact law of the decoded report of `Hypercube`, as signs, about one gradient."""
    d, k = randomizer.d, randomizer.k
    ratio = randomizer._coin.ratio
    weights = hypercube.threshold(k, randomizer.tau, ratio)[0]
    up = [Fraction(hypercube.up_code(float(v), randomizer.radius), 2**48) for v in g]
    law = {}
    for subset in itertools.combinations(range(d), k):
        for signs, p in hypercube.law([up[j] for j in subset], weights).items():
            outcome = [0] * d
            for j, sign in zip(subset, signs, strict=True):
                outcome[j] = sign
            law[tuple(outcome)] = p / math.comb(d, k)
    return law


def transcript_law(protocol, people, report_law=signs_law):
    """The exact probability of every sequence of decoded reports of a few people, (row, label) each."""
    law = {(): (Fraction(1), np.zeros(protocol.d + protocol.intercept))}
    for i, (row, label) in enumerate(people, 1):
        longer = {}
        for reports, (p, theta) in law.items():
            for z, q in report_law(protocol.randomizer, gradient(protocol, theta, row, label)).items():
                longer[*reports, z] = p * q, moved(protocol, theta, np.array(z), i) if any(z) else theta
        law = longer
    return {reports: p for reports, (p, _) in law.items()}


def published_even_law(randomizer, g):
    """Control: the majority of all signs, of an even number, as published."""
    weights = hypercube.published_even(randomizer.d, randomizer._coin.ratio)[0]
    return hypercube.law([Fraction(hypercube.up_code(float(v), randomizer.radius), 2**48) for v in g], weights)


def silent_law(randomizer, g):
    """Control: a person with gradient 0 sends zeros only."""
    return {(0,) * randomizer.d: Fraction(1)} if not np.any(g) else signs_law(randomizer, g)


def largest_ratio(laws):
    """Over all outcomes and pairs of laws; infinite where an outcome is possible under one only."""
    worst = Fraction(0)
    for p, q in itertools.permutations(laws, 2):
        for outcome, probability in p.items():
            other = q.get(outcome, Fraction(0))
            if probability > worst * other:
                worst = probability / other if other else math.inf
                if worst == math.inf:
                    return worst
    return worst


def clipped_target(model, X, y, clip):
    """The root of the mean clipped gradient, the limit of the descent for many people. Rows inside the unit ball."""
    theta = np.zeros(X.shape[1])
    for _ in range(1000):
        t = X @ theta
        p = 1 / (1 + np.exp(-t))
        mean, slope = {"linear": (t, np.ones_like(t)), "poisson": (np.exp(t), np.exp(t)), "logistic": (p, p * (1 - p))}[
            model
        ]
        weight = np.minimum(1.0, clip / np.maximum(np.abs(mean - y), 1e-9))
        curvature = (X * (slope * weight)[:, None]).T @ X
        change = np.linalg.solve(curvature, X.T @ np.clip(mean - y, -clip, clip))
        theta -= change
        if np.abs(change).max() < 1e-10:
            return theta
    raise ArithmeticError("no convergence")


def linear(d, epsilon, **options):
    """Linear regression by signs: labels of any size, so that gradients reach the corners of the cube and 0."""
    return local.GradientDescent(d, epsilon, model="linear", norm="linf", **options)
