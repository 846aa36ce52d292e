"""Frequencies of k categories: randomised response and more accurate variants, each built on one exact coin."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.random import BitGenerator
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import _randomize
from dpfast._kernels._threads import each
from dpfast.core import checks, containers
from dpfast.core.coin import Coin, coin
from dpfast.core.grid import Grid
from dpfast.local.randomizer import Aggregate, counted
from dpfast.local.responses import LARGEST_LAW, METHODS, ResponseMethod, least_variance, method_of
from dpfast.local.scalar import FiniteLaw, ScalarRandomizer, record, widened
from dpfast.local.simplex import likeliest, rule_of, shrunken, simplex

_MOST_CATEGORIES = 2**31


@dataclass(frozen=True)
class Binary(ScalarRandomizer):
    """Local randomiser for one bit: Warner's randomised response.

    The true bit is sent with probability ``e^epsilon / (1 + e^epsilon)``, else the opposite. Pure epsilon-local
    differential privacy.

    Parameters
    ----------
    epsilon : float
        At least 2**-40; rounded down to a double.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    A record greater than 0 counts as 1, any other, also NaN or a missing one, as 0. A report is one byte, 0 or 1; other
    bytes are refused. The sums of an aggregate are the numbers of zeros and ones.

    Privacy: the coin is exact and its probability is rounded towards privacy; estimates use the rounded probability
    (https://dpfast.readthedocs.io/en/latest/proofs/local-categories.html). Cost: two random words per report. The run
    time does not depend on the records, apart from effects inside the processor.

    References
    ----------
    Warner 1965; Duchi, Jordan and Wainwright 2018, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> smokes = np.random.default_rng(0).random(100_000) < 0.3
    >>> survey = local.Binary(epsilon=1.0)
    >>> estimate = survey.estimate(survey.randomize(smokes))
    >>> bool(abs(estimate - smokes.mean()) < 0.05)
    True
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.positive_down("epsilon", self.epsilon))
        coin(self.epsilon)

    @property
    def coin(self) -> Coin:
        """The coin: "keep" sends the true bit."""
        return coin(self.epsilon)

    @property
    def report(self) -> np.dtype[Any]:
        return np.dtype(np.uint8)

    @property
    def grid(self) -> Grid:
        """Grid of the records: 0 and 1."""
        return Grid(0, 1, step=1.0)

    def fill(self, source: BitGenerator, x: NDArray[Any], out: NDArray[Any]) -> None:
        _randomize.fill_windows(source, self._codes(x), 1, 2, self.coin.threshold, out)

    @staticmethod
    def _codes(x: NDArray[Any]) -> NDArray[np.uint32]:
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return (x > 0).astype(np.uint32)

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(reports < 2)

    def sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        ones = np.count_nonzero(reports)
        return np.array([reports.size - ones, ones], np.int64)

    def law(self, x: ArrayLike) -> FiniteLaw:
        """Return the exact law of the report of one record. PRIVATE."""
        keep = self.coin.probability
        zero = keep if self._codes(record(x))[0] == 0 else 1 - keep
        return FiniteLaw(np.arange(2, dtype=np.uint8), (zero, 1 - zero))

    def _values(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        p = self.coin.probability
        ends = np.array([float((p - 1) / (2 * p - 1)), float(p / (2 * p - 1))])
        return np.asarray(ends[reports])

    def estimate(self, reports: NDArray[Any] | Aggregate, *, project: bool | str = False) -> float:
        """Unbiased estimate of the share of ones; may lie outside [0, 1], unless `project` clips it.

        Refused reports are left out. All values of `project` other than False give the same share.
        """
        rule = rule_of(project)
        total = self._aggregated(reports, 2)
        p = self.coin.probability
        share = float((Fraction(int(total.sums[1]), total.n) - (1 - p)) / (2 * p - 1))
        return min(max(share, 0.0), 1.0) if rule else share

    def variance(self, x: ArrayLike | None = None) -> Any:
        p = self.coin.probability
        constant = float(p * (1 - p) / (2 * p - 1) ** 2)
        return constant if x is None else np.full(np.shape(x), constant)[()]


@dataclass(frozen=True)
class Categorical(ScalarRandomizer):
    """Local randomiser for one of k categories, to estimate their frequencies.

    Pure epsilon-local differential privacy.

    Parameters
    ----------
    k : int
        Number of categories, 2..2**31; records are the integers 0..k - 1.
    epsilon : float
        At least 2**-40; rounded down to a double.
    method : {"auto", "k-rr", "subset", "oue", "olh", "hadamard"}
        "auto" selects the method with the least total variance, the first listed on a tie; it depends on k and epsilon
        only. This is "subset", or "k-rr" where the two coincide. For many categories, other methods are nearly as
        accurate and cheaper; see Notes.

    Attributes
    ----------
    method : str
        The method in use, never "auto".

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, before any data are read.

    Notes
    -----
    A record that is not one of 0..k - 1 (NaN, a fraction, a number out of range) counts as category 0.

    With E = e^epsilon, a report is

    - "k-rr": one category; the true one has E times the probability of any other. 1, 2 or 4 bytes.
    - "subset": a set of about k / (E + 1) categories; a set with the true category is E times as likely as one without
      it. k bits. It takes as many random words as the set has members; large sets take one for 8 categories.
    - "oue": k bits; the true one is fair, the others are 1 with probability 1 / (E + 1). 1/8 random word for each bit.
    - "olh": a line over the field of 2**32 - 5 elements. A line that is below an edge at the true category is E times
      as likely as one that is not; at another category it is below the edge with probability exactly
      ``edge / (2**32 - 5)``. 8 bytes. This is local hashing with pairwise independent hash functions, so estimates are
      unbiased without assumptions, and with the optimal number of cells, which need not be an integer: at least as
      accurate as "oue". Counting takes n k steps.
    - "hadamard": a random row of the Hadamard matrix and its entry at the true category, possibly flipped. 1 to 4
      bytes. Counting takes one fast transform. Good for small epsilon.

    Packed bits are stored in words of 64, the first category in the lowest bit; as bytes, a report takes ceil(k / 8).
    The sums of an aggregate count the reports that support each category. Refused: symbols out of range; nonzero bits
    beyond the last category; for "subset", sets of another size; for "olh", numbers outside the field.

    Privacy: one exact coin for each report, its probability rounded towards privacy; all other randomness is uniform
    whatever the record (https://dpfast.readthedocs.io/en/latest/proofs/local-categories.html). Estimates use the
    rounded probability of the coin.

    References
    ----------
    Wang, Blocki, Li and Jha 2017 (OUE, OLH); Ye and Barg 2018 (subset selection); Acharya, Sun and Zhang 2019 and
    Bassily et al. 2017 (Hadamard); Feldman et al. 2022 (lines over a field).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast import local
    >>> browser = np.random.default_rng(0).integers(0, 10, 100_000) // 2
    >>> survey = local.Categorical(5, epsilon=1.0)
    >>> survey.method
    'k-rr'
    >>> frequencies = survey.estimate(survey.randomize(browser))
    >>> bool(np.abs(frequencies - 0.2).max() < 0.05)
    True
    """

    k: int
    epsilon: float
    method: str = "auto"

    def __post_init__(self) -> None:
        k = checks.whole("k", self.k, least=2)
        if k > _MOST_CATEGORIES:
            raise ValueError(f"k must be at most 2**31, not {k}")
        epsilon = checks.positive_down("epsilon", self.epsilon)
        coin(epsilon)
        checks.choice("method", self.method, ("auto", *METHODS))
        method = least_variance(k, epsilon) if self.method == "auto" else self.method
        method_of(method, k, epsilon)
        for name, value in (("k", k), ("epsilon", epsilon), ("method", method)):
            object.__setattr__(self, name, value)

    @property
    def _method(self) -> ResponseMethod:
        return method_of(self.method, self.k, self.epsilon)

    @property
    def coin(self) -> Coin:
        """The coin that decides which report is sent."""
        return self._method.coin

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """The exact probabilities that a report supports the true category, and a given other one."""
        return self._method.p, self._method.q

    @property
    def report(self) -> np.dtype[Any]:
        return self._method.report

    @property
    def grid(self) -> Grid:
        """Grid of the records: 0..k - 1."""
        return Grid(0, self.k - 1, step=1.0)

    @property
    def share(self) -> Fraction:
        return self._method.share

    @property
    def total_variance(self) -> float:
        """Sum over all categories of the variance of a decoded report; it is the same for every record."""
        return float(self._method.total_variance)

    def fill(self, source: BitGenerator, x: NDArray[Any], out: NDArray[Any]) -> None:
        self._method.fill(source, self._codes(x), out)

    def _codes(self, x: NDArray[Any]) -> NDArray[np.uint32]:
        """Categories of records of any dtype; 0 for a record that is not a category."""
        codes = np.empty(x.size, np.uint32)
        _randomize.categories(widened(x), self.k, codes)
        return codes

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return self._method.valid(reports)

    def sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        counts = self._method.counts(len(reports))
        return self._method.sums(counts, self._method.add(reports, counts))

    def _aggregate(self, rows: NDArray[Any], step: int, threads: int) -> Aggregate:
        """Return the aggregate of the rows; each thread counts a share of them, of at least `step`."""
        method, share = self._method, -(-len(rows) // min(threads, max(1, len(rows) // step)))

        def count(first: int) -> tuple[int, NDArray[np.int64]]:
            counts = method.counts(len(rows))
            return method.add(rows[first : first + share], counts), counts

        (n, counts), *others = each(count, range(0, max(1, len(rows)), max(1, share)), threads)
        for more, added in others:
            n += more
            counts += added
        return counted(n, counts, len(rows) - n, method, self.digest())

    def law(self, x: ArrayLike) -> FiniteLaw:
        """Return the exact law of the report of one record. PRIVATE.

        Raises
        ------
        ValueError
            If there are more than 2**16 different reports; this is always so for "olh".
        """
        if self._method.outcomes > LARGEST_LAW:
            raise ValueError(f"law supports at most 2**16 reports, not {self._method.outcomes}: use audit.distinguish")
        return self._method.law(int(self._codes(record(x))[0]))

    def decode(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        """Decode each report into an unbiased estimate of its record as a vector: 1 in its category, 0 elsewhere.

        A refused report becomes a vector of NaN. The result has n times k numbers: to estimate frequencies, use
        `estimate`, which does not need this memory.
        """
        return super().decode(reports)

    def _values(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        p, q = self.support
        values = np.array([float(-q / (p - q)), float((1 - q) / (p - q))])
        return np.asarray(values[self._method.supported(reports).astype(np.intp)])

    def estimate(self, reports: NDArray[Any] | Aggregate, *, project: bool | str = False) -> NDArray[np.float64]:
        """Unbiased estimates of the k frequencies; they may be negative and need not sum to 1.

        Refused reports are left out; ``aggregate(reports).refused`` is their number.

        Parameters
        ----------
        reports : ndarray or Aggregate
        project : bool or {"stein", "l2", "likelihood"}
            Return frequencies that are nonnegative and sum to 1 instead. They are biased; with few reports for each
            category, they are several times more accurate in mean square. True is "stein".

            - "stein": the result of "l2", moved towards equal frequencies by the fraction with the least estimated
              mean square error. Where at most three entries are positive, it is that of "l2".
            - "l2": the nearest ones (`dpfast.local.project`); never farther from the frequencies of the records.
            - "likelihood": the maximum of the likelihood, for "k-rr"; for the other methods, the maximum of the
              composite likelihood that takes the supported categories as independent draws. Iterative Bayesian updates
              converge to it.

        Raises
        ------
        TypeError, ValueError
            If `project` is not one of these, or there is no report, or the reports or the aggregate are not of this
            randomiser.

        Notes
        -----
        All three take one sort. https://dpfast.readthedocs.io/en/latest/guides/local.html compares their errors.

        References
        ----------
        Stein 1981, "Estimation of the mean of a multivariate normal distribution"; Agrawal and Aggarwal 2001, "On the
        design and quantification of privacy preserving data mining algorithms" (iterative Bayesian updates).
        """
        rule = rule_of(project)
        total = self._aggregated(reports, self.k)
        p, q = self.support
        frequencies = (total.sums / total.n - float(q)) / float(p - q)
        if rule == "stein":
            return shrunken(frequencies, self.total_variance / (self.k * total.n))
        if rule == "likelihood":
            return likeliest(frequencies, total.sums)
        return simplex(frequencies) if rule else frequencies

    def variance(self, x: ArrayLike | None = None) -> Any:
        """Variance of the entries of a decoded report.

        The variances of the k entries for one record x, or one row of them per record; by default the largest variance.
        """
        own, other = self._method.variances
        if x is None:
            return float(max(own, other))
        values = containers.numbers("x", x if hasattr(x, "__len__") else [x])
        rows = np.full((values.size, self.k), float(other))
        rows[np.arange(values.size), self._codes(values.reshape(-1))] = float(own)
        return rows.reshape((*(values.shape if hasattr(x, "__len__") else ()), self.k))

    def to_bytes(self, reports: NDArray[Any]) -> bytes:
        """Return the reports as bytes, one after the other.

        Symbols, rows and lines (slope, then offset) little-endian; packed bits in ceil(k / 8) bytes.
        """
        if not self._method.packed:
            return super().to_bytes(reports)
        rows = self._rows(reports).astype("<u8", copy=False)
        return rows.view(np.uint8)[:, : -(-self.k // 8)].tobytes()

    def from_bytes(self, data: bytes) -> NDArray[Any]:
        """Return the one-dimensional array of reports that `to_bytes` wrote.

        Raises
        ------
        ValueError
            If the number of bytes does not fit.
        """
        if not self._method.packed:
            return super().from_bytes(data)
        each = -(-self.k // 8)
        if len(data) % each:
            raise ValueError(f"data must have {each} bytes for each report, not {len(data)} in all")
        rows = np.zeros((len(data) // each, 8 * self.report.shape[0]), np.uint8)
        rows[:, :each] = np.frombuffer(data, np.uint8).reshape(-1, each)
        return rows.view("<u8").astype(np.uint64)
