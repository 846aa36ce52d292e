"""The expected error of a release under public assumptions, and the number of records needed for a given error."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from dpfast.core import checks
from dpfast.core.least import least


class Expected(NamedTuple):
    """An expected absolute error and its two parts, in data units.

    Attributes
    ----------
    noise : float
        About E|release - exact statistic|, with the bias that the mechanism itself has.
    sampling : float
        About E|exact statistic - population value|.
    joint : float, optional
        About E|release - population value|, if both parts are not independent.
    """

    noise: float
    sampling: float
    joint: float | None = None

    @property
    def total(self) -> float:
        """About E|release - population value|: `joint`, or that of independent parts."""
        return math.hypot(self.noise, self.sampling) if self.joint is None else self.joint


class Predicted:
    """A release whose error can be predicted before any data are read; `error` is defined by the subclass."""

    def error(self, n: SupportsIndex, *args: Any, **assumptions: Any) -> Any:
        """Predict the error of a release from n records under public assumptions. It reads no data, costs no privacy.

        Each mechanism documents its assumptions and its measure of error.

        Raises
        ------
        TypeError
            If an assumption does not apply to this release, or the error of this mechanism is not known.
        """
        raise TypeError(
            f"no error is known for a {type(self).__name__} release: release statistics of imagined records instead"
        )

    def expected_error(self, n: SupportsIndex, distribution: Any) -> Expected:
        """Return the expected absolute error of a release from n records of an assumed distribution, to about 10 %.

        It is computed in milliseconds from the law for one evenly spaced sample, where `error` averages over many:
        ``method="auto"`` compares mechanisms by it. It reads no data and costs no privacy.

        Parameters
        ----------
        n : int
            The number of records, at least 1.
        distribution : object
            As for `error` of a statistic of numbers.

        Returns
        -------
        Expected
            In data units, with the attributes `noise`, `sampling` and `total`, about E|release - population value|.

        Raises
        ------
        TypeError, ValueError
            As in `error`.

        Examples
        --------
        >>> import dpfast as dpf
        >>> from scipy.stats import norm
        >>> mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 100), epsilon=0.5)
        >>> expected = mean.expected_error(1000, norm(50, 15))
        >>> round(expected.noise, 3), round(expected.sampling, 3), round(expected.total, 3)
        (0.2, 0.378, 0.428)
        """
        raise TypeError(f"no expected error is known for a {type(self).__name__} release")

    def sample_size(self, error: float, **assumptions: Any) -> int:
        """Return the number of records for which the error of a release is at most `error`: the inverse of
        `Mechanism.error`.

        Parameters
        ----------
        error : float
            Positive, in the units of `Mechanism.error`; a bound on the largest entry if that is an array.
        **assumptions
            See `Mechanism.error`.

        Returns
        -------
        int
            The least n with ``error(n, ...) <= error``, to within 1/200 for an assumed ``distribution``; one such n if
            the error does not always decrease with n.

        Raises
        ------
        TypeError, ValueError
            See `error`; also if no n up to 2**50 is enough, for example because the bounds clip too much.

        Examples
        --------
        >>> import dpfast as dpf
        >>> mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 100), epsilon=0.5)
        >>> mean.sample_size(1.0, deviation=15.0)
        1142
        """
        wanted = checks.positive("error", error)
        exact = assumptions.get("distribution") is None
        return least(
            lambda n: bool(np.max(self.error(n, **assumptions)) <= wanted),
            most=2**50,
            too_many="such an error takes more than 2**50 records, or no number of them reaches it",
            exact=exact,
        )
