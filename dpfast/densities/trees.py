"""Trees of pairs of columns."""

from __future__ import annotations

from typing import Any


class Components:
    """The components of a graph that grows by edges."""

    def __init__(self) -> None:
        self._parents: dict[Any, Any] = {}

    def find(self, name: Any) -> Any:
        """Return the representative of the component of a column."""
        while (parent := self._parents.get(name, name)) != name:
            self._parents[name] = self._parents.get(parent, parent)  # halves the path of later calls
            name = parent
        return name

    def join(self, a: Any, b: Any) -> bool:
        """Join two columns, and return whether they were in different components."""
        first, second = self.find(a), self.find(b)
        if first == second:
            return False
        self._parents[first] = second
        return True
