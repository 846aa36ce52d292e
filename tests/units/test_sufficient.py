"""`dpfast.SufficientStatistics`, and the choice of `dpfast.mle` between blocks and sums."""

import itertools
import pickle

import numpy as np
import pytest
from scipy.stats import norm

import dpfast as dpf
from dpfast import SampleAndAggregate, SufficientStatistics, audit
from dpfast.aggregate.choice import choice_between, sums_for
from dpfast.aggregate.moments import Moments, _table_of
from dpfast.choosing import rounded_down
from dpfast.families.summed import summed
from dpfast.families.user import family_of
from dpfast.laws import ClampedNoise, NoisyIntegers, Staircase
from dpfast.streaming import State
from tests.cases import every
from tests.reference import sufficient as reference

# Family, bounds, parameters, an interval that cuts off much of the distribution, and a draw of records.
SETTINGS = {
    "bernoulli": ({"p": (0, 1)}, {"p": 0.1}, (0, 1), lambda rng, n: rng.random(n) < 0.1),
    "poisson": ({"mean": (0, 50)}, {"mean": 5.0}, (2, 7), lambda rng, n: rng.poisson(5, n)),
    "geometric": ({"p": (0.01, 0.99)}, {"p": 0.3}, (2, 5), lambda rng, n: rng.geometric(0.3, n)),
    "exponential": ({"rate": (0.05, 20)}, {"rate": 2.0}, (0, 0.75), lambda rng, n: rng.exponential(0.5, n)),
    "pareto": ({"shape": (0.1, 10)}, {"shape": 2.0}, (1, 2), lambda rng, n: 1 + rng.pareto(2.0, n)),
    "normal": (
        {"mean": (-5, 5), "sd": (0.5, 5)}, {"mean": 1.0, "sd": 2.0}, (-2, 3), lambda rng, n: rng.normal(1, 2, n),
    ),
    "lognormal": (
        {"mu": (-1, 3), "sigma": (0.2, 1.5)}, {"mu": 1.0, "sigma": 0.5}, (1, 5),
        lambda rng, n: rng.lognormal(1, 0.5, n),
    ),
    "gamma": (
        {"scale": (0.5, 8), "shape": (0.5, 8)}, {"scale": 1.5, "shape": 2.0}, (0.5, 6),
        lambda rng, n: rng.gamma(2.0, 1.5, n),
    ),
    "beta": ({"a": (0.5, 8), "b": (0.5, 8)}, {"a": 2.0, "b": 3.0}, (0.1, 0.75), lambda rng, n: rng.beta(2.0, 3.0, n)),
}  # fmt: skip


def mechanism(family, **options):
    bounds = SETTINGS[family][0]
    return SufficientStatistics(family, bounds=bounds, **({"epsilon": 1.0} | options))


def at(made, theta):
    return np.array([[theta[name] for name in made.model.names]])


class Claiming:
    """A mechanism with another declared guarantee."""

    def __init__(self, made, epsilon):
        self.law, self.privacy = made.law, dpf.Privacy(epsilon)


@every("family, bounds", [("exponential", (0.1, 10)), ("poisson", (0.1, 20)), ("geometric", (0.01, 0.9))])
def test_one_parameter_takes_three_evaluations_of_its_moment(family, bounds, monkeypatch):
    moments, counted, at = SufficientStatistics(family, bounds=bounds, epsilon=1.0).moments, [], Moments.at
    levels = np.linspace(0.05, 0.5, 100)[:, None]
    assert moments.estimates(levels, 1000, np.zeros(1), corrected=False).shape == (100, 1)  # makes the table
    monkeypatch.setattr(Moments, "at", lambda self, phi: counted.append(phi) or at(self, phi))
    for level in levels:
        moments.estimates(level[None], 1000, np.zeros(1), corrected=False)
    assert len(counted) <= 3 * len(levels)


