"""The sample-and-aggregate mechanism: a private mean of the maximum-likelihood estimates of blocks of the records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregate.blocks import BlockParameters, ReleasedParameter
from dpfast.aggregate.laws import (
    Windowed,
    WinsorizedMeanLaw,
    WinsorizedMeansLaw,
    noisy_sums,
    parameter_of,
    sum_of_codes,
)
from dpfast.aggregate.state import BlockState, Estimates
from dpfast.core import checks
from dpfast.core.privacy import Privacy, PrivacyProfile
from dpfast.families.family import AdditiveFamily
from dpfast.laws import Law
from dpfast.mechanisms import Mechanism
from dpfast.mechanisms.plan import Plan
from dpfast.random import RandomSource, bit_generator
from dpfast.streaming import Chunks


@dataclass(frozen=True, repr=False)
class SampleAndAggregate(BlockParameters, Mechanism):
    """Release parameters of a family by a mean of estimates from many small blocks, with noise for all at once.

    Pure epsilon-differential privacy, or (epsilon, delta) with Gaussian noise, under one replaced record, for every
    estimator; the number of records is public.
    As n grows, the release has the distribution of the maximum-likelihood estimator.

    Parameters
    ----------
    family : str, Family, scipy.stats distribution or callable
        A name or an object of `dpfast.families`, or a function of the records of a block.
    bounds : pair (lower, upper), sequence of pairs, or mapping from names to pairs
        Public range of each parameter to release; a single pair is for the first parameter of the family, or for each
        coefficient of a regression; several are for the first parameters in the order of the family's ``names``, such
        as the mean and the sd of "normal".
    epsilon : float
        Positive; rounded down to a double. For all parameters together.
    delta : float
        At least 0 and below 1; used by Gaussian noise only.
    noise : str
        "k-norm": Laplace noise for one parameter; for p of them noise of density proportional to the exponential of the
        largest coordinate, in ranges over epsilon, with (p + 1) / 2 times the mean magnitude of the noise of one, where
        a share of epsilon for each would take p times. "gaussian": for delta > 0, with a standard deviation of sqrt(p)
        ranges over mu, mu that of (epsilon, delta). "auto" takes the one of less variance: Gaussian noise if p is large
        (p = 51 at epsilon = 1, delta = 1e-6).
    blocks : int or "auto"
        k: record i of n is in block ``i * k // n``. "auto" minimises the mean squared error at `guess` (beyond 2**16
        blocks it takes the fewest within 1/200 of the minimum, and within half of the excess of the minimum over the
        best possible error). A block then has at least 20 records; more for some families, and more if their expansions
        need it at `guess` and n is large enough. At least two such blocks are needed.
    bias_correction : bool
        Whether to remove the bias of order 1 / (size of a block).
    combine : str
        "mean"; "geometric", the geometric mean, for positive parameters that behave like scales (``logarithmic`` of the
        family); "winsorized" (see Notes), for a range far wider than the spread of the estimates. "auto" takes the
        geometric mean of each parameter that has one with less noise at `guess`, else the mean.
    guess : mapping from names to float, or "worst", optional
        Public guess of the parameters, used only for "auto" and "winsorized". Default: the geometric mean of positive
        bounds, the midpoint of others. "worst", not for "winsorized", uses the largest of the errors at both bounds and
        at their middle (of relative errors, for a geometric mean).
    margin : float or "auto"
        How far beyond the bounds an estimate of a block may lie, in standard deviations of the estimate there (if the
        family gives them). Clamping at the bounds themselves is biased if the parameter is near one. "auto" makes this
        bias at most half of the standard deviation of the release, with a margin of at most a quarter of the range,
        since the noise grows with it. The release lies within the bounds.
    shuffle : int, optional
        Public seed of a permutation of the records, for sorted or drifting data. Default: the given order.
    step : float, optional
        The rounding step of the estimates, a power of two. Default: as for `Grid`, 2**32 points per parameter. The
        release lies within the bounds even if the grid extends beyond them.

    Raises
    ------
    TypeError, ValueError
        From the constructor: a wrong parameter. From a call, once n is known: too few records for the blocks.

    Notes
    -----
    Privacy: blocks are made by position, so one record changes the estimate of one block. The estimate, or its
    logarithm for a geometric mean, is clamped to the bounds and their margin and rounded to a grid; an infinite
    estimate goes to an end, and a missing one (too few records in the support, or a failed fit) becomes the middle of
    the bounds. The sums are integers, and one record changes each of them by at most its range. The noise is rounded
    and of exactly the scale that this requires; clamping and division are postprocessing
    (https://dpfast.readthedocs.io/en/latest/proofs/sample-and-aggregate.html). NaN and records outside the support are
    left out of their block. The noise of the mean of a single parameter is (upper - lower) / (k epsilon) for every
    value of the parameter; the noise of a geometric mean is log(upper / lower) / (k epsilon) times the parameter,
    proportional to its sampling error. "winsorized" spends half of each parameter's share of epsilon on the quartiles
    of its estimates, clips all estimates to a window around them, and adds noise for the widths of the windows. If
    public numbers show that this cannot help (see `winsorizes`), it is the same as "mean".
    Cost: one pass; for families of sums about the cost of the sums, with O(blocks) memory. These families read the
    pieces of `Chunks` (pairs for a regression) twice; all others, and `shuffle`, collect them in memory. A callable is
    called for each block, and with `bias_correction` 5 times for each (jackknife).

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

    counts_first = "blocks are made by position, which requires the number of records: use block_sums(n)"
    ordered: ClassVar[bool] = True  # blocks are made by position

    def _explained_missing(self) -> str:
        return "Missing records, and records outside the support of the family, are left out of their public block"

    @property
    def privacy(self) -> Privacy:
        """(epsilon, delta) for Gaussian noise, else epsilon alone."""
        return Privacy(self.epsilon, self.delta if self.narrowest_noise.kind == "gaussian" else 0.0)

    @property
    def privacy_profile(self) -> PrivacyProfile:
        if self.combine == "winsorized":  # which parameters are Winsorized depends on n
            return PrivacyProfile(self.privacy)
        noise = self.sums_noise()
        if noise.kind == "gaussian":
            return PrivacyProfile(self.privacy, (("gaussian", noise.mu, 1),))
        family = "laplace" if noise.parameters == 1 else "pure"
        return PrivacyProfile(self.privacy, ((family, self.epsilon, 1),))

    def __repr__(self) -> str:
        ranges = ", ".join(f"{name} in [{low!r}, {high!r}]" for name, (low, high) in self.bounds)
        combined = {"winsorized": "a Winsorized mean", "geometric": "the geometric mean", "mean": "the mean"}.get(
            self.combine, "a mean"
        )
        blocks = "" if self.blocks == "auto" else f"{self.blocks} "
        return (
            f"<SampleAndAggregate release of {combined} over {blocks}blocks, {self.family!r}, {ranges}: {self.privacy}>"
        )

    def values_of(self, x: Any) -> Any:
        """Return the parts of the records, or `Chunks` if sums over the blocks are sufficient; others are collected."""
        if not isinstance(x, Chunks):
            return self.family.records(x)
        if isinstance(self.family, AdditiveFamily) and self.shuffle is None:
            return x
        pieces = [self.family.records(piece) for piece in x]
        return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True)) or (np.empty(0),)

    def number_of(self, values: Any) -> int | None:
        return values.records() if isinstance(values, Chunks) else len(values[0])

    def _make_plan(self, n: int | None) -> Plan:
        return super()._make_plan(n) if n is None else Blocks(self, checks.records(n))

    def block_sums(self, n: SupportsIndex, *, position: SupportsIndex = 0) -> BlockState:
        """Return a state that reads the n records in chunks, in O(blocks) memory, for families of sums. PRIVATE.

        Parameters
        ----------
        n : int
            The number of records of the release.
        position : int
            The number of records before the first one that this state reads.

        Returns
        -------
        BlockState
            ``state.update(chunk, workers=1)`` reads the next records; ``state.merge(other)`` adds the records that
            another state of the same n has read. Picklable.

        Raises
        ------
        TypeError
            If the family needs whole blocks, or with `shuffle`.
        """
        if not isinstance(self.family, AdditiveFamily):
            raise TypeError(f"{self.family!r} needs whole blocks: it cannot be streamed as sums")
        if self.shuffle is not None:
            raise TypeError("a stream cannot be shuffled")
        n = checks.whole("n", n, least=1)
        start = checks.whole("position", position)
        if start > n:
            raise ValueError(f"position must be at most n, not {start}")
        return BlockState(self.family.state(n, self.block_count(n), self.box, start=start), self)

    def law_of(self, blocks: BlockState | Estimates) -> Law:
        """Return the exact law of the release, from a state that has read all records. PRIVATE."""
        return self.plan(blocks.n).law_of(blocks)

    def finish(self, state: BlockState, *, rng: RandomSource = None) -> Any:
        """Release from a state that has read all records; spends the budget of `privacy` once."""
        return self.plan(state.n).draw_from(state, bit_generator(rng))

    def _combined(self, released: list[ReleasedParameter], estimates: NDArray[np.float64]) -> Law:
        k, grids = len(estimates), [each.grid for each in released]
        noise = self.sums_noise(sum(each.widening is not None for each in released))
        widths = [grid.size - 1 for grid in grids]
        decodes = [
            partial(parameter_of, grid, k, bounds, name in self.box.logs)
            for (name, bounds), grid in zip(self.bounds, grids, strict=True)
        ]
        if all(each.widening is None for each in released):
            totals = [sum_of_codes(grid, column) for grid, column in zip(grids, estimates.T, strict=True)]
            return noisy_sums(noise, totals, widths, [checks.code_range(k * width) for width in widths], decodes)
        for width in widths:
            noise.scale(width)  # raise an error now if windows, which are private and not wider, might
        columns = [
            Windowed(each.grid.encode(column), each.grid, each.widening, self.share / 2)
            for each, column in zip(released, estimates.T, strict=True)
        ]
        if len(columns) == 1:
            return WinsorizedMeanLaw(columns[0], noise, decodes[0])
        return WinsorizedMeansLaw(columns, noise, decodes)


