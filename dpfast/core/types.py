"""Types of arguments."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from numpy.typing import ArrayLike, NDArray

# A privacy parameter: a Fraction, a Decimal and a text such as "0.1" or "1/3" are exact.
Exact: TypeAlias = float | Fraction | Decimal | str

# Numbers, or rows of them. None is a missing one, and texts of numbers count as such.
Records: TypeAlias = ArrayLike | Sequence[float | str | None] | Sequence[Sequence[float | None]]

# Public bounds of columns, as `checks.bounds_of` reads them: a pair (lower, upper), one pair for each column, or a
# mapping from column names to pairs.
Bounds: TypeAlias = Sequence[float] | Sequence[Sequence[float]] | NDArray[Any] | Mapping[Any, Sequence[float]]
