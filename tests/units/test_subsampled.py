"""T46: Releases from samples: mixtures of laws of all samples, amplified guarantees, samples that are too large."""

import itertools
import math
import pickle
from contextlib import nullcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.random import PCG64

import dpfast as dpf
from dpfast import Subsampled
from dpfast.mechanisms.subsampled import sample_of
from dpfast.regression import BlockFits
from dpfast.statistics import Mean, Median
from tests.cases import every
from tests.central import shaped
from tests.releases import MECHANISMS, X
from tests.statistical import chi_square_rejects
from tests.untouchable import Untouchable

GRID = dpf.Grid(0, 3, step=1)
MEDIAN = dpf.InverseSensitivity(Median(), grid=GRID, epsilon=2.0)
MEAN = dpf.GlobalSensitivity(Mean(), grid=GRID, epsilon=2.0)


class LargerSample(Subsampled):
    """The control: one record more than the guarantee is for."""

    def size(self, n):
        return super().size(n) + 1


class TestPrivacy:
    @every("mechanism, share", itertools.product((MEDIAN, MEAN), (0.25, 0.5, 0.75, 1.0)), ids=repr)
    def test_laws(self, mechanism, share):
        assert dpf.audit.verify(Subsampled(mechanism, share), n=4, values=3, ordered=False).holds

    def test_the_bound_is_attained(self):
        sampled = Subsampled(MEAN, 0.5)
        found = dpf.audit.verify(sampled, n=4, values=2).epsilon
        assert math.isclose(found, sampled.privacy.epsilon, rel_tol=1e-9)

    @every("share", [0.25, 0.5])
    def test_controls(self, share):
        assert not dpf.audit.verify(LargerSample(MEAN, share), n=4, values=4, ordered=False).holds

    @every("epsilon, share", itertools.product((1e-9, 0.1, 1.0, 20.0, 699.0), (1e-12, 0.1, 0.5, 1 - 2.0**-53)))
    def test_epsilon_is_rounded_up(self, epsilon, share):
        with pytest.warns(dpf.PrivacyWarning) if epsilon > 20 else nullcontext():
            mechanism = dpf.InverseSensitivity(Median(), grid=GRID, epsilon=epsilon)
        stated = Subsampled(mechanism, share).privacy.epsilon
        with mpmath.workdps(400):
            exact = mpmath.log1p(mpmath.mpf(share) * mpmath.expm1(epsilon))
            assert exact <= stated <= min(exact * (1 + mpmath.mpf(2) ** -44), epsilon)

    def test_delta(self):
        smooth = dpf.SmoothSensitivity(Median(), grid=GRID, epsilon=1.0, delta=1e-6)
        sampled = Subsampled(smooth, Fraction(1, 3))
        assert Fraction(1e-6) / 3 <= sampled.privacy.delta < 3.334e-7
        assert sampled.share == Fraction(1, 3)


