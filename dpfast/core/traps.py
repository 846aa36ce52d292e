"""Warnings about public parameters that leave a release with little privacy or little use. They depend on no data.

A mechanism that user code constructs warns there. The functions of the library construct mechanisms without warnings,
some of them once for many calls, and warn of the traps of the one that they use at each call (`warn_of`).
"""

from __future__ import annotations

import inspect
import math
import warnings
from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from dpfast.core.words import advise
from dpfast.errors import PrivacyWarning, UtilityWarning

CATEGORIES = (PrivacyWarning, UtilityWarning)
MOST_EPSILON = 20.0
MOST_DELTA = 1e-3
MOST_WIDTHS = 1000.0  # of bounds, in units of a stated scale
PRESUMED = 100  # records, where their number is private, unless `presuming` says more of them
_BETWEEN = ("dataclasses", "functools")  # modules whose functions construct for their callers


class Trap(NamedTuple):
    """A warning that parameters deserve."""

    category: type[UserWarning]
    text: str


def of_epsilon(epsilon: Any) -> Iterator[Trap]:
    """Yield the trap of a large epsilon."""
    if epsilon is not None and MOST_EPSILON < epsilon < float("inf"):
        shown = f"{float(epsilon):g}"
        yield Trap(
            PrivacyWarning,
            f"epsilon = {shown} is above 20: one record may change the probability of a release by a factor of "
            f"e**{shown}, which hardly protects it; use a smaller epsilon",
        )


def of_delta(delta: Any) -> Iterator[Trap]:
    """Yield the trap of a large delta."""
    # A method of some mechanisms has this name.
    if isinstance(delta, (float, int, Fraction)) and delta >= MOST_DELTA:
        shown = f"{float(delta):g}"
        yield Trap(
            PrivacyWarning,
            f"delta = {shown} is not below 0.001: a release may show a record with a probability of {shown}, so that "
            f"of a thousand persons one or more may be exposed; use a delta far below 1 / n, such as 1e-6",
        )


def of_noise(scale: float, step: float) -> Iterator[Trap]:
    """Yield the trap of noise below the step of the grid that values are rounded to."""
    if scale < step:
        yield Trap(
            UtilityWarning,
            f"noise of scale {scale:g} is less than the step of the grid, {step:g}, so that rounding changes a "
            f"value more than the noise does: use a smaller step, as in grid=Grid(lower, upper, step=...)",
        )


def of_corner(corner: float, step: float) -> Iterator[Trap]:
    """Yield the trap of a grid that is too coarse for the corner of Huber's estimate."""
    if corner < step:
        yield Trap(
            UtilityWarning,
            f"the corner k = {corner:g} is less than the step of the grid, {step:g}, to which records are rounded: use "
            f"a smaller step, as in grid=Grid(lower, upper, step=...), or a larger k",
        )


def of_width(width: float, scale: float) -> Iterator[Trap]:
    """Yield the trap of bounds that are far wider than the assumed records, for noise that grows with the width."""
    if scale > 0 and width > MOST_WIDTHS * scale:
        yield Trap(
            UtilityWarning,
            f"the bounds are {width / scale:.2g} times wider than the range of nine tenths of the assumed records, and "
            f"the noise grows with them: give narrower bounds, or bounds='private'",
        )


def of_step(step: float, error: float) -> Iterator[Trap]:
    """Yield the trap of a grid that is coarser than the expected error of a release on it."""
    if step > error:
        yield Trap(
            UtilityWarning,
            f"the step of the grid, {step:g}, is more than the expected error under the assumed distribution, "
            f"{error:.2g}: use a smaller step, as in grid=Grid(lower, upper, step=...)",
        )


def _records_are(n: int) -> str:
    return "1 record is" if n == 1 else f"{n:,} records are"


def of_few_records(n: int, epsilon: float, least: float) -> Iterator[Trap]:
    """Yield the trap of quantiles without bounds, if n epsilon is below `least`."""
    if n * epsilon < least:
        enough = least / epsilon
        more = f", or at least {math.ceil(enough):,} records" if enough < 2**60 else ""
        yield Trap(
            UtilityWarning,
            f"{_records_are(n)} too few for these quantiles without bounds at epsilon = {epsilon:.3g}: a release "
            f"may be far from all of them; give bounds=(lower, upper){more}",
        )


