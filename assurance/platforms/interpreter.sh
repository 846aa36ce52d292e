#!/usr/bin/env bash
# Usage: assurance/platforms/interpreter.sh PYTHON FOLDER [ARGUMENT OF PYTEST...]
# Builds dpfast for another interpreter, in a copy of the sources in FOLDER with an environment of its own, compares the
# table of releases and runs the tests: all fast ones, or those of the arguments. Takes wheels of the dependencies only,
# and assurance/platforms/standin where there is none of cryptography.
set -euo pipefail
python=$1 folder=$(realpath -m "$2")
shift 2
if [ $# = 0 ]; then set -- -n 2 --dist worksteal -m "not slow"; fi
cd "$(dirname "$0")/../.."
export PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1

mkdir -p "$folder"
rm -rf "$folder/sources" && mkdir "$folder/sources"
git ls-files -z | xargs -0 cp -p --parents -t "$folder/sources"
if [ -d build/cython ]; then # with the C that is there already, the same for every Python
    mkdir "$folder/sources/build" && cp -Rp build/cython "$folder/sources/build"
fi
cd "$folder/sources"

[ -x "$folder/venv/bin/python" ] || "$python" -m venv "$folder/venv"
python=$folder/venv/bin/python
"$python" - >"$folder/requirements.txt" <<'REQUIREMENTS'
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))
needed = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
needed += project["project"]["optional-dependencies"]["test"]
print(*(need for need in needed if not need.startswith("cryptography")), sep="\n")
REQUIREMENTS
"$python" -m pip install --only-binary=:all: -r "$folder/requirements.txt"
if ! "$python" -m pip install --only-binary=:all: 'cryptography>=43' 2>"$folder/cryptography.log"; then
    echo "cryptography: the stand-in, because there is no wheel"
    packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    realpath assurance/platforms/standin >"$packages/standin.pth"
fi
for command in "build_ext --inplace --parallel 2" egg_info; do
    "$python" setup.py --quiet $command >"$folder/build.log" 2>&1 || { tail -n 20 "$folder/build.log"; exit 1; }
done

"$python" -VV
"$python" -m assurance.platforms.gil
"$python" -m assurance.platforms.table
"$python" -m pytest -q "$@"
