"""Types of arguments."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from numpy.typing import ArrayLike

# A number; a Fraction and a Decimal are exact.
Real: TypeAlias = float | Fraction | Decimal

# Numbers, or rows of them. None is a missing one.
Records: TypeAlias = ArrayLike | Sequence[float | None] | Sequence[Sequence[float | None]]
