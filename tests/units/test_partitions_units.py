"""Partition selection for units with several records of different keys."""

import functools
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast._kernels._keyed_balls import part_down
from dpfast.core.divergences import gaussian_mu_down, new_keys_delta_up
from dpfast.laws.keyed import KeyedCounts, StepNoise, steps
from dpfast.laws.thresholds import GaussianNoise, thresholded
from dpfast.mechanisms.partitions import _needed
from tests.cases import every
from tests.reference.partitions import excess, gaussian_delta, gaussian_law, law, ratio_down, ratio_up, together
from tests.statistical import chi_square_rejects

# epsilon, delta and the number k of records of different keys
SETTINGS = [(1.0, 0.05, 2), (2.0, 0.01, 2), (0.3, 0.1, 2), (4.0, 1e-4, 2), (2.0, 0.01, 3), (0.5, 0.3, 3)]


@functools.cache
def key_law(scale, threshold, n, top):
    return np.array(gaussian_law(scale, threshold, n, top))


def worst(scale, threshold, epsilon, k):
    """The least delta for units of at most k records of different keys, from the probabilities of all outcomes.

    The keys have no other records, one, about as many as the threshold, or so many that they are always released.
    """
    found, ratio, reach = 0.0, math.exp(epsilon), math.ceil(7 * scale)
    kinds = [(threshold, n) for n in (0, 1, threshold - 1, threshold + 1)] + [(-reach, 1)]
    for chosen in itertools.combinations_with_replacement(kinds, k):
        for order in set(itertools.permutations(chosen)):
            for members in range(1, k + 1):
                one, other = (
                    functools.reduce(
                        np.multiply.outer,
                        [
                            key_law(scale, least, n + (added and place < members), threshold + reach)
                            for place, (least, n) in enumerate(order)
                        ],
                    )
                    for added in (False, True)
                )
                found = max(found, np.maximum(one - ratio * other, 0).sum(), np.maximum(other - ratio * one, 0).sum())
    return found


