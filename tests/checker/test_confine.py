"""A process that has confined itself computes, and reaches nothing else."""

from __future__ import annotations

import os
import platform
import re
import signal
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from checking import checked, kernel

from cudalab import labs
from cudalab.checker.sandbox.sandbox import choose
from cudalab.checker.submit import confine, stages, views
from cudalab.checker.submit.kernel import Kernel
from cudalab.checker.verdicts import Status, Why

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


# The filter, read as the kernel reads it: on any machine, for each processor ----------------------

HEADERS = {
    "x86_64": Path(f"/usr/include/{platform.machine()}-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),  # 64-bit ARM has the generic numbers
}
NEWER = {"map_shadow_stack"}  # than some machines' headers


def numbers_of(header):
    """The numbers of all system calls, by name."""
    found = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text(), re.MULTILINE)
    numbers = {name: int(number) for name, number in found}
    if "fstatat" in numbers:  # what the C library calls newfstatat
        numbers["newfstatat"] = numbers["fstatat"]
    return numbers


def verdict(program, audit, number, *arguments):
    """Run a filter on a call. BPF: an operation, two jumps and a value."""
    call = struct.pack("IIQ6Q", number, audit, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    code, at, word = list(struct.iter_unpack("HBBI", program)), 0, 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        match operation:
            case 0x20:
                (word,) = struct.unpack_from("I", call, value)
            case 0x15:
                at += if_true if word == value else if_false
            case 0x45:
                at += if_true if word & value else if_false
            case 0x06:
                return value
            case _:
                raise AssertionError(operation)


@pytest.mark.parametrize("machine", HEADERS)
def test_each_call_of_each_processor_has_its_verdict(machine):
    if not HEADERS[machine].is_file():
        pytest.skip(f"the system's headers are not installed: {HEADERS[machine]}")
    index, audit = list(HEADERS).index(machine), confine._ARCHITECTURES[machine]
    program, numbers = confine._program(audit, index), numbers_of(HEADERS[machine])
    assert len(program) // 8 < 4096  # the kernel's limit
    tables = {
        name: confine._numbers(getattr(confine, name), index)
        for name in ("_ALLOWED", "_FOREIGN", "_WITH_CHECKS")
    }
    listed = {name: number for table in tables.values() for name, number in table.items()}
    assert sum(map(len, tables.values())) == len(set(listed.values()))  # none is listed twice
    assert {name: numbers.get(name) for name in listed.keys() - NEWER} == {
        name: number for name, number in listed.items() if name not in NEWER
    }
    no_such_call = confine.ERRNO | confine.ENOSYS
    for name, number in numbers.items():
        if name in tables["_ALLOWED"] or name == "fstatat":
            wanted = {confine.ALLOW}
        elif name in tables["_FOREIGN"]:
            wanted = {confine.KILL}
        elif name in tables["_WITH_CHECKS"]:
            continue
        else:
            wanted = {no_such_call}
        assert verdict(program, audit, number) in wanted, name
    assert verdict(program, audit ^ 1, numbers["read"]) == confine.KILL

    def judged(name, *arguments):
        return verdict(program, audit, numbers[name], *arguments)

    refused = confine.ERRNO | confine.EPERM
    flags = {os.O_RDONLY: confine.ALLOW, os.O_WRONLY: refused, os.O_RDWR: refused}
    flags |= {os.O_CREAT: refused, os.O_TRUNC: refused, os.O_TMPFILE: refused}
    flags |= {os.O_CLOEXEC | os.O_DIRECTORY: confine.ALLOW}
    for flag, wanted in flags.items():
        assert judged("openat", 0, 0, flag) == wanted
    assert judged("clone", 0x3D0F00) == confine.ALLOW  # as a thread of the C library
    assert judged("clone", signal.SIGCHLD) == confine.KILL  # as fork
    assert judged("clone3") == no_such_call
    assert judged("tgkill", os.getpid()) == confine.ALLOW
    assert judged("tgkill", 1) == confine.KILL
    assert judged("ioctl", 0, 0x5401) == confine.ALLOW
    assert judged("ioctl", 0, 0x5412) == refused  # types into the terminal
    assert judged("prctl", 4) == refused  # dumpable again
    assert judged("prlimit64", 1) == refused


def test_another_processor_has_no_filter(monkeypatch):
    monkeypatch.setattr(confine.platform, "machine", lambda: "riscv64")
    assert not confine.confine()


# What check runs under the sanitizer -------------------------------------------------------------

REACHES_OUT = """#ifdef CUDALAB_CHECK
#if defined(__x86_64__)
    long number = 57, child;  // fork
    asm volatile("syscall" : "=a"(child) : "a"(number) : "rcx", "r11", "memory");
#else
    register long number asm("x8") = 220;  // clone, as fork
    register long flags asm("x0") = 17;
    asm volatile("svc 0" : "+r"(flags) : "r"(number) : "x1", "x2", "x3", "x4", "memory");
#endif
#endif
"""


def test_what_the_sanitizer_runs_is_confined(confined, tmp_path, monkeypatch):
    """A kernel file that shows another face in the instrumented build."""
    confined("")  # skips where there is none
    path = kernel(tmp_path, "reduce", "global_halving")
    text = path.read_text()
    body = text.index("{", text.index('extern "C" __global__')) + 1
    path.write_text(f"{text[:body]}\n{REACHES_OUT}{text[body:]}")
    words = ("--kernel", path, "--device", "cpu", "--quick", "--no-time", "--races", "free")
    report = checked("reduce", *words, status=5)
    assert report["stages"][0]["why"] == Why.FOREIGN
    monkeypatch.setattr(views, "of_kernels", lambda: None)  # nobody reads the text
    lab, sandbox = labs.get("reduce"), choose("none")
    case = lab.complete({})
    with closing(Kernel(lab=lab, path=path, sandbox=sandbox, device="cpu", label="my.cu")) as mine:
        mine.compile([case])
        stage = stages.sanitize_kernel(mine, case, "")
    assert (stage.status, stage.why, stage.cost) == (Status.FAILED, Why.FOREIGN, 1.0)
