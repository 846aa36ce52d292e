"""Base class of the estimators: data, bounds, `random_state` and the budget of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    check_array,
    validate_data,
)

from dpfast.core import checks, containers
from dpfast.core.grid import Grid, Points
from dpfast.core.privacy import Privacy
from dpfast.core.spending import Carrier, claim, spending
from dpfast.core.traps import of_delta, of_epsilon, warn
from dpfast.domains import Ball, Box
from dpfast.local.randomizer import LocalMechanism
from dpfast.mechanisms import Mechanism, Quantiles
from dpfast.random import bit_generator


class PrivateEstimator(Carrier, BaseEstimator):
    """Base class of the estimators: reads data, bounds and `random_state`, and charges a fit to the ledger.

    An estimator that is created, cloned, copied or unpickled inside `with ledger:` carries the ledger, and passes it to
    its clones. While the block is open, other clones of its original carry it too: scikit-learn makes some in threads.
    """

    bounds: Any
    radius: float | None
    center: Any
    epsilon: float
    delta: float = 0.0
    random_state: Any
    privacy_: Privacy

    def __new__(cls, *args: Any, **options: Any) -> Self:
        made: Self = super().__new__(cls)
        if (ticket := claim(cls)) is not None:
            made._ticket = ticket
        return made

    def __sklearn_clone__(self) -> Self:
        made: Self = super().__sklearn_clone__()
        if (ticket := claim(self)) is not None:
            made._ticket = self._lent = ticket
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.random_state is None
        return tags

    def _privacy(self) -> Privacy:
        """Return the guarantee of a `fit` with the current parameters; a warning if it is weak."""
        privacy = Privacy(checks.positive_down("epsilon", self.epsilon), checks.delta_down(self.delta))
        warn([*of_epsilon(privacy.epsilon), *of_delta(privacy.delta)])
        return privacy

    def _rows(self, X: ArrayLike, y: Any = "no_validation", *, reset: bool) -> NDArray[Any]:
        """Return the records: no error, dtype or shape depends on their values. `y` is only compared with None."""
        if issparse(X):
            raise TypeError("sparse data are not supported: the pattern of stored entries would depend on the records")
        if getattr(getattr(X, "dtype", None), "kind", None) == "c":
            raise ValueError("Complex data not supported")
        values: NDArray[Any] = check_array(
            containers.numbers("X", X, dimensions=2),
            dtype=None,
            ensure_all_finite=False,
            input_name="X",
            estimator=self,
        )
        validate_data(self, X, y, reset=reset, skip_check_array=True)
        return values

    def _doubles(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the records to transform, as a new array of doubles."""
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return self._rows(X, reset=False).astype(np.float64)

    def _grids(self, d: int, step: float | None = None) -> list[Grid]:
        """Return a grid for each of d columns, with a step where bounds are given."""
        each = self._each_bounds("column", self._names(d))
        return [bounds if isinstance(bounds, Grid) else Grid(bounds[0], bounds[1], step=step) for bounds in each]

    def _names(self, d: int) -> tuple[str, ...]:
        """Return the names of d columns: those of the frame, or else x0, x1, ... as in scikit-learn."""
        return tuple(getattr(self, "feature_names_in_", [f"x{j}" for j in range(d)]))

    def _points(self, d: int) -> Sequence[Points]:
        """Return the points on which the quantiles of each of d columns are released."""
        return self._grids(d)

    def _ball(self, d: int) -> Ball:
        """Return the ball of the rows, of d columns."""
        if self.radius is None:
            raise ValueError("radius must be given: it is public, chosen without access to the data")
        center = 0.0 if self.center is None else self.center
        ball = Ball(self.radius, center=center if np.ndim(center) else (center,) * d)
        ball.check_columns(d)
        return ball

    def _domain(self, d: int) -> Box | Ball:
        """Return the box or the ball of the rows, of d columns."""
        if self.radius is not None and self.bounds is None:
            return self._ball(d)
        if self.radius is not None or self.center is not None:
            raise TypeError("give bounds= for a box, or radius= and center= for a ball, not both")
        return Box(tuple(self._grids(d)))

    def _each_bounds(self, part: str, names: tuple[str, ...]) -> list[Any]:
        """Return the bounds of each named part: a pair, or a Grid for columns."""
        if self.bounds is None:
            raise ValueError("bounds must be given: they are public, chosen without access to the data")
        whole = Grid if part == "column" else ()
        found = checks.bounds_of(self.bounds, lambda: names, part=part, whole=whole)
        if isinstance(found, Grid) or not isinstance(found[0], (tuple, Grid)):
            return [found] * len(names)
        if len(found) != len(names):
            raise ValueError(f"bounds must be one pair, or one for each {part}: {len(names)}, not {len(found)}")
        return list(found)

    def _quantiles(self, qs: list[float], values: NDArray[Any]) -> NDArray[np.float64]:
        """Release the quantiles of each column, (len(qs), d)."""
        d, rng = values.shape[1], self._rng()
        mechanisms = [Quantiles(qs, grid=grid, epsilon=self._share(d)) for grid in self._points(d)]
        if traps := mechanisms[0].plan(len(values)).traps:
            warn(traps)
        with self._paid(mechanisms):
            source = bit_generator(rng)
            plans = [mechanism.plan(len(values)) for mechanism in mechanisms]
            return np.column_stack([plan.draw(values[:, j], source) for j, plan in enumerate(plans)])

    def _released(self, mechanism: Mechanism, records: Any) -> NDArray[np.float64]:
        """Charge and make one release of the mechanism. A call of it would warn after the charge."""
        source, values = bit_generator(self._rng()), mechanism.values_of(records)
        plan = mechanism.plan_for(values)
        warn(plan.traps)
        with self._paid([mechanism]):
            release: NDArray[np.float64] = plan.draw(values, source)
        return release

    def _paid(self, mechanisms: Sequence[Mechanism | LocalMechanism]) -> AbstractContextManager[None]:
        """Charge a whole fit at once: one release of each mechanism, all with the same profile."""
        profile, label = mechanisms[0].privacy_profile, f"{type(self).__name__}: {mechanisms[0]!r}"
        return spending(profile, times=len(mechanisms), label=label, of=self)

    def _share(self, d: int) -> float:
        """Return the share of epsilon of each of d columns, rounded down."""
        epsilon = checks.positive_down("epsilon", self.epsilon)
        return checks.positive_down("epsilon / columns", Fraction(epsilon) / d)

    def _rng(self) -> Any:
        return generator_of(self.random_state)


