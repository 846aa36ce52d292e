"""Sample and aggregate: a maximum-likelihood estimate on each block of the records, and a private mean of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _checks
from dpfast.aggregate.laws import WinsorizedMeanLaw, noisy_sum, parameter_of, sum_of_codes
from dpfast.aggregate.plan import BlockPlan, Bounds, Released
from dpfast.aggregate.state import BlockState
from dpfast.families.family import AdditiveFamily
from dpfast.families.user import family_for
from dpfast.laws import IndependentLaws, Law, ScalarLaw
from dpfast.mechanisms import Mechanism
from dpfast.privacy import Privacy
from dpfast.random import RandomSource, bit_generator
from dpfast.streaming import Chunks, Reading


@dataclass(frozen=True, repr=False)
class SampleAndAggregate(BlockPlan, Mechanism):
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

    @property
    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    def __repr__(self) -> str:
        ranges = ", ".join(f"{name} in [{low!r}, {high!r}]" for name, (low, high) in self.bounds)
        combined = {"winsorized": "a Winsorized mean", "geometric": "the geometric mean", "mean": "the mean"}.get(
            self.combine, "a mean"
        )
        blocks = "" if self.blocks == "auto" else f"{self.blocks} "
        return (
            f"<SampleAndAggregate release of {combined} over {blocks}blocks, {self.family!r}, {ranges}: {self.privacy}>"
        )

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
        released = self.released(n, k)
        if self.shuffle is not None:
            order = np.random.Generator(np.random.PCG64(self.shuffle)).permutation(n)
            data = tuple(part[order] for part in data)
        estimates = self.family.estimates(data, k, self.box, corrected=self.bias_correction, workers=threads)
        return self._combined(released, estimates)

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
        return self._combined(self.released(state.n, estimates.shape[0]), estimates)

    def finish(self, state: BlockState, *, rng: RandomSource = None) -> Any:
        """One release from a state that has seen all records; spends the budget of `privacy` once."""
        bit_generator(rng)  # a wrong rng is told before data are looked at
        law = self.law_of(state)
        return law.value(law.sample(rng=rng))

    def _combined(self, released: list[Released], estimates: NDArray[np.float64]) -> Law:
        laws: list[ScalarLaw] = []
        for (name, bounds), column, plan in zip(self.bounds, estimates.T, released, strict=True):
            decode = partial(parameter_of, plan.grid, len(column), bounds, name in self.box.logs)
            if plan.widening is not None:
                codes = plan.grid.encode(column)
                laws.append(WinsorizedMeanLaw(codes, plan.grid, plan.widening, self.share, decode))
            else:
                total = sum_of_codes(plan.grid, column)
                laws.append(noisy_sum(total, len(column), plan.grid, plan.scale, decode))
        return laws[0] if len(laws) == 1 else IndependentLaws(laws)


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