class TestMoments:
    @every("family", SETTINGS)
    def test_by_definition(self, family):
        """Means and covariances of clamped statistics against sums and quadrature of high precision."""
        bounds, theta, interval, _ = SETTINGS[family]
        model = summed(family_of(family), tuple(bounds))
        low, high = (np.array([float(model.coordinate(end))]) for end in interval)
        means, covariances = model.moments(np.array([list(theta.values())]), low, high)
        expected = reference.moments(family, theta, model.columns, model.squares, interval)
        assert np.allclose(means[0], expected[0], rtol=1e-10, atol=0)
        assert np.allclose(covariances[0], expected[1], rtol=1e-8, atol=1e-12)

    @pytest.mark.parametrize(("names", "theta"), [(("variance", "mean"), (4.0, 1.0)), (("mean", "sd"), (1.0, 2.0))])
    def test_parametrisations(self, names, theta):
        model = summed(family_of("normal"), names)
        means, _ = model.moments(np.array([theta]), np.array([-2.0]), np.array([3.0]))
        expected, _ = reference.moments("normal", {"mean": 1.0, "sd": 2.0}, ("value",), True, (-2, 3))
        assert np.allclose(means[0], expected, rtol=1e-10)

    @every("family", SETTINGS)
    def test_quantiles_and_coordinates(self, family):
        bounds, theta, (_, end), draw = SETTINGS[family]
        model = summed(family_of(family), tuple(bounds))
        assert model.record(model.coordinate(end)) == pytest.approx(end)
        [y] = model.quantile(np.array([list(theta.values())]), np.array([0.9]))
        x = draw(np.random.default_rng(0), 10_000)
        assert np.mean(x < model.record(y) - 1e-9) <= 0.92
        assert np.mean(x <= model.record(y) + 1e-9) >= 0.88

    @every("family", SETTINGS)
    def test_inverse(self, family):
        """The parameters are found from their own moments; from others, the nearest in the bounds."""
        made = mechanism(family, record_bounds=SETTINGS[family][2])
        theta, noise = at(made, SETTINGS[family][1]), np.zeros(len(made.widths))
        means, _ = made.moments.at(theta if family == "normal" else made.moments.phi(theta))
        found = made.moments.estimates(made.moments.at(made.moments.phi(theta))[0], 1000, noise, corrected=False)
        assert np.allclose(found, theta, rtol=1e-6)
        extreme = made.moments.estimates(np.eye(means.shape[1]), 1000, noise, corrected=True)
        lower, upper = np.array([pair for _, pair in made.bounds]).T
        assert ((extreme >= lower) & (extreme <= upper)).all()

    @every("family", SETTINGS)
    def test_no_averages(self, family):
        made = mechanism(family, record_bounds=SETTINGS[family][2])
        p = len(made.widths)
        assert made.moments.estimates(np.zeros((0, p)), 1000, np.zeros(p), corrected=True).shape == (0, p)

    @every("family", SETTINGS)
    @every("far", [1e200, 1e308, np.inf, np.nan])
    def test_averages_far_from_all_moments(self, family, far):
        """Where no distance is a double, the search begins in the middle of the bounds."""
        made = mechanism(family, record_bounds=SETTINGS[family][2])
        p = len(made.widths)
        averages = np.array(list(itertools.product([-far, 0.0, far], repeat=p)))
        found = made.moments.estimates(averages, 1000, np.full(p, 1e-3), corrected=True)
        lower, upper = np.array(made.moments.bounds).T
        assert found.shape == averages.shape
        assert np.all((found >= lower) & (found <= upper))

    def test_inverse_in_wide_bounds(self):
        """Where the nearest point of the table is one at which all records are clamped, the middle is tried, too: from
        the table alone, means differ by up to 0.05.
        """
        bounds = {"mean": (-1e4, 1e6), "variance": (1e-3, 1e8)}
        made = SufficientStatistics("normal", bounds=bounds, epsilon=1.0)
        moments, (lower, upper) = made.moments, np.array([(-1e4, np.log(1e-3)), (1e6, np.log(1e8))])
        phi = lower + (upper - lower) * np.random.default_rng(1).random((40, 2))
        means, noise = moments.at(phi)[0], np.zeros(2)
        found = moments.estimates(means, 10**6, noise, corrected=False)
        assert np.abs(moments.at(moments.phi(found))[0] - means).max() < 0.002

    @pytest.mark.parametrize("family", ["exponential", "normal", pytest.param("gamma", marks=pytest.mark.slow)])
    def test_second_order_bias(self, family):
        """The mean error of estimates from normal averages, with the covariance of the expansion, is its bias."""
        made = mechanism(family, record_bounds=(-7, 9) if family == "normal" else SETTINGS[family][2])
        theta, noise, n, count = at(made, SETTINGS[family][1]), np.full(len(made.widths), 1e-5), 150, 400
        phi = made.moments.phi(theta)
        means, covariances = made.moments.at(phi)
        root = np.linalg.cholesky(covariances[0] / n + np.diag(noise))
        levels = np.tile((np.arange(count) + 0.5) / count, (len(root), 1))
        z = norm.ppf(np.random.default_rng(1).permuted(levels, axis=1).T)
        z = np.concatenate([z, -z])  # the first order cancels
        errors = made.moments.estimates(means + z @ root.T, n, noise, corrected=False) - theta
        bias = made.moments.bias(phi, made.moments.covariance(phi, n, noise))[0]
        deviation = made.moments.deviations(phi, made.moments.covariance(phi, n, noise))[0]
        assert np.allclose(errors.std(axis=0), deviation, rtol=0.2)
        assert np.abs(errors.mean(axis=0) - bias).max() < 0.02 * deviation.max()
        assert np.abs(bias).max() > 0.03 * deviation.max()  # else this proves nothing
        corrected = made.moments.estimates(means + z @ root.T, n, noise, corrected=True) - theta
        assert (np.abs(corrected.mean(axis=0)) < 0.04 * deviation).all()


