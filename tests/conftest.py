"""Make the package ``tests`` importable, after everything that is installed, and mark what ``tests/hosts`` holds."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
HOSTS = Path(__file__).parent / "hosts"


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HOSTS):
            item.add_marker("host")
