"""The referees: their reference samplers, laws and lists; planted bugs are found, and right versions pass."""

from fractions import Fraction
from functools import partial
from itertools import islice

import numpy as np
import pytest
from mpmath import mp
from numpy.random import PCG64

import dpfast as dpf
from assurance.referees import bugs, peers, published, reports, subjects
from assurance.referees.blackbox import bound, examine
from assurance.referees.pairs import pairs
from assurance.referees.replay import Replayed, replayed
from assurance.referees.tables import Table
from tests.reference import rational_samplers as rational
from tests.releases import LOCAL, NO_RELEASE, RELEASES
from tests.statistical import ALPHA, chi_square_rejects

ONLY_BY_EVENTS = {"noise used twice, as after a fork", "a public seed"}  # the replay repeats their draws
SLOW_TO_SHOW = {"a wrong formula of composition", "two queries in one share of the budget"}  # beyond 10,000 draws


class TestRationalSamplers:
    @pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(5, 2)])
    def test_listed_laplace_is_the_published_law(self, scale):
        listed, law = rational.laplace_law(scale), published.discrete_laplace(scale)
        assert max(abs(listed[z] / p - 1) for z, p in law.items() if p > 1e-12) < 1e-15

    @pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(5, 4)])
    def test_listed_gaussian_is_the_published_law(self, variance):
        listed, law = rational.gaussian_law(variance), published.discrete_gaussian(variance)
        assert max(abs(listed[z] / p - 1) for z, p in law.items() if p > 1e-12) < 1e-15

    @pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(7, 2)])
    def test_coins(self, gamma):
        with mp.workdps(40):
            exact = mp.exp(-mp.mpf(gamma.numerator) / gamma.denominator)
            assert abs(rational.exp_coin_law(gamma)[True] - exact) < 1e-20

    def test_draws(self):
        dice = rational.Dice(rational.words_below(PCG64(1).random_raw))
        for draw, law in (
            (partial(dice.laplace, Fraction(5, 2)), published.discrete_laplace(Fraction(5, 2))),
            (partial(dice.gaussian, Fraction(9, 4)), published.discrete_gaussian(Fraction(9, 4))),
        ):
            drawn = np.array([draw() for _ in range(5000)])
            assert published.p_value(drawn, law) > ALPHA
            assert published.p_value(drawn, published.shifted(law)) < ALPHA


class TestPublished:
    @pytest.mark.parametrize("match", list(peers.by_rationals()), ids=lambda match: match.name)
    def test_ours_and_controls(self, match):
        draws = match.ours(200_000, PCG64(1))
        assert published.p_value(draws, match.published()) > ALPHA
        for wrong in (match.published(0.97), match.published(1.03), published.shifted(match.published())):
            assert published.p_value(draws, wrong) < ALPHA

    def test_two_samples(self):
        law = published.discrete_laplace(4.0)
        a, b = (dpf.noise.discrete_laplace(4.0, 100_000, rng=PCG64(seed)) for seed in (1, 2))
        assert published.two_samples(a, b, law) > ALPHA
        assert published.two_samples(a, dpf.noise.discrete_laplace(3.8, 100_000, rng=PCG64(3)), law) < ALPHA

    def test_choices(self):
        """Permute-and-flip by all orders, against the law of the library and its draws."""
        for method, law in (("exponential", published.exponential), ("permute-and-flip", published.permute_and_flip)):
            exact = law(peers.SCORES, 0.5)
            drawn = dpf.select(peers.SCORES, epsilon=1.0, selection=method, size=50_000, rng=PCG64(1))
            assert not chi_square_rejects(np.bincount(drawn, minlength=5), list(exact.values()))
            wrong = law(peers.SCORES, 0.45)
            assert chi_square_rejects(np.bincount(drawn, minlength=5), list(wrong.values()))

    def test_a_missing_library_is_a_sentence(self, monkeypatch):
        monkeypatch.setitem(peers.INSTALL, "no_such_library", "no-such-library")
        with pytest.raises(peers.Missing, match="no_such_library is not installed: pip install no-such-library"):
            peers._import("no_such_library")


