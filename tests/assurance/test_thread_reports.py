"""`assurance.platforms.thread_reports` finds races of kernels among others, and fails without that of the control."""

from assurance.platforms.thread_reports import main
from tests.cases import every

REPORT = """
==================
WARNING: ThreadSanitizer: data race (pid=7)
  Write of size 8 at 0x7ffff61ffb60 by thread T2:
    #0 {write} (BuildId: 7b5a)
    #1 _PyObject_VectorcallTstate ../Include/internal/pycore_call.h:168:11 (python+0x1dce6d) (BuildId: 9edf)

  Previous read of size 8 at 0x7ffff61ffb60 by thread T4:
    #0 {read} (BuildId: 7b5a)
    #1 kernel build/cython/src/_depth.c:2674:13 (_depth.cpython-313t-x86_64-linux-gnu.so+0xf71a) (BuildId: 7b5a)

SUMMARY: ThreadSanitizer: data race
==================
"""
RACY = "__pyx_pf_racy_add build/racy/assurance/platforms/racy.c:2731:24 (racy.cpython-313t-x86_64-linux-gnu.so+0xfb13)"
PYTHON = "PyCArrayType_from_ctype Modules/_ctypes/_ctypes.c:12:3 (_ctypes.cpython-313t-x86_64-linux-gnu.so+0x9815)"
KERNEL = "dpfast_polygon build/cython/src/depth/depth.h:31:9 (_depth.cpython-313t-x86_64-linux-gnu.so+0x13)"
COPIED = "memcpy <null> (python+0x17)\n    #1 __pyx_f_fill _secure.c (_secure.cpython-313t-x86_64-linux-gnu.so+0x13)"


@every(
    "control, test, status",
    [
        ((RACY, RACY), None, 0),
        ((RACY, RACY), (PYTHON, PYTHON), 0),
        ((RACY, RACY), (KERNEL, PYTHON), 1),
        ((RACY, RACY), (PYTHON, COPIED), 1),
        ((PYTHON, PYTHON), None, 1),
        (None, None, 1),
    ],
)
def test_status(tmp_path, control, test, status):
    for name, frames in (("control.7", control), ("tests.8", test)):
        if frames is not None:
            (tmp_path / name).write_text(REPORT.format(write=frames[0], read=frames[1]) * 2)
    assert main(tmp_path) == status
