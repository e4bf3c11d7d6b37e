"""The command `nvcc` of the toolkit for make and CMake."""

import sys

from cudalab.cli.failures import report_errors
from cudalab.errors import ExitCode


def main() -> None:
    """Do what the command line asks nvcc for, and exit."""
    sys.exit(report_errors(nvcc))


def nvcc() -> int:
    """Compile or link for the CPU device."""
    from cudalab.program.toolkit import nvcc as driver

    driver.nvcc(sys.argv[1:])
    return ExitCode.OK
