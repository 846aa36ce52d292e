"""Where the headers of `src/` are. No two have the same name, as `tests/assurance/test_kernels.py` checks."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = sorted({path.parent for path in ROOT.glob("src/*/*.h")})
HEADERS = {path.name: path for folder in FOLDERS for path in sorted(folder.glob("*.h"))}
INCLUDE = [f"-I{folder}" for folder in FOLDERS]  # options of a compiler
