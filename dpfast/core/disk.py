"""What differs between systems in a file that processes append to: its lock, its flags, its flush, and its time."""

from __future__ import annotations

import os
import sys

# Bytes are written and read as they are: Windows would write two for the end of a line, and the file would no longer
# have the length that was read.
BINARY: int = getattr(os, "O_BINARY", 0)

if sys.platform == "win32":
    import ctypes
    import msvcrt
    from ctypes import wintypes

    class _Place(ctypes.Structure):
        """An OVERLAPPED: where the locked bytes begin."""

        _fields_ = (
            ("internal", ctypes.c_void_p),
            ("internal_high", ctypes.c_void_p),
            ("offset", wintypes.DWORD),
            ("offset_high", wintypes.DWORD),
            ("event", wintypes.HANDLE),
        )

    class _Times(ctypes.Structure):
        """A FILE_BASIC_INFO: times in 100 nanoseconds since 1601."""

        _fields_ = (
            ("created", ctypes.c_int64),
            ("read", ctypes.c_int64),
            ("written", ctypes.c_int64),
            ("changed", ctypes.c_int64),
            ("attributes", wintypes.DWORD),
        )

    _BASIC = 0
    _OF_1970 = 116_444_736_000_000_000
    _AT_ONCE, _EXCLUSIVE = 1, 2
    _TAKEN = 33, 997  # errors: another has the lock, or will have it for a while
    _FAR = 2**30  # times 2**32: Windows keeps others from reading a locked byte, so it is one that no file reaches
    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    for _call, _words in ((_kernel.LockFileEx, 4), (_kernel.UnlockFileEx, 3)):
        _call.argtypes = (wintypes.HANDLE, *[wintypes.DWORD] * _words, ctypes.POINTER(_Place))

    def lock(file: int, *, wait: bool = True) -> None:
        """Take the lock of the file once no other process or thread holds it, or raise a BlockingIOError at once."""
        flags = _EXCLUSIVE | (0 if wait else _AT_ONCE)
        if not _kernel.LockFileEx(msvcrt.get_osfhandle(file), flags, 0, 1, 0, _Place(offset_high=_FAR)):
            error = ctypes.get_last_error()
            if error in _TAKEN and not wait:
                raise BlockingIOError("another process or thread holds the lock")
            raise ctypes.WinError(error)

    def unlock(file: int) -> None:
        """Give the lock back."""
        if not _kernel.UnlockFileEx(msvcrt.get_osfhandle(file), 0, 1, 0, _Place(offset_high=_FAR)):
            raise ctypes.WinError(ctypes.get_last_error())

    def changed(file: int) -> int:
        """Return the time of the last change of the file, in nanoseconds since 1970; copies do not keep it.

        Python's `st_ctime` is that of its creation here, and copies keep the time of the last write.
        """
        found = _Times()
        handle = wintypes.HANDLE(msvcrt.get_osfhandle(file))
        if not _kernel.GetFileInformationByHandleEx(handle, _BASIC, ctypes.byref(found), ctypes.sizeof(found)):
            raise ctypes.WinError(ctypes.get_last_error())
        return int(found.changed - _OF_1970) * 100

    def flush(file: int) -> None:
        """Return when what was written is on disk."""
        os.fsync(file)

    def flush_directory(path: str) -> None:
        """Do nothing: Windows opens no directory, and its file systems log a new name by themselves."""

    def _read_some(file: int, count: int, offset: int) -> bytes:
        os.lseek(file, offset, os.SEEK_SET)
        return os.read(file, count)

else:
    import fcntl

    _read_some = os.pread

    def lock(file: int, *, wait: bool = True) -> None:
        """Take the lock of the file once no other process or thread holds it, or raise a BlockingIOError at once."""
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))

    def unlock(file: int) -> None:
        """Give the lock back, also for a child forked meanwhile, which has the file open, too."""
        fcntl.flock(file, fcntl.LOCK_UN)

    def changed(file: int) -> int:
        """Return the time of the last change of the file, in nanoseconds since 1970; copies do not keep it."""
        return os.fstat(file).st_ctime_ns

    def flush(file: int) -> None:
        """Return when what was written is on disk. On macOS `os.fsync` alone leaves it in the memory of the drive."""
        full = getattr(fcntl, "F_FULLFSYNC", None)
        if full is not None:
            try:
                fcntl.fcntl(file, full)
                return
            except OSError:  # a file system that does not know it, such as one of a network
                pass
        os.fsync(file)

    def flush_directory(path: str) -> None:
        """Return when the names of the files in a directory are on disk."""
        directory = os.open(path, os.O_RDONLY)
        try:
            flush(directory)
        finally:
            os.close(directory)


def read(file: int, count: int, offset: int) -> bytes:
    """Return so many bytes from an offset on, or all up to the end of the file."""
    parts = []
    while count and (part := _read_some(file, count, offset)):
        parts.append(part)
        offset, count = offset + len(part), count - len(part)
    return b"".join(parts)
