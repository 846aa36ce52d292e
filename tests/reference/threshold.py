"""The law of all answers whether values are above a noisy threshold, by a sum over the noise of the threshold."""

import numpy as np

REACH = 200  # beyond which the noise of the threshold is neglected: e**-80 for scales of up to 2.5


def at_least(scale, z):
    """P(Z >= z) of discrete Laplace noise."""
    one_sided = 1 + np.exp(-1 / scale)
    return np.where(z > 0, np.exp(-z / scale) / one_sided, 1 - np.exp((z - 1) / scale) / one_sided)


def law(values, threshold, answers, scales):
    """Probabilities of all sequences of answers, tuples of 0 and 1, which end with the last yes."""
    of_threshold, of_value = map(float, scales)
    noise = np.arange(-REACH, REACH + 1.0)
    mass = np.exp(-np.abs(noise) / of_threshold) * np.tanh(0.5 / of_threshold)
    found = {}

    def go_on(given, mass):
        if sum(given) == answers or len(given) == len(values):
            found[given] = float(mass.sum())
            return
        distance = threshold + noise - values[len(given)]
        go_on((*given, 1), mass * at_least(of_value, distance))
        go_on((*given, 0), mass * at_least(of_value, 1 - distance))

    go_on((), mass)
    return found


def law_of_one_noise(values, threshold, answers, scales):
    """The same for noise on values that is drawn once: not private."""
    of_threshold, of_value = map(float, scales)
    noise = np.arange(-60, 61)
    found = {}
    for a in noise.tolist():
        for b in noise.tolist():
            given = []
            for value in values:
                if sum(given) < answers:
                    given.append(int(value + b >= threshold + a))
            weight = np.exp(-abs(a) / of_threshold - abs(b) / of_value)
            found[tuple(given)] = found.get(tuple(given), 0.0) + float(weight)
    return found
