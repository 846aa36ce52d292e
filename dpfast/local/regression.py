"""Generalised linear models under local differential privacy: private stochastic gradient descent."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import scipy
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _descent, _gradient
from dpfast.core import checks, containers
from dpfast.core.coin import coin
from dpfast.core.traps import warn_of
from dpfast.core.types import Exact, Records
from dpfast.local.ball import L2Ball
from dpfast.local.hypercube import Hypercube
from dpfast.local.randomizer import LocalMechanism
from dpfast.local.scaling import half_widths
from dpfast.random import RandomSource, bit_generator

_MODELS = ("logistic", "linear", "poisson")
_NORMS = ("l2", "linf")

# Decay of the steps "averaging".
_DECAY = 0.55

# Squares and products of numbers in this range are far from overflow and underflow.
_LEAST, _MOST = 2.0**-256, 2.0**256

# Number of matrix entries that are converted and passed to the kernel at once.
_BLOCK = 2**15

# States from which intervals are made, and the least number of them: 64 equal parts have the critical value 6.754
# at 0.95, 1000 have 6.747.
_PARTS, _LEAST_STATES = 64, 8


class Gradients(NamedTuple):
    """The state of a `GradientDescent`; public, like everything the server holds.

    Parameters
    ----------
    theta : ndarray of shape (d,)
        The coefficients in the question to the next person, in units of 1 / radius; the intercept, if there is one, is
        last. Do not modify.
    users : int
        Reports received.
    total : ndarray of shape (d,)
        The sum of the thetas asked so far, without the burn-in.
    refused : int
        Number of refused reports; they do not change the other fields.
    """

    theta: NDArray[np.float64]
    users: int
    total: NDArray[np.float64]
    refused: int = 0


@dataclass(frozen=True)
class GradientDescent(LocalMechanism):
    """Protocol to fit a generalised linear model; each person reports one private gradient.

    Pure epsilon-local differential privacy, under any change of one person's features and label together. Sequential:
    the question to each person contains public coefficients that depend on all earlier reports.

    Parameters
    ----------
    d : int
        Number of features, at least 1.
    epsilon : float
        At least 2**-40; rounded down to a double.
    model : {"logistic", "linear", "poisson"}
        The mean of the label given the features: ``1 / (1 + exp(-t))``, ``t`` or ``exp(t)``, t = <coefficients, x>.
    radius : float
        Positive, in data units: bound on the norm of the features. Longer ones are projected (l2) or clamped (linf).
    norm : {"l2", "linf"}
        "l2": Euclidean norm; a report is one bit about the gradient, from `L2Ball`. "linf": largest magnitude; a report
        is a few signs of the gradient, from `Hypercube`.
    clip : float
        Positive, in units of the label: residuals (predicted mean minus label) are clipped to [-clip, clip]. At most 1
        for "logistic", whose residuals do not exceed 1. For "linear" this makes the loss Huber's; for "poisson", and
        for "logistic" below 1, it biases the target if labels are often further than `clip` from their mean. The noise
        is proportional to it.
    intercept : bool
        Whether to add a coefficient for a constant 1, as the last one.
    bound : float, optional
        The coefficients, times the radius (except the intercept), are confined to the ball of this Euclidean norm; for
        "l2" without intercept, |t| is at most `bound`. Default: 5, for "linear" 5 clip.
    steps : "averaging" or pair of float
        A pair (scale, decay): report i = 1, 2, ... moves the coefficients, times the radius, by a vector of length
        ``scale * i**-decay``, before they are projected; scale positive, decay in [0, 1]. "averaging" is (bound, 0.55)
        for "l2", and (bound / sqrt(coefficients), 0.55) for "linf", whose rows are longer.
    burn_in : int
        This many initial coefficient vectors are left out of the average.

    Attributes
    ----------
    randomizer : L2Ball or Hypercube
        The randomiser that a person's device applies to the gradient, in units of the radius; it defines the reports.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Records: for "l2", a row with NaN counts as all zeros; for "linf", a NaN counts as 0; an infinite row counts as its
    limit. The label of "logistic" is 1 if y > 0, else 0; a NaN counts as 0; counts below 0 count as 0.

    With z the randomised gradient, unbiased for ``clip(A'(<theta, x>) - y) x``, and Z its norm, a public constant::

        theta_(i+1) = project(theta_i - eta_i z),    eta_i = scale i**-decay / Z

    and the estimate is the mean of theta_1..theta_n, each taken before its report.

    Privacy: a report is one of `randomizer`, for a vector computed from theta, x and y. Floats decide a direction that
    does not depend on the record, and a sign that an exact coin keeps or flips (or rounded signs, under an exact mask).
    So rounding, NaN or a malicious theta cannot weaken the guarantee
    (https://dpfast.readthedocs.io/en/latest/proofs/local-glm.html). A person who answers twice spends epsilon twice.
    Timing is outside the guarantee.
    Accuracy: for decay in (1/2, 1), n times the covariance around the target (which clipping may have moved) tends to
    ``H^-1 E[z z'] H^-1``, see `covariance`; for "l2" this is ``(Z^2 / d) H^-2``. Privacy multiplies the effective n by
    a factor of order ``tanh(epsilon / 2)^2 / d``; for "logistic" near 0, by ``tanh(epsilon / 2)^2 / (2 pi d)``.
    Run time per person: for "l2", d normals and three scalar products; for "linf", a few products.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, section 5.2, equation (31) and Lemma 2; Polyak and Juditsky 1992, "Acceleration
    of stochastic approximation by averaging".

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1.0, 1.0], (200_000, 2))
    >>> y = rng.random(200_000) < 1 / (1 + np.exp(-X @ [1.0, -0.5]))
    >>> study = local.GradientDescent(2, epsilon=1.0, radius=np.sqrt(2))
    >>> bool(np.all(np.abs(study(X, y) - [1.0, -0.5]) < 0.25))
    True

    Predicted standard errors, if the distribution of the features is known from elsewhere:

    >>> bool(np.all(study.standard_errors(200_000, X[:1000], [1.0, -0.5]) < 0.06))
    True

    The same protocol, message by message:

    >>> state = study.begin()
    >>> for x, label in zip(X[:1000], y[:1000]):
    ...     report = study.respond(state.theta, x, label)  # on the person's device
    ...     state = study.update(state, report)  # on the server
    >>> study.estimate(state).shape
    (2,)
    """

    d: int
    epsilon: float
    model: str = field(kw_only=True, default="logistic")
    radius: float = field(kw_only=True, default=1.0)
    norm: str = field(kw_only=True, default="l2")
    clip: float = field(kw_only=True, default=1.0)
    intercept: bool = field(kw_only=True, default=False)
    bound: float | None = field(kw_only=True, default=None)
    steps: str | tuple[float, float] = field(kw_only=True, default="averaging")
    burn_in: int = field(kw_only=True, default=0)
    randomizer: L2Ball | Hypercube = field(init=False, compare=False, repr=False)
    _scale: float = field(init=False, compare=False, repr=False)
    _decay: float = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "d", checks.whole("d", self.d, least=1))
        put(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        checks.choice("model", self.model, _MODELS)
        checks.choice("norm", self.norm, _NORMS)
        put(self, "radius", checks.radius(self.radius))
        put(self, "clip", _moderate("clip", self.clip))
        if self.model == "logistic" and self.clip > 1:
            raise ValueError(f"clip must be at most 1 for model='logistic', not {self.clip!r}")
        put(self, "intercept", checks.flag("intercept", self.intercept))
        put(self, "burn_in", checks.whole("burn_in", self.burn_in))
        unit = self.clip if self.model == "linear" else 1.0
        bound = _moderate("bound", 5 * unit if self.bound is None else self.bound)
        put(self, "bound", bound)
        checks.finite_scale(bound / self.radius)
        if isinstance(self.steps, str):
            checks.choice("steps", self.steps, ("averaging",))
            scale, decay = (bound if self.norm == "l2" else bound / math.sqrt(self._columns)), _DECAY
        else:
            first, second = checks.pair("steps", self.steps)
            scale, decay = _moderate("the scale of steps", first), checks.fraction("the decay of steps", second)
            put(self, "steps", (scale, decay))
        put(self, "_scale", scale)
        put(self, "_decay", decay)
        if self.norm == "l2":
            longest = self.clip * (math.sqrt(2) if self.intercept else 1.0)
            put(self, "randomizer", L2Ball(self._columns, self.epsilon, radius=longest, report="sign"))
        else:
            put(self, "randomizer", Hypercube(self._columns, self.epsilon, radius=self.clip))

    @property
    def _columns(self) -> int:
        """Number of coefficients."""
        return self.d + self.intercept

    @property
    def _bound(self) -> float:
        assert self.bound is not None
        return self.bound

    def step(self, i: SupportsIndex) -> float:
        """Distance that report i = 1, 2, ... moves the coefficients, times the radius."""
        return float(self._pushes(checks.whole("i", i, least=1), 1)[0])

    def _pushes(self, first: int, count: int) -> NDArray[np.float64]:
        out = np.empty(count)
        _descent.fill_pushes(first, self._scale, self._decay, out)
        return out

    def _moves(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the `push` argument of the kernels: the length of each step, or of its component along each sign."""
        moves = self._pushes(first, count)
        if isinstance(self.randomizer, Hypercube):
            moves /= math.sqrt(self.randomizer.k)
        return moves

    # ---- the person ----

    def respond(self, theta: ArrayLike, x: Records, y: float, *, rng: RandomSource = None) -> Any:
        """Return the report of a person with features x and label y, given theta.

        Parameters
        ----------
        theta : array_like
            `Gradients.theta`, from the server, which need not be trusted.
        x : array_like of shape (d,)
            Private.
        y : float
            Private.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the report reproducible, hence not private. Default: the secure generator.

        Returns
        -------
        uint64, or ndarray of uint64
            One report of `randomizer`, which documents the bits and converts reports to bytes.
        """
        source, asked = bit_generator(rng), np.array(containers.numbers("theta", theta), np.float64)
        if asked.shape != (self._columns,) or not np.all(np.abs(asked) <= 2 * self._bound):
            raise ValueError(f"theta must be {self._columns} numbers in the ball of radius bound")
        row, label = containers.vector("x", x).reshape(1, -1), containers.numbers("y", [y])
        if row.shape[1] != self.d:
            raise ValueError(f"x must be of shape ({self.d},), not ({row.shape[1]},)")
        if label.shape != (1,):
            raise ValueError(f"y must be one number, not an array of shape {label.shape[1:]}")
        shape, kind = self.randomizer.row
        reports: NDArray[np.uint64] = np.empty((1, *shape), kind)
        self._descend(source, row, label, 1, asked[None], np.zeros((1, self._columns)), reports)
        return reports[0]

    # ---- the server ----

    def begin(self) -> Gradients:
        """Return the state before the first report: all coefficients are 0."""
        return Gradients(np.zeros(self._columns), 0, np.zeros(self._columns))

    def update(self, state: Gradients, report: Any) -> Gradients:
        """Return the state after one more report; a report that `randomizer` never sends is refused and only counted.

        Raises
        ------
        TypeError, ValueError
            If the dtype or shape is not that of one report, or the state is of another protocol.
        """
        reports, one = self.randomizer.checked_reports(report)
        if not one:
            raise ValueError("update takes one report at a time: the question to the next person depends on it")
        theta, total = (np.array(part, np.float64) for part in (state.theta, state.total))
        if theta.shape != (self._columns,) or total.shape != theta.shape:
            raise ValueError(f"the state must hold {self._columns} coefficients, not an array of shape {theta.shape}")
        if not self.randomizer.valid(reports).all():
            return state._replace(refused=state.refused + 1)
        moves = self._moves(state.users + 1, 1)
        if isinstance(self.randomizer, L2Ball):
            _gradient.follow_directions(reports, moves, self._bound, theta, total)
        else:
            _gradient.follow_signs(reports, self.randomizer.k, moves, self._bound, theta, total)
        counted = total if state.users >= self.burn_in else state.total
        return Gradients(theta, state.users + 1, counted, state.refused)

    def estimate(self, state: Gradients) -> NDArray[np.float64]:
        """Return the mean of the thetas so far, without the burn-in, in units of 1 / data unit."""
        return self._released(state.total, state.users)

    def _released(self, total: NDArray[np.float64], n: int) -> NDArray[np.float64]:
        return total / self._counted(n) / self._units

    @property
    def _units(self) -> NDArray[np.float64]:
        """Ratio of the coefficients in theta to the coefficients in data units."""
        return np.array([self.radius] * self.d + [1.0] * self.intercept)

    def _counted(self, n: int) -> int:
        if n <= self.burn_in:
            raise ValueError(f"n must be above burn_in = {self.burn_in}, not {n}")
        return n - self.burn_in

    # ---- both, in one process ----

    def __call__(self, X: Records, y: Records, *, rng: RandomSource = None) -> NDArray[np.float64]:
        """Run the whole protocol on arrays, one person after the other: `release` with one repetition."""
        return self.release(X, y, rng=rng)

    def release(
        self,
        X: Records,
        y: Records,
        *,
        size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        confidence: float | None = None,
        rng: RandomSource = None,
    ) -> NDArray[np.float64]:
        """Run the protocol `size` times independently, for simulations: EACH RUN spends the epsilon of every person.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Private features of any numeric dtype, a row for each person, in the order in which they are asked; the
            order must not depend on the data. Never modified.
        y : array_like of shape (n,)
            Private labels of any numeric dtype, in the same order. Never modified.
        size : int or tuple of ints, optional
            The shape of the result without its last axis, the coefficients; None returns one run.
        confidence : float, optional
            In (0, 1): the result has a further axis of three numbers, the estimate and the ends of its `interval`, from
            64 states. They cost no privacy. At least 64 people after the burn-in.
        rng : numpy.random.Generator or BitGenerator, optional
            Makes the run reproducible, hence not private. Default: the secure generator.
        """
        shape, source = checks.shape(size), bit_generator(rng)
        rows, labels = containers.matrix("X", X), containers.vector("y", y)
        if rows.shape[1] != self.d:
            raise ValueError(f"X must have d = {self.d} columns, not {rows.shape[1]}")
        if labels.shape[0] != rows.shape[0]:
            raise ValueError(f"X and y must have a row for each person, not {rows.shape[0]} and {labels.shape[0]}")
        n, parts = self._counted(checks.records(rows.shape[0])), 1
        if confidence is not None:
            checks.between("confidence", confidence, 0, 1)
            parts = _PARTS
            if n < parts:
                raise ValueError(f"intervals need at least {parts} people after the burn-in, not {n}")
        theta = np.zeros((math.prod(shape), self._columns))
        total, burn_in = np.zeros_like(theta), self.burn_in
        none = np.empty((0, *self.randomizer.row[0]), np.uint64)
        self._descend(source, rows[:burn_in], labels[:burn_in], 1, theta, total, none)
        total[:] = 0
        totals, ends = np.empty((parts, *total.shape)), burn_in + np.arange(parts + 1) * n // parts
        for part, (first, last) in enumerate(itertools.pairwise(ends.tolist())):
            self._descend(source, rows[first:last], labels[first:last], first + 1, theta, total, none)
            totals[part] = total
        estimates = self._released(total, rows.shape[0]).reshape(*shape, self._columns)
        if confidence is None:
            return estimates
        reach = half_widths(totals, ends[1:] - burn_in, confidence).reshape(estimates.shape) / self._units
        return np.stack([estimates, estimates - reach, estimates + reach], axis=-1)

    def interval(self, states: Sequence[Gradients], confidence: float = 0.95) -> NDArray[np.float64]:
        """Return confidence intervals for the coefficients, each by itself, from public states: no privacy cost.

        Parameters
        ----------
        states : sequence of Gradients
            States of one run in order, the last one of all reports; at least 8, after the burn-in, at about equal
            distances. 64 are nearly as good as all.
        confidence : float
            In (0, 1).

        Returns
        -------
        ndarray of shape (d, 2), the intercept included
            Low and high, around `estimate` of the last state, for the value that the average tends to, which `clip` may
            have moved.

        Raises
        ------
        ValueError
            If the states are too few, not in order, or of another protocol, or `confidence` is out of range.

        Notes
        -----
        By random scaling, the spread of the partial averages of the path: no model and no design are assumed
        (https://dpfast.readthedocs.io/en/latest/proofs/local-glm.html). At 0.95 they are 1.3 to 1.6 times as wide as
        those of `error` with the right assumptions. The level is that of large n: for a nominal 0.95 and epsilon = 2,
        "linear" covers 0.93 to 0.96 from 2000 people on, "logistic" 0.84 for 2000, and 0.9 to 0.95 for 100,000.

        References
        ----------
        Lee, Liao, Seo and Shin 2022, "Fast and robust online inference with stochastic gradient descent via random
        scaling".
        """
        counts = np.array([state.users - self.burn_in for state in states], np.int64)
        if len(states) < _LEAST_STATES or counts[0] < 1 or not (np.diff(counts) > 0).all():
            raise ValueError(f"states must be at least {_LEAST_STATES} of one run in order, all after the burn-in")
        totals = np.array([state.total for state in states])
        if totals.shape != (len(states), self._columns):
            raise ValueError(f"the states must hold {self._columns} coefficients")
        reach = half_widths(totals, counts, confidence) / self._units
        estimate = self.estimate(states[-1])
        return np.stack([estimate - reach, estimate + reach], axis=-1)

    def _descend(
        self,
        source: BitGenerator,
        x: NDArray[Any],
        y: NDArray[Any],
        first: int,
        theta: NDArray[np.float64],
        total: NDArray[np.float64],
        reports: NDArray[np.uint64],
    ) -> None:
        """Ask the people in x, numbered from `first`, in blocks that fit the cache."""
        model, inverse = _MODELS.index(self.model), 1 / self.radius
        block = max(1, _BLOCK // (self.d * max(len(theta), 1)))
        randomizer = self.randomizer
        for begin in range(0, x.shape[0], block):
            rows, labels = _doubles(x[begin : begin + block]), _doubles(y[begin : begin + block])
            regression = (model, self.clip, inverse, self._bound)
            people = (rows, labels, self._moves(first + begin, rows.shape[0]))
            if isinstance(randomizer, L2Ball):
                threshold = coin(self.epsilon).threshold
                _gradient.descend_halfspace(source, threshold, *regression, *people, theta, total, reports)
            else:
                _gradient.descend_hypercube(source, *randomizer.mask_law, *regression, *people, theta, total, reports)

    # ---- what to expect ----

    def covariance(
        self, n: SupportsIndex, design: ArrayLike, coefficients: ArrayLike, *, deviation: float = 0.0
    ) -> NDArray[np.float64]:
        """Predict the covariance of the estimate for n people from public assumptions.

        Parameters
        ----------
        n : int
            Number of people, greater than the burn-in.
        design : array_like of shape (m, d)
            PUBLIC rows of features, with the distribution that people's features are assumed to have. Never use rows of
            the people themselves: the return value would disclose them.
        coefficients : array_like
            Assumed coefficients, in data units, the intercept last; an estimate of this protocol is suitable.
        deviation : float
            For "linear": assumed standard deviation of the labels, normal around their mean; at least 0.

        Returns
        -------
        ndarray of shape (d, d), the intercept included
            ``H^-1 E[z z'] H^-1 / (n - burn_in)``, H the second derivative of the expected loss. A large-sample
            approximation (Lemma 2 of the paper) that ignores the effect of the start and takes the model to be true.

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of range, if the decay of the steps is outside (1/2, 1), where this is not proved, or
            if the design does not determine the coefficients.
        """
        counted = self._counted(checks.whole("n", n, least=1))
        rows, theta = containers.matrix("design", design), containers.vector("coefficients", coefficients)
        if rows.shape[1] != self.d or theta.shape[0] != self._columns:
            raise ValueError(f"design must have {self.d} columns, and coefficients {self._columns} numbers")
        if not 0.5 < self._decay < 1:
            raise ValueError(f"covariance requires steps with a decay between 1/2 and 1, not {self._decay!r}")
        spread = checks.nonnegative("deviation", deviation)
        meant = _meant(_doubles(rows) / self.radius, self.norm)
        meant = np.hstack([meant, np.ones((len(meant), int(self.intercept)))])
        slope, square = _moments(self.model, meant @ (theta * self._units), self.clip, spread)
        curvature = (meant * slope[:, None]).T @ meant / len(meant)
        if not np.linalg.cond(curvature) < 1 / np.finfo(float).eps:
            raise ValueError("design must determine all coefficients: its weighted second moments are singular")
        inverse = np.linalg.inv(curvature)
        noise = self._second_moments((meant * square[:, None]).T @ meant / len(meant))
        return np.asarray(inverse @ noise @ inverse / counted / self._units / self._units[:, None])

    def standard_errors(
        self, n: SupportsIndex, design: ArrayLike, coefficients: ArrayLike, *, deviation: float = 0.0
    ) -> NDArray[np.float64]:
        """Return the standard error of each coefficient: square roots of the diagonal of
        `covariance`; same parameters.
        """
        return np.asarray(np.sqrt(np.diag(self.covariance(n, design, coefficients, deviation=deviation))))

    def error(
        self,
        n: SupportsIndex,
        design: ArrayLike,
        coefficients: ArrayLike,
        *,
        deviation: float = 0.0,
        confidence: float = 0.95,
    ) -> NDArray[np.float64]:
        """Half-width of a confidence interval for each coefficient; other parameters as for `standard_errors`.

        `confidence` is in (0, 1). The interval is as good as the assumptions.
        """
        quantile = float(scipy.special.ndtri((1 + checks.between("confidence", confidence, 0, 1)) / 2))
        return np.asarray(quantile * self.standard_errors(n, design, coefficients, deviation=deviation))

    def _second_moments(self, gradients: NDArray[np.float64]) -> NDArray[np.float64]:
        """E[z z'], given the second moments of the gradients."""
        d, randomizer = self._columns, self.randomizer
        noise: NDArray[np.float64] = np.eye(d) * randomizer.variance() / d
        if isinstance(randomizer, Hypercube) and randomizer.k > 1:
            asked = randomizer.k * (randomizer.k - 1) / (d * (d - 1))
            pairs = asked * randomizer.mask_correlation() * (randomizer.scale / randomizer.radius) ** 2
            noise += pairs * (gradients - np.diag(np.diag(gradients)))
        return noise


def glm(
    X: Records,
    y: Records,
    *,
    epsilon: Exact,
    model: str = "logistic",
    radius: float = 1.0,
    norm: str = "l2",
    clip: float = 1.0,
    intercept: bool = False,
    bound: float | None = None,
    steps: str | tuple[float, float] = "averaging",
    burn_in: int = 0,
    size: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
    confidence: float | None = None,
    rng: RandomSource = None,
) -> NDArray[np.float64]:
    """Fit a generalised linear model by private gradient descent, simulated; each person reports one private gradient.

    Pure epsilon-local differential privacy, under any change of one person's features and label together. Sequential:
    the question to each person depends on the earlier reports; `GradientDescent` provides the client and the server
    separately.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Private features of any numeric dtype, a row for each person, in an order that does not depend on the data.
        Never modified. Rows of norm above `radius` are projected or clamped.
    y : array_like of shape (n,)
        Private labels: for "logistic" 1 if y > 0, else 0.
    epsilon, model, radius, norm, clip, intercept, bound, steps, burn_in
        See `GradientDescent`. n must be greater than `burn_in`.
    size : int or tuple of ints, optional
        The shape of an array of independent runs: EACH RUN spends epsilon. None returns one run.
    confidence : float, optional
        In (0, 1): also return an interval for each coefficient, at no privacy cost; see `GradientDescent.interval`.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.

    Returns
    -------
    ndarray of shape (d,), or (d + 1,) with an intercept, which is last
        The averaged coefficients, per data unit; of shape ``(*size, d)`` with a `size`. With a `confidence`, a last
        axis of three numbers is added: the estimate, and the ends of its interval.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    Privacy, accuracy and cost: see `GradientDescent` and https://dpfast.readthedocs.io/en/latest/proofs/local-glm.html.
    To predict the error of the coefficients from public assumptions, use ``GradientDescent(...).standard_errors``.

    References
    ----------
    Duchi, Jordan and Wainwright 2018, section 5.2, equation (31).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (100_000, 1))
    >>> y = 2 * x[:, 0] + rng.normal(size=100_000)
    >>> theta = local.glm(x, y, epsilon=2.0, model="linear", clip=2.0)
    >>> bool(abs(theta[0] - 2) < 0.3)
    True
    >>> local.glm(x, y, epsilon=2.0, model="linear", clip=2.0, confidence=0.95).shape
    (1, 3)
    """
    columns = containers.matrix("X", X).shape[1]
    protocol = GradientDescent(
        columns,
        checks.positive_down("epsilon", epsilon),
        model=model,
        radius=radius,
        norm=norm,
        clip=clip,
        intercept=intercept,
        bound=bound,
        steps=steps,
        burn_in=burn_in,
    )
    warn_of(protocol)
    return protocol.release(X, y, size=size, confidence=confidence, rng=rng)


def _moderate(name: str, value: Any) -> float:
    """Check that a number is positive and that its squares and products neither overflow nor underflow."""
    number = checks.positive(name, value)
    if not _LEAST <= number <= _MOST:
        raise ValueError(f"{name} must be between 2**-256 and 2**256, not {value!r}")
    return number


def _meant(rows: NDArray[np.float64], norm: str) -> NDArray[np.float64]:
    """Public rows in units of the radius, projected or clamped."""
    if norm == "linf":
        return np.clip(rows, -1.0, 1.0)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0))


