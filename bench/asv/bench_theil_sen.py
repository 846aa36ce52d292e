"""``dpfast.theil_sen``: one private line against the lines of NumPy and SciPy through the same records."""

import numpy as np
from scipy.stats import siegelslopes, theilslopes

import dpfast as dpf
from bench.asv.timed import Timed

LINES = {
    "10 matchings": lambda x, y: dpf.theil_sen(x, y, epsilon=1.0, matchings=10),
    "auto": lambda x, y: dpf.theil_sen(x, y, epsilon=1.0),
    "standard error": lambda x, y: dpf.theil_sen(x, y, epsilon=1.0, standard_error=True),
    "np.polyfit": lambda x, y: np.polyfit(x, y, 1),
    "theilslopes": lambda x, y: theilslopes(y, x),
    "siegelslopes": lambda x, y: siegelslopes(y, x),
}
QUADRATIC = {"theilslopes", "siegelslopes"}


class TheilSen(Timed):
    params = ([*LINES], [1000, 1_000_000])
    param_names = ("line", "n")

    def setup(self, line, n):
        if line in QUADRATIC and n > 1000:
            raise NotImplementedError  # all pairs of records
        rng = np.random.default_rng(0)
        x = rng.normal(size=n)
        y = 1 + 2 * x + rng.standard_t(3, n)
        self.run = lambda: LINES[line](x, y)
