#!/usr/bin/env bash
# Usage: assurance/platforms/thread_sanitizer.sh FOLDER [ARGUMENT OF PYTEST...]
# Builds a free-threaded CPython 3.13 and the kernels under ThreadSanitizer in FOLDER, and runs the work of
# assurance/platforms/threaded.py, then the tests that the arguments name. Fails if a data race is reported in a kernel,
# or if that of racy.pyx, the control, is not. Needs clang and its ThreadSanitizer, and what cpython.sh needs.
set -euo pipefail
folder=$(realpath -m "$1")
shift
here=$(dirname "$0")
mkdir -p "$folder"

# The plain interpreter builds the kernels and has the wheels: it has the same binary interface and is fast. It runs no
# test here.
"$here/free_threaded.sh" "$folder/plain" --collect-only tests/units/test_grid.py >"$folder/plain.log" 2>&1 ||
    { tail -n 20 "$folder/plain.log"; exit 1; }
CC=clang "$here/cpython.sh" "$folder/cpython" --with-thread-sanitizer >"$folder/cpython.log" 2>&1 ||
    { tail -n 20 "$folder/cpython.log"; exit 1; }
plain=$folder/plain/dpfast/venv/bin/python
"$plain" -c 'import shutil, sys; shutil.rmtree(sys.argv[2], True); shutil.copytree(sys.argv[1], sys.argv[2])' \
    "$folder/plain/dpfast/sources" "$folder/sources"
cd "$folder/sources"
rm -rf build/lib* build/temp* dpfast/_kernels/*.so
sed -i 's/"-O1" if DEBUG else "-O[23]"/"-O1"/; s/"-g0"/"-g1"/' setup.py # fast to build, with lines in reports
cat >racy_setup.py <<'RACY'
from Cython.Build import cythonize
from setuptools import setup
setup(ext_modules=cythonize("assurance/platforms/racy.pyx", build_dir="build/racy"))
RACY
for setup in setup.py racy_setup.py; do
    CC=clang LDSHARED="clang -shared -fsanitize=thread" CFLAGS=-fsanitize=thread \
        "$plain" "$setup" --quiet build_ext --inplace --parallel 2 >"$folder/build.log" 2>&1 ||
        { tail -n 20 "$folder/build.log"; exit 1; }
done

packages=$("$plain" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
suppressions=$(echo "$folder"/cpython/sources/Tools/tsan/suppressions_free_threading.txt)
run() { # without random addresses, which may leave ThreadSanitizer no place for its own
    PYTHONPATH=$packages:$PWD/assurance/platforms/standin \
        TSAN_OPTIONS="suppressions=$suppressions exitcode=0 log_path=$folder/reports/$1" \
        setarch -R "$folder/cpython/build/python" "${@:2}"
}
rm -rf "$folder/reports" && mkdir "$folder/reports"
run control -c '
import threading
from assurance.platforms.racy import add
barrier = threading.Barrier(4)
threads = [threading.Thread(target=lambda: (barrier.wait(), add(3 * 10**7))) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
'
run tests -W ignore -m assurance.platforms.threaded
if [ $# -gt 0 ]; then run tests -m pytest -q -p no:cacheprovider "$@"; fi
"$plain" -m assurance.platforms.thread_reports "$folder/reports"
