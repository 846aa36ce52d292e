"""The law of bounded contributions by definition: subsets of each pair of a unit and a key, then of each unit."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product


def subsets(items, limit):
    """The equally likely subsets of min(limit, len(items)) items."""
    return list(combinations(items, min(limit, len(items))))


def one_unit(records, keys, per_unit, per_key):
    """The probabilities of the sets that are kept of the records of one unit."""
    law = Counter()
    by_key = [[i for i in records if keys[i] == key] for key in sorted({keys[i] for i in records})]
    choices = [subsets(group, per_key) for group in by_key] if per_key else [[tuple(records)]]
    for chosen in product(*choices):
        of_keys = Fraction(1)
        for choice in choices:
            of_keys /= len(choice)
        kept = subsets(sorted(i for group in chosen for i in group), per_unit)
        for subset in kept:
            law[frozenset(subset)] += of_keys / len(kept)
    return law


def law(units, keys, per_unit, per_key=0):
    """The probabilities of the sets of records that are kept; records of a unit or key None are left out."""
    present = [i for i in range(len(units)) if units[i] is not None and (not per_key or keys[i] is not None)]
    total = {frozenset(): Fraction(1)}
    for unit in sorted({units[i] for i in present}):
        own = one_unit([i for i in present if units[i] == unit], keys, per_unit, per_key)
        total = {kept | more: p * q for kept, p in total.items() for more, q in own.items()}
    return total
