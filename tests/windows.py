"""Mechanisms whose laws are compared on a window of their outcomes, for `dpfast.audit.verify`."""

import numpy as np

from dpfast import Privacy


class Windowed:
    """A mechanism that releases noisy counts, on a window of them; the claim is for one replaced record."""

    def __init__(self, mechanism, reach):
        self.grid, self.privacy = mechanism.grid, Privacy(mechanism.epsilon)
        cells = len(mechanism.cells)
        self._window = np.indices([2 * reach + 1] * cells).reshape(cells, -1).T - reach
        self._law = mechanism.law

    def law(self, x):
        law = self._law(x)
        law.outcomes, law.value = lambda: self._window, lambda counts: counts
        return law
