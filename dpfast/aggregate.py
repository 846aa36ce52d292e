"""Sample and aggregate: a maximum-likelihood estimate on each block of the records, and a private mean of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks
from dpfast._kernels._blocks import BlockSums
from dpfast._least import least
from dpfast.families.family import AdditiveFamily, Box, Family, Theta
from dpfast.families.user import family_for, family_of
from dpfast.grid import Grid
from dpfast.laws import ClampedNoise, Law, RoundedLaplace, ScalarLaw
from dpfast.mechanism import Mechanism
from dpfast.privacy import Privacy
from dpfast.quantiles import JointQuantiles, Quantiles
from dpfast.random import RandomSource, bit_generator
from dpfast.spending import LAW, refused
from dpfast.statistics import Mean
from dpfast.streaming import Chunks, Reading
from dpfast.theory.aggregate import block_count
from dpfast.theory.quantiles import normal_plus_laplace_error

_MOST_BLOCKS = 2**30
COMBINE = ("mean", "winsorized")
_IQR = 1.349  # of a normal distribution, in standard deviations
_MOST_PAIRS = 2**12  # of quartiles, on 90 points

Bounds = Any


@dataclass(frozen=True, repr=False)
class SampleAndAggregate(Mechanism):
    """Release parameters of a family: the mean, with Laplace noise, of the estimates of many small blocks.

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
        k: record i of n is in block ``i * k // n``. "auto": the number with the least mean squared error at `guess`,
        with at least 20 records in a block (more for some families); needs two such blocks.
    bias_correction : bool
        Whether to take off the bias of order 1 / (size of a block).
    combine : str
        "mean", or "winsorized" (Notes) for a range that is far wider than the estimates spread.
    guess : mapping from names to float, optional
        Public guess of the parameters, for "auto" and "winsorized" only. Default: the geometric mean of positive
        bounds, the midpoint of others.
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
    Privacy: blocks are made by position, so one record changes the estimate of one block. It is clamped to the bounds
    and rounded to a grid; an infinite one goes to a bound, and where a block has none (too few records in the support,
    a fit that fails) the middle of the bounds stands for it. The sum is one of integers, to which rounded Laplace noise
    of exactly the scale (range / epsilon, times the number of parameters) is added; clamping and division come after
    (docs/proofs/sample-and-aggregate.md). NaN and records outside the support are left out of their block.
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
    combine: str = field(kw_only=True, default="mean")
    guess: Any = field(kw_only=True, default=None)
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
        guess = None if self.guess is None else _values("guess", self.guess, family)
        checked = {
            "family": family,
            "bounds": bounds,
            "epsilon": _checks.positive_down("epsilon", self.epsilon),
            "blocks": blocks,
            "bias_correction": _checks.flag("bias_correction", self.bias_correction),
            "combine": _checks.choice("combine", self.combine, COMBINE),
            "guess": guess,
            "shuffle": None if self.shuffle is None else _checks.whole("shuffle", self.shuffle),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for grid in self.grids:
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
        return Box(names, lower, upper)

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """Where the estimates of each parameter are rounded to; the middle of the bounds stands for a missing one."""
        middle = self.box.middle()
        return tuple(Grid(low, high, self.step, middle[name]) for name, (low, high) in self.bounds)

    def __repr__(self) -> str:
        ranges = ", ".join(f"{name} in [{low!r}, {high!r}]" for name, (low, high) in self.bounds)
        combined = "a Winsorized mean" if self.combine == "winsorized" else "the mean"
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
        with self._computable("guess", self.guess):
            counts = [self._count(n, name, high - low) for name, (low, high) in self.bounds]
        together = math.exp(math.fsum(map(math.log, counts)) / len(counts))
        return int(min(max(round(together), 1), n // least, _MOST_BLOCKS))

    def winsorizes(self, n: SupportsIndex) -> tuple[bool, ...]:
        """For each parameter whether a release of n records is a Winsorized mean. Public.

        It is one if `combine` says so and, with s the standard deviation of an estimate at `guess`, R the range and e
        the parameter's share of epsilon: the quartiles can be found, ``k e / 32 >= log(R / (1.349 s)) + 3``, and the
        window is expected to be less than half the range wide.
        """
        k = self.block_count(n)
        with self._computable("guess", self.guess):
            return tuple(
                self.combine == "winsorized" and self._window_helps(n, k, name, high - low)
                for name, (low, high) in self.bounds
            )

    @contextmanager
    def _computable(self, name: str, values: Any) -> Iterator[None]:
        """Where a family's terms overflow, divide by zero or are no numbers, all from public numbers: a ValueError."""
        try:
            with np.errstate(all="ignore"):
                yield
        except (ArithmeticError, np.linalg.LinAlgError):
            told = "" if values is None else f" and {name} {dict(values)!r}"
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
        if self.shuffle is not None:
            order = np.random.Generator(np.random.PCG64(self.shuffle)).permutation(n)
            data = tuple(part[order] for part in data)
        return self._combined(
            n, self.family.estimates(data, k, self.box, corrected=self.bias_correction, workers=threads)
        )

    def _reading(self) -> Reading:
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

    @refused(LAW)
    def law_of(self, state: BlockState) -> Law:
        """The exact law of the release, from a state that has seen all records. PRIVATE."""
        if state.seen != state.n:
            raise ValueError(f"the state has seen {state.seen} of {state.n} records")
        return self._combined(state.n, self.family.finish(state.sums, self.box, corrected=self.bias_correction))

    def finish(self, state: BlockState, *, rng: RandomSource = None) -> Any:
        """One release from a state that has seen all records; spends the budget of `privacy` once."""
        bit_generator(rng)  # a wrong rng is told before data are looked at
        law = self.law_of(state)
        return law.value(law.sample(rng=rng))

    def _combined(self, n: int, estimates: NDArray[np.float64]) -> Law:
        laws: list[ScalarLaw] = []
        of_parameters = zip(self.grids, self.bounds, estimates.T, self.winsorizes(n), strict=True)
        for grid, (_, bounds), column, winsorizes in of_parameters:
            codes = grid.encode(np.ascontiguousarray(column))
            if winsorizes:
                laws.append(WinsorizedMean(codes, grid, _widening(len(codes)), self._share, bounds))
            else:
                scale = _checks.noise_scale(len(self.bounds) * (grid.size - 1), self.epsilon)
                laws.append(_noisy_mean(codes, grid, scale, bounds))
        return laws[0] if len(laws) == 1 else IndependentLaws(laws)

    @property
    def _share(self) -> Fraction:
        """Of epsilon, for one parameter."""
        return Fraction(self.epsilon) / len(self.bounds)

    def _theta(self) -> Theta:
        theta: Theta = self.family.reference(self.box, dict(self.guess or ()))
        return theta

    def _terms(self, name: str, width: float, theta: Theta) -> dict[str, float]:
        """v2, b1 and b2; where the family does not know them, those of an estimate as wide as the range."""
        try:
            v2, b2 = self.family.second_order(name, theta)
            b1 = 0.0 if self.bias_correction else self.family.bias(name, theta)
        except TypeError:
            v2, b1, b2 = width**2, 0.0 if self.bias_correction else width / 4, 0.0
        return {"v2": _finite(v2), "b1": _finite(b1), "b2": _finite(b2)}

    def _deviation(self, name: str, width: float, theta: Theta) -> float:
        """Of an estimate of one record, as it were: 1 / sqrt(I)."""
        try:
            return 1 / math.sqrt(_positive(self.family.information(name, theta)))
        except TypeError:
            return width

    def _count(self, n: int, name: str, width: float) -> int:
        theta, epsilon = self._theta(), float(self._share)
        terms = self._terms(name, width, theta)
        k = block_count(n, width=width, epsilon=epsilon, least=self.family.least_block, **terms)
        if self.combine == "winsorized":
            for _ in range(20):  # the window is as wide as the estimates of blocks spread: a fixed point in k
                window = min(width, 2 * self._window(n, k, name, width, theta))
                k = block_count(n, width=2 * window, epsilon=epsilon, least=self.family.least_block, **terms)
        return k

    def _window(self, n: int, k: int, name: str, width: float, theta: Theta) -> float:
        """Half the width of the window to be expected."""
        return _widening(k) * _IQR * self._deviation(name, width, theta) * math.sqrt(k / n)

    def _window_helps(self, n: SupportsIndex, k: int, name: str, width: float) -> bool:
        theta, records = self._theta(), _checks.whole("n", n)
        spread = _IQR * self._deviation(name, width, theta) * math.sqrt(k / records)
        found = k * float(self._share) / 32 >= math.log(max(width / spread, 1.0)) + 3
        return found and 4 * self._window(records, k, name, width, theta) < width

    def error(self, n: SupportsIndex, theta: Any = None, *, confidence: float = 0.95) -> Any:
        """The error to expect if the records follow the family at `theta`; public, never from data.

        With probability `confidence` the release is about this close to the parameter: the chance of the sample (Fisher
        information and second-order terms), the noise, and the bias that is left, together.

        Parameters
        ----------
        n : int
            Records.
        theta : float or mapping from names to float
            The parameters that the records are assumed to have; a float for the one that is released.
        confidence : float
            In (0, 1).

        Returns
        -------
        float or ndarray
            In units of the parameter; an array for several. At most the width of the bounds.

        Raises
        ------
        TypeError
            No theta, or a family that does not know its Fisher information.
        ValueError
            Too few records.

        Notes
        -----
        The estimates are taken as normal, and the window of a Winsorized mean as wide as it is expected to be.

        Examples
        --------
        >>> import dpfast as dpf
        >>> mechanism = dpf.SampleAndAggregate("exponential", bounds=(0.2, 5), epsilon=1.0)
        >>> round(mechanism.error(10**6, 1.0), 5)
        0.00206
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
        for (name, (low, high)), winsorizes in zip(self.bounds, self.winsorizes(n), strict=True):
            width, terms = high - low, self._terms(name, high - low, assumed)
            information = _positive(self.family.information(name, assumed))
            deviation = math.sqrt(1 / (n * information) + terms["v2"] * k / n**2)
            scale = width / (k * float(self._share))
            if winsorizes:
                scale = 4 * min(width / 2, self._window(n, k, name, width, assumed)) / (k * float(self._share))
            bias = abs(terms["b1"] * k / n + terms["b2"] * (k / n) ** 2)
            errors.append(min(width, bias + normal_plus_laplace_error(deviation, scale, confidence)))
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


def _noisy_mean(codes: NDArray[np.int64], grid: Grid, scale: Fraction, bounds: tuple[float, float]) -> ClampedNoise:
    """The mean of the codes of the blocks, as of a sum with Laplace noise of that scale."""
    k = codes.shape[0]
    last = _checks.code_range(k * (grid.size - 1))
    return ClampedNoise(
        RoundedLaplace(scale), center=int(codes.sum()), last=last, decode=partial(_mean_within, grid, bounds, k)
    )


def _mean_within(grid: Grid, bounds: tuple[float, float], k: int, codes: ArrayLike) -> Any:
    """The mean of k codes by their sum, clamped to the bounds: the ends of the grid may lie a step beyond them."""
    values = np.clip(Mean().decode(grid, k, codes), *bounds)
    return values if values.ndim else float(values)


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
        self.sums.update(_checks.vector("x", chunk), workers=threads)

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
    bounds : pair of float, optional
        Of the release. Default: the ends of the grid.
    """

    def __init__(
        self,
        codes: NDArray[np.int64],
        grid: Grid,
        widening: float,
        epsilon: Fraction,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        self._codes, self._grid, self._widening = codes, grid, widening
        self._bounds = (grid.lower, grid.upper) if bounds is None else bounds
        quartiles = Quantiles(
            (0.25, 0.75), grid=Grid(0, grid.size - 1, step=1), epsilon=_checks.positive_down("epsilon", epsilon / 2)
        )
        self._half = epsilon / 2
        self._quartiles: JointQuantiles = quartiles.law(codes.astype(np.float64))
        self.support = (0, _checks.code_range(codes.shape[0] * (grid.size - 1)))

    def window(self, first: int, third: int) -> tuple[int, int]:
        """The least and the greatest code of the window around two quartiles."""
        reach = max(math.ceil(self._widening * (third - first)), 1)
        return max((first + third) // 2 - reach, 0), min((first + third + 1) // 2 + reach, self._grid.size - 1)

    def given(self, first: int, third: int) -> ClampedNoise:
        """The law of the release once the quartiles are drawn."""
        low, high = self.window(first, third)
        return _noisy_mean(np.clip(self._codes, low, high), self._grid, (high - low) / self._half, self._bounds)

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
        return _mean_within(self._grid, self._bounds, self._codes.shape[0], k)


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
        return list(zip(self.laws, np.moveaxis(_checks.integers("k", k), -1, 0), strict=True))

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
    combine: str = "mean",
    guess: Any = None,
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
    epsilon, bounds, blocks, bias_correction, combine, guess, shuffle
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
        shuffle=shuffle,
    )
    return mechanism(x, rng=rng, workers=workers)  # type: ignore[arg-type]