class TestLists:
    def test_every_function_that_releases(self):
        tested = {name.split(",")[0].split(" ")[0] for name, _, _ in subjects.calls()}
        assert tested == set(RELEASES)

    def test_every_noise(self):
        tested = {subject.name.split(",")[0].split(" ")[0] for subject in subjects.noises()}
        private = {name.removeprefix("noise.") for name in NO_RELEASE if name.startswith("noise.")}
        assert tested == private - {"geometric"}, "one-sided noise is not private"

    def test_every_randomiser(self):
        tested = {type(subject.mechanism) for subject in subjects.randomisers()}
        assert tested == {type(mechanism) for mechanism in LOCAL}

    @pytest.mark.parametrize(("neighbors", "more"), [("replace-one", 0), ("add-remove", 1)])
    def test_pairs_are_neighbours(self, neighbors, more):
        for rows in (False, True):
            for _, x, y in pairs(neighbors, 8, rows=rows):
                assert len(y) == len(x) + more
                changed = ~np.isclose(x, y[: len(x)], equal_nan=True)
                assert np.count_nonzero(changed if x.ndim == 1 else changed.any(axis=1)) == (not more)


@pytest.mark.parametrize("bug", bugs.BUGS, ids=lambda bug: bug.name)
class TestBugs:
    def test_replay(self, bug):
        wrong, right = (reports._replay_of_program(program) for program in (bug.wrong, bug.right))
        assert bool(reports._fault(wrong, 1.0)) == (bug.name not in ONLY_BY_EVENTS)
        assert not reports._fault(right, 1.0)

    def test_learned_events(self, bug):
        found = examine(bug.wrong, reports._pairs_of(bug.wrong), 10_000)
        assert found.refuted == (bug.name not in SLOW_TO_SHOW)


class TestReplay:
    MEDIAN = dpf.InverseSensitivity(dpf.statistics.Median(), grid=subjects.GRID, epsilon=1.0)
    X, Y = np.repeat([0.0, 100.0], 4), np.repeat([0.0, 100.0], [5, 3])

    def release(self, x, rng):
        return self.MEDIAN.release(x, size=1, rng=rng)

    def test_the_loss_is_that_of_the_laws(self):
        found = replayed(self.release, self.X, self.Y, epsilon=1.0, runs=1)
        drawn = self.MEDIAN.law(self.X).sample(1, rng=PCG64(1))
        loss = self.MEDIAN.law(self.X).logpmf(drawn) - self.MEDIAN.law(self.Y).logpmf(drawn)
        assert (found.draws, found.fault) == (1, "")
        assert found.loss == pytest.approx(loss.item())

    def test_a_claim_that_is_too_small(self):
        assert replayed(self.release, self.X, self.Y, epsilon=0.02, runs=5).violates(0.0)
        assert not replayed(self.release, self.X, self.Y, epsilon=1.0, runs=5).violates(0.0)

    def test_a_kind_of_law_that_depends_on_data(self):
        noisy = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=subjects.GRID, epsilon=1.0)

        def run(x, rng):
            return (self.MEDIAN if np.median(x) > 0 else noisy).release(x, size=1, rng=rng)

        assert "in place of" in replayed(run, self.X, self.Y, epsilon=9.0, runs=1).fault

    def test_delta_allows_rare_losses(self):
        found = Replayed(draws=1, loss=9.0, fault="", excess=0.01, runs=100)
        assert not found.violates(0.01)
        assert not found.violates(0.005)
        assert found.violates(1e-30)


def test_mechanisms_at_half_of_their_claim_are_refuted():
    """The tester has power on the real mechanisms: half of the epsilon is refuted where the bound is near epsilon."""
    mechanism = dpf.GlobalSensitivity(dpf.statistics.Sum(), grid=subjects.GRID, epsilon=1.0)
    found = examine(mechanism, pairs("replace-one", 8), 20_000)
    assert 0.5 < found.bound <= 1
    assert bound(mechanism, *next(islice(pairs("replace-one", 8), 0, 1))[1:], 20_000) > 0.5


def test_tables_are_markdown():
    table = Table("Title", ("a", "b"))
    table.add("x|y", 0.12345)
    assert str(table).splitlines() == ["## Title", "", "| a | b |", "| --- | --- |", "| x\\|y | 0.123 |"]
