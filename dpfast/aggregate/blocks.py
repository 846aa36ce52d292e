"""The public parameters of a sample-and-aggregate release: blocks, margins, grids, noise and expected error."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from dpfast.aggregate.noise import NOISE, SumsNoise
from dpfast.core import checks
from dpfast.core.grid import Grid
from dpfast.core.least import least
from dpfast.core.recent import recent
from dpfast.families.family import Family, Ranges, Theta
from dpfast.families.user import family_of
from dpfast.theory.aggregate import best_near, block_count, block_excess, clamp_bias, clamp_margin, fewest_near

_MOST_BLOCKS = 2**30
_MOST_COUNTS = 256  # numbers of blocks that a mechanism caches
COMBINE = ("auto", "mean", "geometric", "winsorized")
_MANY = 2**16  # number of blocks whose estimates take a noticeable share of the time of a pass over the records
_MOST_BIAS = 1 / 4  # of the random error: expansions of a larger bias are not accurate, and no error is stated
_FEWEST_BLOCKS = 8.0  # over epsilon: rather than fewer blocks, use blocks shorter than the family's expansions need
_SLACK = 1 / 200  # of the mean squared error: the allowed increase in exchange for fewer blocks
_MOST_MARGIN = 1 / 4  # of the range: at an end a record may carry almost no information
_IQR = 1.349  # of a normal distribution, in standard deviations


class ReleasedParameter(NamedTuple):
    """The grid of the estimates of one released parameter, and their window.

    Attributes
    ----------
    grid : Grid
    widening : float or None
        Half the width of the window of a Winsorized mean, in interquartile ranges; None for a mean.
    """

    grid: Grid
    widening: float | None


@dataclass(frozen=True, repr=False)
class BlockParameters:
    """The part of `dpfast.SampleAndAggregate` that depends on public parameters only, and its error."""

    family: Any
    bounds: Any = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    delta: float = field(kw_only=True, default=0.0)
    noise: str = field(kw_only=True, default="auto")
    blocks: int | str = field(kw_only=True, default="auto")
    bias_correction: bool = field(kw_only=True, default=True)
    combine: str = field(kw_only=True, default="auto")
    guess: Any = field(kw_only=True, default=None)
    margin: float | str = field(kw_only=True, default="auto")
    shuffle: int | None = field(kw_only=True, default=None)
    step: float | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        family = family_of(self.family)
        bounds = ranges_of(family, self.bounds)
        blocks = self.blocks
        if blocks != "auto":
            if isinstance(blocks, str):
                raise ValueError(f"blocks must be a number or 'auto', not {blocks!r}")
            blocks = checks.whole("blocks", blocks, least=1)
            if blocks > _MOST_BLOCKS:
                raise ValueError(f"blocks must be at most 2**30, not {blocks}")
        guess = self.guess
        if isinstance(guess, str):
            guess = checks.choice("guess", guess, ("worst",))
        elif guess is not None:
            guess = named_numbers("guess", guess, family)
        margin = self.margin
        if margin != "auto":
            if isinstance(margin, str):
                raise ValueError(f"margin must be a number or 'auto', not {margin!r}")
            margin = checks.nonnegative("margin", margin)
        checked = {
            "family": family,
            "bounds": bounds,
            "epsilon": checks.positive_down("epsilon", self.epsilon),
            "delta": checks.delta_down(self.delta),
            "noise": checks.choice("noise", self.noise, NOISE),
            "blocks": blocks,
            "bias_correction": checks.flag("bias_correction", self.bias_correction),
            "combine": checks.choice("combine", self.combine, COMBINE),
            "guess": guess,
            "margin": margin,
            "shuffle": None if self.shuffle is None else checks.whole("shuffle", self.shuffle),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.combine == "geometric":
            for name, (low, _) in bounds:
                if low <= 0 or name not in family.logarithmic:
                    raise ValueError(
                        f'combine="geometric" is for positive bounds of parameters that behave like scales in their '
                        f"family, not for {name} of {type(family).__name__} from {low:g}"
                    )
        if self.noise == "gaussian" and not self.delta:
            raise ValueError("delta must be positive for Gaussian noise, not 0.0")
        for grid in self.grids(2 * family.least_block if blocks == "auto" else int(blocks)):
            self.narrowest_noise.scale(grid.size - 1)
        if blocks == "auto":  # raise now if the bounds or the guess are too extreme
            self.winsorizes(2 * family.least_block)

    @cached_property
    def box(self) -> Ranges:
        """The parameters and their public ranges."""
        names, ranges = zip(*self.bounds, strict=True)
        lower, upper = zip(*ranges, strict=True)
        plain = Ranges(names, lower, upper)
        return replace(plain, logs=tuple(name for name in names if self._is_geometric(name, plain)))

    def _is_geometric(self, name: str, box: Ranges) -> bool:
        if self.combine != "auto":
            return self.combine == "geometric"
        low, high = box.range(name)
        if low <= 0 or name not in self.family.logarithmic:
            return False
        try:
            return 0 < self._theta(box)[name] * (math.log(high) - math.log(low)) <= high - low
        except ArithmeticError:
            return False

    @cached_property
    def _scales(self) -> dict[str, _Scale]:
        """The scale on which each parameter is averaged."""
        return {name: self._scale(name, low, high) for name, (low, high) in self.bounds}

    def _scale(self, name: str, low: float, high: float) -> _Scale:
        ends = []
        for end in (low, high):
            try:
                theta = self.family.reference(self.box, {**self._others(name), name: end})
                ends.append((self._deviation(name, theta), self._skewness(name, theta)))
            except (ArithmeticError, np.linalg.LinAlgError):
                ends.append((0.0, 0.0))
        least, most = self.family.space(name)
        if name not in self.box.logs:
            return _Scale(low, high, least, most, *ends)
        return _Scale(math.log(low), math.log(high), math.log(least) if least > 0 else -math.inf, math.log(most), *ends)

    def _others(self, name: str) -> dict[str, float]:
        """Return the guesses of the other parameters, without parameters that determine this one."""

        def implied(known: dict[str, float]) -> float:
            return float(self.family.reference(self.box, known)[name])

        known = {other: value for other, value in self._known.items() if other != name}
        return {k: v for k, v in known.items() if implied({**known, k: 0.75 * v}) == implied(known)}

    def _ends(self, n: int, k: int, name: str) -> tuple[float, float]:
        """Return the range to which estimates of a parameter are clamped, on the scale of the average: bounds and
        margin.
        """
        scale = self._scales[name]
        noise = scale.width / (k * self.sums_noise().laplace_epsilon)
        margins = []
        root = math.sqrt(k / n)
        for (deviation, skewness), sign in ((scale.below, -1), (scale.above, 1)):
            if self.margin != "auto":
                margins.append(float(self.margin) * deviation * root)
            elif deviation:
                bias = _finite(math.hypot(deviation / math.sqrt(n), math.sqrt(2) * noise) / 2)
                margin = clamp_margin(bias, deviation * root, sign * skewness * root)
                margins.append(min(margin, scale.width * _MOST_MARGIN))
            else:
                margins.append(0.0)
        return max(scale.low - margins[0], scale.least), min(scale.high + margins[1], scale.most)

    @recent
    def _all_ends(self, n: int, k: int) -> dict[str, tuple[float, float]]:
        """Return these ranges of all parameters, by name; a choice asks for them at each assumed value."""
        return {name: self._ends(n, k, name) for name, _ in self.bounds}

    def grids(self, n: SupportsIndex) -> tuple[Grid, ...]:
        """Return the public grids to which the estimates of the parameters, or their logarithms, are rounded for n
        records.

        The middle of the bounds replaces a missing estimate.
        """
        n = checks.whole("n", n, least=1)
        return self._grids(n, self.block_count(n))

    def _grids(self, n: int, k: int) -> tuple[Grid, ...]:
        middle = ((name, math.log(at) if name in self.box.logs else at) for name, at in self.box.middle().items())
        with self._computable("guess", self.guess):
            ends = self._all_ends(n, k)
            return tuple(Grid(*ends[name], self.step, at) for name, at in middle)

    def block_count(self, n: SupportsIndex) -> int:
        """Return the number of blocks for n records. Public.

        Raises
        ------
        ValueError
            With fewer records than blocks, or with "auto" than two of the smallest blocks.
        """
        n = checks.whole("n", n)
        if self.blocks != "auto":
            k = int(self.blocks)
            if n < k:
                raise ValueError(f"blocks={k} need at least {k} records, not {n} (their number is public)")
            return k
        least = self.family.least_block
        if n < 2 * least:
            raise ValueError(
                f'blocks="auto" needs at least {2 * least} records, two blocks of {least}, not {n} (their '
                f"number is public): give a number of blocks"
            )
        kept = self._counts.get(n)
        if kept is not None:
            return kept
        with self._computable("guess", self.guess):
            counts = [self._count(n, name) for name in self.box.names]
        together = math.exp(math.fsum(map(math.log, counts)) / len(counts))
        if len(self._counts) >= _MOST_COUNTS:
            self._counts.clear()
        count = self._counts[n] = int(min(max(round(together), 1), n // least, _MOST_BLOCKS))
        return count

    @cached_property
    def _counts(self) -> dict[int, int]:
        """A cache of the numbers of blocks for numbers of records, which take a millisecond to compute."""
        return {}

    def winsorizes(self, n: SupportsIndex) -> tuple[bool, ...]:
        """Whether the release of each parameter from n records is a Winsorized mean. Public.

        It is one if `combine` is "winsorized", the quartiles can be found, and the expected width of the window is less
        than half the range. The quartiles can be found if ``k e / 32 >= log(R / (1.349 s)) + 3``, s the standard
        deviation of an estimate at `guess`, R the range and e the parameter's share of epsilon.
        """
        n = checks.whole("n", n)
        return self._winsorizes(n, self.block_count(n))

    def _winsorizes(self, n: int, k: int) -> tuple[bool, ...]:
        if self.combine != "winsorized":
            return (False,) * len(self.bounds)
        with self._computable("guess", self.guess):
            return tuple(self._window_helps(n, k, name) for name in self.box.names)

    def _computable(self, name: str, values: Any) -> AbstractContextManager[None]:
        """Raise a ValueError if the terms of a family at these values are not numbers; see `computable`."""
        told = f" and {name} {dict(values)!r}" if isinstance(values, (tuple, dict)) else ""
        return computable(self.bounds, f"{told} are too extreme to compute an error at", "give a number of blocks")

    def released(self, n: int, k: int) -> list[ReleasedParameter]:
        """Return what is public for each parameter, for n records in k blocks."""
        return [
            ReleasedParameter(grid, _widening(k) if winsorizes else None)
            for grid, winsorizes in zip(self._grids(n, k), self._winsorizes(n, k), strict=True)
        ]

    @recent
    def sums_noise(self, windows: int = 0) -> SumsNoise:
        """Return the noise of the sums of all parameters, of which `windows` are Winsorized; half of their shares is
        left.
        """
        kind = self.narrowest_noise.kind
        return SumsNoise(kind, len(self.bounds), self._left(windows), self.delta)

    @cached_property
    def narrowest_noise(self) -> SumsNoise:
        """The noise if as many parameters are Winsorized as can be. It decides the kind of noise for any n."""
        windows = len(self.bounds) if self.combine == "winsorized" else 0
        return SumsNoise.chosen(self.noise, len(self.bounds), self._left(windows), self.delta)

    def _left(self, windows: int) -> Fraction:
        """Return the part of epsilon that the quartiles of Winsorized means leave."""
        return Fraction(self.epsilon) - windows * self.share / 2

    @property
    def share(self) -> Fraction:
        """The share of epsilon for one parameter."""
        return Fraction(self.epsilon) / len(self.bounds)

    @property
    def _known(self) -> dict[str, float]:
        return dict(self.guess) if isinstance(self.guess, tuple) else {}

    def _theta(self, box: Ranges | None = None) -> Theta:
        theta: Theta = self.family.reference(self.box if box is None else box, self._known)
        return theta

    def _terms(self, name: str, theta: Theta) -> dict[str, float]:
        """v2, b1 and b2; if the family does not give them, those of an estimate that spreads over the range."""
        width = self._scales[name].width
        try:
            if name in self.box.logs:
                v2, b2 = self.family.log_second_order(name, theta)
                b1 = 0.0
                if not self.bias_correction:
                    b1 = self.family.bias(name, theta) / theta[name] - self._deviation(name, theta) ** 2 / 2
            else:
                v2, b2 = self.family.second_order(name, theta)
                b1 = 0.0 if self.bias_correction else self.family.bias(name, theta)
        except TypeError:
            v2, b1, b2 = width**2, width / 4, 0.0
        return {"v2": _finite(v2), "b1": 0.0 if self.bias_correction else _finite(b1), "b2": _finite(b2)}

    def _deviation(self, name: str, theta: Theta) -> float:
        """Return the standard deviation per record, 1 / sqrt(I), on the scale of the average; 0 if unknown."""
        try:
            deviation = 1 / math.sqrt(_positive(self.family.information(name, theta)))
        except TypeError:
            return 0.0
        return deviation / theta[name] if name in self.box.logs else deviation

    def _skewness(self, name: str, theta: Theta) -> float:
        """Return the skewness of a block's estimate times the root of its number of records, on the scale of the
        average.
        """
        try:
            skewness = self.family.skewness(name, theta)
        except TypeError:
            return 0.0
        return _finite(skewness - 3 * self._deviation(name, theta) if name in self.box.logs else skewness)

    def _point(self, name: str, theta: Theta) -> _Point:
        at = math.log(_positive(theta[name])) if name in self.box.logs else theta[name]
        reach = 0.0 if name in self.box.logs else _finite(self.family.reach(name, theta))
        return _Point(at, self._deviation(name, theta), self._skewness(name, theta), self._terms(name, theta), reach)

    def _points(self, name: str) -> list[_Point]:
        """Return the assumed parameters whose largest error is minimised: the guess, or three points for "worst"."""
        if self.guess != "worst":
            return [self._point(name, self._theta())]
        points = []
        for value in (*self.box.range(name), self.box.middle()[name]):
            try:
                points.append(self._point(name, self.family.reference(self.box, {name: value})))
            except (ArithmeticError, np.linalg.LinAlgError):  # the distribution is degenerate at this end
                continue
        return points or [self._point(name, self._theta())]

    def _excess(self, n: int, k: int, name: str, point: _Point, ends: tuple[float, float]) -> float:
        """Return the excess of the mean squared error over 1 / (n I), on the scale of the average, with these ends."""
        lower, upper = ends
        below, above = self._clamped(name, point.at, ends)
        clamp = {"deviation": point.deviation, "skewness": point.skewness, "below": below, "above": above}
        epsilon = self.sums_noise().laplace_epsilon
        return block_excess(n, k, width=upper - lower, epsilon=epsilon, **point.terms, **clamp)

    def _clamped(self, name: str, at: float, ends: tuple[float, float]) -> tuple[float, float]:
        """Return the distances below and above at which estimates of blocks are clamped; inf if none can be beyond the
        end.
        """
        scale, (lower, upper) = self._scales[name], ends
        return at - lower if lower > scale.least else math.inf, upper - at if upper < scale.most else math.inf

    def _count(self, n: int, name: str) -> int:
        theta, epsilon, width = self._theta(), self.sums_noise().laplace_epsilon, self._scales[name].width
        points = self._points(name)
        terms, least = self._terms(name, theta), self._least_block(n, points)
        k = block_count(n, width=width, epsilon=epsilon, least=least, **terms)
        if self.combine == "winsorized":
            narrow, left = k, self.narrowest_noise.laplace_epsilon
            for _ in range(20):  # a fixed point in k: the window depends on the spread of the estimates
                window = min(width, 2 * self._window(n, narrow, name, theta))
                narrow = block_count(n, width=window, epsilon=left, least=least, **terms)
            if self._window_helps(n, narrow, name):
                return narrow

        def error(k: int) -> float:
            ends = self._ends(n, k, name)
            return max(point.deviation**2 / n + self._excess(n, k, name, point, ends) for point in points)

        best = best_near(k, error, most=n // least)
        ends = self._ends(n, best, name)
        excess = max(self._excess(n, best, name, point, ends) for point in points)  # tends to 0, and so does the slack
        return fewest_near(best, error, min(_SLACK, excess / (2 * error(best))), _MANY)

    def _least_block(self, n: int, points: list[_Point]) -> int:
        """Return the least size of a block: as large as the expansions need, if enough blocks
        remain for a small noise.
        """
        least: int = self.family.least_block
        reach = max(point.reach for point in points)
        return (
            max(least, math.ceil(reach)) if _FEWEST_BLOCKS * reach <= n * self.sums_noise().laplace_epsilon else least
        )

    def _window(self, n: int, k: int, name: str, theta: Theta) -> float:
        """Half the expected width of the window."""
        return _widening(k) * self._spread(n, k, name, theta)

    def _spread(self, n: int, k: int, name: str, theta: Theta) -> float:
        """Return the expected interquartile range of the estimates; if unknown, for estimates that spread over the
        range.
        """
        deviation = self._deviation(name, theta) or self._scales[name].width
        return _IQR * deviation * math.sqrt(k / n)

    def _window_helps(self, n: int, k: int, name: str) -> bool:
        theta, width = self._theta(), self._scales[name].width
        found = k * float(self.share) / 32 >= math.log(max(width / self._spread(n, k, name, theta), 1.0)) + 3
        return found and 4 * self._window(n, k, name, theta) < width

    def error(self, n: SupportsIndex, theta: Any = None, *, confidence: float = 0.95) -> Any:
        """Predict the error if the records follow the family at `theta`. Public: it reads no data.

        With probability `confidence` the release is about this close to the parameter. The error includes sampling
        error (Fisher information and second-order terms), the noise, and the remaining bias.

        Parameters
        ----------
        n : int
            The number of records.
        theta : float or mapping from names to float
            The assumed parameters of the records; a float for a single released parameter. Other parameters on which
            the error depends (the shape, for the scale of gamma records) default to `guess`, then to the middle of the
            bounds, then to 1.
        confidence : float
            In (0, 1).

        Returns
        -------
        float or ndarray
            In units of the parameter; an array for several. At most the distance from theta to the farther bound, which
            is also the result if the error is unknown: if blocks are too short for the family's expansions at theta
            (`Family.reach`), or if the bias of clamping and of second order exceeds a quarter of the random error.

        Raises
        ------
        TypeError
            If theta is missing, or the family does not give its Fisher information.
        ValueError
            If there are too few records.

        Notes
        -----
        The mean of the estimates is treated as normal, a clamped estimate as lognormal with its skewness, and the
        window of a Winsorized mean as having its expected width.
        https://dpfast.readthedocs.io/en/latest/results/efficiency.html lists how often the error at a confidence of
        95 % is kept in random settings of all families, with theta the truth or the release: at least 90 % in each,
        more than 98 % if a bound is nearer than the error, and for some families.

        Examples
        --------
        >>> import dpfast as dpf
        >>> mechanism = dpf.SampleAndAggregate("exponential", bounds=(0.2, 5), epsilon=1.0)
        >>> round(mechanism.error(10**6, 1.0), 5)
        0.002
        """
        n, confidence = checks.whole("n", n, least=1), checks.between("confidence", confidence, 0, 1)
        if theta is None:
            raise TypeError("give theta, the assumed parameters")
        if isinstance(theta, Mapping):
            known = dict(named_numbers("theta", theta, self.family))
        elif len(self.bounds) == 1:
            known = {self.bounds[0][0]: checks.real("theta", theta)}
        else:
            raise TypeError("theta must name its parameters if several are released")
        k = self.block_count(n)
        with self._computable("theta", known):
            errors = self._errors(n, k, self.family.reference(self.box, known), confidence)
        return errors[0] if len(errors) == 1 else np.array(errors)

    def deviations(self, n: int, known: Theta) -> list[float]:
        """Return the root mean squared error of each parameter at assumed parameters, at most the
        distance to a bound.
        """
        k, theta, found = self.block_count(n), self.family.reference(self.box, known), []
        ends = self._all_ends(n, k)
        for name, (low, high) in self.bounds:
            point = self._point(name, theta)
            error = math.sqrt(point.deviation**2 / n + self._excess(n, k, name, point, ends[name]))
            farther = max(theta[name] - low, high - theta[name])
            found.append(min(error * theta[name] if name in self.box.logs else error, farther))
        return found

    def _errors(self, n: int, k: int, assumed: Theta, confidence: float) -> list[float]:
        errors, windows = [], self._winsorizes(n, k)
        noise = self.sums_noise(sum(windows))
        for (name, (low, high)), winsorizes in zip(self.bounds, windows, strict=True):
            self.family.information(name, assumed)  # raises a TypeError if unknown
            at, one, skewness, terms, reach = self._point(name, assumed)
            lower, upper = ends = self._all_ends(n, k)[name]
            deviation = math.sqrt(one**2 / n + terms["v2"] * k / n**2)
            width = upper - lower
            if winsorizes:
                window = self._window(n, k, name, assumed)
                inside = max(min(window, at - lower), 0.0) + max(min(window, upper - at), 0.0)
                width = max(inside, window)
            root = math.sqrt(k / n)
            rest = abs(terms["b2"]) * root**4
            rest += abs(clamp_bias(one * root, *self._clamped(name, at, ends), skewness * root))
            chance = noise.error(deviation, width / k, confidence)
            error = abs(terms["b1"]) * k / n + rest + chance
            if name in self.box.logs:
                error = assumed[name] * math.expm1(min(error, 700.0))
            nearer, farther = sorted((assumed[name] - low, high - assumed[name]))
            known = nearer < 0 or (n >= k * reach and rest <= _MOST_BIAS * chance)
            errors.append(max(-nearer, min(farther, error if known else farther)))
        return errors

    def sample_size(self, error: float, **assumptions: Any) -> int:
        """See `Mechanism.sample_size`; the assumption is ``theta``. Returns at least the n that the blocks need."""
        wanted = checks.positive("error", error)
        first = 2 * self.family.least_block if self.blocks == "auto" else int(self.blocks)
        return least(
            lambda n: n >= first and bool(np.max(self.error(n, **assumptions)) <= wanted),
            most=2**50,
            too_many="such an error takes more than 2**50 records, or no number of them reaches it",
        )


def ranges_of(family: Family, bounds: Any) -> tuple[tuple[str, tuple[float, float]], ...]:
    """Check the bounds of parameters and return them by name; `bounds` may be such pairs of a name and its bounds."""
    if bounds is None:
        raise TypeError("bounds are required: the public range of each parameter")
    names, bounds = family.default, dict(bounds) if isinstance(bounds, Mapping) else checks.once(bounds)
    if isinstance(bounds, tuple) and bounds and all(map(_is_item, bounds)):
        if len({name for name, _ in bounds}) < len(bounds):
            raise ValueError("bounds must name each parameter once")
        bounds = dict(bounds)
    if isinstance(bounds, dict):
        names = tuple(bounds)
        if not names:
            raise ValueError("bounds must name at least one parameter")
        for name in names:
            _known(family, name)
    found = checks.bounds_of(bounds, lambda: names, part="parameter")
    pairs = found if isinstance(found[0], tuple) else (found,) * len(names)
    if not isinstance(bounds, dict) and len(names) < len(pairs) <= len(family.names):
        names = family.names[: len(pairs)]
    if len(pairs) != len(names):
        raise ValueError(
            f"bounds must be one pair, or one for each parameter, {', '.join(names)}, not {len(pairs)}; "
            f"a mapping {{name: (lower, upper)}} also takes others of {', '.join(family.names)}"
        )
    return tuple((name, _range_of(family, name, pair)) for name, pair in zip(names, pairs, strict=True))


def _range_of(family: Family, name: str, pair: tuple[Any, Any]) -> tuple[float, float]:
    """Return the bounds of a parameter as doubles."""
    low, high = map(float, pair)
    if not low < high:
        raise ValueError(f"the bounds of {name} must be in order, not ({low!r}, {high!r})")
    least, most = family.space(name)
    if low < least or high > most:
        raise ValueError(f"the bounds of {name} must lie in [{least:g}, {most:g}], not ({low!r}, {high!r})")
    return low, high


@contextmanager
def computable(bounds: tuple[tuple[str, tuple[float, float]], ...], fault: str, remedy: str) -> Iterator[None]:
    """Raise a ValueError about the bounds if terms of public numbers overflow, divide by zero or are not numbers."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (ArithmeticError, np.linalg.LinAlgError):
        ranges = ", ".join(f"{name} in [{low!r}, {high!r}]" for name, (low, high) in bounds)
        raise ValueError(f"the bounds {ranges}{fault}: choose others, or {remedy}") from None