def _moments(
    model: str, t: NDArray[np.float64], clip: float, deviation: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean slope in t of the clipped residual and its mean square, for each predictor, under the model."""
    if model == "linear":
        k = clip / deviation if 40 * deviation > clip else math.inf
        inside = scipy.special.erf(k / math.sqrt(2))
        edge = 0.0 if k == math.inf else 2 * k * math.exp(-k * k / 2) / math.sqrt(2 * math.pi)
        outside = 0.0 if k == math.inf else k * k * (1 - inside)
        return np.full(t.shape, inside), np.full(t.shape, deviation**2 * (inside - edge + outside))
    if model == "logistic":
        p = scipy.special.expit(t)
        slope = p * (1 - p) * ((1 - p) * (p < clip) + p * (1 - p < clip)) if clip < 1 else p * (1 - p)
        return slope, (1 - p) * np.minimum(p, clip) ** 2 + p * np.minimum(1 - p, clip) ** 2
    mean = np.exp(np.minimum(t, 700.0))
    lowest, highest = np.floor(mean - clip), np.ceil(mean + clip) - 1

    def share(shift: int) -> NDArray[np.float64]:
        """P(lowest - shift < Y <= highest - shift), Y Poisson."""
        ends = [
            np.where(end < shift, 0.0, scipy.special.pdtr(np.maximum(end - shift, 0.0), mean))
            for end in (highest, lowest)
        ]
        return np.asarray(ends[0] - ends[1])

    inside, once, twice = share(0), mean * share(1), mean**2 * share(2)
    return mean * inside, clip**2 * (1 - inside) + twice + once - 2 * mean * once + mean**2 * inside


def _doubles(x: NDArray[Any]) -> NDArray[np.float64]:
    """Return a contiguous array of doubles: x itself if it is one."""
    with np.errstate(all="ignore"):  # a signalling NaN
        return np.require(x, np.float64, ["C", "A"])
