"""Slow twins of the private descent and of the contraction of Theorem 1."""

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog


def coins(threshold, count, words):
    """`count` coins from an iterator of words: four lanes a word, then a further word for each lane that is open."""
    lanes = [word >> 16 * j & 0xFFFF for word in itertools.islice(words, -(-count // 4)) for j in range(4)][:count]
    top, rest = threshold >> 48, threshold & (2**48 - 1)
    return [lane < top or (lane == top and next(words) >> 16 < rest) for lane in lanes]


def descend(x, pushes, kept, lower, upper, start, lean=0.0):
    """The theta sent to each person, and the last one; x is already clipped."""
    thetas = [start]
    for value, push, keep in zip(x, pushes, kept, strict=True):
        g = 1 if thetas[-1] >= value else -1
        thetas.append(min(max(thetas[-1] + lean * push - push * (g if keep else -g), lower), upper))
    return thetas


def transcript_law(protocol, x):
    """The exact probability of every sequence of reports."""
    law = {}
    for reports in itertools.product((0, 1), repeat=len(x)):
        state, probability = protocol.begin(), Fraction(1)
        for value, report in zip(x, reports, strict=True):
            p = protocol.probability(state.theta, value)
            probability *= p if report else 1 - p
            state = protocol.update(state, report)
        law[reports] = probability
    return law


def divergences(channel, p, q):
    """Both Kullback-Leibler divergences of the reports of p and of q; rows of `channel` are inputs."""
    a, b = p @ channel, q @ channel
    return float(np.sum(a * np.log(a / b))), float(np.sum(b * np.log(b / a)))


def worst_divergence(t, epsilon, directions):
    """The optimum of the linear programme over columns of entries 1 and E: shared part, own parts."""
    e = math.exp(epsilon)
    patterns = np.array(list(itertools.product((1.0, e), repeat=3)))
    shared, first, second = patterns.T
    a, b = (1 - t) * shared + t * first, (1 - t) * shared + t * second
    gain = (a - b if directions == 2 else a) * np.log(a / b)
    unit = (t * (e - 1)) ** 2
    return -linprog(-gain / unit, A_eq=patterns.T, b_eq=np.ones(3)).fun * unit