VERIFIED = {
    "bernoulli": ({}, dpf.Grid(0, 1, step=1), 2),
    "poisson": ({"record_bounds": (1, 3)}, dpf.Grid(0, 4, step=1), 5),
    "geometric, staircase": ({"record_bounds": (1, 9), "epsilon": 3.0}, dpf.Grid(1, 9, step=1), 3),
    "exponential": ({"record_bounds": (0, 2), "step": 0.5}, dpf.Grid(-1, 3, step=1), 5),
    "pareto": ({"record_bounds": (1, 8), "step": 0.5}, dpf.Grid(0, 12, step=4), 4),
    "normal": ({"record_bounds": (-2, 2), "step": 1.0}, dpf.Grid(-4, 4, step=2), 5),
    "lognormal": ({"record_bounds": (0.5, 2), "step": 0.5}, dpf.Grid(0, 4, step=1), 5),
    "gamma": ({"record_bounds": (0.25, 2), "step": 0.5}, dpf.Grid(0, 4, step=2), 3),
    "beta": ({"record_bounds": (0.1, 0.75), "step": 1.0}, dpf.Grid(0, 1, step=0.5), 3),
}


class TestPrivacy:
    @pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, marks=pytest.mark.slow) if name in ("normal", "lognormal", "gamma", "beta") else name
            for name in VERIFIED
        ],
    )
    def test_verified(self, name):
        """All pairs of neighbouring datasets; the claim is tight for one statistic, and half of the noise fails."""
        options, grid, values = VERIFIED[name]
        family = name.split(",")[0]
        made = mechanism(family, **options)
        certificate = audit.verify(made, n=2, values=values, grids=grid)
        assert certificate.holds
        if len(made.widths) == 1:
            assert certificate.epsilon == pytest.approx(made.epsilon, rel=1e-9)
        double = mechanism(family, **(options | {"epsilon": 2 * made.epsilon}))
        assert not audit.verify(Claiming(double, made.epsilon), n=2, values=values, grids=grid).holds

    def test_gaussian(self):
        options = {"noise": "gaussian", "delta": 1e-2}
        made = mechanism("bernoulli", **options)
        assert made.privacy == dpf.Privacy(1.0, 1e-2)
        assert audit.verify(made, n=3, values=2, grids=dpf.Grid(0, 1, step=1)).holds
        double = mechanism("bernoulli", **(options | {"epsilon": 2.0}))
        broken = Claiming(double, 1.0)
        broken.privacy = dpf.Privacy(1.0, 1e-2)
        assert not audit.verify(broken, n=3, values=2, grids=dpf.Grid(0, 1, step=1)).holds
        [width], [part] = made.widths, made.privacy_profile.parts
        assert part[0] == "gaussian"
        assert made.law([0, 1]).noise.scale >= width / part[1]

    def test_gaussian_of_two(self):
        made = mechanism("normal", noise="gaussian", delta=1e-3)
        law, mu = made.law([1.0, 2.0]), made.sums_noise.mu
        assert isinstance(law, NoisyIntegers)
        shift = np.array(made.widths) / np.array([float(scale) for scale in law.noise.scales])
        assert float(shift @ shift) <= mu**2
        assert float(shift @ shift) > 0.999 * mu**2

    def test_one_record_beyond_the_widths_is_rejected(self):
        """T12: a sum of records that are not clamped to the grid of the noise."""
        made = mechanism("poisson", record_bounds=(0, 2))
        wide = mechanism("poisson", record_bounds=(0, 4))
        broken = Claiming(made, 1.0)
        noise = made.law([0, 0]).noise
        broken.law = lambda x: ClampedNoise(
            noise, center=wide.law(x).center, last=8, decode=lambda k: np.asarray(k) / 8
        )
        assert not audit.verify(broken, n=2, values=5, grids=dpf.Grid(0, 4, step=1)).holds

    def test_profiles(self):
        [part] = mechanism("exponential", epsilon=0.5).privacy_profile.parts
        assert part[:3] == ("discrete-laplace", 0.5, 1)
        [part] = mechanism("exponential", epsilon=4.0).privacy_profile.parts
        assert part[0] == "staircase"
        assert isinstance(mechanism("exponential", epsilon=4.0).law([1.0]).noise, Staircase)
        [part] = mechanism("exponential", epsilon=4.0, noise="k-norm").privacy_profile.parts
        assert part[0] == "discrete-laplace"
        assert mechanism("gamma").privacy_profile.parts == (("pure", 1.0, 1),)


