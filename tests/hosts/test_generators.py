"""NumPy generators on `SecureBitGenerator` in other libraries: docs/guides/generators.md."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

from dpfast.random import SecureBitGenerator
from tests.forks import answer_of_child, needs_fork
from tests.statistical import chi_square_rejects

pytestmark = pytest.mark.host


@pytest.fixture
def generator():
    return np.random.Generator(SecureBitGenerator())


@pytest.fixture
def legacy():
    return np.random.RandomState(SecureBitGenerator())


class TestLibraries:
    def test_numpy(self, generator):
        assert sorted(generator.permutation(50)) == list(range(50))
        faces = np.bincount(generator.integers(0, 6, 60_000), minlength=6)
        assert not chi_square_rejects(faces, np.full(6, 1 / 6))
        assert chi_square_rejects(faces, np.array([2, 1, 1, 1, 1, 1]) / 7)

    def test_scipy(self, generator):
        drawn = stats.norm.rvs(size=1000, random_state=generator)
        assert stats.kstest(drawn, "norm").pvalue > 1e-9
        assert stats.kstest(drawn - 0.5, "norm").pvalue < 1e-9
        assert stats.multivariate_normal([0, 0]).rvs(4, random_state=generator).shape == (4, 2)
        assert stats.bootstrap(([1.0, 2.0, 4.0],), np.mean, n_resamples=20, rng=generator).standard_error > 0

    def test_scipy_cannot_spawn_it(self, generator):
        with pytest.raises(TypeError):
            stats.qmc.Sobol(2, rng=generator)

    def test_pandas(self, generator):
        pandas = pytest.importorskip("pandas")
        assert set(pandas.Series(range(5)).sample(3, random_state=generator)) <= set(range(5))

    def test_sklearn(self, generator, legacy):
        utils = pytest.importorskip("sklearn.utils")
        ensemble = pytest.importorskip("sklearn.ensemble")
        assert sorted(utils.shuffle(list(range(9)), random_state=legacy)) == list(range(9))
        forest = ensemble.RandomForestClassifier(3, random_state=legacy).fit([[0], [1], [2]], [0, 1, 0])
        assert forest.predict([[5]]).shape == (1,)
        with pytest.raises(ValueError, match="random_state"):
            utils.shuffle([1, 2], random_state=generator)
        with pytest.raises(AttributeError, match="no state to read"):
            pytest.importorskip("sklearn.base").clone(forest)


class TestUse:
    @needs_fork
    def test_a_fork_draws_other_numbers(self, generator):
        """The child has the same generator in memory; its numbers differ from those of the parent."""
        generator.integers(2)
        drawn = answer_of_child(lambda: generator.bytes(16))
        assert len(drawn) == 16
        assert drawn != generator.bytes(16)

    def test_threads_share_it(self, generator):
        with ThreadPoolExecutor(4) as threads:
            drawn = list(threads.map(lambda _: generator.integers(0, 2**63, 500), range(8)))
        assert len(np.unique(np.concatenate(drawn))) == 4000

    @pytest.mark.parametrize(
        "use", [pickle.dumps, copy.deepcopy, lambda g: g.spawn(2), lambda g: g.bit_generator.state]
    )
    def test_it_has_no_state(self, generator, use):
        with pytest.raises((TypeError, AttributeError), match=r"has no (state|seed)"):
            use(generator)

    @pytest.mark.parametrize("use", [pickle.dumps, copy.deepcopy, lambda r: r.get_state()])
    def test_nor_does_the_legacy_class(self, legacy, use):
        with pytest.raises(AttributeError, match="no state to read"):
            use(legacy)
