"""Forks a process for each `cudalab` that command.py sends: after all imports, before any work."""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import socket
import sys
import threading
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages

import cudalab
from cudalab.backends.cpu import regions
from cudalab.backends.cpu.compiler.toolchain import key
from cudalab.cli.app import cli, main

regions.MISTAKES = ()  # they are failures here


def serve(fd):
    """Answer each request with the process, then with its exit status, until the tests hang up."""
    for module in walk_packages(cudalab.__path__, "cudalab."):
        if module.name != "cudalab.__main__":  # which is a command
            import_module(module.name)
    for name in cli.list_commands(None):
        cli.get_command(None, name)
    key()  # reads all sources, which each process would do again
    gc.collect()
    gc.freeze()  # or each process would look through all modules, and own a copy of them
    gc.set_threshold(50_000)  # as in conftest.py
    with socket.socket(fileno=fd) as client:
        while line := receive_line(client):
            streams = socket.recv_fds(client, 1, 3)[1]
            pid = os.fork()
            if pid == 0:
                client.close()
                become(**json.loads(line), streams=streams)
            client.sendall(b"%d\n" % pid)
            for each in streams:
                os.close(each)
            client.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def receive_line(connection):
    """The next line; an empty one at the end."""
    line = b""
    while not line.endswith(b"\n"):
        read = connection.recv(1)
        if not read:
            return b""
        line += read
    return line


def become(words, env, cwd, streams):
    """Be `cudalab WORDS...`, and exit as it does."""
    for target, fd in enumerate(streams):
        os.dup2(fd, target)
        os.close(fd)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - for the process
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["cudalab", *words]
    sys.path[0] = cwd
    try:
        main()
    except SystemExit as end:
        with suppress(OSError):  # of a full disk: Python has a status for that
            leave(end.code)
        raise


def leave(status):
    """End as Python does, but leave all modules as they are: to take them apart takes longer."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.pythonapi.exit(int(status))


if __name__ == "__main__":
    serve(int(sys.argv[1]))
