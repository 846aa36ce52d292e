"""What most benchmarks have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any


class Timed(ABC):
    """A benchmark of one call, which `setup` sets; asv passes over this class because it is abstract."""

    run: Callable[[], Any]

    @abstractmethod
    def setup(self, *parameters: Any) -> None: ...

    def time_call(self, *parameters: Any) -> None:
        self.run()
