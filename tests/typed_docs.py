"""The examples of README and docs as files for type checkers: see docs/development.md."""

import argparse
import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Keyword arguments in a mapping, whose types checkers do not tell apart.
OPTIONS = re.compile(r"^(options|public|private) = \{", re.M)
# Examples reuse names, and their functions have no annotations.
ALLOWED = "allow-redefinition-new, allow-untyped-calls, allow-untyped-defs, allow-incomplete-defs"
HEADER = f"# mypy: {ALLOWED}\nfrom typing import Any\n\n"
OTHERS = re.compile(r"\b(duckdb|opendp|pandas|polars|pyspark|sklearn|from scipy import)\b")
FENCED = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


def examples(text):
    """The Python code of a page: its doctests, without those of errors, and its blocks without prompts."""
    yield from FENCED.findall(text) if ">>>" not in text else []
    for example in doctest.DocTestParser().get_examples(text):
        if not example.exc_msg or example.source.startswith("with "):
            yield OPTIONS.sub(r"\1: Any = {", example.source)


def pages():
    return sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def write(folder, own=False):
    """Write the code of each page to a file; `own` leaves out pages with other typed libraries."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages():
        code = "".join(examples(page.read_text()))
        if code and not (own and OTHERS.search(code)):
            file = folder / ("_".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_") + ".py")
            file.write_text(f"{HEADER}{code}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--own", action="store_true", help="leave out pages that import other typed libraries")
    arguments = parser.parse_args()
    write(arguments.folder, arguments.own)


if __name__ == "__main__":
    main()
