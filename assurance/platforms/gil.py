"""Import every module of dpfast, then say whether the GIL is on.

On a free-threaded Python an extension module that does not declare that it needs no GIL turns it on; the first such
module is an error here. On any other Python this only checks that every module can be imported.
"""

import importlib
import pkgutil
import sys
import sysconfig
import warnings

import dpfast

HOSTS = ("dask", "opendp", "pipeline_dp", "polars", "sklearn", "spark")  # they need other libraries


def main() -> int:
    free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    warnings.filterwarnings("error", message="The global interpreter lock")
    names = [
        module.name
        for module in pkgutil.walk_packages(dpfast.__path__, "dpfast.", onerror=lambda name: None)
        if module.name.split(".")[1] not in (*HOSTS, "__main__")
    ]
    for name in names:
        importlib.import_module(name)
        if free and sys._is_gil_enabled():
            print(f"{name} turned the GIL on")
            return 1
    kernels = sum(name.startswith("dpfast._kernels.") for name in names)
    print(f"{len(names)} modules imported, {kernels} of them kernels; the GIL is {'off' if free else 'on'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
