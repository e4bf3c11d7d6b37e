"""The host's BLAS, which programs with cuBLAS open when they run.

NumPy's wheel brings one, and so does the package `scipy-openblas32`. Imports nothing heavy, for a
program that is cached starts at once.
"""

import os
import sys
from collections.abc import Iterable

from cudalab.backends.cpu import parts

PATH = "CUDALAB_BLAS"  # the environment variable in which a program finds the library's path
# Where packages for Python have theirs, seen from a folder of `sys.path`.
_FOLDERS = ("numpy.libs", "scipy_openblas64/lib", "scipy_openblas32/lib")


def provide(texts: Iterable[str]) -> None:
    """Set the environment variable for a program with these texts, if it uses cuBLAS.

    Nothing is set if the user has done it, or if there is only the system's library.
    """
    if "blas" in parts.used(texts) and PATH not in os.environ:
        path = find(sys.path)
        if path:
            os.environ[PATH] = path


def find(folders: Iterable[str]) -> str | None:
    """The OpenBLAS of NumPy's wheel or of a package of its own."""
    for folder in folders:
        for inside in _FOLDERS:
            place = os.path.join(folder, inside)  # noqa: PTH118 - pathlib is slow to start with
            try:
                names = sorted(os.listdir(place))  # noqa: PTH208 - as above
            except OSError:
                continue
            for name in names:
                if name.startswith("lib") and "openblas" in name and ".so" in name:
                    return os.path.join(place, name)  # noqa: PTH118 - as above
    return None