class Blocks(Plan):
    """A draw for n records, from the estimates of public blocks.

    Attributes
    ----------
    k : int
        The number of blocks.
    parameters : list of ReleasedParameter
    """

    mechanism: SampleAndAggregate

    def __init__(self, mechanism: SampleAndAggregate, n: int) -> None:
        super().__init__(mechanism, n)
        self.k = mechanism.block_count(n)
        self.parameters = mechanism.released(n, self.k)

    def law_of(self, summary: Estimates | BlockState) -> Law:
        return self.mechanism._combined(self.parameters, summary.estimates().values)

    def read(self, values: Any, threads: int = 1) -> tuple[Plan, Estimates | BlockState]:
        """Return the plan, and the estimates of the blocks or their sums. PRIVATE."""
        mechanism, n = self.mechanism, self.n or 0
        if isinstance(values, Chunks):
            state = mechanism.block_sums(n)
            for chunk in values:
                state.update(chunk, workers=threads)
            return self, state
        if mechanism.shuffle is not None:
            order = np.random.Generator(np.random.PCG64(mechanism.shuffle)).permutation(n)
            values = tuple(part[order] for part in values)
        corrected = mechanism.bias_correction
        estimates = mechanism.family.estimates(values, self.k, mechanism.box, corrected=corrected, workers=threads)
        return self, Estimates(n, estimates)
