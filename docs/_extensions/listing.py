"""The names that the pages of docs/api list."""

import re
from collections.abc import Iterator
from pathlib import Path

API = Path(__file__).parents[1] / "api"


def listed(folder: Path = API) -> Iterator[tuple[str, str, str]]:
    """Page, module and name of each entry of a ``.. names:: module`` directive, in order."""
    for page in sorted(folder.glob("*.rst")):
        module = ""
        for line in page.read_text("utf-8").splitlines():
            if found := re.match(r"\.\. names:: (\S+)", line):
                module = found[1]
            elif line and not line.startswith(" "):
                module = ""
            elif module and line:
                yield page.stem, module, line.strip()