def generator_of(random_state: Any) -> Any:
    """Return the generator for a `random_state`: None is the secure one; others are reproducible, hence not private."""
    if isinstance(random_state, np.random.RandomState):
        return random_state._bit_generator
    return None if random_state is None else np.random.default_rng(random_state)


def checked_classes(classes: Any, *, several: bool) -> NDArray[Any]:
    """Return the classes in ascending order, numbers or strings: two, or more if `several`."""
    if classes is None:
        raise ValueError("classes must be given: they are public, chosen without access to the data")
    count = 0 if isinstance(classes, str) or np.ndim(classes) != 1 else len(classes)
    if count < 2 or (count > 2 and not several):
        raise ValueError(f"classes must be a pair, or more for method='sums', not {classes!r}")
    if not all(isinstance(label, str) for label in classes):
        for label in classes:
            if not isinstance(label, (bool, np.bool_)):
                checks.real("each of classes", label)
    made = np.unique(np.asarray(classes))
    if made.dtype.kind not in "biufU":
        raise ValueError(f"classes must be strings, or numbers of a NumPy dtype, not {classes!r}")
    if len(made) != count:
        raise ValueError(f"classes must be different, not {classes!r}")
    return made


def class_codes(y: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Codes 0, 1, ... for labels of the classes, NaN for others, each on its own; same shape as y."""
    if classes.dtype.kind != "U":
        if containers.is_sequence(y):  # a label that is a list would change the shape of the array
            y = [None if containers.is_sequence(label) else label for label in y]
        values = containers.numbers("y", y, dimensions=1)
        made = np.full(values.shape, np.nan)
        with np.errstate(all="ignore"):  # a signalling NaN
            for code, label in enumerate(classes.astype(values.dtype) if values.dtype.kind == "f" else classes):
                made[values == label] = code
        return made
    shape: tuple[int, ...]
    if containers.is_sequence(y):
        labels = list(y)
        shape = (len(labels),)
    else:
        array = y if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
        if array.dtype.kind not in "OTU":
            raise TypeError(f"y must hold text, like classes, not dtype {containers.name_of(array.dtype)}")
        labels, shape = array.ravel().tolist(), array.shape
    codes = {str(label): float(code) for code, label in enumerate(classes)}
    coded = [codes.get(label, np.nan) if isinstance(label, str) else np.nan for label in labels]
    return np.array(coded, dtype=np.float64).reshape(shape)