def about_records(enough: float) -> str:
    """Return how many records it takes, before what else would do; "" for more than there are."""
    return f"about {math.ceil(enough):,} records, or " if enough < 2**60 else ""


def of_few_within_bounds(n: int | None, enough: float, unit: str, amount: float) -> Iterator[Trap]:
    """Yield the trap of a release within bounds from n records, a public or a released number, if `enough` is above.

    The guarantee is an amount of "epsilon", "rho" or "mu".
    """
    if n is not None and n < enough:
        yield Trap(
            UtilityWarning,
            f"{_records_are(n)} too few for this release at {unit} = {amount:.3g}: it may be anywhere within its "
            f"bounds; it takes {about_records(enough)}a larger {unit}",
        )


def of_least_records(n: int, least: int) -> Iterator[Trap]:
    """Yield the trap of fewer records than a release requires, which missing ones make up for."""
    if n < least:
        yield Trap(
            UtilityWarning,
            f"{n:,} records are fewer than the {least:,} that this release requires, and are filled up with missing "
            f"ones: it may be far from all of them; use public bounds, or a larger epsilon",
        )


def of_private_n(traps_of: Callable[[int], Iterable[Trap]]) -> Iterator[Trap]:
    """Yield the traps of the presumed number of records, where the number is private."""
    known = _presumed.get()()
    n = PRESUMED if known is None else known
    presumed = f"at least {n:,}" if known is None else f"{n:,}"
    for trap in traps_of(n):
        yield Trap(trap.category, f"n is private, and presumed to be {presumed}: {trap.text}")


def is_guess(error: float, n: float) -> bool:
    """Whether a count of n records with this standard error is hardly more than a guess: it is above a quarter of n."""
    return error > n / 4


def of_counts(error: float, n: int, what: str) -> Iterator[Trap]:
    """Yield the trap of sums of records whose standard error is that of a guess."""
    if is_guess(error, n):
        yield Trap(
            UtilityWarning,
            f"{what} has a standard error of {error:.3g} records, and there are {n:,}: a release hardly tells more "
            f"than a guess; use a larger epsilon, or at least {math.ceil(4 * error):,} records",
        )


def of_missing_cells(columns: Sequence[str], where: str = "in the middle of the bounds") -> Iterator[Trap]:
    """Yield the trap of a regression on columns with missing cells, of which nothing is said."""
    if columns:
        yield Trap(
            UtilityWarning,
            f"a record with a missing cell of {', '.join(columns)} counts as one {where}: where many are missing, "
            f"coefficients are wrong; say missing='drop' to leave such records out, or missing='half' for few",
        )


def of_cells_at_the_bound(column: str | None) -> Iterator[Trap]:
    """Yield the trap of a release within bounds from a column with missing cells, of which nothing is said."""
    of, how = ("", " with neighbors='add-remove'") if column is None else (f" of {column}", "")
    yield Trap(
        UtilityWarning,
        f"a missing cell{of} counts as the lower bound: if many are missing, the release is far from the truth; say "
        f"missing='drop'{how} to leave them out, a number that stands for them, or missing='lower' if none are missing",
    )


def of_order(error: float, n: int) -> Iterator[Trap]:
    """Yield the trap of an order of keys that no frequencies of n records can make visible."""
    if math.isinf(error):
        yield Trap(UtilityWarning, "any keys may be released: use a larger epsilon, a smaller k, or another method")
    elif error > n:
        yield Trap(
            UtilityWarning,
            f"a key may be out of order by {error:.3g} records, and there are {n:,}: any keys may be released; use a "
            f"larger epsilon, a smaller k, or at least {math.ceil(error):,} records",
        )