def _is_item(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


def _known(family: Family, name: Any) -> None:
    if name not in family.names:
        raise ValueError(f"{type(family).__name__} has the parameters {', '.join(family.names)}, not {name!r}")


def _finite(x: float) -> float:
    if not math.isfinite(x):
        raise OverflowError
    return x


def _positive(x: float) -> float:
    if not 0 < x < math.inf:
        raise OverflowError
    return x


def named_numbers(name: str, values: Any, family: Family) -> tuple[tuple[str, float], ...]:
    """Check numbers given by names of parameters and return them as a hashable tuple."""
    try:
        items = dict(values).items()
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a mapping from names of parameters to numbers") from None
    for key, _ in items:
        _known(family, key)
    return tuple((key, checks.real(f"{name} of {key}", value)) for key, value in items)


class _Scale(NamedTuple):
    """The scale on which a parameter is averaged, linear or logarithmic: bounds, range of estimates, deviations."""

    low: float
    high: float
    least: float  # the lower limit of estimates
    most: float
    below: tuple[float, float]  # `_deviation` and `_skewness` at the lower bound
    above: tuple[float, float]

    @property
    def width(self) -> float:
        return _positive(self.high - self.low)


class _Point(NamedTuple):
    """An assumed parameter on the scale of the average, with its 1 / sqrt(I), skewness and second-order terms."""

    at: float
    deviation: float
    skewness: float
    terms: dict[str, float]
    reach: float  # the least size of a block for which the terms hold


def _widening(k: int) -> float:
    """Half the width of the window, in interquartile ranges: Smith's (sqrt(2 log k) + 2) / 1.349 + 1/2. Public."""
    return (math.sqrt(2 * math.log(max(k, 2))) + 2) / _IQR + 0.5
