"""Combiners of `dpfast.pipeline_dp`: releases, the guarantee of a privacy id, accumulators, the two backends."""

import logging
import pickle
import warnings
from functools import partial

import numpy as np
import pytest

import dpfast as dpf
from dpfast.statistics import Count, Median, Sum, Variance

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the libraries among themselves
    pipeline_dp = pytest.importorskip("pipeline_dp")
    import dpfast.pipeline_dp as dpf_pipeline
logging.getLogger().setLevel(logging.ERROR)
pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore:::apache_beam", "ignore::DeprecationWarning")]

GRID = dpf.Grid(0, 100, step=1)
CERTAIN = 1e6  # an epsilon without visible noise
EXTRACTORS = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)
# 40 persons with 5 visits in each of 4 places.
ROWS = [
    (person, place, 10 * "abcd".index(place) + visit) for person in range(40) for place in "abcd" for visit in range(5)
]


def aggregate(rows, combiners, *, epsilon=CERTAIN, places="abcd", backend=None, accountant=None, **bounds):
    """The releases of each place."""
    accountant = accountant or pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=1e-6)
    engine = pipeline_dp.DPEngine(accountant, backend or pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(metrics=[], custom_combiners=combiners, **bounds)
    public = None if places is None else list(places)
    result = engine.aggregate(rows, params, EXTRACTORS, public_partitions=public)
    accountant.compute_budgets()
    return dict(result)


def all_combiners():
    return [
        dpf_pipeline.quantile(0.5, grid=GRID),
        dpf_pipeline.mean(grid=GRID),
        dpf_pipeline.sum(grid=GRID),
        dpf_pipeline.count(),
    ]


ALL = {"max_partitions_contributed": 4, "max_contributions_per_partition": 5}


class TestReleases:
    def test_local(self):
        released = aggregate(ROWS, all_combiners(), **ALL, places="abcde")
        for place in "abcd":
            middle = 10 * "abcd".index(place) + 2
            assert released[place] == (middle, pytest.approx(middle, abs=1e-3), 200 * middle, 200)
        median, mean, total, count = released["e"]
        assert (total, count) == (0, 0)
        assert 0 <= median <= 100
        assert 0 <= mean <= 100

    def test_bounded_contributions(self):
        bounds = {"max_partitions_contributed": 2, "max_contributions_per_partition": 3}
        released = aggregate(ROWS, [dpf_pipeline.count()], **bounds)
        assert sum(count for (count,) in released.values()) == 40 * 6

    def test_bounded_by_total(self):
        released = aggregate(ROWS, [dpf_pipeline.count()], max_contributions=7)
        assert sum(count for (count,) in released.values()) == 40 * 7

    def test_bounds_that_are_enforced_already(self):
        released = aggregate(ROWS, [dpf_pipeline.count()], **ALL, contribution_bounds_already_enforced=True)
        assert released == dict.fromkeys("abcd", (200.0,))

    def test_private_partitions(self):
        rows = [*ROWS, (99, "rare", 1)]
        assert set(aggregate(rows, [dpf_pipeline.count()], **ALL, places=None, epsilon=100.0)) == set("abcd")

    def test_missing_values(self):
        rows = [(person, "a", value) for person, value in enumerate([None, float("nan"), 50, "text", np.float32(50)])]
        released = aggregate(rows, [dpf_pipeline.sum(grid=GRID), dpf_pipeline.count()], **ALL, places="a")
        assert released == {"a": (100.0, 5.0)}

    def test_a_count_does_not_read_values(self):
        rows = [(0, "a", (1, 2)), (0, "a", (3,)), (1, "a", {}), (2, "a", "text"), (3, "a", [[]])]
        assert aggregate(rows, [dpf_pipeline.count()], **ALL, places="a") == {"a": (5.0,)}

    def test_any_mechanism(self):
        make = partial(dpf.InverseSensitivity, Median(), grid=GRID, neighbors="add-remove", radius=1.0)
        combiner = dpf_pipeline.MechanismCombiner(make, name="median", weight=3)
        assert combiner.metrics_names() == ["median"]
        assert abs(aggregate(ROWS, [combiner], **ALL)["b"][0] - 12) <= 1

    def test_beam(self):
        beam = pytest.importorskip("apache_beam")
        from apache_beam.testing.util import assert_that

        def check(found):
            assert dict(found) == {place: (10.0 * "abcd".index(place) + 2, 200.0) for place in "abcd"}

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with beam.Pipeline() as pipeline:
                rows = pipeline | beam.Create(ROWS)
                accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=CERTAIN, total_delta=1e-6)
                engine = pipeline_dp.DPEngine(accountant, pipeline_dp.BeamBackend())
                combiners = [dpf_pipeline.quantile(0.5, grid=GRID), dpf_pipeline.count()]
                params = pipeline_dp.AggregateParams(metrics=[], custom_combiners=combiners, **ALL)
                result = engine.aggregate(rows, params, EXTRACTORS, public_partitions=list("abcd"))
                accountant.compute_budgets()
                assert_that(result, check)