def of_threshold(threshold: float, error: float) -> Iterator[Trap]:
    """Yield the trap of a positive threshold that noise alone passes."""
    if 0 < threshold < error:
        yield Trap(
            UtilityWarning,
            f"with this epsilon a value may be {error:,} on the wrong side of the threshold, {threshold:,}, so that "
            f"even a count of 0 may be answered by yes: use a larger epsilon, a threshold of at least {error:,}, or "
            f"fewer answers",
        )


@contextmanager
def trying() -> Iterator[None]:
    """Leave out the warnings of a call that only checks parameters, with other records."""
    with warnings.catch_warnings():
        for category in CATEGORIES:
            warnings.simplefilter("ignore", category)
        yield


def presumed_numbers() -> tuple[int, ...]:
    """Return the numbers of records for which errors are told, where their number is private, or not known yet."""
    known = _presumed.get()()
    return (PRESUMED, 10 * PRESUMED, 100 * PRESUMED) if known is None else (known,)


_presumed: ContextVar[Callable[[], int | None]] = ContextVar("presumed", default=lambda: None)


@contextmanager
def presuming(n: Callable[[], int | None]) -> Iterator[None]:
    """Presume a number of records in a block, where the number is private; None for no other than usual.

    Such as that of all rows of a table, which is public, where those without a missing cell are counted.
    """
    token = _presumed.set(n)
    try:
        yield
    finally:
        _presumed.reset(token)


_subject: ContextVar[str] = ContextVar("subject", default="")


@contextmanager
def about(subject: str) -> Iterator[None]:
    """Begin the warnings of a block with what they are about: public, such as the number of a release of a plan."""
    token = _subject.set(f"{subject}: ")
    try:
        yield
    finally:
        _subject.reset(token)


class WarnsUsers(ABCMeta):
    """Metaclass of `Cautious`: an object that user code constructs warns of its traps."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature of the constructor, which that of `__call__` would hide."""
        constructor: Any = getattr(cls, "__init__")  # noqa: B009
        if constructor is object.__init__:  # of an abstract class
            return inspect.Signature()
        own = inspect.signature(constructor)
        return own.replace(parameters=[*own.parameters.values()][1:], return_annotation=inspect.Signature.empty)

    if not TYPE_CHECKING:  # type checkers read the signature of the class

        def __call__(cls, *args: Any, **options: Any) -> Any:
            """Construct an object."""
            try:
                made = super().__call__(*args, **options)
            except TypeError as error:
                if error.__traceback__ and error.__traceback__.tb_next is None:  # raised before a line of Python ran
                    advise(cls, error)
                raise
            if made.traps and _constructed_by_user():
                warn(made.traps)
            return made


class Cautious(metaclass=WarnsUsers):
    """Base class of objects with public parameters, some of which are traps."""

    @cached_property
    def traps(self) -> tuple[Trap, ...]:
        """Warnings that the parameters deserve: their categories and texts."""
        return tuple(self._traps())

    def _traps(self) -> Iterator[Trap]:
        yield from of_epsilon(getattr(self, "epsilon", None))
        yield from of_delta(getattr(self, "delta", None))


def warn_of(made: Any) -> None:
    """Warn of the traps of an object that a function of the library uses for a call of the user."""
    traps: tuple[Trap, ...] = getattr(made, "traps", ())
    if traps:
        warn(traps)


def warn(traps: Iterable[Trap]) -> None:
    """Warn of traps, at the line of user code that leads here."""
    for trap in traps:
        level, frame = 1, inspect.currentframe()
        while frame is not None and _is_between(frame):
            level, frame = level + 1, frame.f_back
        warnings.warn(_subject.get() + trap.text, trap.category, stacklevel=level)


def _constructed_by_user() -> bool:
    """Whether the caller of the caller is not a function of the library."""
    frame = inspect.currentframe()
    for _ in range(2):  # this function and its caller
        frame = frame and frame.f_back
    while frame is not None and _module(frame) in _BETWEEN:
        frame = frame.f_back
    return frame is not None and not _is_between(frame)


def _is_between(frame: FrameType) -> bool:
    """Whether a frame is one of the library, or of a function that constructs for its caller."""
    module = _module(frame)
    return module == "dpfast" or module.startswith("dpfast.") or module in _BETWEEN


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))
