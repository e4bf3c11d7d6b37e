"""`cudalab` as a process that is forked from one which has imported it already.

It is a process like any other, with arguments, streams, environment and exit status, for a tenth of
the time that it takes to start Python and to import NumPy. What a start itself does is tested by
real ones: test_quick.py, test_first_run.py, test_imports.py.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import documents
import forking
from forking import receive_line

ROOT = Path(__file__).parent.parent


def cudalab(
    *words, stdin=None, stdout=None, stderr=None, text=False, env=None, cwd=None, timeout=300,
    input=None,  # noqa: A002 - as in subprocess
):  # fmt: skip
    """What subprocess.run returns for `cudalab WORDS...`: captured is all but a stdout or stderr
    that is given as a file or a descriptor.
    """
    words = [str(word) for word in words]
    environment = dict(os.environ if env is None else env)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        reading = writing = None
        if input is not None:
            reading, writing = os.pipe()
        elif stdin is None or stdin == subprocess.DEVNULL:
            reading = os.open(os.devnull, os.O_RDONLY)
        given = _descriptor(stdin) if reading is None else reading
        writes = [_descriptor(out if stdout is None else stdout)]
        writes += [_descriptor(err if stderr is None else stderr)]
        request = {"words": words, "env": environment, "cwd": str(cwd or Path.cwd())}
        _, server = _server()
        server.sendall(json.dumps(request).encode() + b"\n")
        socket.send_fds(server, [b"!"], [given, *writes])
        pid = int(receive_line(server))
        if reading is not None:
            os.close(reading)
        if writing is not None:
            _write(writing, input.encode() if text else input)
        server.settimeout(timeout)
        try:
            status = int(receive_line(server))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            server.settimeout(None)
            receive_line(server)
            raise subprocess.TimeoutExpired(words, timeout) from None
        finally:
            server.settimeout(None)
        streams = []
        for stream in (out, err):
            stream.seek(0)
            streams.append(stream.read().decode() if text else stream.read())
    documents.check_run(words, streams[0], cwd)
    documents.check_lines(words, streams[0])
    return subprocess.CompletedProcess(words, status, *streams)


def _descriptor(file):
    return file if isinstance(file, int) else file.fileno()


def _write(pipe, data):
    """As subprocess does: a process that ends before it has read all is no error."""
    with os.fdopen(pipe, "wb", buffering=0) as stream:
        left = memoryview(data)
        try:
            while left:
                left = left[stream.write(left) :]
        except BrokenPipeError:
            pass


@cache
def _server():
    """The process that forks, one for each worker, and the connection to it."""
    ours, theirs = socket.socketpair()
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [sys.executable, forking.__file__, str(theirs.fileno())],
        pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    theirs.close()
    return process, ours
