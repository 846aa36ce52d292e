"""libFuzzer on a promise of `readers`, by Atheris: python -m assurance.fuzz.drive NAME PROGRAM [OPTION OR FOLDER...]

The modules that read are instrumented for coverage as they are imported; the kernels are not. PROGRAM repeats the call:
libFuzzer starts it when it merges corpora.
"""

import sys

import atheris

READING = ("streaming", "keys", "ledger", "local", "tables", "groups", "privacy", "_checks", "_containers")

with atheris.instrument_imports(include=[f"dpfast.{name}" for name in READING]):
    from assurance.fuzz import readers


def main() -> None:
    name, *call = sys.argv[1:]
    atheris.Setup(call, lambda data: readers.run(name, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
