"""Set up pytest and Hypothesis: imports of the package ``tests``, marks by folder, and no limits on time."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.append(str(Path(__file__).parents[1]))  # after everything that is installed
HOSTS = Path(__file__).parent / "hosts"

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HOSTS):
            item.add_marker("host")
