"""Randomisers of signs by definition: laws in rationals over all masks, samplers as plain loops over scripted words."""

from fractions import Fraction
from itertools import accumulate, product
from math import comb, lcm

GOLDEN = 0x9E3779B97F4A7C15
WORD = 2**64


# ---- laws: the probability of each mask of 0, ..., d disagreements, and the factor of a sign ----


def threshold(d, tau, ratio):
    """Masks of at most d - tau ones are `ratio` times as likely as the others; B by enumeration."""
    weights = [ratio if ones <= d - tau else Fraction(1) for ones in range(d + 1)]
    return unbiased(d, weights)


def unbiased(d, weights):
    """Normalised weights, and the B with E[B sign agreed] = 1, summed over all masks."""
    masks = list(product((0, 1), repeat=d))
    total = sum(weights[sum(mask)] for mask in masks)
    weights = [w / total for w in weights]
    return weights, 1 / sum(weights[sum(mask)] * (1 - 2 * mask[0]) for mask in masks)


def _coin_on(d, ratio, least_kept, most_lied):
    """Uniform among at most `least_kept` ones with probability E / (1 + E), else among at least `most_lied`."""
    keep = ratio / (1 + ratio)
    kept = sum(comb(d, ones) for ones in range(least_kept + 1))
    lied = sum(comb(d, ones) for ones in range(most_lied, d + 1))
    return [
        (keep / kept if ones <= least_kept else 0) + ((1 - keep) / lied if ones >= most_lied else 0)
        for ones in range(d + 1)
    ]


def published_even(d, ratio):
    """Equation (26) of the paper for even d: ties belong to both half cubes; its own constant c (1 + 1 / t)."""
    t = Fraction(comb(d, d // 2), 2**d)
    return _coin_on(d, ratio, d // 2, d // 2), (ratio + 1) / (ratio - 1) * (1 + 1 / t)


def ties_lied(d, ratio):
    """Ties moved to the half cube of "lie", the coin unchanged."""
    return _coin_on(d, ratio, d // 2 - 1, d // 2)


def ties_kept(d, ratio):
    """Ties moved to the half cube of "keep", the coin unchanged."""
    return _coin_on(d, ratio, d // 2, d // 2 + 1)


def loss_ratio(weights):
    """The largest ratio of the probabilities of one report under two corners."""
    return max(weights) / min(weights)


def is_unbiased(d, weights, scale):
    """E[scale z | corner] = corner, for every corner and coordinate; in integers, over the common denominator."""
    common = lcm(*(w.denominator for w in weights))
    whole = [int(w * common) for w in weights]
    cube = list(product((-1, 1), repeat=d))
    for corner in cube:
        mean = [0] * d
        for z in cube:
            p = whole[sum(a != b for a, b in zip(z, corner, strict=True))]
            mean = [m + p * sign for m, sign in zip(mean, z, strict=True)]
        if [scale * m for m in mean] != [common * sign for sign in corner]:
            return False
    return True


def law(up, weights):
    """P(z) of a record whose coordinates are rounded up with the probabilities `up`; z as a tuple of signs."""
    d = len(up)
    found = dict.fromkeys(product((-1, 1), repeat=d), Fraction(0))
    for corner in product((-1, 1), repeat=d):
        p = Fraction(1)
        for sign, q in zip(corner, up, strict=True):
            p *= q if sign > 0 else 1 - q
        for z in found:
            found[z] += p * weights[sum(a != b for a, b in zip(z, corner, strict=True))]
    return found


# ---- samplers: `take` gives the next word ----


def up_code(x, radius):
    """The probability of rounding up in units of 2**-48, half to even."""
    x = Fraction(0) if x != x else Fraction(max(-radius, min(radius, x)))
    return round((x / Fraction(radius) + 1) * 2**47)


def bits_of(words, count):
    return [words[j // 64] >> (j % 64) & 1 for j in range(count)]


def round_bits(take, words, x, radius):
    bits = []
    for j, value in enumerate(x):
        lane, code = words[j // 4] >> (16 * (j % 4)) & 0xFFFF, up_code(value, radius)
        bits.append(int(lane < code >> 32 if lane != code >> 32 else take() >> 32 < code % 2**32))
    return bits


def majority(take, x, radius, threshold):
    """One row: first its words, then further ones."""
    d = len(x)
    lanes = [take() for _ in range(-(-d // 4))]
    words = [take() for _ in range(-(-d // 64) + 1)]
    bits = round_bits(take, lanes, x, radius)
    while True:
        mask, keep = bits_of(words, d), words[-1] < threshold
        if 2 * sum(mask) == d:
            if words[-1] >> 1 < WORD - threshold:
                break
            words = [take() for _ in words]
            continue
        if (2 * sum(mask) > d) == keep:
            mask = [1 - bit for bit in mask]
        break
    return [bit ^ flip for bit, flip in zip(bits, mask, strict=True)]


def mixed(seed):
    """The SplitMix64 words of a public seed."""
    state = _mix((seed + GOLDEN) % WORD)
    while True:
        state = (state + GOLDEN) % WORD
        yield _mix(state)


def _mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB % WORD
    return z ^ z >> 31


def uniform(take, n):
    """Uniform on 0..n - 1, by Lemire's method."""
    while True:
        product = take() * n
        if product % WORD >= WORD % n:
            return product // WORD


def subset(seed, d, k):
    words, chosen = mixed(seed), []
    for last in range(d - k, d):
        place = uniform(lambda: next(words), last + 1)
        chosen.append(last if place in chosen else place)
    return chosen


def number_of_ones(take, word, counts):
    """An index drawn in proportion to `counts` by the uniform number that `word` begins."""
    total, bits = sum(counts), 64
    while True:
        i, edge = next((i, edge) for i, edge in enumerate(accumulate(counts)) if word * total < edge << bits)
        if (word + 1) * total <= edge << bits:
            return i
        word, bits = word << 64 | take(), bits + 64


def subset_signs(take, x, radius, threshold, k, tau):
    """One row: the seed if k < d, and the bits of the subset."""
    d = len(x)
    seed = take() if k < d else None
    lanes = [take() for _ in range(-(-k // 4))]
    coin, word = take(), take()
    mask = bits_of([take() for _ in range(-(-k // 64))], k)
    places = subset(seed, d, k) if k < d else range(d)
    bits = round_bits(take, lanes, [x[j] for j in places], radius)
    counts = [comb(k, ones) for ones in range(k + 1)]
    if coin < threshold:
        ones = number_of_ones(take, word, counts[: k - tau + 1])
    else:
        ones = k - tau + 1 + number_of_ones(take, word, counts[k - tau + 1 :])
    while sum(mask) != ones:
        place = uniform(take, k)
        if mask[place] == (sum(mask) > ones):
            mask[place] ^= 1
    return seed, [bit ^ flip for bit, flip in zip(bits, mask, strict=True)]