class TestReading:
    @every("family", SETTINGS)
    def test_sums_by_exact_arithmetic(self, family):
        """The centers of the law, against codes of fractions, one record at a time."""
        made = mechanism(family)
        x = np.append(SETTINGS[family][3](np.random.default_rng(2), 60).astype(float), [np.nan, np.inf, -np.inf, 0, -3])
        totals, half = [], (made.grids[0].size - 1) // 2
        for kind, grid in zip(made.model.columns, made.grids, strict=True):
            with np.errstate(all="ignore"):
                values = {"value": x, "log": np.log(x), "log1m": np.log(1 - x)}[kind]
            values = np.where(np.isnan(values) & ~np.isnan(x), -np.inf, values)  # logarithms of negative numbers
            codes = reference.codes(values, grid)
            totals.append(sum(codes))
            if made.model.squares:
                totals.append(sum((code - half) ** 2 for code in codes))
        law = made.law(x)
        found = np.atleast_1d(law.center)
        slack = 2 * len(x) * (1 if made.model.columns == ("value",) else 4 * half if made.model.squares else 1)
        exact = made.model.columns == ("value",)
        for total, center in zip(totals, found.tolist(), strict=True):
            assert abs(total - center) <= (0 if exact else slack)  # NumPy's logarithm may round to another code

    @pytest.mark.parametrize("family", ["poisson", "lognormal", "gamma", "beta"])
    def test_chunks_states_and_threads(self, family):
        made, x = mechanism(family), SETTINGS[family][3](np.random.default_rng(3), 100_000)
        expected = made(x, rng=np.random.default_rng(1))
        states = [made.start(), made.start()]
        states[0].update(x[:70_001], workers=2)
        states[1].update(x[70_001:])
        states[0].merge(State.from_bytes(states[1].to_bytes(), made))
        for again in (pickle.loads(pickle.dumps(states[0])).release(rng=np.random.default_rng(1)),
                      made(dpf.Chunks([x[:5], x[5:]]), rng=np.random.default_rng(1)),
                      made(x[::-1].astype(x.dtype), workers=2, rng=np.random.default_rng(1))):  # fmt: skip
            assert np.array_equal(again, expected)
        groups = dpf.by_group(made, x[:3000], offsets=[0, 1000, 3000], rng=np.random.default_rng(1))
        assert len(groups) == 2

    def test_missing(self):
        x = np.array([1.0, 2.0, np.nan])
        made = mechanism("exponential", missing=0.5)
        assert made.law(x).center == made.law([1.0, 2.0, 0.5]).center
        made = mechanism("gamma", missing=0.0)  # the nearest possible record
        assert np.abs(made.law(x).center - made.law([1.0, 2.0, 0.0]).center).max() <= 1  # in steps of rounding
        assert "count as 0.5," in mechanism("exponential", missing=0.5).explanation(10)


