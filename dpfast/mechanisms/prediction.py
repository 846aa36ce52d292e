"""The error to expect of a release, from public assumptions, and the number of records that an error takes."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np

from dpfast import _checks
from dpfast._least import least


class Predicted:
    """A release whose error can be predicted before any data are read; `error` is defined by the subclass."""

    def error(self, n: SupportsIndex, *args: Any, **assumptions: Any) -> Any:
        """The error to expect of a release of n records, from public assumptions: it never sees data, costs no privacy.

        Each mechanism documents its assumptions and its measure of error.

        Raises
        ------
        TypeError
            An assumption that does not apply to this release, or a mechanism without a known error.
        """
        raise TypeError(f"no error is known for a {type(self).__name__} release")

    def sample_size(self, error: float, **assumptions: Any) -> int:
        """Records with which the error of a release is at most `error`: the inverse of `Mechanism.error`.

        Parameters
        ----------
        error : float
            Positive, in the units of `Mechanism.error`; where that is an array, the worst entry must reach it.
        **assumptions
            As for `Mechanism.error`.

        Returns
        -------
        int
            The least n with ``error(n, ...) <= error``, within 1/200 for an assumed `distribution`; if the error does
            not always fall with n, one such n.

        Raises
        ------
        TypeError, ValueError
            As `error`, or where no n up to 2**50 is enough: the bounds may cut off too much.

        Examples
        --------
        >>> import dpfast as dpf
        >>> mean = dpf.GlobalSensitivity(dpf.statistics.Mean(), grid=dpf.Grid(0, 100), epsilon=0.5)
        >>> mean.sample_size(1.0, deviation=15.0)
        1142
        """
        wanted = _checks.positive("error", error)
        exact = assumptions.get("distribution") is None
        return least(
            lambda n: bool(np.max(self.error(n, **assumptions)) <= wanted),
            most=2**50,
            too_many="such an error takes more than 2**50 records, or no number of them reaches it",
            exact=exact,
        )
