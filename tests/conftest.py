"""Make ``tests.reference`` and its neighbours importable, after everything that is installed."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
