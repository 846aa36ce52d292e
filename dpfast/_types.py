"""Types of arguments."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from numpy.typing import ArrayLike

# A privacy parameter: a Fraction, a Decimal and a text such as "0.1" or "1/3" are exact.
Exact: TypeAlias = float | Fraction | Decimal | str

# Numbers, or rows of them. None is a missing one, and texts of numbers count as such.
Records: TypeAlias = ArrayLike | Sequence[float | str | None] | Sequence[Sequence[float | None]]