class TestEstimates:
    @pytest.mark.parametrize(
        "family",
        [
            pytest.param(family, marks=pytest.mark.slow)
            if family not in ("bernoulli", "geometric", "pareto")
            else family
            for family in SETTINGS
        ],
    )
    def test_error_and_bias(self, family):
        """Against 400 releases at n = 400: the deviation, the coverage of `error`, and a small bias."""
        _, theta, _, draw = SETTINGS[family]
        made, rng, n = mechanism(family, epsilon=2.0, planned_n=400), np.random.default_rng(4), 400
        errors = np.array([np.atleast_1d(made(draw(rng, n), rng=rng)) for _ in range(400)]) - at(made, theta)
        predicted = np.atleast_1d(made.error(n, theta))
        covered = np.mean(np.abs(errors) <= predicted, axis=0)
        assert (covered > 0.88).all()
        assert (np.mean(np.abs(errors) <= predicted / 2, axis=0) < 0.85).all()
        deviation = made.deviations(n, at(made, theta))[0]
        assert np.allclose(np.sqrt(np.mean(errors**2, axis=0)), deviation, rtol=0.3)
        assert (np.abs(errors.mean(axis=0)) < 0.35 * deviation).all()
        assert np.allclose(made.error(n, list(theta.values())), made.error(n, theta))

    def test_narrow_intervals_are_unbiased(self):
        """Half of the records are clamped: the estimate allows for it, a mean of clamped records does not."""
        x = np.random.default_rng(5).exponential(2.0, 1_000_000)
        made = SufficientStatistics("exponential", bounds={"mean": (0.1, 10)}, record_bounds=(0, 1.5), epsilon=4.0)
        assert made(x, rng=np.random.default_rng(6)) == pytest.approx(2.0, rel=0.02)
        assert np.minimum(x, 1.5).mean() < 1.1

    def test_sample_size(self):
        made = mechanism("poisson")
        n = made.sample_size(0.1, theta=5.0)
        assert made.error(n, 5.0) <= 0.1 < made.error(n - 1, 5.0)

    def test_public_numbers_choose_the_interval(self):
        narrow = mechanism("poisson", guess={"mean": 2.0}).interval
        assert narrow[1] < mechanism("poisson").interval[1] < mechanism("poisson", planned_n=10**9).interval[1]
        assert mechanism("exponential", guess={"mean": 0.1}).guessed == (10.0,)


def test_epsilons_that_are_near_share_the_table_of_estimates():
    """It is most of the time of a first release; the estimates are those of a table of their own."""
    x = np.random.default_rng(1).gamma(2.0, 3.0, 2000)

    def release(epsilon):
        made = SufficientStatistics("gamma", bounds={"shape": (0.3, 9), "scale": (0.3, 9)}, epsilon=epsilon)
        return made.release(x, rng=np.random.default_rng(3)).tolist()

    first = release(1.0)
    before = _table_of.cache_info().misses
    release(1.01)
    assert release(1.0) == first
    assert _table_of.cache_info().misses == before
    _table_of.cache_clear()
    assert release(1.0) == first


class TestRefusals:
    @every(
        "options, message",
        [
            ({"family": "laplace", "bounds": (0, 1)}, "sums need an exponential family"),
            ({"family": "normal", "bounds": {"mean": (0, 1)}}, "sums need an exponential family"),
            ({"family": "exponential", "bounds": {"rate": (1, 2), "mean": (1, 2)}}, "sums need an exponential family"),
            ({"noise": "gaussian"}, "delta must be positive"),
            ({"noise": "laplace"}, "noise must be"),
            ({"planned_n": 0}, "planned_n"),
            ({"record_bounds": (-1, 1)}, "record_bounds must lie inside the support"),
            ({"record_bounds": (2, 1)}, "record_bounds must be in order"),
            ({"step": 0.3}, "power of two"),
            ({"epsilon": 1e-30}, "coarser step"),
        ],
    )
    def test_constructor(self, options, message):
        given = {"family": "exponential", "bounds": (0.1, 10), "epsilon": 1.0} | options
        with pytest.raises(ValueError, match=message):
            SufficientStatistics(given.pop("family"), **given)

    @every("method", ["sums", "auto"])
    @every(
        "family, bounds",
        [
            ("normal", {"mean": (-5, 5), "sd": (1e100, 1e200)}),  # squares overflow
            ("normal", {"mean": (1e308, np.finfo(float).max), "variance": (1e-300, 1e300)}),  # no quantile is a double
            ("gamma", {"shape": (1e-12, 1e-9), "rate": (1e15, 1e16)}),  # all records are zeros
            ("beta", {"a": (1, np.finfo(float).max), "b": (1, 2)}),
        ],
    )
    def test_extreme_bounds(self, family, bounds, method):
        """They are a ValueError that names the bounds, before the charge; most are not too extreme for blocks."""
        with dpf.Ledger(epsilon=2.0) as ledger:
            with pytest.raises(ValueError, match=f"the bounds {next(iter(bounds))} in .* are too extreme"):
                dpf.mle(np.ones(500), family, bounds=bounds, epsilon=1.0, method=method)
            assert not ledger.charges

    @every("high", [0.9999999, np.nextafter(0.999999, 1)])
    def test_records_that_are_almost_all_equal(self, high):
        """A geometric record is one at these bounds; the interval of records then ends at two."""
        made = SufficientStatistics("geometric", bounds=(0.999999, high), epsilon=1.0)
        assert made.interval == (1, 2)
        assert 0.999999 <= made(np.ones(500)) <= high

    def test_error(self):
        made = mechanism("normal")
        with pytest.raises(TypeError, match="give theta"):
            made.error(10)
        with pytest.raises(ValueError, match="theta must give mean, sd"):
            made.error(10, {"mean": 0.0})
        with pytest.raises(ValueError, match="theta must give mean, sd"):
            made.error(10, 1.0)
        with pytest.raises(ValueError, match="in its bounds"):
            made.error(10, [0.0, 99.0])

    def test_too_many_records(self):
        with pytest.raises(ValueError, match=r"below 2\*\*61"):
            mechanism("gamma").plan(2**40)


