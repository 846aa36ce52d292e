"""Generalised linear models by clipped gradients, one release after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast.choosing import split
from dpfast.core import checks
from dpfast.core.privacy import Privacy
from dpfast.core.traps import Trap, of_few_within_bounds
from dpfast.domains import Ball
from dpfast.mechanisms import Mechanism
from dpfast.regression.fit import Fit
from dpfast.regression.gradients import DesignMoments, GradientSums, Transform
from dpfast.regression.labels import LabelShares
from dpfast.regression.matching import Matching, NoisyGradient
from dpfast.regression.models import Logistic, Multinomial, OnePredictor, model_of
from dpfast.regression.moments import RegressionMoments
from dpfast.regression.populations import NormalGradient, NormalRows, SampledGradient, SampledRows
from dpfast.regression.schedules import MOST_STEPS, Schedule, amount_of, amounts, check_units, schedule
from dpfast.regression.sequences import Sequence
from dpfast.regression.shrinkage import shrunk_moments

Values = NDArray[np.float64]

_LEAST_EIGENVALUE = 1e-9
_MOST_COEFFICIENT = 2.0**20  # length of the coefficients of the transformed rows, in units of the linear predictor
_MOST_START = 2.0**400
_MOST_FACTOR = 2.0**40  # of the clip and the ridge of a schedule, and its inverse
_CLIP_BIAS = 0.75, 0.35  # relative to that in a normal population: its assumed mean and deviation
_MOST_WITH_ERRORS = 1000  # free coefficients of several classes
_CORRECTIONS = 2  # of the bias, at better and better estimates
_MOST_MATCHED = 2**12  # numbers in all matched gradients, whose covariance is a matrix
_POWER, _MOST_POWER = 2, 5  # of the shares of matched gradients, and for columns that were found to be alike


class Descent(Sequence):
    """A private generalised linear model as a sequence of releases, for engines that make each one in their own way.

    While `mechanism` is not None, release it from the records, a pair (X, y) or a matrix whose last column is y, and
    call `advance` with the release. Then `result` is the fit. The parameters of each mechanism depend on the earlier
    releases; the guarantee `privacy` is that of all of them together.

    Parameters
    ----------
    model : {"logistic", "poisson", "huber", "multinomial"}
    n, d : int
        The public numbers of records and of columns of X.
    domain : dpfast.domains.Ball
        The public domain of the rows.
    privacy : Privacy
        The guarantee in mu, in epsilon and a positive delta, or in epsilon alone.
    intercept : bool
    label_bound, k, classes : float, float, int, optional
        See `glm`.
    steps : Schedule, int or "auto"
        The schedule, the number of gradients of the default one, or the default one, from public numbers.
    start : Fit, optional
        Public, where to begin: for example an earlier release of the same model.

    Attributes
    ----------
    mechanism : Mechanism or None
    total : int
        The number of releases. Public.
    done : int
        The number of releases so far.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter, or public numbers for which a release is not possible.

    Notes
    -----
    The releases are the mean of the labels, or the share of each class; the second moments M of the rows; and gradients
    of rows transformed by the inverse root of M plus a ridge, so that all directions are alike, with equal noise on all
    of them. Between gradients, coefficients move a step against them, or, if the schedule says so, to those that match
    all of them; then the shares of the gradients depend on M. Everything between the releases is post-processing in
    floats. Privacy: the squares of mu of Gaussian releases, or the epsilons of pure ones, add up to at most the square
    of the whole mu, or the whole epsilon (https://dpfast.readthedocs.io/en/latest/proofs/glm.html).

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> from dpfast.regression import Descent
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(100_000, 2))
    >>> y = rng.random(100_000) < 1 / (1 + np.exp(-X @ [2.0, -1.0]))
    >>> descent = Descent("logistic", n=100_000, d=2, domain=dpf.domains.Ball(1.5), privacy=dpf.Privacy(1.0, 1e-6))
    >>> while descent.mechanism is not None:
    ...     state = descent.mechanism.start()
    ...     for rows in np.split(np.arange(100_000), 10):
    ...         state.update((X[rows], y[rows]))
    ...     descent.advance(state.release())
    >>> bool(np.abs(descent.result.coefficients - [2, -1]).max() < 0.2)
    True
    """

    def __init__(
        self,
        model: str = "logistic",
        *,
        n: SupportsIndex,
        d: SupportsIndex,
        domain: Ball,
        privacy: Privacy,
        intercept: bool = True,
        label_bound: float | None = None,
        k: float | None = None,
        classes: SupportsIndex | None = None,
        steps: Schedule | int | str = "auto",
        start: Fit | None = None,
    ) -> None:
        self.n, self.d = checks.whole("n", n, least=1), checks.whole("d", d, least=1)
        if not isinstance(domain, Ball):
            raise TypeError(f"domain must be a dpfast.domains.Ball, not {type(domain).__name__}")
        if not isinstance(privacy, Privacy):
            raise TypeError(f"privacy must be a dpfast.Privacy, not {type(privacy).__name__}")
        domain.check_columns(self.d)
        self.model = model_of(model, label_bound, k, classes)
        self.domain, self.privacy = domain, privacy
        bounds = [] if self.model.bound == math.inf else [self.model.bound]
        check_units(domain, self.model.half_range, *bounds)
        self.intercept = checks.flag("intercept", intercept)
        self._p = self.d + self.intercept
        self._basis: Values = self.model.basis
        self._predictors, free = self._basis.shape
        self._size = free * self._p
        self._mu, self._epsilon = amounts(privacy)
        self.schedule = self._scheduled(steps)
        self._origin = self._checked(start)
        if self.schedule.matching and not (isinstance(self.model, Logistic) and self._epsilon):
            raise ValueError("matching needs the model logistic and pure noise")
        if self.schedule.matching and self.schedule.steps * self._p > _MOST_MATCHED:
            raise ValueError(f"matching needs steps times coefficients of at most {_MOST_MATCHED}")
        self._begin()
        self._check_noise()

    def _traps(self) -> Iterator[Trap]:
        yield from super()._traps()
        yield from self.few_records()

    def few_records(self) -> Iterator[Trap]:
        """Yield the trap of few records, of the number that least squares takes: by simulation it is about that here.

        45 for each column at epsilon = 1, from 1 to 8 columns, of a logistic model.
        """
        amount = amount_of(Fraction(1), self._mu, self._epsilon)
        sums = RegressionMoments(domain=self.domain, labels=Ball(1.0), intercept=self.intercept, **amount)
        yield from of_few_within_bounds(self.n, sums.enough_for(self.d), self.privacy.unit, self.privacy.amount)

    def _begin(self) -> None:
        free = self._basis.shape[1]
        self._parts = _shares(self.schedule, alike=True)
        self._matching: Matching | None = None
        self._root = np.zeros((self._size, 1))  # of the covariance of the error of matched coefficients
        self.done = 0
        self._transform, self._theta = np.zeros((self.d + 1, self._p)), np.zeros(self._size)
        self._iterates: list[Values] = []
        self._paces: list[tuple[float, float]] = []  # of each step: its length, and the deviation of its noise
        self._moment_noise = np.zeros(self._p)  # the noise of an entry of the moments of z is the product of two
        self._mean, self._rates, self._clip = self.model.middle, np.eye(free), 0.0
        self._moments, self._center, self._start = np.zeros((self._p, self._p)), np.zeros(self._p), self._theta
        self.mechanism = self._next()

    def __repr__(self) -> str:
        return f"<glm, {self.model.name}, of rows in a {self.domain}: {self.privacy}>"

    def explanation(self, n: SupportsIndex | None = None) -> str:
        """Return a short text about the releases, from public numbers; see `Mechanism.explanation`."""
        labels, moments, *gradients = self._parts
        shares = {"the mean of the labels": labels, "second moments of the rows": moments}
        shares[f"{len(gradients)} gradients"] = 1 - labels - moments
        of = split(shares, "mu squared" if self._mu else "epsilon")
        how = "are matched to them" if self.schedule.matching else "move a step against each of them"
        return (
            f"{repr(self).strip('<>')}, in {self.total} releases from {self.n:,} records.\n"
            f"{of}; coefficients {how}.\n"
            f"A row with NaN counts as the center, and a missing label adds 0 to the gradients."
        )

    def _check_noise(self) -> None:
        """Raise a ValueError, before the first release, for public numbers with which a release is not possible."""
        self._moments_mechanism.plan(self.n)
        # Of the gradients the one with the least share, for a clip with the most noise in its units.
        self._gradient(2, self._transform, self._theta, math.nextafter(1.0, 0.0))

    def _scheduled(self, steps: Schedule | int | str) -> Schedule:
        budget = Privacy(self._epsilon) if self._epsilon else Privacy(mu=self._mu)
        logistic = isinstance(self.model, Logistic)
        default = schedule(self.n, self._predictors * self._p, budget, logistic=logistic)
        default = default._replace(steps=max(default.steps, self.model.least_steps[bool(self._epsilon)]))
        if isinstance(steps, Schedule):
            return steps
        if isinstance(steps, str):
            checks.choice("steps", steps, ("auto",))
            return default
        number = checks.whole("steps", steps, least=1)
        if default.matching and number > MOST_STEPS:  # the first of many matched gradients have too small shares
            default = schedule(self.n, self._p, budget)
        return default._replace(steps=number)

    def _checked(self, start: Fit | None) -> Values | None:
        """Return the start as coefficients of (x - center, 1), or of x - center without an intercept, by predictor."""
        if start is None:
            return None
        several = isinstance(self.model, Multinomial)
        if not isinstance(start, Fit) or start.coefficients.shape != (*[self._predictors] * several, self.d):
            classes = f" and {self._predictors} classes" if several else ""
            raise TypeError(f"start must be a dpfast.regression.Fit of {self.d} columns{classes}")
        slopes = start.coefficients.reshape(-1, self.d)
        with np.errstate(all="ignore"):
            at_center = np.reshape(start.intercept, (-1, 1)) + slopes @ self.domain.center_of(self.d)[:, None]
            sizes = np.abs(np.hstack([slopes * self.domain.radius, at_center]))
        if not np.all(sizes <= _MOST_START):
            raise ValueError("start must have linear predictors within 2**400 in the domain")
        return np.hstack([slopes, at_center] if self.intercept else [slopes])

    # ---- releases ----

    def _gradient(
        self, step: int, transform: Values, theta: Values, clip: float, bound: float | None = None
    ) -> GradientSums:
        rows = (self._basis @ theta.reshape(self._basis.shape[1], -1)).tolist()
        return GradientSums(
            self.model.name,
            rows if isinstance(self.model, Multinomial) else rows[0],
            transform=Transform(transform),
            domain=self.domain,
            clip=clip,
            bound=self.model.bound if bound is None else bound,
            **self._amount(step),
        )

    @cached_property
    def _labels_mechanism(self) -> GradientSums | LabelShares:
        """Return the gradient by the intercept where the model's mean is `middle`: `middle` minus the mean of the
        labels.
        """
        if isinstance(self.model, Multinomial):
            return LabelShares(self.model.classes, **self._amount(0))
        constant = np.zeros((self.d + 1, 1))
        constant[-1] = 1.0
        theta = np.array([self.model.link(self.model.middle)])
        bound = math.inf if self.model.bound == math.inf else self.model.half_range
        return self._gradient(0, constant, theta, self.model.half_range, bound)

    @cached_property
    def _moments_mechanism(self) -> DesignMoments:
        return DesignMoments(domain=self.domain, intercept=self.intercept, **self._amount(1))

    def _next(self) -> Mechanism:
        if self.done == 0:
            return self._labels_mechanism
        if self.done == 1:
            return self._moments_mechanism
        return self._gradient(self.done, self._transform, self._theta, self._clip)

    def _read(self, mechanism: Mechanism, values: Values) -> None:
        if self.done == 0:
            assert isinstance(mechanism, (GradientSums, LabelShares))
            mean = values if isinstance(mechanism, LabelShares) else self.model.middle - float(values[0])
            self._mean = self.model.clamped(mean, mechanism.noise_deviation(self.n))
        elif self.done == 1:
            assert isinstance(mechanism, DesignMoments)
            weight = mechanism.weight(self.d) * mechanism.domain.step
            self._whiten(values, mechanism.noise_deviation(self.n, dimension=self.d), weight)
        else:
            assert isinstance(mechanism, GradientSums)
            self._step(values, mechanism.noise_deviation(self.n))

    def _whiten(self, moments: Values, deviations: Values, weight: float) -> None:
        """Choose the transform, the clip, the rate and the start from the moments of a = (x - center, 1).

        With `weight` in place of 1, and in units of the radius, the noise off the diagonal has one deviation.
        """
        plan, p, radius = self.schedule, self._p, self.domain.radius
        units = np.array([1 / radius] * self.d + [weight / radius] * self.intercept)
        moments = moments * units * units[:, None]
        noise = deviations[0, -1] * units[0] * units[-1] / (1.0 if p > 1 else math.sqrt(2))
        most = 1 + (weight / radius) ** 2
        if plan.matching:
            moments, noise, structured = shrunk_moments(moments, noise, means=self.intercept)
            self._parts = _shares(plan, alike=not structured)
        ridge = min(max(2 * plan.ridge * math.sqrt(p) * noise, _LEAST_EIGENVALUE * most), most)
        eigenvalues, vectors = np.linalg.eigh(moments)
        if plan.matching:
            raised = (eigenvalues + np.hypot(eigenvalues, 2 * ridge)) / 2
            eigenvalues, ridge = np.maximum(raised, _LEAST_EIGENVALUE * most), 0.0
        eigenvalues = np.clip(eigenvalues, 0.0, most)
        roots = np.sqrt(eigenvalues + ridge)
        shares = eigenvalues / (eigenvalues + ridge)
        self._moment_noise = math.sqrt(noise) / roots
        self._moments = np.diag(shares)
        self._transform[:p] = vectors / roots * units[:, None]
        origin = np.zeros((self._predictors, p))
        if self.intercept:
            self._center = eigenvalues * vectors[-1] / roots / units[-1]
            origin[:, -1] = self.model.link(self._mean)
        origin = self._basis.T @ (origin if self._origin is None else self._origin) / units
        self._theta = self._start = self._shortened((roots * (origin @ vectors)).ravel())
        self._clip = plan.clip * math.sqrt(max(float(shares.sum()), 1.0)) * self.model.size(self._mean)
        self._rates = (self._basis.T * self.model.rate(self._mean)) @ self._basis
        if plan.matching:
            self._matching = Matching(
                mean=self._center, clip=self._clip, moment_noise=self._moment_noise, n=self.n, start=self._start
            )

    def _step(self, gradient: Values, deviation: float) -> None:
        """Take a gradient step, shortened where noise exceeds the clip; or match coefficients to the gradients."""
        if self._matching is not None:
            theta, self._root = self._matching.estimate(NoisyGradient(self._theta, gradient, deviation))
            self._theta = self._shortened(theta)
            return
        noise = deviation * math.sqrt(self._size) / self._clip
        pace = 1 / (1 + noise * noise)
        free = self._basis.T @ gradient.reshape(self._predictors, -1)
        self._theta = self._moved(self._theta, pace, free.ravel())
        self._iterates.append(self._theta)
        self._paces.append((pace, deviation))

    def _moved(self, theta: Values, pace: float, gradient: Values) -> Values:
        """Return a step against the gradient by the free predictors, with a rate for each class."""
        step = self._rates @ gradient.reshape(len(self._rates), -1)
        return self._shortened(theta - pace * step.ravel())

    def _shortened(self, theta: Values) -> Values:
        """Return the nearest vector of at most the largest length."""
        largest = float(np.abs(theta).max())
        length = largest * float(np.linalg.norm(theta / largest)) if largest else 0.0
        most = _MOST_COEFFICIENT * self.model.unit
        return theta * (most / length) if length > most else theta

    # ---- the result ----

    @property
    def result(self) -> Fit:
        """The fit, after the last release; before it, a ValueError is raised."""
        self._check_complete()
        theta, root = (self._theta, self._root) if self._matching is not None else self._averaged()
        back = self._transform.copy()
        back[-1] -= self.domain.center_of(self.d) @ back[:-1]
        estimates = self._basis @ theta.reshape(-1, self._p) @ back.T
        root = np.tensordot(self._basis, back @ root.reshape(-1, self._p, root.shape[1]), axes=1)
        deviations = np.linalg.norm(root, axis=2)
        root = root.reshape(-1, root.shape[2])
        several = isinstance(self.model, Multinomial)
        errors = root @ root.T if self._has_errors else None
        return self.model.fit(
            coefficients=estimates[:, :-1] if several else estimates[0, :-1],
            intercept=estimates[:, -1] if several else float(estimates[0, -1]),
            standard_errors=deviations[:, :-1] if several else deviations[0, :-1],
            intercept_error=deviations[:, -1] if several else float(deviations[0, -1]),
            privacy=self.privacy,
            n=self.n,
            covariance=errors,
        )

    def _averaged(self) -> tuple[Values, Values]:
        """Return the estimate of steps, and a root of the covariance of its error."""
        weights = np.arange(1.0, len(self._iterates) + 1)
        weights[: len(weights) // 2] = 0.0
        weights /= weights.sum()
        return self._unclipped(*self._shrunk(weights @ np.array(self._iterates), weights), weights)

    @property
    def _has_errors(self) -> bool:
        """Whether errors are computed: those of several classes take the cube of the number of coefficients."""
        return not isinstance(self.model, Multinomial) or self._size <= _MOST_WITH_ERRORS

    def _shrunk(self, theta: Values, weights: Values) -> tuple[Values, float]:
        """Return the mean of the iterates, moved towards the start by the share of noise in its squared distance.

        The estimator of James and Stein, for the noise of the last half of the steps, which is alike in all directions.
        Also the share of the distance that is kept.
        """
        paces, deviations = np.array(self._paces).T
        noise = self._p * float(np.sum(self._rates**2) * np.sum((weights * paces * deviations) ** 2))
        change = theta - self._start
        distance = float(change @ change)
        kept = max(1 - noise / distance, 0.0) if distance else 1.0
        return self._start + kept * change, kept

    def _unclipped(self, theta: Values, kept: float, weights: Values) -> tuple[Values, Values]:
        """Return the estimate without the bias of the clip, and a root of the covariance of its error: R for R R'.

        The bias is that of the same steps, without noise, in a normal population whose labels follow the estimate.
        The clip moves coefficients away from 0, and steps not made leave them near it: only the excess is removed, and
        of it a share, since rows with shorter tails than normal ones have less.
        """
        rows, free = self._population(self._clip), self._population(math.inf)
        truth, (share, deviation) = theta, _CLIP_BIAS
        for _ in range(_CORRECTIONS):
            reached = self._path(rows, truth, weights)[0]
            clipped, left = reached - self._path(free, truth, weights)[0], reached - truth
            size = float(clipped @ clipped)
            excess = min(max(float(clipped @ left) / size, 0.0), 1.0) if size else 0.0
            truth = self._shortened(theta - share * kept * excess * clipped)
        if not self._has_errors:
            return truth, np.full((self._size, 1), math.nan)
        missing, doubt = left - excess * clipped, deviation * excess * clipped
        farther = self._shortened(truth - missing)  # where about the truth is, if the estimate misses as much
        missing = self._path(free, farther, weights)[0] - farther
        return truth, np.column_stack([self._errors(truth, rows, weights), missing, doubt])

    def _population(self, clip: float) -> NormalRows | SampledRows:
        """Return a normal population of the released moments."""
        if isinstance(self.model, Multinomial):
            return SampledRows(self.model, self._moments, self._center, clip)
        assert isinstance(self.model, OnePredictor)
        return NormalRows(self.model, self._moments, self._center, clip)

    def _path(
        self, rows: NormalRows | SampledRows, truth: Values, weights: Values
    ) -> tuple[Values, list[tuple[Values, NormalGradient | SampledGradient]]]:
        """Return the weighted mean of the iterates in a population, and the point and the gradient of each step."""
        theta, mean, gradients = self._start, np.zeros(self._size), []
        for weight, (pace, _) in zip(weights, self._paces, strict=True):
            gradient = rows.gradient(theta, truth)
            gradients.append((theta, gradient))
            theta = self._moved(theta, pace, gradient.mean)
            mean = mean + weight * theta
        return mean, gradients

    def _errors(self, truth: Values, rows: NormalRows | SampledRows, weights: Values) -> Values:
        """Return a root of the covariance of the error of the mean of the iterates: of sampling, and of noise in
        releases.
        """
        identity, parts = np.eye(self._size), []
        to_mean, of_gradient, of_moments = (np.zeros((self._size, self._size)) for _ in range(3))
        root, inverse = (np.kron(_root(self._rates, power), np.eye(self._p)) for power in (0.5, -0.5))
        moment_noise = np.tile(self._moment_noise, len(self._rates))
        steps = list(zip(weights, self._paces, self._path(rows, truth, weights)[1], strict=True))
        for weight, (pace, deviation), (point, gradient) in reversed(steps):
            values, vectors = np.linalg.eigh(identity - pace * root @ gradient.derivative @ root)
            inner = (vectors * np.clip(values, -1.0, 1.0)) @ vectors.T  # clipped gradients do not diverge
            step, rates = root @ inner @ inverse, pace * root @ root
            to_mean = to_mean + weight * identity  # the derivative of the mean with respect to this iterate
            of_gradient += to_mean @ rates
            away = ((point - truth) * moment_noise).reshape(-1, self._p)
            of_moments += to_mean @ (identity - step) @ np.kron(_root(away @ away.T), np.eye(self._p))
            parts.append(deviation * to_mean @ rates)
            to_mean = to_mean @ step
        values, vectors = np.linalg.eigh(rows.gradient(truth, truth).outer)
        sampling = of_gradient @ (vectors * np.sqrt(np.maximum(values, 0.0) / self.n))
        return np.hstack([*parts, of_moments * moment_noise, sampling])


def _root(matrix: Values, power: float = 0.5) -> Values:
    """Return a power of a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0) ** power) @ vectors.T)


def _shares(plan: Schedule, *, alike: bool) -> tuple[Fraction, ...]:
    """Return the share of each release, which add up to 1.

    Where columns are alike, the first of matched gradients are less useful.
    """
    labels, moments = (Fraction(checks.fraction("a share", share)) for share in (plan.labels, plan.moments))
    power = max(_POWER, min(_MOST_POWER, 1 + 12 // plan.steps)) if alike else _POWER
    parts = [step ** (power if plan.matching else 1) for step in range(1, plan.steps + 1)]
    rest = 1 - labels - moments
    if min(labels, moments, rest) <= 0:
        raise ValueError("shares must be positive and leave a share for the gradients")
    if not all(1 / _MOST_FACTOR <= factor <= _MOST_FACTOR for factor in (plan.clip, plan.ridge)):
        raise ValueError("clip and ridge of a schedule must be within 2**-40 and 2**40")
    return labels, moments, *(rest * part / sum(parts) for part in parts)
