#!/usr/bin/env bash
# Usage: assurance/platforms/free_threaded.sh FOLDER [ARGUMENT OF PYTEST...]
# Builds a free-threaded CPython 3.13 in FOLDER, then does what assurance/platforms/interpreter.sh does.
set -euo pipefail
folder=$(realpath -m "$1")
shift
here=$(dirname "$0")
mkdir -p "$folder"
"$here/cpython.sh" "$folder/cpython" >"$folder/cpython.log" 2>&1 || { tail -n 20 "$folder/cpython.log"; exit 1; }
"$here/interpreter.sh" "$folder/cpython/bin/python3.13t" "$folder/dpfast" "$@"