class TestGaussian:
    @every("epsilon, delta, k", SETTINGS)
    def test_all_mixes_of_new_and_existing_keys(self, epsilon, delta, k):
        noise = thresholded(epsilon, delta, k)
        assert 0.8 * delta < worst(noise.noise.scale, noise.center + 1, epsilon, k) <= delta * (1 + 1e-9)

    @every("epsilon, delta, k", SETTINGS)
    def test_control_a_lower_threshold(self, epsilon, delta, k):
        noise = thresholded(epsilon, delta, k)
        assert worst(noise.noise.scale, noise.center, epsilon, k) > 1.001 * delta

    @every("epsilon, delta, k", SETTINGS)
    def test_control_the_scale_of_fewer_records(self, epsilon, delta, k):
        noise = thresholded(epsilon, delta, k)
        scale = noise.noise.scale * math.sqrt((k - 1) / k)
        assert worst(scale, 10 * noise.center, epsilon, k) > 1.1 * delta

    @every("new", [0, 1, 10**6])
    @every("mu", [0, 0.1, 2.5])
    @every("epsilon", [1e-6, 1.0, 12.0])
    def test_the_delta_is_rounded_up(self, new, mu, epsilon):
        for reach in (0.5, 4.0, 9.0, 35.0):
            found = new_keys_delta_up(Fraction(mu) ** 2, new, Fraction(reach), Fraction(epsilon))
            with mpmath.workdps(400):
                hidden = (1 - mpmath.erfc(reach / mpmath.sqrt(2)) / 2) ** new
                exact = gaussian_delta(mpmath.mpf(epsilon), mpmath.mpf(mu), hidden)
                assert exact <= found <= min(max(exact * (1 + mpmath.mpf(2) ** -50), 5e-324), 1)

    @pytest.mark.parametrize(("epsilon", "delta", "k"), [(1.0, 1e-6, 10), (0.01, 1e-3, 50), (20.0, 1e-9, 100)])
    def test_no_number_of_new_keys_exceeds_delta(self, epsilon, delta, k):
        noise = thresholded(epsilon, delta, k)
        with mpmath.workdps(50):

            def largest(center):
                hidden = mpmath.ncdf((center - mpmath.mpf(1) / 2) / noise.noise.scale)
                mus = [mpmath.sqrt(k - j) / noise.noise.scale for j in range(k + 1)]
                return max(gaussian_delta(epsilon, mu, hidden**j) for j, mu in enumerate(mus))

            assert 0.99 * delta < largest(noise.center) <= delta < largest(noise.center - 1)

    def test_the_scale_is_the_least(self):
        scale = thresholded(1.0, 1e-6, 10).noise.scale
        assert scale == pytest.approx(math.sqrt(10) / gaussian_mu_down(1.0, 1e-6), rel=1e-15)

    def test_draws(self):
        noise = thresholded(2.0, 0.01, 3)
        for n in (1, noise.center, 3 * noise.center):
            made = KeyedCounts(np.array([n]), noise=noise, decode=list)
            drawn = made.sample(size=100_000, rng=PCG64(n))[:, 0]
            support = np.append(0, np.arange(noise.center + 1, drawn.max() + 2))
            found = np.array([np.sum(drawn == value) for value in support])
            chances = np.exp(made.logpmf(support[:, None]))
            assert found.sum() == drawn.size
            assert not chi_square_rejects(found, chances / chances.sum())
            assert chances.sum() == pytest.approx(1, abs=1e-4)
            shifted = KeyedCounts(np.array([n + 1]), noise=noise, decode=list)
            chances = np.exp(shifted.logpmf(support[:, None]))
            assert chi_square_rejects(found, chances / chances.sum())

    def test_the_law(self):
        noise = thresholded(1.0, 1e-3, 4)
        top = noise.center + 40
        for n in (1, 5, noise.center + 3):
            exact = gaussian_law(noise.noise.scale, noise.center + 1, n, top)
            support = np.append(0, np.arange(noise.center + 1, top))
            found = np.exp(KeyedCounts(np.array([n]), noise=noise, decode=list).logpmf(support[:, None]))
            assert found == pytest.approx(exact[:-1], rel=1e-9)
            assert float(noise.below(np.array(n))) == pytest.approx(1 - exact[0], rel=1e-9)
        assert noise.below(np.array(0)) == 0


class TestParts:
    """Each record has epsilon / k, and a part of delta."""

    @pytest.mark.parametrize("k", [2, 3, 1000, 10**6])
    def test_the_part_of_delta(self, k):
        for delta in (5e-324, 1e-300, 1e-6, 0.3, 1 - 2.0**-53):
            part = part_down(k, Fraction(delta))
            with mpmath.workdps(1500):
                exact = -mpmath.expm1(mpmath.log1p(-mpmath.mpf(delta)) / k)
                found = mpmath.mpf(part.numerator) / part.denominator
                assert exact * (1 - mpmath.mpf(2) ** -64) <= found <= exact

    def test_all_small_multisets(self):
        mechanism = dpf.PartitionSelection(1.5, 0.05, contributions=2, per_key=1)
        noise = mechanism._noise()
        one = {n: law(noise.table, noise.center, noise.other, n) for n in range(8)}

        def largest(change):
            found = Fraction()
            for counts in itertools.product(range(6), repeat=2):
                first = together([one[n] for n in counts])
                second = together([one[n + more] for n, more in zip(counts, change, strict=True)])
                found = max(found, excess(first, second, ratio), excess(second, first, ratio))
            return found

        ratio = ratio_down(1.5)
        assert Fraction(0.049) < largest((1, 1)) <= Fraction(0.05)
        assert largest((1, 0)) <= Fraction(0.05)
        ratio = ratio_up(1.5)
        assert largest((2, 0)) > Fraction(0.05)  # control: two records of one key, against the promise


