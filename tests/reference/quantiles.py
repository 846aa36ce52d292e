"""Slow twins of the joint inverse sensitivity of several order statistics."""

from functools import lru_cache
from itertools import combinations_with_replacement, pairwise, product
from math import prod

from mpmath import mp, mpf


def released(data, ranks):
    ordered = sorted(data)
    return tuple(ordered[k - 1] for k in ranks)


@lru_cache
def _releases(n, ranks, last):
    """Every dataset of n codes, by the order statistics it has."""
    datasets = {}
    for other in combinations_with_replacement(range(last + 1), n):
        datasets.setdefault(released(other, ranks), []).append(other)
    return datasets


def _distance(data, other):
    """Records to replace in one multiset to make the other."""
    rest = list(other)
    for x in data:
        if x in rest:
            rest.remove(x)
    return len(rest)


def least_replacements(data, ranks, output, last):
    """The definition of the score."""
    return min(_distance(data, other) for other in _releases(len(data), tuple(ranks), last)[tuple(output)])


def score(data, ranks, output):
    """The closed form: half the length of the shortest walk."""
    cost, i, previous = 0, 0, 0
    for k, o in zip(ranks, output, strict=True):
        z, previous = i + k - previous, k
        below, not_above = sum(x < o for x in data), sum(x <= o for x in data)
        if not_above > below:
            i = min(max(z, below + 1), not_above)
            cost += abs(i - z)
        else:
            i = below
            cost += i - z + 2 if z <= i else z - i
    cost += abs(i - ranks[-1])
    assert cost % 2 == 0
    return cost // 2


def law(data, ranks, last, epsilon, cap, pins=None):
    """P(o) proportional to exp(-epsilon / 2 min(S(o), cap)) over the sorted vectors that agree with the pins."""
    pins = pins or {}
    with mp.workdps(40):
        weights = {
            o: mp.exp(-mpf(epsilon) / 2 * min(score(data, ranks, o), cap))
            for o in combinations_with_replacement(range(last + 1), len(ranks))
            if all(o[j] == value for j, value in pins.items())
        }
        total = mp.fsum(weights.values())
        return {o: weight / total for o, weight in weights.items()}


def two_stages(data, ranks, last, epsilon, coarse, caps):
    """The joint law: the coarse targets at epsilon / 2, then all at epsilon / 2 given those."""
    first = law(data, [ranks[j] for j in coarse], last, epsilon / 2, caps[0])
    joint = {}
    for pinned, probability in first.items():
        pins = dict(zip(coarse, pinned, strict=True))
        for o, conditional in law(data, ranks, last, epsilon / 2, caps[1], pins).items():
            joint[o] = probability * conditional
    return joint


def neighbors(n, last):
    """Ordered pairs of multisets that differ in one record."""
    for rest in combinations_with_replacement(range(last + 1), n - 1):
        for one, other in product(range(last + 1), repeat=2):
            if one != other:
                yield tuple(sorted((*rest, one))), tuple(sorted((*rest, other)))


def loss(laws, n, last):
    """The largest log-ratio of any output between neighbours."""
    return max(float(mp.log(laws[data][o] / laws[other][o])) for data, other in neighbors(n, last) for o in laws[data])


def gap_difference(data, ranks, output, epsilon):
    """JointExp with the constant of add/remove: exponent epsilon / 2 for each unit of sum |gap count - target gap|."""
    ends = [-1, *output, float("inf")]
    counts = [sum(low < x <= high for x in data) for low, high in pairwise(ends)]
    wanted = [b - a for a, b in zip([0, *ranks], [*ranks, len(data)], strict=True)]
    return mp.exp(-mpf(epsilon) / 2 * sum(abs(c - w) for c, w in zip(counts, wanted, strict=True)))


def multisets(width, count):
    return prod(range(width, width + count)) // prod(range(1, count + 1))
