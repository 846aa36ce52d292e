"""Set up pytest and Hypothesis: imports of the package ``tests``, marks by folder, and no limits on time."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# One thread of BLAS for each worker of pytest-xdist: threads that wait for one another take a fifth more time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))  # after everything that is installed
HOSTS = Path(__file__).parent / "hosts"

# Every run draws the same examples, so that a run of CI can be repeated; `--hypothesis-profile explore` draws new ones.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeat", settings.get_profile("explore"), derandomize=True, max_examples=60)
settings.load_profile("repeat")


def pytest_configure(config):
    # Many tests need releases that are almost exact, or rare events often; tests/units/test_traps.py has those of the
    # warnings.
    config.addinivalue_line("filterwarnings", "ignore:epsilon = .* is above 20")
    config.addinivalue_line("filterwarnings", "ignore:delta = .* is not below 0.001")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    # A test draws the same numbers, whichever tests of its module ran before it in this process.
    if hasattr(getattr(item, "module", None), "RNG"):
        item.module.RNG = np.random.default_rng(0)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HOSTS):
            item.add_marker("host")