class TestReleases:
    def test_law(self):
        sampled, x = Subsampled(MEDIAN, 0.5), [0.0, 1.0, 1.0, 3.0]
        outcomes = sampled.law(x).outcomes()
        law = np.exp(sampled.law(x).logpmf(outcomes))
        assert math.isclose(law.sum(), 1, rel_tol=1e-12)
        for released in (
            sampled.release(x, size=8000, rng=PCG64(1)),
            np.array([sampled(x, rng=rng) for rng in [PCG64(2)] for _ in range(8000)]),
            sampled.law(x).value(sampled.law(x).sample(8000, PCG64(3))),
        ):
            counts = [np.sum(released == value) for value in MEDIAN.law([0.0, 1.0]).value(outcomes)]
            assert not chi_square_rejects(counts, law)
            assert chi_square_rejects(counts, np.exp(MEDIAN.law(x).logpmf(outcomes)))

    def test_samples_are_uniform(self):
        """Sets of two of five records, by the sum of powers of two."""
        total = dpf.GlobalSensitivity(dpf.statistics.Sum(), grid=dpf.Grid(0, 16, step=1), epsilon=20.0)
        sampled, rng = Subsampled(total, 0.4), PCG64(4)
        values = 2.0 ** np.arange(5)
        found = np.array([sampled(values, rng=rng) for _ in range(20_000)])
        sets = [a + b for a, b in itertools.combinations(values, 2)]
        counts = [np.sum(found == each) for each in sets]
        laws = [total.law(pair) for pair in itertools.combinations(values, 2)]
        expected = np.mean([np.exp(law.logpmf([int(each) for each in sets])) for law in laws], axis=0)
        assert not chi_square_rejects([*counts, 20_000 - sum(counts)], [*expected, 1 - expected.sum()])

    def test_containers(self):
        """The same records in an array, in chunks and counted, for the same generator."""
        x = np.sort(np.random.default_rng(5).integers(0, 4, 1000)).astype(float)
        values, counts = np.unique(x, return_counts=True)
        sampled = Subsampled(MEDIAN, 0.3)
        forms = [x, dpf.Chunks([x[:100], x[100:]]), dpf.Counted(values, counts), x.tolist()]
        assert len({sampled(form, rng=PCG64(6)) for form in forms}) == 1
        places = np.arange(0, 1000, 7)
        for form in forms[:3]:
            sample = sample_of(MEDIAN, sampled.values_of(form), places)
            pieces = list(sample) if isinstance(sample, dpf.Chunks) else [sample]
            read = [np.repeat(p.values, p.counts) if isinstance(p, dpf.Counted) else p for p in pieces]
            assert np.concatenate(read).tolist() == x[places].tolist()

    @pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
    @pytest.mark.filterwarnings("ignore")
    def test_all_mechanisms(self, mechanism):
        """A mechanism is refused, or releases the same from an array and from chunks, whatever it makes of records."""
        try:
            sampled = Subsampled(mechanism, 0.5)
        except (TypeError, ValueError):
            return
        x = shaped(mechanism, X)
        parts = [
            tuple(y[part] for y in x) if isinstance(x, tuple) else x[part] for part in np.split(np.arange(len(X)), [7])
        ]
        whole, pieces = (np.asarray(sampled(form, rng=PCG64(8)), object) for form in (x, dpf.Chunks(parts)))
        assert (whole.shape, repr(whole)) == (pieces.shape, repr(pieces))

    def test_samples_of_labels_in_chunks(self):
        """Rows whose labels say which they are: samples of chunks have the same ones, each with its label."""
        rows, places = np.arange(40.0).reshape(20, 2), np.arange(0, 20, 3)
        fits = BlockFits(domain=dpf.domains.Ball(100.0), epsilon=1.0)
        pieces = dpf.Chunks([(rows[:5], rows[:5, 0]), (rows[5:], rows[5:, 0])])
        sample = sample_of(fits, pieces, places)
        assert sample.rows.tolist() == rows[places].tolist()
        assert sample.labels.tolist() == rows[places, 0].tolist()

    def test_chunks_of_counted_and_other_values(self):
        sample = sample_of(
            MEDIAN, dpf.Chunks([dpf.Counted([1.0, 2.0], [2, 3]), np.array([3.0, 0.0])]), np.array([1, 4, 6])
        )
        assert sample.tolist() == [1.0, 2.0, 0.0]

    def test_rows_and_objects(self):
        domain = dpf.domains.Ball(10.0)
        sums = Subsampled(dpf.NoisySums(Mean(), domain=domain, epsilon=1.0, delta=1e-6), 0.5)
        assert sums(np.ones((100, 3))).shape == (3,)
        assert sums.release(np.ones((100, 3)), size=2).shape == (2, 3)
        cells = Subsampled(dpf.PerturbedHistogram(4, grid=GRID, epsilon=1.0), 0.5)
        assert cells(np.arange(100) % 4).counts.shape == (4,)
        assert cells.release(np.arange(100) % 4, size=2).shape == (2,)

    def test_one_charge(self):
        sampled = Subsampled(MEDIAN, 0.5)
        with dpf.Ledger(sampled.privacy.epsilon) as ledger:
            sampled([1.0] * 10)
            with pytest.raises(dpf.BudgetError, match="does not fit"):
                sampled(Untouchable())
        assert [charge.times for charge in ledger.charges] == [1]
        assert pickle.loads(pickle.dumps(sampled)) == sampled

    @every(
        "options, error, match",
        [
            ({"mechanism": 3}, TypeError, "mechanism must be a dpfast.Mechanism"),
            ({"mechanism": dpf.Selection(epsilon=1.0)}, TypeError, "that reads records"),
            ({"mechanism": dpf.PartitionSelection(1.0, 1e-6)}, ValueError, "one record replaced"),
            # The number of records with listed keys is private: samples by it would differ for neighbours by more.
            ({"mechanism": dpf.TopK(1, ["a"], epsilon=1.0, neighbors="replace-one")}, ValueError, "read all records"),
            ({"mechanism": dpf.TopK(1, [0.0], epsilon=1.0, neighbors="replace-one")}, ValueError, "read all records"),
            ({"mechanism": dpf.PartitionSelection(1.0, 0.1, neighbors="replace-one")}, ValueError, "read all records"),
            ({"mechanism": dpf.NoisyMarginals({"a": [0, 1, 2]}, [("a",)], mu=1.0)}, ValueError, "in epsilon"),
            ({"share": 0}, ValueError, "share must be positive"),
            ({"share": 1.5}, ValueError, "share must be positive"),
        ],
        ids=str,
    )
    def test_bad_parameters(self, options, error, match):
        with pytest.raises(error, match=match):
            Subsampled(**{"mechanism": MEDIAN, "share": 0.5, **options})

    def test_few_records(self):
        sampled = Subsampled(MEDIAN, 0.1)
        assert (sampled.size(10), sampled.size(19), sampled.size(20)) == (1, 1, 2)
        with dpf.Ledger(1.0) as ledger, pytest.raises(ValueError, match="less than one"):
            sampled([1.0] * 9)
        assert not ledger.charges
