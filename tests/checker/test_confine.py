"""A process that has confined itself computes, and reaches nothing else."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from cudalab.checker.submit import confine

BEGIN = """
import ctypes, os, signal, socket, sys, threading
import numpy as np
from cudalab.checker.submit.confine import confine, hide
hide()
threads = [threading.Thread(target=go.wait) for go in [threading.Event()] for _ in range(2)]
outputs = open(sys.argv[1], "wb")
if not confine():
    sys.exit(77)
"""
WORKS = """
outputs.write(np.arange(10_000).sum().tobytes())
outputs.truncate()
again = threading.Thread(target=lambda: np.ones((200, 200)) @ np.ones((200, 200)))
again.start()
again.join()
print(len(open("/etc/passwd").read()) > 0, os.path.exists("/nowhere"), os.getpid() > 0)
"""
REFUSED = """
for name, call in {
    "open": lambda: open(sys.argv[1] + "2", "w"),
    "append": lambda: open(sys.argv[1], "a"),
    "unnamed": lambda: os.open("/tmp", os.O_TMPFILE | os.O_RDWR),
    "mkdir": lambda: os.mkdir(sys.argv[1] + "3"),
    "unlink": lambda: os.unlink(sys.argv[1]),
    "rename": lambda: os.rename(sys.argv[1], sys.argv[1] + "4"),
    "chmod": lambda: os.chmod(sys.argv[1], 0o777),
    "link": lambda: os.symlink("/", sys.argv[1] + "5"),
    "truncate": lambda: os.truncate(sys.argv[1], 0),
    "affinity": lambda: os.sched_setscheduler(os.getppid(), 0, os.sched_param(0)),
}.items():
    try:
        call()
    except OSError:
        continue
    print("possible:", name)
"""
KILLED = {
    "fork": "os.fork()",
    "a program": "os.execv('/bin/true', ['true'])",
    "system()": "ctypes.CDLL(None).system(b'true')",
    "a thread's fork": "threading.Thread(target=os.fork).start(); signal.pause()",
    "a socket": "socket.socket()",
    "a signal": "os.kill(os.getppid(), 0)",
    "shared memory": "ctypes.CDLL(None).shmget(1, 100, 0o1600)",
}


@pytest.fixture(scope="module")
def confined(tmp_path_factory):
    path = tmp_path_factory.mktemp("confined") / "outputs"

    def run(program):
        words = [sys.executable, "-c", BEGIN + program, path]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode == 77:
            pytest.skip("this system has no such filter")
        return done

    run.path = path
    return run


def test_it_works_and_what_it_must_not_do_fails(confined):
    done = confined(WORKS + REFUSED)
    assert done.stdout == "True False True\n", done.stdout + done.stderr
    assert list(confined.path.parent.iterdir()) == [confined.path]
    assert len(confined.path.read_bytes()) == 8


def test_reaching_others_is_its_end(confined):
    """In one forked child each, of a process that has imported everything."""
    forks = "".join(
        f"child = os.fork()\nif child == 0:\n    confine(); {call}; os._exit(0)\n"
        "print(-os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        for call in KILLED.values()
    )
    confined("")  # skips where there is none
    program = BEGIN.split("if not confine()", maxsplit=1)[0] + forks
    done = subprocess.run(
        [sys.executable, "-c", program, confined.path], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(int(signal.SIGSYS))] * len(KILLED), done.stderr


def test_another_architecture_has_its_own_numbers(monkeypatch):
    programs = {}
    for machine, index in (("x86_64", 0), ("aarch64", 1)):
        audit = confine._ARCHITECTURES[machine]
        programs[machine] = confine._program(audit, index)
        assert len(programs[machine]) % 8 == 0
        assert len(programs[machine]) // 8 < 4096
        numbers = confine._numbers(confine._ALLOWED, index)
        assert not set(numbers.values()) & set(confine._numbers(confine._FOREIGN, index).values())
        assert len(set(numbers.values())) == len(numbers)
    monkeypatch.setattr(confine.platform, "machine", lambda: "riscv64")
    assert not confine.confine()
