"""The expected error of a release under public assumptions, and the number of records needed for a given error."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np

from dpfast import _checks
from dpfast._least import least


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
        raise TypeError(f"no error is known for a {type(self).__name__} release")

    def sample_size(self, error: float, **assumptions: Any) -> int:
        """The number of records for which the error of a release is at most `error`: the inverse of `Mechanism.error`.

        Parameters
        ----------
        error : float
            Positive, in the units of `Mechanism.error`; a bound on the largest entry if that is an array.
        **assumptions
            See `Mechanism.error`.

        Returns
        -------
        int
            The least n with ``error(n, ...) <= error``, to within 1/200 for an assumed `distribution`; one such n if
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
        wanted = _checks.positive("error", error)
        exact = assumptions.get("distribution") is None
        return least(
            lambda n: bool(np.max(self.error(n, **assumptions)) <= wanted),
            most=2**50,
            too_many="such an error takes more than 2**50 records, or no number of them reaches it",
            exact=exact,
        )