def chosen(family, n, **options):
    return choice_between(SampleAndAggregate(family, epsilon=1.0, **options), n, None)


class TestChoice:
    def test_by_public_numbers(self):
        choice = chosen("poisson", 10_000, bounds=(0, 500))
        assert choice.method == "sums"
        assert isinstance(choice.mechanism, SufficientStatistics)
        assert choice.mechanism.planned_n == rounded_down(10_000) == 8192
        assert "error of mean" in str(choice)
        assert "Taken: sums, because its error is" in str(choice)
        again = chosen("poisson", 10_100, bounds=(0, 500)).mechanism
        assert again is choice.mechanism  # cached for numbers of three bits
        wide = chosen("normal", 1_000_000, bounds={"mean": (-1e6, 1e6), "sd": (1e-3, 1.0)})
        assert wide.method == "blocks"
        assert chosen("normal", 100, bounds={"mean": (0, 1)}).method == "blocks"
        assert chosen("laplace", 100, bounds=(0, 1)).reason.startswith("sums need an exponential family")
        few = chosen("poisson", 7, bounds=(0, 500))  # too few records for blocks
        assert (few.method, few.reason) == ("sums", "the error of blocks is not known for so few records")

    def test_a_guess(self):
        """The errors at the guess decide: within wide bounds, sums around it have less noise."""
        bounds, guess = {"mean": (-1e6, 1e6), "sd": (1e-3, 1.0)}, {"mean": 10.0, "sd": 0.5}
        assert chosen("normal", 1_000_000, bounds=bounds).method == "blocks"
        choice = chosen("normal", 1_000_000, bounds=bounds, guess=guess)
        assert choice.method == "sums"
        assert choice.reason.endswith("at the guess")
        assert choice.mechanism.interval[1] < 30

    def test_a_ledger_that_composes_by_rho(self):
        """Sums may not cost more of it: discrete Laplace noise instead of staircase noise."""
        x = np.random.default_rng(7).exponential(1.0, 1000)
        options = {"bounds": (0.1, 10), "epsilon": 4.0, "rng": np.random.default_rng(1)}
        with dpf.Ledger(rho=100.0) as ledger:
            dpf.mle(x, "exponential", **options)
            sums = ledger.spent.rho
            dpf.mle(x, "exponential", method="blocks", **options)
        assert sums <= ledger.spent.rho - sums
        blocks = SampleAndAggregate("exponential", bounds=(0.1, 10), epsilon=4.0)
        assert sums_for(blocks, 1000, None).privacy_profile.rho > blocks.privacy_profile.rho  # else this proves nothing

    def test_the_same_on_all_datasets(self):
        """Zeros, huge and missing records, lists and tuples: the text of explain= is the same."""
        texts = []
        arrays = np.zeros(500), np.full(500, 1e300), np.full(500, np.nan), np.arange(500.0)
        for x in (*arrays, [1.0] * 500, (1.0, None) * 250):
            dpf.mle(x, "gamma", bounds={"shape": (0.5, 8), "scale": (0.5, 8)}, epsilon=1.0, explain=texts.append)
        assert len(set(texts)) == 1
        assert "error of shape" in texts[0]

    def test_methods(self):
        x, bounds = np.random.default_rng(8).poisson(20, 1000), (0, 500)

        def text(**options):
            found = []
            dpf.mle(x, "poisson", bounds=bounds, epsilon=1.0, explain=found.append, **options)
            return found[0]

        assert "Taken: sums" in text()
        assert text(method="sums").startswith("SufficientStatistics")
        assert text(method="blocks").startswith("SampleAndAggregate")
        assert text(combine="mean").startswith("SampleAndAggregate")
        assert text(method="sums", missing=17).count("count as 17,") == 1
        assert 19 < dpf.mle(dpf.Chunks([x[:10], x[10:]]), "poisson", bounds=bounds, epsilon=9.0) < 21
        assert 19 < dpf.mle(dpf.Counted(*np.unique(x, return_counts=True)), "poisson", bounds=bounds, epsilon=9.0) < 21
        for options, message in [
            ({"method": "sum"}, "method must be"),
            ({"method": "sums", "blocks": 4}, "blocks is a parameter of blocks"),
            ({"method": "blocks", "missing": 1.0}, "missing is a parameter of sums"),
        ]:
            with pytest.raises(ValueError, match=message):
                text(**options)

    @pytest.mark.parametrize(
        "family", ["poisson", *(pytest.param(family, marks=pytest.mark.slow) for family in ("normal", "gamma"))]
    )
    def test_within_ten_percent(self, family):
        """Simulated at n = 400: "auto" takes the better one, or one that is hardly worse."""
        bounds, theta, _, draw = SETTINGS[family]
        blocks, rng, n = SampleAndAggregate(family, bounds=bounds, epsilon=1.0), np.random.default_rng(9), 400
        sums, losses = sums_for(blocks, n, None), {}
        for name, made in (("blocks", blocks), ("sums", sums)):
            errors = np.array([np.atleast_1d(made(draw(rng, n), rng=rng)) for _ in range(200)]) - at(sums, theta)
            losses[name] = float(np.sqrt(np.mean(errors**2, axis=0)).prod() ** (1 / len(theta)))
        assert losses[choice_between(blocks, n, None).method] <= 1.1 * min(losses.values())
        assert max(losses.values()) > 1.5 * min(losses.values())  # else any choice would do