class TestGuarantee:
    @pytest.mark.parametrize(
        ("bounds", "k"),
        [
            ({"max_partitions_contributed": 2, "max_contributions_per_partition": 3}, 6),
            ({"max_contributions": 7}, 7),
            ({"max_partitions_contributed": 1, "max_contributions_per_partition": 1}, 1),
        ],
    )
    def test_each_record_has_a_share(self, bounds, k):
        first, second = dpf_pipeline.count(weight=3.0), dpf_pipeline.mean(grid=GRID)
        aggregate(ROWS, [first, second], epsilon=2.0, **bounds)
        for combiner, share in ((first, 1.5), (second, 0.5)):
            made = combiner.mechanism.privacy
            assert share * (1 - 1e-15) <= made.for_units(k).epsilon <= share
            assert made.neighbors == "add-remove"

    def test_a_combiner_serves_one_aggregation(self):
        """Otherwise the second one's bounds would decide the noise of the first."""
        combiner = dpf_pipeline.count()
        aggregate(ROWS, [combiner], **ALL)
        before = combiner.mechanism
        with pytest.raises(ValueError, match="serves one aggregation"):
            aggregate(ROWS, [combiner], max_contributions=1)
        assert combiner.mechanism == before

    def test_of_the_releases_of_all_partitions(self):
        """A privacy id with as many records as the bounds allow: the losses of its partitions add up to epsilon."""
        epsilon, partitions, each = 1.0, 3, 2
        combiner = dpf_pipeline.count()
        bounds = {"max_partitions_contributed": partitions, "max_contributions_per_partition": each}
        aggregate(ROWS, [combiner], epsilon=epsilon, **bounds)

        def loss(mechanism):
            releases = np.arange(40)
            more, fewer = (mechanism.law(np.zeros(n)).logpmf(releases) for n in (10, 10 - each))
            return partitions * np.abs(more - fewer).max()

        assert loss(combiner.mechanism) == pytest.approx(epsilon, rel=1e-9)
        for ignored in (partitions, each):  # controls: the same budget for fewer records
            few = dpf.GlobalSensitivity(
                Count(), grid=GRID, epsilon=epsilon * ignored / (partitions * each), neighbors="add-remove"
            )
            assert loss(few) > epsilon * 1.5

    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (
                partial(dpf.GlobalSensitivity, Sum(), grid=GRID),
                ValueError,
                "neighbors must be 'add-remove' in PipelineDP",
            ),
            (partial(dpf.GlobalSensitivity, Variance(), grid=GRID), ValueError, "neighbors must be 'add-remove'"),
            (lambda epsilon: 5, TypeError, "make must return a dpfast.Mechanism, not int"),
            (
                partial(dpf.InverseSensitivity, Median(), grid=dpf.Grid(0, 100), neighbors="add-remove"),
                ValueError,
                "must read the records once, not 2 times",
            ),
            (
                lambda epsilon: dpf.GlobalSensitivity(Sum(), grid=GRID, epsilon=2 * epsilon, neighbors="add-remove"),
                ValueError,
                "with the epsilon that it is given",
            ),
        ],
    )
    def test_refused_mechanisms(self, make, error, message):
        with pytest.raises(error, match=message):
            dpf_pipeline.MechanismCombiner(make, name="x")

    def test_other_accountants_are_refused(self):
        accountant = pipeline_dp.PLDBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
        with pytest.raises(ValueError, match="does not support custom combiners"):
            aggregate(ROWS, [dpf_pipeline.count()], accountant=accountant, **ALL)

    def test_explained(self):
        combiner = dpf_pipeline.count()
        aggregate(ROWS, [combiner], **ALL)
        explained = combiner.explain_computation()()
        assert explained.startswith("Computed count by dpfast: <GlobalSensitivity release of the count")
        assert explained.endswith(", for 20 records of a privacy id")


def test_accumulators(monkeypatch):
    monkeypatch.setattr(dpf_pipeline, "_HELD", 5)
    combiner = dpf_pipeline.quantile(0.5, grid=GRID)
    aggregate(ROWS, [combiner], **ALL)
    values = np.random.default_rng(1).integers(0, 100, 60).tolist()
    parts = [combiner.create_accumulator(values[i : i + 3]) for i in range(0, 60, 3)]
    before = [pickle.dumps(part) for part in parts]

    def merged(accumulators):
        """A tree of random shape, with accumulators sent between processes."""
        left = list(accumulators)
        while len(left) > 1:
            i = rng.integers(len(left) - 1)
            left[i : i + 2] = [pickle.loads(pickle.dumps(combiner.merge_accumulators(left[i], left[i + 1])))]
        return left[0].read(combiner.mechanism).to_bytes()

    whole = combiner.mechanism.start()
    whole.update(values)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        assert merged(parts) == whole.to_bytes()
    assert [pickle.dumps(part) for part in parts] == before  # merging changes none of them
    assert repr(parts[0]) == "<Accumulator of private records>"
    empty = combiner.create_accumulator([])
    assert combiner.merge_accumulators(empty, empty).read(combiner.mechanism).n == 0
