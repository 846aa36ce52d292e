"""The type of the outcome of a call, by all that is public about it."""

import contextlib
import gc
import signal
import warnings

import numpy as np
from numpy.random import PCG64

import dpfast as dpf


class TookTooLong(BaseException):
    """A call did not end. No code between that handles exceptions takes it for one of its own."""


@contextlib.contextmanager
def ended_within(seconds):
    """Raise an error in the main thread, between two steps of Python, after this much processor time.

    Garbage is not collected meanwhile: an error in a callback of the collector, as Hypothesis has one, would be lost.
    """

    def stop(*_):
        raise TookTooLong

    before, collects = signal.signal(signal.SIGPROF, stop), gc.isenabled()
    gc.disable()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        if collects:
            gc.enable()


def kind_of(released):
    """The type of a release, by all that is public about it."""
    if released is None:
        return "None"
    if isinstance(released, list):
        return "list", str(released), (), True
    if isinstance(released, tuple):
        return "tuple", str([kind_of(part) for part in released]), (), True
    if isinstance(released, dpf.Partitions):  # how many keys are released is part of the release
        keys = released.keys if isinstance(released.keys, tuple) else (released.keys,)
        return "Partitions", str([key.dtype.str for key in keys]), released.counts.dtype.str, True
    if isinstance(released, dpf.Marginals):  # which pairs are in a tree is part of the release
        kinds = {table.dtype.str for table in released.counts.values()}
        return "Marginals", str((list(released.columns), kinds, released.n is None, str(released.privacy))), (), True
    array = np.asarray(getattr(released, "coefficients", getattr(released, "counts", released)))
    finite = bool(np.isfinite(array).all()) if array.dtype.kind == "f" else True
    return type(released).__name__, array.dtype.str, array.shape, finite


def outcome(job, records, seed=0, seconds=30.0):
    """The type of the outcome of a call: of its value, or the exception and its message.

    Warnings are exceptions, except those of the library, which are a part of the outcome.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("error")
        for category in (dpf.PrivacyWarning, dpf.UtilityWarning):
            warnings.simplefilter("always", category)
        try:
            with ended_within(seconds):
                kind = kind_of(job.run(records, PCG64(seed)))
        except (Exception, TookTooLong) as error:
            kind = type(error).__name__, str(error)
    if not told or kind == "None":
        return kind
    return kind[0], "; ".join([str(kind[1]), *(str(warning.message) for warning in told)]), *kind[2:]