class TestBoundsThatSpanTooMuch:
    def test_one_parameter_takes_blocks(self):
        x = np.random.default_rng(0).exponential(34_000, 1000)
        options = {"bounds": (1e-6, 1.0), "epsilon": 1.0}
        choice = chosen("exponential", 1000, bounds=(1e-6, 1.0))
        assert choice.method == "blocks"
        assert "sums of clamped records have an error of" in str(choice)
        assert chosen("exponential", 1000, bounds=(1e-3, 1.0)).method == "sums"
        estimates = [dpf.mle(x, "exponential", **options) * 34_000 for _ in range(5)]
        assert 0.2 < np.median(estimates) < 3

    def test_two_parameters_are_warned_of_and_a_guess_helps(self):
        options = {"bounds": {"mean": (0, 1e6), "sd": (1, 1e6)}, "epsilon": 1.0}
        x = np.random.default_rng(0).normal(5e5, 30, 1000)
        with pytest.warns(dpf.UtilityWarning, match="the bounds span so much that records are clamped"):
            SufficientStatistics("normal", **options)(x)
        SufficientStatistics("normal", **options, guess={"mean": 5e5, "sd": 30})(x)
        SufficientStatistics("normal", **options, record_bounds=(0, 1e6))(x)

    def test_the_expected_error_is_that_of_releases(self):
        mechanism = SufficientStatistics("exponential", bounds=(1e-4, 1), epsilon=1.0, planned_n=1000)
        worst, at = mechanism.worst(1000)
        assert at["rate"] == pytest.approx(10**-3.5)
        rng = np.random.default_rng(1)
        errors = [mechanism(rng.exponential(1 / at["rate"], 1000)) / at["rate"] - 1 for _ in range(60)]
        assert 0.6 * worst < np.sqrt(np.mean(np.square(errors))) < 1.6 * worst
