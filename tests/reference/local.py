"""Slow twins of the local randomisers: plain integers, one word after the other, and laws by definition."""

import itertools
from fractions import Fraction

PRIME = 2**32 - 5
WORD = 2**64


class Words:
    """Words in order; `take(n)` the next n of them."""

    def __init__(self, words):
        self._words = iter(words)

    def take(self, n):
        return list(itertools.islice(self._words, n))

    def one(self):
        return next(self._words)


def below(word, n, words):
    """Uniform on 0..n-1: the high part of word * n, unless the low part is one of the first 2^64 mod n."""
    while word * n % WORD < WORD % n:
        word = words.one()
    return word * n // WORD


def windows(words, starts, width, size, threshold):
    out = []
    drawn = words.take(2 * len(starts))
    for i, start in enumerate(starts):
        window = list(range(start, start + width))
        rest = [j for j in range(size) if j not in window]
        side = window if drawn[2 * i] < threshold else rest
        out.append(side[below(drawn[2 * i + 1], len(side), words)])
    return out


def rows(words, x, order, threshold):
    out = []
    for code in x:
        coin, row = words.take(2)
        row %= order
        bit = (row & code).bit_count() % 2
        out.append(2 * row + (bit if coin < threshold else 1 - bit))
    return out


def unary(words, x, size, threshold, digits=8):
    """Rows of bits; each random number is compared digit by digit, the digits of 64 lanes being one word."""
    fair = words.take(-(-len(x) // 64))
    per_row = -(-size // 64)
    total = per_row * len(x)
    drawn = words.take(digits * total)
    flat = []
    for i in range(total):
        real = min(64, size - 64 * (i % per_row))
        lanes = []
        for lane in range(real):
            number = sum((drawn[j * total + i] >> lane & 1) << (63 - j) for j in range(digits))
            if number >> (64 - digits) == threshold >> (64 - digits):
                number += words.one() >> digits
            lanes.append(int(number < threshold))
        flat += lanes
    out = [flat[i * size : (i + 1) * size] for i in range(len(x))]
    for i, code in enumerate(x):
        out[i][code] = fair[i // 64] >> (i % 64) & 1
    return out


def subsets(words, x, width, size, threshold):
    """Sets; Floyd's algorithm on the list of the other categories."""
    out = []
    drawn = words.take((width + 1) * len(x))
    for i, code in enumerate(x):
        coin, *places = drawn[i * (width + 1) : (i + 1) * (width + 1)]
        others = [v for v in range(size) if v != code]
        inside = coin < threshold
        members = {code} if inside else set()
        count = width - inside
        for step, last in enumerate(range(size - 1 - count, size - 1)):
            place = below(places[step], last + 1, words)
            members.add(others[place] if others[place] not in members else others[last])
        out.append(members)
    return out


def large_subsets(words, x, width, size, threshold, digits=8):
    """Sets; independent members, then places that change until there are enough of them."""
    total, out = -(-size // 64), []
    drawn = words.take((digits * total + 1) * len(x))
    for i, code in enumerate(x):
        coin, *bits = drawn[i * (digits * total + 1) : (i + 1) * (digits * total + 1)]
        inside, share = coin < threshold, width * 2**digits // size
        number = [
            sum((bits[j * total + v // 64] >> v % 64 & 1) << (digits - 1 - j) for j in range(digits))
            for v in range(size)
        ]
        members = {v for v in range(size) if number[v] < share and v != code}
        more = len(members) < width

        def another(more, code=code, members=members):
            while True:
                place = below(words.one(), size, words)
                if place != code and (place in members) != more:
                    return place

        while len(members) != width - 1:
            members ^= {another(more)}
        last = another(True)
        out.append(members | {code if inside else last})
    return out


def lines(words, x, edge, threshold):
    out = []
    drawn = words.take(3 * len(x))
    for i, code in enumerate(x):
        coin, first, second = drawn[3 * i : 3 * i + 3]
        slope = below(first, PRIME, words)
        height = below(second, edge, words) if coin < threshold else edge + below(second, PRIME - edge, words)
        out.append((slope, (height - slope * code) % PRIME))
    return out


def dither(words, x, lower, knots):
    out = []
    for value in x:
        value = min(max((0.0 if value != value else value) - lower, knots[0]), knots[-1])
        s = max(i for i in range(len(knots) - 1) if i == 0 or knots[i] <= value)
        part = (value - knots[s]) / (knots[s + 1] - knots[s])
        out.append(s + ((words.one() >> 11) * 2.0**-53 < part))
    return out


def line_law(x, prime, edge, p):
    """The law of the line over a small field, by definition: all lines, below the edge at x or not."""
    below_edge = {(a, b): (a * x + b) % prime < edge for a in range(prime) for b in range(prime)}
    count = sum(below_edge.values())
    return {line: p / count if hit else (1 - p) / (len(below_edge) - count) for line, hit in below_edge.items()}


def unary_law(x, k, p, q):
    """Independent bits: p for the own one, q for the others."""
    law = {}
    for bits in itertools.product((0, 1), repeat=k):
        probability = Fraction(1)
        for v, bit in enumerate(bits):
            one = p if v == x else q
            probability *= one if bit else 1 - one
        law[bits] = probability
    return law


def largest_ratio(laws):
    """Of the probabilities of one outcome under two records."""
    return max(max(column) / min(column) for column in zip(*laws, strict=True))


def least_variance(epsilon, top, cells, inputs, objective):
    """Linear programme: the least worst or average variance of an unbiased private report of a number in [-1, 1].

    Reports lie on an even grid of [-top, top] with `cells` cells, which can only raise the optimum; inputs on an even
    grid of [0, 1], which can only lower it; the law of -x is the mirror image of that of x.
    """
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import lil_matrix

    y, xs, big = np.linspace(-top, top, cells + 1), np.linspace(0, 1, inputs), np.exp(epsilon)
    m, n = len(y), len(xs)
    size = n * m + m + 1  # P(y | x), a measure that they are all between 1 and e^epsilon times of, the worst variance
    upper, equal = lil_matrix((2 * n * m + n, size)), lil_matrix((2 * n + m, size))
    right, values = np.zeros(2 * n * m + n), np.zeros(2 * n + m)
    for i, x in enumerate(xs):
        for j in range(m):
            upper[2 * (i * m + j), [i * m + j, n * m + j]] = [1, -big]
            upper[2 * (i * m + j) + 1, [i * m + j, n * m + j]] = [-1, 1]
            upper[2 * n * m + i, i * m + j] = y[j] ** 2
            equal[2 * i, i * m + j] = 1
            equal[2 * i + 1, i * m + j] = y[j]
        upper[2 * n * m + i, size - 1] = -1
        right[2 * n * m + i] = x * x
        values[2 * i : 2 * i + 2] = 1, x
    for j in range(m):
        if j != m - 1 - j:
            equal[2 * n + j, [n * m + j, n * m + m - 1 - j]] = [1, -1]
    cost, constant = np.zeros(size), 0.0
    if objective == "worst":
        cost[-1] = 1
    else:  # the second moment, linear between two inputs, less the mean of x^2
        cost[: n * m] = np.outer(np.where((xs == 0) | (xs == 1), 0.5, 1.0) / (n - 1), y**2).reshape(-1)
        constant = 1 / 3
    return linprog(cost, upper.tocsr(), right, equal.tocsr(), values, (0, None), method="highs").fun - constant


def simplex(values, variances):
    """The projection onto the simplex: bisection on the threshold at which the entries sum to 1."""
    low, high = min(values) - 1, max(v / w for v, w in zip(values, variances, strict=True))
    low /= min(variances)
    for _ in range(200):
        middle = (low + high) / 2
        total = sum(max(v - middle * w, 0) for v, w in zip(values, variances, strict=True))
        low, high = (middle, high) if total > 1 else (low, middle)
    return [max(v - low * w, 0) for v, w in zip(values, variances, strict=True)]


def bayesian_update(frequencies, counts, p, q):
    """One step of expectation maximisation: each supported category shared among the categories that may cause it."""
    k, total = len(counts), sum(counts)
    result = [0.0] * k
    for v in range(k):
        chances = [(p if v == w else q) * frequencies[w] for w in range(k)]
        for w in range(k):
            result[w] += counts[v] / total * chances[w] / sum(chances)
    return result


def shrinkage(values, projected, variance):
    """The fraction of the way from equal frequencies to the projection, by the formula of Stein and James."""
    k = len(values)
    square = sum((p - 1 / k) ** 2 for p in projected)
    cross = sum((p - 1 / k) * (v - 1 / k) for p, v in zip(projected, values, strict=True))
    degrees = max(sum(p > 0 for p in projected) - 3, 0)
    return min(max((cross - degrees * variance) / square, 0), 1)


def hyperplanes(counts, prime, digits, width):
    """For each vector v the number of reports (a, b), counted at a prime + b, with a v + b modulo the prime near 0."""

    def vector(code):
        return [code // prime**i % prime for i in range(digits)]

    def near(a, v, b):
        return (sum(x * y for x, y in zip(vector(a), vector(v), strict=True)) + b) % prime < width

    size = prime**digits
    return [sum(counts[a * prime + b] for a in range(size) for b in range(prime) if near(a, v, b)) for v in range(size)]
