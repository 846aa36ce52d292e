"""Long runs: releases, threads, forks, ledgers, streams and a full disk, with kills. docs/assurance/endurance.md

`python -m assurance.endurance --minutes 60`. Each check has faults, which it must find before the run starts.
"""

import warnings

warnings.filterwarnings("ignore", "epsilon = .* is above 20")  # mechanisms of the tests that are almost exact
