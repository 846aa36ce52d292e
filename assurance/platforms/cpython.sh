#!/usr/bin/env bash
# Usage: assurance/platforms/cpython.sh FOLDER [OPTION OF CONFIGURE...]
# Builds a free-threaded CPython 3.13 from the sources of Debian trixie, with the given options, as FOLDER/build/python,
# and installs it in FOLDER (not under ThreadSanitizer, where this takes long). Leaves the system as it is. CC chooses
# the compiler. Needs apt on some Debian, whose mirror it uses, and the headers of OpenSSL, libffi, SQLite and zlib;
# about five CPU minutes.
set -euo pipefail
folder=$(realpath -m "$1")
shift
if [ "$(cat "$folder/.options" 2>/dev/null)" = "${CC:-cc} $*" ]; then exit; fi
rm -rf "$folder"
mkdir -p "$folder"/apt/{lists/partial,archives/partial,sources.list.d,preferences.d} "$folder/build"
touch "$folder/apt/status"

mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep '/debian/$' | sort -u | head -n 1)
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$folder/apt/sources.list"
apt() {
    apt-get -qq -o Dir::Etc="$folder/apt" -o Dir::State="$folder/apt" -o Dir::State::status="$folder/apt/status" \
        -o Dir::Cache="$folder/apt" -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"
}
apt update
(cd "$folder/apt" && apt --download-only source python3.13 && tar -xf python3.13_*.orig.tar.xz)

mv "$folder"/apt/Python-3.13.* "$folder/sources"
rm -rf "$folder/apt"
cd "$folder/build"
../sources/configure -q --disable-gil --prefix="$folder" --with-ensurepip=install "$@"
make -s -j 2
case "$*" in
*--with-thread-sanitizer*) ;;
*) make -s install ;;
esac
echo "${CC:-cc} $*" >"$folder/.options"
