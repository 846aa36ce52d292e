"""All local randomisers under one set of attacks: certificates of exact laws, bits, shapes, black boxes; controls."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from numpy.random import PCG64, Generator

from dpfast import Grid, Privacy, audit, cli, local
from dpfast.core.coin import Coin, coin
from dpfast.local.hypercube import _mask_weights
from tests.reference import hypercube as reference

FINITE = {
    "binary": lambda epsilon: local.Binary(epsilon),
    **{
        f"categorical {method}": lambda epsilon, method=method: local.Categorical(5, epsilon, method)
        for method in ("k-rr", "subset", "oue", "hadamard")
    },
    **{
        f"interval {method}": lambda epsilon, method=method: local.Interval(epsilon, bounds=(-1, 3), method=method)
        for method in ("two-point", "codebook", "piecewise", "hybrid")
    },
    **{
        f"hypercube {method} {d}": lambda epsilon, d=d, method=method: local.Hypercube(
            d, epsilon, method=method, radius=0.7
        )
        for method in ("majority", "subset")
        for d in (1, 2, 3)
    },
    "series one-frequency": lambda epsilon: local.SeriesReports(2, epsilon, grid=Grid(0, 1), basis="trigonometric"),
    **{
        f"square wave {cells}": lambda epsilon, cells=cells: local.SquareWave((-1, 3), epsilon, cells=cells)
        for cells in (2, 5, 40)
    },
    "series majority": lambda epsilon: local.SeriesReports(6, epsilon, grid=Grid(0, 1), method="majority"),
    "series subset": lambda epsilon: local.SeriesReports(4, epsilon, grid=Grid(0, 1), method="subset"),
}
OTHERS = {
    "categorical olh": lambda epsilon: local.Categorical(5, epsilon, "olh"),
    "interval laplace": lambda epsilon: local.Interval(epsilon, bounds=(-1, 3), method="laplace"),
    "ball vector": lambda epsilon: local.L2Ball(3, epsilon),
    "ball sign": lambda epsilon: local.L2Ball(3, epsilon, report="sign"),
    "ball directions": lambda epsilon: local.L2Ball(3, epsilon, method="directions", directions=16),
    "ball privunit": lambda epsilon: local.L2Ball(3, epsilon, method="privunit"),
    "series halfspace": lambda epsilon: local.SeriesReports(
        4, epsilon, grid=Grid(0, 1), method="halfspace", basis="trigonometric"
    ),
}
EVERY = {**FINITE, **OTHERS}
every = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)


def dimension(mechanism):
    return getattr(mechanism, "d", None)


def record(mechanism, value):
    """The value, in all coordinates if there are many."""
    d = dimension(mechanism)
    return np.float64(value) if d is None else np.full(d, np.float64(value))


class Claimed:
    """A law that claims to be private."""

    def __init__(self, epsilon, grids, law):
        self.privacy, self.law = Privacy(epsilon, neighbors="local"), law
        self.grid, self.grids = grids[0], grids if len(grids) > 1 else None


class TestVerify:
    """`audit.verify` on exact laws: all pairs of a grid of records, every report."""

    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    @pytest.mark.parametrize("make", FINITE.values(), ids=FINITE)
    def test_certified(self, make, epsilon):
        mechanism = make(epsilon)
        certificate = audit.verify(mechanism, values=3 if dimension(mechanism) else 5)
        assert certificate.holds
        assert certificate.epsilon > (0.3 if isinstance(mechanism, local.SeriesReports) else 0.999) * epsilon
        assert certificate.claim == mechanism.privacy
        assert all(len(data) == 1 for data in certificate.worst)

    def test_a_randomizer_without_a_finite_law_says_so(self):
        with pytest.raises(TypeError, match=r"L2Ball has no exact law .* use audit\.distinguish"):
            audit.verify(local.L2Ball(3, 1.0))
        for name in ("categorical olh", "interval laplace", "series halfspace"):
            with pytest.raises(ValueError, match="law"):
                audit.verify(OTHERS[name](1.0))

    @pytest.mark.parametrize("theta", [-1.0, 0.0, 0.3, 3.0])
    def test_one_report_of_the_median(self, theta):
        protocol = local.MedianDescent(bounds=(-1, 3), epsilon=1.0)

        def law(x):
            p = protocol.probability(theta, x[0])
            return local.FiniteLaw(np.arange(2), (1 - p, p))

        certificate = audit.verify(Claimed(1.0, [Grid(-1, 3, step=0.25)], law), values=17)
        assert certificate.holds
        assert certificate.epsilon == pytest.approx(1.0 if theta < 3 else 0.0)

    @pytest.mark.parametrize("method", ["majority", "subset"])
    @pytest.mark.parametrize("d", range(1, 13))
    def test_cubes_up_to_12_in_rationals(self, d, method):
        """T9: P(report) of a corner equals that of the mask: all sum to 1; the ratio is certified at most e^epsilon."""
        for epsilon in (0.3, 1.0, 5.0):
            cube = local.Hypercube(d, epsilon, method=method)
            weights = _mask_weights(cube._coin, cube.k, cube.tau)
            assert sum(math.comb(cube.k, ones) * p for ones, p in enumerate(weights)) == 1
            assert not above(reference.loss_ratio(weights), epsilon)
            agreed = sum(
                math.comb(cube.k - 1, ones) * (p - q) for ones, (p, q) in enumerate(itertools.pairwise(weights))
            )
            assert cube.scale == pytest.approx(float(Fraction(d, cube.k) / agreed), rel=1e-14)


def above(ratio, epsilon):
    """Whether a rational is more than e^epsilon, certified."""
    ctx.prec = 200
    edge, value = arb(epsilon).exp(), arb(ratio.numerator) / arb(ratio.denominator)
    assert (value > edge) != (value < edge)
    return bool(value > edge)


def lookup(rows):
    """The law of a record that is an index."""
    return lambda x: local.FiniteLaw(np.arange(len(rows[0])), tuple(rows[int(x[0])]))


class TestVerifyControls:
    """Naive versions of the same mechanisms, which the same check rejects."""

    @pytest.mark.parametrize("d", [2, 4])
    def test_the_published_even_majority(self, d):
        """F1: a loss of log(1 + e^epsilon)."""
        weights, _ = reference.published_even(d, coin(1.0).ratio)
        signs = np.array(list(itertools.product((-1, 1), repeat=d)), np.int8)

        def law(x):
            return local.FiniteLaw(signs, tuple(weights[n] for n in (signs != np.sign(x[0])).sum(axis=1)))

        certificate = audit.verify(Claimed(1.0, [Grid(-1, 1)] * d, law), values=2)
        assert not certificate.holds
        assert certificate.epsilon == pytest.approx(math.log(1 + math.e))

    @pytest.mark.parametrize(("k", "holds"), [(2, True), (3, False), (6, False)])
    def test_k_response_with_the_probability_for_two(self, k, holds):
        p = coin(1.0).probability
        rows = [[p if z == x else (1 - p) / (k - 1) for z in range(k)] for x in range(k)]
        certificate = audit.verify(Claimed(1.0, [Grid(0, k - 1, step=1.0)], lookup(rows)), values=k)
        assert certificate.holds == holds
        assert certificate.epsilon == pytest.approx(1 + math.log(k - 1))

    @pytest.mark.parametrize(("up", "holds"), [(0, True), (2**40, False)])
    def test_a_coin_rounded_up(self, up, holds):
        p = Coin(coin(1.0).threshold + up).probability
        claim = Claimed(1.0, [Grid(0, 1, step=1.0)], lookup([[p, 1 - p], [1 - p, p]]))
        assert audit.verify(claim, values=2).holds == holds

    def test_a_sign_that_can_be_zero(self):
        """F12: numpy's sign(0) = 0 at a tie is a report of its own."""
        p = coin(1.0).probability
        rows = {-1: [p, Fraction(0), 1 - p], 0: [Fraction(0), Fraction(1), Fraction(0)], 1: [1 - p, Fraction(0), p]}

        class Law(local.FiniteLaw):
            def logpmf(self, k):
                with np.errstate(divide="ignore"):
                    return np.log([float(p) for p in self.pmf])[k]

        claim = Claimed(1.0, [Grid(-1, 1, step=1.0)], lambda x: Law(np.arange(3), tuple(rows[int(x[0])])))
        certificate = audit.verify(claim, values=3)
        assert certificate.epsilon == math.inf
        assert not certificate.holds

    @pytest.mark.parametrize(("leak", "holds"), [(0, True), (Fraction(1, 100), False)])
    def test_a_window_with_one_symbol_unprotected(self, leak, holds):
        made = coin(1.0, Fraction(2, 6))
        p = made.probability
        rows = [[p / 2 if start <= z < start + 2 else (1 - p) / 6 for z in range(8)] for start in range(7)]
        for start, row in enumerate(rows):
            row[7], row[start] = row[7] * (1 - leak), row[start] + row[7] * leak
        assert all(sum(row) == 1 for row in rows)
        assert audit.verify(Claimed(1.0, [Grid(0, 6, step=1.0)], lookup(rows)), values=7).holds == holds

    def test_reports_of_64_bits_are_not_confused(self):
        """2**60 and 2**60 + 1 are one double: a law that separates records by them must not pass."""
        reports, p = np.array([2**60, 2**60 + 1], np.uint64), coin(3.0).probability
        rows = [(p, 1 - p), (1 - p, p)]
        claim = Claimed(1.0, [Grid(0, 1, step=1.0)], lambda x: local.FiniteLaw(reports, rows[int(x[0])]))
        assert audit.verify(claim, values=2).epsilon == pytest.approx(3.0)


