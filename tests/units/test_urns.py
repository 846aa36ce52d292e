"""Uniform samples of very many counted records, exactly: their numbers of each kind."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import Resized
from dpfast.mechanisms import urns
from dpfast.mechanisms.urns import hypergeometric, numbers_of_kinds, sampled_pieces
from dpfast.statistics import Mean, Median
from tests.cases import every
from tests.statistical import chi_square_rejects


def chances(kind, others, size):
    ways = [math.comb(kind, x) * math.comb(others, size - x) for x in range(min(kind, size) + 1)]
    return np.array([float(Fraction(way, math.comb(kind + others, size))) for way in ways])


class TestNumbers:
    @every("kind, others, size", [(3, 4, 3), (1, 5, 5), (12, 40, 10), (30, 30, 40)])
    def test_law(self, kind, others, size):
        source = PCG64(1)
        found = np.bincount([hypergeometric(kind, others, size, source) for _ in range(1500)], minlength=size + 1)
        assert not chi_square_rejects(found[: min(kind, size) + 1], chances(kind, others, size))
        if kind == 30:  # the control: records drawn with replacement
            share, places = kind / (kind + others), range(size + 1)
            wrong = [math.comb(size, x) * share**x * (1 - share) ** (size - x) for x in places]
            assert chi_square_rejects(found, np.array(wrong))

    def test_the_bound_of_the_rejection(self):
        """Of all small urns; a sixth of the width is too narrow for some."""
        holds = {1: True, 6: True}
        for part, (kind, others) in itertools.product(holds, itertools.product(range(1, 9), repeat=2)):
            for size in range(1, kind + others):
                ways = [math.comb(kind, x) * math.comb(others, size - x) for x in range(kind + 1) if x <= size]
                mode = (size + 1) * (kind + 1) // (kind + others + 2)
                assert ways[mode] == max(ways)
                width = Fraction(math.comb(kind + others, size), part * ways[mode])
                blocks = [max(abs(x - mode) // width - 1, 0) for x in range(len(ways))]
                holds[part] &= all(way << block <= ways[mode] for way, block in zip(ways, blocks, strict=True))
        assert holds == {1: True, 6: False}

    def test_extremes(self):
        source = PCG64(1)
        assert numbers_of_kinds([5, 0, 2], 7, source) == [5, 0, 2]
        assert numbers_of_kinds([5, 0, 2], 0, source) == [0, 0, 0]
        assert numbers_of_kinds([], 0, source) == []
        found = numbers_of_kinds([2**70, 2**70, 1], 10**9, source)
        assert sum(found) == 10**9
        assert abs(found[0] - 10**9 / 2) < 10 * math.sqrt(10**9 / 4)


class TestSamples:
    @every("most", [0, 2**20])
    def test_samples_are_uniform_by_places_and_by_numbers(self, most, monkeypatch):
        monkeypatch.setattr(urns, "_MOST_PLACES", most)
        source, found = PCG64(1), []
        pieces = [dpf.Counted([8.0, 1.0], [1, 2]), np.array([2.0, 4.0])]
        for _ in range(2000):
            counted, array = sampled_pieces(pieces, 5, 3, source)
            found.append(int(counted.values @ counted.counts + array.sum()))
        all_of_them = list(map(sum, itertools.combinations([8, 1, 1, 2, 4], 3)))
        kinds = sorted(set(all_of_them))
        shares = np.array([all_of_them.count(kind) / 10 for kind in kinds])
        assert not chi_square_rejects([found.count(kind) for kind in kinds], shares)

    @pytest.mark.filterwarnings("ignore:n is private")
    @every("missing", [0.0, "half"])
    def test_more_records_than_memory_holds(self, missing):
        """No error may tell that there are as many."""
        grid = dpf.Grid(0, 4, step=1, missing=missing)
        median = Resized(dpf.InverseSensitivity(Median(), grid=grid, epsilon=1.0), epsilon=1.5)
        mean = Resized(dpf.GlobalSensitivity(Mean(), grid=grid, epsilon=1.0), epsilon=1.5)
        few = dpf.Counted([1.0, 2.0, np.nan], [5 * 10**8, 60, 30])
        many = dpf.Counted([1.0, 4.0, np.nan], [2**50, 2**49, 60])
        mixed = dpf.Chunks([many, np.array([4.0] * 50)])
        assert [median(x) for x in (few, many, mixed)] == [1.0, 1.0, 1.0]
        assert [round(mean(x), 3) for x in (few, many, mixed)] == [1.0, 2.0, 2.0]
