"""The lock of secure generators under ThreadSanitizer: `python -m assurance.platforms.lock`. Needs clang; 20 s.

Threads add to one number under the lock of src/secure/secure.h, as builds of Python without the lock of the interpreter
have it. Then each memory order that the lock needs is dropped, the mark of a thread that waits, and the identity of
threads, by a constant and by 0, as the register of the thread reads on macOS: a data race must be reported, or the
threads must wait for ever.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from assurance.headers import HEADERS

SECONDS = 20.0  # until threads count as waiting for ever
CONTROLS = {
    "acquire without waiting": ("0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)", "0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)"),
    "acquire after waiting": ("SECURE_AWAITED, __ATOMIC_ACQUIRE)", "SECURE_AWAITED, __ATOMIC_RELAXED)"),
    "release": ("SECURE_FREE, __ATOMIC_RELEASE)", "SECURE_FREE, __ATOMIC_RELAXED)"),
    "mark of a thread that waits": ("secure_exchange(lock, SECURE_AWAITED,", "secure_exchange(lock, SECURE_HELD,"),
}
IDENTITIES = {
    "an identity of each thread": ("return (uint64_t)__builtin_thread_pointer();", "return 1;"),
    "an identity that is not 0": ("return (uint64_t)__builtin_thread_pointer();", "return 0;"),
}


def changed(old: str, new: str) -> str:
    """The header with a replacement. Raises LookupError unless the old text occurs once."""
    text = HEADERS["secure.h"].read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise LookupError(f"secure.h holds {text.count(old)} times, not once: {old!r}")
    return text.replace(old, new)


def verdict(header: str, folder: Path, *options: str) -> str:
    """What a build with this header does: "holds", "races", "waits for ever", or that the number is wrong."""
    (folder / "secure.h").write_text(header, encoding="utf-8")
    program = folder / "lock"
    source = Path(__file__).with_name("lock.c")
    command = ["clang", "-O1", "-g", "-fsanitize=thread", "-pthread", f"-I{folder}", *options, "-o", program, source]
    subprocess.run(command, check=True)
    try:
        done = subprocess.run(
            ["setarch", "-R", program],  # without random addresses, which may leave the sanitizer no place for its own
            env=os.environ | {"TSAN_OPTIONS": "exitcode=66"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return "waits for ever"
    if "WARNING: ThreadSanitizer: data race" in done.stderr:
        return "races"
    return "holds" if done.returncode == 0 else f"fails: {done.stdout}{done.stderr}"


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        header = HEADERS["secure.h"].read_text(encoding="utf-8")
        good = True
        for name, controls, options in (("the lock", CONTROLS, ()), ("entered again", IDENTITIES, ("-DREENTRANT",))):
            today = verdict(header, folder, *options)
            print(f"{name}: {today}", flush=True)
            good = good and today == "holds"
            for what, (old, new) in controls.items():
                found = verdict(changed(old, new), folder, *options)
                print(f"control, without {what}: {found}", flush=True)
                good = good and found in ("races", "waits for ever")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
