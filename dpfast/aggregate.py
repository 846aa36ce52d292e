"""Sample and aggregate: a maximum-likelihood estimate on each block of the records, and a private mean of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks, _containers
from dpfast._kernels._blocks import BlockSums
from dpfast._least import least
from dpfast.families.family import AdditiveFamily, Box, Family, Theta
from dpfast.families.user import family_for, family_of
from dpfast.grid import Grid
from dpfast.laws import ClampedNoise, Law, RoundedLaplace, ScalarLaw
from dpfast.mechanism import Mechanism
from dpfast.privacy import Privacy
from dpfast.quantiles import Quantiles
from dpfast.random import RandomSource, bit_generator
from dpfast.statistics import Mean
from dpfast.streaming import Chunks, Reading
from dpfast.theory.aggregate import best_near, block_count, block_excess, clamp_bias, clamp_margin, fewest_near
from dpfast.theory.quantiles import normal_plus_laplace_error

_MOST_BLOCKS = 2**30
_MOST_COUNTS = 256  # numbers of blocks that a mechanism keeps
_BATCH = 2**14  # estimates that are rounded at once
COMBINE = ("auto", "mean", "geometric", "winsorized")
_MANY = 2**16  # blocks whose estimates take a time to be seen beside that of a pass over the records
_MOST_BIAS = 1 / 4  # of the random error: with a larger one, which expansions do not give well, no error is stated
_FEWEST_BLOCKS = 8.0  # over epsilon: with fewer, blocks may be shorter than the expansions of the family need
_SLACK = 1 / 200  # of the mean squared error, for fewer than so many
_MOST_MARGIN = 1 / 4  # of the range: an end may be where a record tells next to nothing
_IQR = 1.349  # of a normal distribution, in standard deviations
_MOST_PAIRS = 2**12  # of quartiles, on 90 points

Bounds = Any


@dataclass(frozen=True, repr=False)
class SampleAndAggregate(Mechanism):
    """Release parameters of a family: a mean, with Laplace noise, of the estimates of many small blocks.

    Pure epsilon-differential privacy under one replaced record, whatever the estimator does; the number of records is
    public. As n grows, the release has the distribution of the maximum-likelihood estimator itself.

    Parameters
    ----------
    family : str, Family, scipy.stats distribution or callable
        A name or an object of `dpfast.families`; a function that is given the records of a block.
    bounds : pair of float, or mapping from names to pairs
        Public range of each parameter to be released; a pair alone stands for the first parameter of the family.
    epsilon : float
        Positive; rounded down to a double. For all parameters together: each gets an equal share.
    blocks : int or "auto"
        k: record i of n is in block ``i * k // n``. "auto": the number with the least mean squared error at `guess`
        (beyond 2**16 the fewest within 1/200 of that, and within half of what it exceeds the best possible by), with at
        least 20 records in a block (more for some families, and where their expansions need more at `guess`, if n is
        large enough for it); needs two of the least blocks.
    bias_correction : bool
        Whether to take off the bias of order 1 / (size of a block).
    combine : str
        "mean"; "geometric", the geometric mean, for positive parameters that a family knows to be like scales
        (`logarithmic`); "winsorized" (Notes) for a range that is far wider than the estimates spread. "auto": of each
        parameter the geometric mean where there is one and its noise is less at `guess`, else the mean.
    guess : mapping from names to float, or "worst", optional
        Public guess of the parameters, for what is "auto" and for "winsorized" only. Default: the geometric mean of
        positive bounds, the midpoint of others. "worst", not for "winsorized": what counts is the greatest of the
        errors at both ends of the bounds and at their middle (of relative errors, for a geometric mean).
    margin : float or "auto"
        How far beyond the bounds an estimate of a block may lie, in its standard deviations there (as the family knows
        them): what is clamped at the bounds themselves is biased where the parameter is near one. "auto": so that this
        bias is at most half of the standard deviation of the release, and at most a quarter of the range, for the noise
        grows with it. What is released lies within the bounds.
    shuffle : int, optional
        Public seed of a permutation of the records, for data that are sorted or drift. Default: the order they have.
    step : float, optional
        A power of two: what estimates are rounded to. Default: as for `Grid`, 2**32 points for each parameter. The
        release itself lies within the bounds, also where the grid is widened beyond them.

    Raises
    ------
    TypeError, ValueError
        Before any data are looked at. From a call, where the number of records is known: too few for the blocks.

    Notes
    -----
    Privacy: blocks are made by position, so one record changes the estimate of one block. It, or its logarithm for a
    geometric mean, is clamped to the bounds and their margin and rounded to a grid; an infinite one goes to an end, and
    where a block has none (too few records in the support, a fit that fails) the middle of the bounds stands for it.
    The sum is one of integers, to which rounded Laplace noise of exactly the scale (range / epsilon, times the number
    of parameters) is added; clamping and division come after (docs/proofs/sample-and-aggregate.md). NaN and records
    outside the support are left out of their block. The noise of a mean is (upper - lower) / (k epsilon) wherever the
    parameter is; that of a geometric mean log(upper / lower) / (k epsilon) times the parameter, in proportion to the
    error that it has anyway.
    "winsorized" spends half of epsilon on the quartiles of the estimates, clips all estimates to a window around them,
    and adds noise for the width of the window. Where public numbers say that this cannot help (see `winsorizes`) it
    is "mean".
    Cost: one pass; for families of sums about that of the sums, O(blocks) memory. The pieces of `Chunks`, pairs for a
    regression, are read twice by these families, and put together in memory by all others and to shuffle. A callable
    is called for each block, and with `bias_correction` for each record (jackknife).

    References
    ----------
    Smith 2008, "Efficient, differentially private point estimators"; Smith 2011, "Privacy-preserving statistical
    estimation with optimal convergence rates", for the Winsorized mean.

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> mechanism = dpf.SampleAndAggregate("gamma", bounds={"shape": (0.1, 10), "scale": (0.1, 50)}, epsilon=1.0)
    >>> waits = np.random.default_rng(0).gamma(2.0, 8.0, 200_000)
    >>> shape, scale = mechanism(waits)
    >>> bool(abs(shape - 2) < 0.2 and abs(scale - 8) < 0.8)
    True
    """

    ordered: ClassVar[bool] = True  # blocks are made by position

    family: Any
    bounds: Bounds = field(kw_only=True)
    epsilon: float = field(kw_only=True)
    blocks: int | str = field(kw_only=True, default="auto")
    bias_correction: bool = field(kw_only=True, default=True)
    combine: str = field(kw_only=True, default="auto")
    guess: Any = field(kw_only=True, default=None)
    margin: float | str = field(kw_only=True, default="auto")
    shuffle: int | None = field(kw_only=True, default=None)
    step: float | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        family = family_of(self.family)
        bounds = _ranges(family, self.bounds)
        blocks = self.blocks
        if blocks != "auto":
            if isinstance(blocks, str):
                raise ValueError(f"blocks must be a number or 'auto', not {blocks!r}")
            blocks = _checks.whole("blocks", blocks, least=1)
            if blocks > _MOST_BLOCKS:
                raise ValueError(f"blocks must be at most 2**30, not {blocks}")
        guess = self.guess
        if isinstance(guess, str):
            guess = _checks.choice("guess", guess, ("worst",))
        elif guess is not None:
            guess = _values("guess", guess, family)
        margin = self.margin
        if margin != "auto":
            if isinstance(margin, str):
                raise ValueError(f"margin must be a number or 'auto', not {margin!r}")
            margin = _checks.nonnegative("margin", margin)
        checked = {
            "family": family,
            "bounds": bounds,
            "epsilon": _checks.positive_down("epsilon", self.epsilon),
            "blocks": blocks,
            "bias_correction": _checks.flag("bias_correction", self.bias_correction),
            "combine": _checks.choice("combine", self.combine, COMBINE),
            "guess": guess,
            "margin": margin,
            "shuffle": None if self.shuffle is None else _checks.whole("shuffle", self.shuffle),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.combine == "geometric":
            for name, (low, _) in bounds:
                if low <= 0 or name not in family.logarithmic:
                    raise ValueError(
                        f'combine="geometric" is for positive bounds of parameters that a family knows to be like '
                        f"scales, not for {name} of {type(family).__name__} from {low:g}"
                    )
        for grid in self.grids(2 * family.least_block if blocks == "auto" else int(blocks)):
            _checks.noise_scale((grid.size - 1) * len(bounds), self.epsilon)
        if blocks == "auto":  # where bounds or guess are too extreme, it is told now
            self.winsorizes(2 * family.least_block)

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    @cached_property
    def box(self) -> Box:
        """The parameters and their public ranges."""
        names, ranges = zip(*self.bounds, strict=True)
        lower, upper = zip(*ranges, strict=True)
        plain = Box(names, lower, upper)
        return replace(plain, logs=tuple(name for name in names if self._is_geometric(name, plain)))

    def _is_geometric(self, name: str, box: Box) -> bool:
        if self.combine != "auto":
            return self.combine == "geometric"
        low, high = box.range(name)
        if low <= 0 or name not in self.family.logarithmic:
            return False
        try:
            return self._theta(box)[name] * (math.log(high) - math.log(low)) <= high - low
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
        """What the guess says of other parameters, without those that determine this one."""

        def implied(known: dict[str, float]) -> float:
            return float(self.family.reference(self.box, known)[name])

        known = {other: value for other, value in self._known.items() if other != name}
        return {k: v for k, v in known.items() if implied({**known, k: 0.75 * v}) == implied(known)}

    def _ends(self, n: int, k: int, name: str) -> tuple[float, float]:
        """What the estimates of a parameter are clamped to, on the scale of the average: the bounds and a margin."""
        scale = self._scales[name]
        noise = scale.width / (k * float(self._share))
        margins = []
        root = math.sqrt(k / n)
        for (deviation, skewness), sign in ((scale.below, -1), (scale.above, 1)):
            if self.margin != "auto":
                margins.append(float(self.margin) * deviation * root)
            elif deviation:
                bias = math.hypot(deviation / math.sqrt(n), math.sqrt(2) * noise) / 2
                margin = clamp_margin(bias, deviation * root, sign * skewness * root)
                margins.append(min(margin, scale.width * _MOST_MARGIN))
            else:
                margins.append(0.0)
        return max(scale.low - margins[0], scale.least), min(scale.high + margins[1], scale.most)

    def grids(self, n: SupportsIndex) -> tuple[Grid, ...]:
        """What the estimates of each parameter, or their logarithms, are rounded to for n records. Public.

        The middle of the bounds stands for a missing one.
        """
        n = _checks.whole("n", n, least=1)
        return self._grids(n, self.block_count(n))

    def _grids(self, n: int, k: int) -> tuple[Grid, ...]:
        middle = ((name, math.log(at) if name in self.box.logs else at) for name, at in self.box.middle().items())
        with self._computable("guess", self.guess):
            return tuple(Grid(*self._ends(n, k, name), self.step, at) for name, at in middle)

    def __repr__(self) -> str:
        ranges = ", ".join(f"{name} in [{low!r}, {high!r}]" for name, (low, high) in self.bounds)
        combined = {"winsorized": "a Winsorized mean", "geometric": "the geometric mean", "mean": "the mean"}.get(
            self.combine, "a mean"
        )
        blocks = "" if self.blocks == "auto" else f"{self.blocks} "
        return (
            f"<SampleAndAggregate release of {combined} over {blocks}blocks, {self.family!r}, {ranges}: {self.privacy}>"
        )

    def block_count(self, n: SupportsIndex) -> int:
        """The number of blocks for n records. Public.

        Raises
        ------
        ValueError
            Fewer records than blocks, or than two of the least blocks with "auto".
        """
        n = _checks.whole("n", n)
        if self.blocks != "auto":
            k = int(self.blocks)
            if n < k:
                raise ValueError(f"blocks={k} need as many records at least, not {n} (their number is public)")
            return k
        least = self.family.least_block
        if n < 2 * least:
            raise ValueError(
                f'blocks="auto" needs at least {2 * least} records, two blocks of {least}, not {n} (their '
                f"number is public): say how many blocks"
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
        """The numbers of blocks for some numbers of records: they take a millisecond to find."""
        return {}

    def winsorizes(self, n: SupportsIndex) -> tuple[bool, ...]:
        """For each parameter whether a release of n records is a Winsorized mean. Public.

        It is one if `combine` says so and, with s the standard deviation of an estimate at `guess`, R the range and e
        the parameter's share of epsilon: the quartiles can be found, ``k e / 32 >= log(R / (1.349 s)) + 3``, and the
        window is expected to be less than half the range wide.
        """
        n = _checks.whole("n", n)
        return self._winsorizes(n, self.block_count(n))

    def _winsorizes(self, n: int, k: int) -> tuple[bool, ...]:
        if self.combine != "winsorized":
            return (False,) * len(self.bounds)
        with self._computable("guess", self.guess):
            return tuple(self._window_helps(n, k, name) for name in self.box.names)

    @contextmanager
    def _computable(self, name: str, values: Any) -> Iterator[None]:
        """Where a family's terms overflow, divide by zero or are no numbers, all from public numbers: a ValueError."""
        try:
            with np.errstate(all="ignore"):
                yield
        except (ArithmeticError, np.linalg.LinAlgError):
            told = f" and {name} {dict(values)!r}" if isinstance(values, (tuple, dict)) else ""
            ranges = ", ".join(f"{name} in [{low!r}, {high!r}]" for name, (low, high) in self.bounds)
            raise ValueError(
                f"the bounds {ranges}{told} are too extreme to compute an error at: choose others, or say how many "
                f"blocks"
            ) from None

    def law(self, x: Any, *, workers: int = 1) -> Law:
        """The exact law of the release. PRIVATE."""
        threads = _checks.threads(workers)
        if isinstance(x, Chunks):
            if self._streams:
                return self._law_of_chunks(x, threads)
            pieces = [self.family.records(piece) for piece in x]
            data = tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True)) or (np.empty(0),)
        else:
            data = self.family.records(x)
        n = _checks.records(data[0].shape[0])
        k = self.block_count(n)
        noise = self._noise(n, k)
        if self.shuffle is not None:
            order = np.random.Generator(np.random.PCG64(self.shuffle)).permutation(n)
            data = tuple(part[order] for part in data)
        estimates = self.family.estimates(data, k, self.box, corrected=self.bias_correction, workers=threads)
        return self._combined(noise, estimates)

    def reading(self) -> Reading:
        raise TypeError("blocks are made by position when the number of records is known: use block_sums(n)")

    @property
    def _streams(self) -> bool:
        """Whether sums over the blocks will do; else chunks are put together."""
        return isinstance(self.family, AdditiveFamily) and self.shuffle is None

    def _law_of_chunks(self, chunks: Chunks, threads: int) -> Law:
        """In two passes: blocks are known when n is."""
        state = self.block_sums(chunks.records())
        for chunk in chunks:
            state.update(chunk, workers=threads)
        return self.law_of(state)

    def block_sums(self, n: SupportsIndex, *, position: SupportsIndex = 0) -> BlockState:
        """A state that takes the n records in chunks, O(blocks) memory, for families that are made of sums. PRIVATE.

        Parameters
        ----------
        n : int
            All records of the release.
        position : int
            How many of them come before the first that this state is given.

        Returns
        -------
        BlockState
            ``state.update(chunk, workers=1)`` takes the next records; ``state.merge(other)`` adds what another state
            of the same n has seen. Picklable.

        Raises
        ------
        TypeError
            A family that needs whole blocks, or `shuffle`.
        """
        if not isinstance(self.family, AdditiveFamily):
            raise TypeError(f"{self.family!r} needs whole blocks: it has no sums to be streamed")
        if self.shuffle is not None:
            raise TypeError("a stream cannot be shuffled")
        n = _checks.whole("n", n, least=1)
        start = _checks.whole("position", position)
        if start > n:
            raise ValueError(f"position must be at most n, not {start}")
        return BlockState(self.family.state(n, self.block_count(n), self.box, start=start))

    def law_of(self, state: BlockState) -> Law:
        """The exact law of the release, from a state that has seen all records. PRIVATE."""
        if state.seen != state.n:
            raise ValueError(f"the state has seen {state.seen} of {state.n} records")
        estimates = self.family.finish(state.sums, self.box, corrected=self.bias_correction)
        return self._combined(self._noise(state.n, estimates.shape[0]), estimates)

    def finish(self, state: BlockState, *, rng: RandomSource = None) -> Any:
        """One release from a state that has seen all records; spends the budget of `privacy` once."""
        bit_generator(rng)  # a wrong rng is told before data are looked at
        law = self.law_of(state)
        return law.value(law.sample(rng=rng))

    def _noise(self, n: int, k: int) -> list[tuple[Grid, Fraction, bool]]:
        """For each parameter its grid, the scale of the noise in steps of it, and whether it is winsorized: public."""
        grids = self._grids(n, k)
        scales = [_checks.noise_scale(len(grids) * (grid.size - 1), self.epsilon) for grid in grids]
        return list(zip(grids, scales, self._winsorizes(n, k), strict=True))

    def _combined(self, noise: list[tuple[Grid, Fraction, bool]], estimates: NDArray[np.float64]) -> Law:
        laws: list[ScalarLaw] = []
        for (name, bounds), column, (grid, scale, winsorizes) in zip(self.bounds, estimates.T, noise, strict=True):
            decode = partial(_parameter, grid, len(column), bounds, name in self.box.logs)
            if winsorizes:
                codes = grid.encode(column)
                laws.append(WinsorizedMean(codes, grid, _widening(len(codes)), self._share, decode))
            else:
                laws.append(_noisy_sum(_sum_of_codes(grid, column), len(column), grid, scale, decode))
        return laws[0] if len(laws) == 1 else IndependentLaws(laws)

    @property
    def _share(self) -> Fraction:
        """Of epsilon, for one parameter."""
        return Fraction(self.epsilon) / len(self.bounds)

    @property
    def _known(self) -> dict[str, float]:
        return dict(self.guess) if isinstance(self.guess, tuple) else {}

    def _theta(self, box: Box | None = None) -> Theta:
        theta: Theta = self.family.reference(self.box if box is None else box, self._known)
        return theta

    def _terms(self, name: str, theta: Theta) -> dict[str, float]:
        """v2, b1 and b2; where the family does not know them, those of an estimate as wide as the range."""
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
        """Of an estimate of one record, as it were, on the scale of the average: 1 / sqrt(I). 0 if it is not known."""
        try:
            deviation = 1 / math.sqrt(_positive(self.family.information(name, theta)))
        except TypeError:
            return 0.0
        return deviation / theta[name] if name in self.box.logs else deviation

    def _skewness(self, name: str, theta: Theta) -> float:
        """Skewness of a block's estimate times the square root of its records, on the scale of the average."""
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
        """Where the error is to be least: at the guess, or at the worst of three."""
        if self.guess != "worst":
            return [self._point(name, self._theta())]
        points = []
        for value in (*self.box.range(name), self.box.middle()[name]):
            try:
                points.append(self._point(name, self.family.reference(self.box, {name: value})))
            except (ArithmeticError, np.linalg.LinAlgError):  # an end where the distribution degenerates
                continue
        return points or [self._point(name, self._theta())]

    def _excess(self, n: int, k: int, name: str, point: _Point) -> float:
        """Of the mean squared error over 1 / (n I), on the scale of the average."""
        lower, upper = ends = self._ends(n, k, name)
        below, above = self._clamped(name, point.at, ends)
        clamp = {"deviation": point.deviation, "skewness": point.skewness, "below": below, "above": above}
        return block_excess(n, k, width=upper - lower, epsilon=float(self._share), **point.terms, **clamp)

    def _clamped(self, name: str, at: float, ends: tuple[float, float]) -> tuple[float, float]:
        """How far below and above the estimates of blocks are clamped; not where none can be beyond the end."""
        scale, (lower, upper) = self._scales[name], ends
        return at - lower if lower > scale.least else math.inf, upper - at if upper < scale.most else math.inf

    def _count(self, n: int, name: str) -> int:
        theta, epsilon, width = self._theta(), float(self._share), self._scales[name].width
        points = self._points(name)
        terms, least = self._terms(name, theta), self._least_block(n, points)
        k = block_count(n, width=width, epsilon=epsilon, least=least, **terms)
        if self.combine == "winsorized":
            narrow = k
            for _ in range(20):  # the window is as wide as the estimates of blocks spread: a fixed point in k
                window = min(width, 2 * self._window(n, narrow, name, theta))
                narrow = block_count(n, width=2 * window, epsilon=epsilon, least=least, **terms)
            if self._window_helps(n, narrow, name):
                return narrow

        def error(k: int) -> float:
            return max(point.deviation**2 / n + self._excess(n, k, name, point) for point in points)

        best = best_near(k, error, most=n // least)
        excess = max(self._excess(n, best, name, point) for point in points)  # it tends to 0: so does what is spared
        return fewest_near(best, error, min(_SLACK, excess / (2 * error(best))), _MANY)

    def _least_block(self, n: int, points: list[_Point]) -> int:
        """Records in a block: as many as the expansions need, if that leaves so many blocks that noise is small."""
        least: int = self.family.least_block
        reach = max(point.reach for point in points)
        return max(least, math.ceil(reach)) if _FEWEST_BLOCKS * reach <= n * float(self._share) else least

    def _window(self, n: int, k: int, name: str, theta: Theta) -> float:
        """Half the width of the window to be expected."""
        return _widening(k) * self._spread(n, k, name, theta)

    def _spread(self, n: int, k: int, name: str, theta: Theta) -> float:
        """The interquartile range to be expected of the estimates; where it is not known, as of one as wide as all."""
        deviation = self._deviation(name, theta) or self._scales[name].width
        return _IQR * deviation * math.sqrt(k / n)

    def _window_helps(self, n: int, k: int, name: str) -> bool:
        theta, width = self._theta(), self._scales[name].width
        found = k * float(self._share) / 32 >= math.log(max(width / self._spread(n, k, name, theta), 1.0)) + 3
        return found and 4 * self._window(n, k, name, theta) < width

    def error(self, n: SupportsIndex, theta: Any = None, *, confidence: float = 0.95) -> Any:
        """The error to expect if the records follow the family at `theta`; public, never from data.

        With probability `confidence` the release is about this close to the parameter: the chance of the sample (Fisher
        information and second-order terms), the noise, and the bias that is left, together.

        Parameters
        ----------
        n : int
            Records.
        theta : float or mapping from names to float
            The parameters that the records are assumed to have; a float for the one that is released. Others that the
            error depends on (the shape, for the scale of gamma records) default to `guess`, then to the middle of the
            bounds, then to 1.
        confidence : float
            In (0, 1).

        Returns
        -------
        float or ndarray
            In units of the parameter; an array for several. At most the distance from theta to the farther bound, which
            is also the answer where the error is not known: where blocks are too short for the family's expansions at
            theta (`Family.reach`), or the bias of the clamp and of second order exceeds a quarter of the random error.

        Raises
        ------
        TypeError
            No theta, or a family that does not know its Fisher information.
        ValueError
            Too few records.

        Notes
        -----
        The mean of the estimates is taken as normal, an estimate that is clamped as lognormal with its skewness, and
        the window of a Winsorized mean as wide as expected. docs/results/efficiency.md lists how often the error at a
        confidence of 95 % is kept in random settings of all families, with theta the truth or the release: at least
        90 % in each, more than 98 % where a bound is nearer than the error, and for some families.

        Examples
        --------
        >>> import dpfast as dpf
        >>> mechanism = dpf.SampleAndAggregate("exponential", bounds=(0.2, 5), epsilon=1.0)
        >>> round(mechanism.error(10**6, 1.0), 5)
        0.002
        """
        n, confidence = _checks.whole("n", n, least=1), _checks.between("confidence", confidence, 0, 1)
        if theta is None:
            raise TypeError("give theta, the parameters that are assumed")
        if isinstance(theta, Mapping):
            known = dict(_values("theta", theta, self.family))
        elif len(self.bounds) == 1:
            known = {self.bounds[0][0]: _checks.real("theta", theta)}
        else:
            raise TypeError("theta must name its parameters where several are released")
        k = self.block_count(n)
        with self._computable("theta", known):
            errors = self._errors(n, k, self.family.reference(self.box, known), confidence)
        return errors[0] if len(errors) == 1 else np.array(errors)

    def _errors(self, n: int, k: int, assumed: Theta, confidence: float) -> list[float]:
        errors = []
        for (name, (low, high)), winsorizes in zip(self.bounds, self._winsorizes(n, k), strict=True):
            self.family.information(name, assumed)  # a TypeError where it is not known
            at, one, skewness, terms, reach = self._point(name, assumed)
            lower, upper = ends = self._ends(n, k, name)
            deviation = math.sqrt(one**2 / n + terms["v2"] * k / n**2)
            scale = (upper - lower) / (k * float(self._share))
            if winsorizes:
                window = self._window(n, k, name, assumed)
                inside = max(min(window, at - lower), 0.0) + max(min(window, upper - at), 0.0)
                scale = 2 * max(inside, window) / (k * float(self._share))
            root = math.sqrt(k / n)
            rest = abs(terms["b2"]) * root**4
            rest += abs(clamp_bias(one * root, *self._clamped(name, at, ends), skewness * root))
            chance = normal_plus_laplace_error(deviation, scale, confidence)
            error = abs(terms["b1"]) * k / n + rest + chance
            if name in self.box.logs:
                error = assumed[name] * math.expm1(min(error, 700.0))
            nearer, farther = sorted((assumed[name] - low, high - assumed[name]))
            known = nearer < 0 or (n >= k * reach and rest <= _MOST_BIAS * chance)
            errors.append(max(-nearer, min(farther, error if known else farther)))
        return errors

    def sample_size(self, error: float, **assumptions: Any) -> int:
        """As `Mechanism.sample_size`, with `theta` for assumption: the least n, at least what the blocks need."""
        wanted = _checks.positive("error", error)
        first = 2 * self.family.least_block if self.blocks == "auto" else int(self.blocks)
        return least(
            lambda n: n >= first and bool(np.max(self.error(n, **assumptions)) <= wanted),
            most=2**50,
            too_many="such an error takes more than 2**50 records, or no number of them reaches it",
        )


def _ranges(family: Family, bounds: Bounds) -> tuple[tuple[str, tuple[float, float]], ...]:
    """The bounds by name, checked."""
    if bounds is None:
        raise TypeError("bounds are required: the public range of each parameter")
    if isinstance(bounds, Mapping):
        items = list(bounds.items())
    elif isinstance(bounds, Sequence) and bounds and all(_is_item(item) for item in bounds):
        items = list(bounds)
    else:
        items = [(name, bounds) for name in family.default]
    if not items:
        raise ValueError("bounds must name at least one parameter")
    checked = []
    for name, pair in items:
        _known(family, name)
        low, high = (float(end) for end in _checks.pair(f"bounds of {name}", pair))
        if not low < high:
            raise ValueError(f"the bounds of {name} must be in order, not ({low!r}, {high!r})")
        least, most = family.space(name)
        if low < least or high > most:
            raise ValueError(f"the bounds of {name} must lie in [{least:g}, {most:g}], not ({low!r}, {high!r})")
        checked.append((name, (low, high)))
    if len({name for name, _ in checked}) < len(checked):
        raise ValueError("bounds must name each parameter once")
    return tuple(checked)


def _is_item(item: Any) -> bool:
    return isinstance(item, (tuple, list)) and len(item) == 2 and isinstance(item[0], str)


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


def _values(name: str, values: Any, family: Family) -> tuple[tuple[str, float], ...]:
    """Numbers by the names of parameters, hashable."""
    try:
        items = dict(values).items()
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a mapping from names of parameters to numbers") from None
    for key, _ in items:
        _known(family, key)
    return tuple((key, _checks.real(f"{name} of {key}", value)) for key, value in items)


class _Scale(NamedTuple):
    """On which a parameter is averaged, itself or its logarithm: bounds, where estimates can be, deviations there."""

    low: float
    high: float
    least: float  # no estimate is below it
    most: float
    below: tuple[float, float]  # at the lower bound: what `_deviation` and `_skewness` give
    above: tuple[float, float]

    @property
    def width(self) -> float:
        return self.high - self.low


class _Point(NamedTuple):
    """An assumed parameter: what is averaged of it, its 1 / sqrt(I), skewness and second-order terms on that scale."""

    at: float
    deviation: float
    skewness: float
    terms: dict[str, float]
    reach: float  # records of a block from which the terms hold


def _parameter(grid: Grid, k: int, bounds: tuple[float, float], logs: bool, codes: ArrayLike) -> Any:
    """What sums of codes over k blocks say of a parameter, within its bounds."""
    means = np.asarray(Mean().decode(grid, k, codes))
    if logs:
        with np.errstate(over="ignore"):  # noise may go far beyond the bounds
            means = np.exp(means)
    return np.clip(means, *bounds)


def _sum_of_codes(grid: Grid, values: NDArray[np.float64]) -> int:
    """In batches, whose memory is used again."""
    batches = range(0, len(values), _BATCH)
    return sum(int(grid.encode(values[start : start + _BATCH]).sum()) for start in batches)


def _noisy_sum(total: int, k: int, grid: Grid, scale: Fraction, decode: Callable[..., Any]) -> ClampedNoise:
    """The law of a sum of k codes with Laplace noise of that scale, which `decode` turns into values."""
    last = _checks.code_range(k * (grid.size - 1))
    return ClampedNoise(RoundedLaplace(scale), center=total, last=last, decode=decode)


def _widening(k: int) -> float:
    """Half the width of the window, in interquartile ranges: public. Smith's (sqrt(2 log k) + 2) / 1.349 + 1/2."""
    return (math.sqrt(2 * math.log(max(k, 2))) + 2) / _IQR + 0.5


class BlockState:
    """What has been read of a stream of n records, in sums over its blocks. PRIVATE. See `SampleAndAggregate`.

    Parameters
    ----------
    sums : BlockSums
    """

    def __init__(self, sums: BlockSums) -> None:
        self.sums = sums

    @property
    def n(self) -> int:
        """All records of the release, read or not."""
        return self.sums.n

    @property
    def seen(self) -> int:
        """How many records this state, and those merged into it, have read."""
        return self.sums.seen

    def __repr__(self) -> str:
        return f"<BlockState of {self.seen} of {self.n} records, private>"

    def update(self, chunk: ArrayLike, *, workers: int = 1) -> None:
        """Read the next records.

        Parameters
        ----------
        chunk : array_like of shape (m,)
        workers : int
            Threads, -1 for one per core; the result does not depend on it.
        """
        threads = _checks.threads(workers)
        self.sums.update(_containers.vector("x", chunk), workers=threads)

    def merge(self, other: BlockState) -> None:
        """Add what a state of the same mechanism and n has read of other records."""
        if not isinstance(other, BlockState):
            raise TypeError(f"a state of blocks is merged with another, not with {type(other).__name__}")
        self.sums.merge(other.sums)


class WinsorizedMean(ScalarLaw):
    """The law of a mean of codes clipped to a window around private quartiles of them.

    Half of `epsilon` buys the quartiles q1 <= q3, jointly (`Quantiles`); the window is their midpoint plus and minus
    `widening` times q3 - q1, at least one code each way, inside the grid. The other half buys the sum of the clipped
    codes, which one code changes by at most the width of the window.

    Parameters
    ----------
    codes : ndarray of int64, shape (k,)
    grid : Grid
    widening : float
    epsilon : Fraction
    decode : callable
        Turns sums of codes into values.
    """

    def __init__(
        self, codes: NDArray[np.int64], grid: Grid, widening: float, epsilon: Fraction, decode: Callable[..., Any]
    ) -> None:
        self._codes, self._grid, self._widening, self._decode = codes, grid, widening, decode
        quartiles = Quantiles(
            (0.25, 0.75), grid=Grid(0, grid.size - 1, step=1), epsilon=_checks.positive_down("epsilon", epsilon / 2)
        )
        self._half = epsilon / 2
        self._quartiles = quartiles.law_of(quartiles.reading().of(codes.astype(np.float64)))
        self.support = (0, _checks.code_range(codes.shape[0] * (grid.size - 1)))

    def window(self, first: int, third: int) -> tuple[int, int]:
        """The least and the greatest code of the window around two quartiles."""
        reach = max(math.ceil(self._widening * (third - first)), 1)
        return max((first + third) // 2 - reach, 0), min((first + third + 1) // 2 + reach, self._grid.size - 1)

    def given(self, first: int, third: int) -> ClampedNoise:
        """The law of the release once the quartiles are drawn."""
        low, high = self.window(first, third)
        total = int(np.clip(self._codes, low, high).sum())
        return _noisy_sum(total, len(self._codes), self._grid, (high - low) / self._half, self._decode)

    @cached_property
    def _mixture(self) -> list[tuple[float, ClampedNoise]]:
        """The probability of each pair of quartiles, and the law then."""
        size = self._grid.size
        if size * (size + 1) // 2 > _MOST_PAIRS:
            raise ValueError(
                f"a law that is a sum over pairs of quartiles is computed on at most 90 points, not {size}"
            )
        pairs = np.stack(np.triu_indices(size), axis=1)
        weights = self._quartiles.logpmf(pairs)
        return [(float(weight), self.given(*pair)) for weight, pair in zip(weights, pairs.tolist(), strict=True)]

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        logs: NDArray[np.float64] = np.logaddexp.reduce(
            [weight + law.logpmf(k) for weight, law in self._mixture], axis=0
        )
        return logs

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(np.sum([math.exp(weight) * law.cdf(k) for weight, law in self._mixture], axis=0))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        source = bit_generator(rng)
        if size is None:
            return self.given(*self._quartiles.sample(rng=source).tolist()).sample(rng=source)
        shape = _checks.shape(size)
        out = [self.sample(rng=source) for _ in range(math.prod(shape))]
        return np.array(out, dtype=np.int64).reshape(shape)

    def value(self, k: ArrayLike) -> Any:
        values = np.asarray(self._decode(k))
        return values if values.ndim else float(values)


class IndependentLaws(Law):
    """The law of a vector of independent integers; k has the coordinates along its last axis.

    Parameters
    ----------
    laws : sequence of ScalarLaw
        One for each coordinate.
    """

    def __init__(self, laws: Sequence[ScalarLaw]) -> None:
        self.laws = tuple(laws)

    def _columns(self, k: ArrayLike) -> list[tuple[ScalarLaw, NDArray[np.int64]]]:
        return list(zip(self.laws, np.moveaxis(_containers.integers("k", k), -1, 0), strict=True))

    def logpmf(self, k: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(np.sum([law.logpmf(column) for law, column in self._columns(k)], axis=0))

    def outcomes(self) -> NDArray[np.int64]:
        _checks.outcomes(math.prod(law.support[1] - law.support[0] + 1 for law in self.laws))
        axes = [law.outcomes() for law in self.laws]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    def sample(self, size: SupportsIndex | tuple[SupportsIndex, ...] | None = None, rng: RandomSource = None) -> Any:
        source = bit_generator(rng)
        return np.stack([np.asarray(law.sample(size, rng=source)) for law in self.laws], axis=-1)

    def value(self, k: ArrayLike) -> NDArray[np.float64]:
        return np.stack([np.asarray(law.value(column)) for law, column in self._columns(k)], axis=-1)


def mle(
    x: ArrayLike,
    family: Any,
    *,
    epsilon: float,
    bounds: Bounds,
    blocks: int | str = "auto",
    bias_correction: bool = True,
    combine: str = "auto",
    guess: Any = None,
    margin: float | str = "auto",
    shuffle: int | None = None,
    rng: RandomSource = None,
    workers: SupportsIndex = 1,
) -> Any:
    """Maximum-likelihood estimate of the parameters of a family, released by sample-and-aggregate.

    Pure epsilon-differential privacy under one replaced record; the number of records is public.

    Parameters
    ----------
    x : array_like of shape (n,), or pair of arrays
        Private records; NaN and what is outside the support of the family is left out. For a regression ``(X, y)``, of
        shapes (n, d) and (n,).
    family : str, Family, scipy.stats distribution or callable
        As for `SampleAndAggregate`. The names "linear", "logistic" and "poisson-regression" stand for a regression on
        an intercept and the columns of X.
    epsilon, bounds, blocks, bias_correction, combine, guess, margin, shuffle
        As for `SampleAndAggregate`.
    rng : numpy.random.Generator or BitGenerator, optional
        Makes the run reproducible, hence not private. Default: the secure generator.
    workers : int
        Threads that read the data, -1 for one per core; the result does not depend on it.

    Returns
    -------
    float or ndarray
        In the order of the bounds; a float for one parameter.

    Raises
    ------
    TypeError, ValueError
        As `SampleAndAggregate`.

    Notes
    -----
    Privacy, cost: as `SampleAndAggregate`, which this is one call of (docs/proofs/sample-and-aggregate.md).

    References
    ----------
    Smith 2008, "Efficient, differentially private point estimators".

    Examples
    --------
    >>> import numpy as np, dpfast as dpf
    >>> waits = np.random.default_rng(0).exponential(2.0, 100_000)
    >>> rate = dpf.mle(waits, "exponential", bounds=(0.05, 5), epsilon=1.0)
    >>> bool(abs(rate - 0.5) < 0.05)
    True
    """
    mechanism = SampleAndAggregate(
        family_for(family, x),
        bounds=bounds,
        epsilon=epsilon,
        blocks=blocks,
        bias_correction=bias_correction,
        combine=combine,
        guess=guess,
        margin=margin,
        shuffle=shuffle,
    )
    return mechanism(x, rng=rng, workers=workers)  # type: ignore[arg-type]