@pytest.mark.parametrize("name", ["binary", "categorical", "interval", "hypercube", "square-wave", "density"])
def test_command_line(name, capsys):
    assert cli.main(["verify", f"local-{name}", "--epsilon", "0.5", "--values", "3", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["holds"]
    assert report["epsilon"] == pytest.approx(0.5, abs=0.2)
    assert report["claimed_epsilon"] == 0.5


def test_command_line_takes_a_method(capsys):
    assert cli.main(["verify", "local-hypercube", "--method", "majority", "--values", "2"]) == 0
    assert "method='majority'" in capsys.readouterr().out
    assert cli.main(["verify", "local-interval", "--method", "laplace"]) == 2
    assert "not finite" in capsys.readouterr().err


# ---- bits ----


def bits_seen(mechanism, x, n=3000):
    """For each bit of a report whether it is ever 1, and whether it is ever 0, for a record."""
    reports = mechanism.randomize(np.broadcast_to(x, (n, *np.shape(x))), rng=PCG64(1))
    octets = np.frombuffer(mechanism.to_bytes(reports), np.uint8).reshape(n, -1)
    ones = np.unpackbits(octets, axis=1).sum(axis=0)
    return ones > 0, ones < n


class TestT9:
    """T9: every bit of a report takes both values for all records, or is constant over all records."""

    @every
    def test_bits(self, make):
        mechanism = make(1.0)
        values = (-math.inf, -1.0, 0.0, 0.3, 1.0, 4.0, math.inf, math.nan)
        seen = [bits_seen(mechanism, record(mechanism, value)) for value in values]
        assert len({one.tobytes() + zero.tobytes() for one, zero in seen}) == 1
        assert np.any(seen[0][0] & seen[0][1])

    def test_control(self):
        """The last bit of a packed report sent as it is (OpenDP 2707)."""

        class Unprotected:
            def __init__(self, survey):
                self.survey, self.to_bytes = survey, survey.to_bytes

            def randomize(self, x, rng):
                reports = self.survey.randomize(x, rng=rng)
                reports[:, 0] = reports[:, 0] & np.uint64(15) | (x == 4).astype(np.uint64) << np.uint64(4)
                return reports

        naive = Unprotected(local.Categorical(5, 1.0, "oue"))
        seen = [bits_seen(naive, np.float64(x)) for x in range(5)]
        assert len({one.tobytes() + zero.tobytes() for one, zero in seen}) == 2


# ---- shapes ----

DATA = {
    "constant": [0.5, 0.5, 0.5],
    "zeros": [0.0, -0.0, 0.0],
    "far": [1e308, -1e308, 5e-324],
    "infinite": [math.inf, -math.inf, 0.1],
    "missing": [math.nan, math.nan, math.nan],
}


class TestT10:
    """T10: shape, type, errors and warnings (which are errors) depend on public arguments only."""

    @every
    def test_randomisers(self, make):
        mechanism, seen = make(1.0), set()
        for data in DATA.values():
            x = np.array(data)
            if dimension(mechanism):
                x = np.repeat(x[:, None], dimension(mechanism), axis=1)
            reports = mechanism.randomize(x, rng=PCG64(1))
            total = mechanism.aggregate(reports)
            estimate = np.asarray(mechanism.estimate(total))
            decoded = mechanism.decode(reports)
            assert np.isfinite(decoded).all()
            assert np.isfinite(estimate).all()
            assert np.isfinite(mechanism.variance(x)).all()
            parts = (reports, total.sums, estimate, decoded)
            seen.add((tuple((part.shape, part.dtype) for part in parts), len(mechanism.to_bytes(reports))))
        assert len(seen) == 1

    @pytest.mark.parametrize(
        "estimator",
        [
            lambda x: local.mean(x, epsilon=1.0, bounds=(0, 1)),
            lambda x: local.mean(x, epsilon=1.0, moment=2),
            lambda x: local.mean(x, epsilon=1.0, moment=math.inf, method="laplace"),
            lambda x: local.median(x, epsilon=1.0, bounds=(0, 1)),
            lambda x: local.median_naive(x, epsilon=1.0, bounds=(0, 1)),
            lambda x: local.sparse_mean(x[:, None], epsilon=1.0),
            lambda x: local.density(x, epsilon=1.0, bounds=(0, 1)).cdf([0.2, 0.5]),
            lambda x: local.density(x, epsilon=1.0, bounds=(0, 1), method="series").coefficients,
            lambda x: local.density(x, epsilon=1.0, bounds=(0, 1), basis="trigonometric").pdf(0.5),
        ],
    )
    def test_estimators(self, estimator):
        results = [estimator(np.array(data)) for data in DATA.values()]
        assert len({(type(result), np.shape(result)) for result in results}) == 1
        assert np.isfinite(results).all()


# ---- black box ----


class TestT16:
    """T16: no event on the numbers of a report, their granularity and bits is likelier than e^epsilon allows."""

    @staticmethod
    def pair(mechanism):
        """Two records that are far apart: ends, or opposite vectors along an axis."""
        if isinstance(mechanism, local.L2Ball):
            return np.eye(3)[0] * mechanism.radius, -np.eye(3)[0] * mechanism.radius
        if isinstance(mechanism, local.SeriesReports):
            return 0.2, 0.7
        return record(mechanism, -1.0), record(mechanism, 4.0)

    @every
    def test_claims_hold(self, make):
        mechanism = make(1.0)
        assert audit.distinguish(mechanism, *self.pair(mechanism), trials=25_000, rng=PCG64(1)) <= 1

    @pytest.mark.parametrize(
        "name",
        [
            "binary",
            "categorical k-rr",
            "interval two-point",
            "ball vector",
            "ball privunit",
            "hypercube subset 1",
        ],
    )
    def test_controls(self, name):
        """Twice the epsilon that is claimed."""
        mechanism = EVERY[name](2.0)

        class Wrong:
            privacy, randomize = Privacy(1.0, neighbors="local"), mechanism.randomize

        assert audit.distinguish(Wrong(), *self.pair(mechanism), trials=25_000, rng=PCG64(1)) > 1.5

    def test_control_in_the_bits(self):
        """Reports whose last bit of the mantissa is the record's: no threshold sees it."""

        class Marked:
            privacy = Privacy(1.0, neighbors="local")

            def randomize(self, x, rng):
                noise = np.floor(Generator(rng).laplace(scale=4.0, size=x.size) * 2**20)
                return (2 * noise + (x > 0)) * 2.0**-21

        assert audit.distinguish(Marked(), 0.0, 1.0, trials=25_000, rng=PCG64(1)) > 3

    def test_a_million_draws_of_the_new_ones(self):
        survey = local.SeriesReports(2, 1.0, grid=Grid(0, 1), basis="trigonometric")
        assert 0.95 < audit.distinguish(survey, 0.2, 0.7, trials=500_000, rng=PCG64(1)) <= 1


@pytest.mark.parametrize(
    "mechanism",
    [make(1.0) for make in EVERY.values()],
    ids=EVERY,
)
def test_many_reports_travel_as_bytes(mechanism):
    """Reports of 1e5 people; of 1e6 in the tests of each kind."""
    x = np.broadcast_to(record(mechanism, 0.3), (100_000, *np.shape(record(mechanism, 0.3))))
    reports = mechanism.randomize(x, rng=PCG64(1))
    received = mechanism.from_bytes(mechanism.to_bytes(reports))
    assert received.dtype == reports.dtype
    assert np.array_equal(received, reports)
    total = mechanism.aggregate(received)
    np.testing.assert_array_equal(
        mechanism.estimate(local.Aggregate.from_bytes(total.to_bytes())), mechanism.estimate(total)
    )