class TestChoice:
    def test_fewer_records_with_probability_nine_tenths(self):
        kinds = []
        for k in (2, 3, 4, 10):
            noise = dpf.PartitionSelection(1.0, 1e-6, contributions=k, per_key=1)._noise()
            parts = Fraction(1, k), part_down(k, Fraction(1e-6))
            others = [StepNoise(steps(parts, parts)), thresholded(1.0, 1e-6, k)]
            assert _needed(noise) == min(map(_needed, others))
            assert noise.below(np.array(_needed(noise) - 1)) < 0.9 <= noise.below(np.array(_needed(noise)))
            kinds.append(type(noise))
        assert kinds == [StepNoise, StepNoise, GaussianNoise, GaussianNoise]

    def test_the_promise_is_needed_for_a_lower_threshold(self):
        one, same = (dpf.PartitionSelection(1.0, 1e-6, contributions=10, per_key=p) for p in (1, None))
        assert (one.threshold, same.threshold) == (71, 140)
        assert one.probability(0) == 0
        assert one.privacy == same.privacy
        assert one.privacy.per_unit == 10
        assert "different ones within a unit" in repr(one)
        assert "different" not in repr(same)

    def test_a_single_record_and_a_domain_do_not_use_it(self):
        for options in ({"delta": 1e-6}, {"delta": 1e-6, "neighbors": "replace-one"}, {"domain": 9}):
            first, second = (dpf.PartitionSelection(1.0, per_key=p, **options)._noise() for p in (None, 1))
            assert (type(first), first.center) == (type(second), second.center)
        pair = [dpf.PartitionSelection(1.0, domain=9, contributions=4, per_key=p) for p in (None, 1)]
        assert pair[0].threshold == pair[1].threshold

    @pytest.mark.parametrize("epsilon", [1e-6, 1.0, 50.0, 1e300])
    @pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-12, 1 - 2.0**-53])
    @pytest.mark.parametrize("k", [2, 10**5])
    def test_extreme_parameters(self, epsilon, delta, k):
        mechanism = dpf.PartitionSelection(epsilon, delta, contributions=k, per_key=1)
        assert 1 <= mechanism.threshold <= 2**56
        assert mechanism.probability(2**62) == 1
        assert len(mechanism(np.arange(3))) <= 3

    @pytest.mark.parametrize(
        ("epsilon", "delta", "k"), [(1e-300, 1e-300, 2), (1e-300, 1e-12, 10**9), (1.0, 0.5, 10**400)]
    )
    def test_too_much_noise(self, epsilon, delta, k):
        with pytest.raises(ValueError, match=r"more than 2\*\*56 records"):
            dpf.PartitionSelection(epsilon, delta, contributions=k, per_key=1)

    @pytest.mark.parametrize("per_key", [2, 10])
    def test_other_numbers(self, per_key):
        with pytest.raises(ValueError, match="per_key must be 1 or None"):
            dpf.PartitionSelection(1.0, 1e-6, contributions=10, per_key=per_key)


def test_bounded_contributions():
    rng = np.random.default_rng(1)
    people, terms = rng.integers(0, 2000, 60_000), np.minimum(rng.zipf(1.5, 60_000), 10**6)
    kept = dpf.bound_contributions(people, terms, keys=terms, per_unit=10, per_key=1, rng=PCG64(1))
    with dpf.Ledger(1.0, 1e-6, neighbors="add-remove", per_unit=10) as ledger:
        released = dpf.partitions(kept, epsilon=1.0, delta=1e-6, contributions=10, per_key=1, rng=PCG64(2))
    assert len(ledger.charges) == 1
    assert ledger.spent == dpf.Privacy(1.0, 1e-6, "add-remove", per_unit=10)
    counts = np.bincount(kept)[released.keys]
    assert len(released) > 10
    assert np.abs(released.counts - counts).max() < 8 * 13.4
