"""Confines this process before it loads a submitted kernel: a filter of system calls (seccomp).

On the CPU device a kernel's machine code is in the worker's process. With the filter it can
compute, allocate, start threads, and read files that the sandbox shows. It cannot start a program
or a process, open a file for writing, or reach other processes, the network or memory that several
processes share. So nothing that it does outlives the process, and none of its runs reaches another.

The filter lists what is allowed: a call that it does not know does not exist. It holds for all
threads, and nothing can remove it. Its numbers for each processor are tested against the system's
headers; on 64-bit ARM it has not run yet, since qemu's emulation of programs has no filters.
"""

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Callable

from cudalab.system.cache import CLOSED, READ_ONLY

ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
EPERM, ENOSYS = 1, 38
NO_NEW_PRIVILEGES, DUMPABLE = 38, 4  # prctl
SET_FILTER, ALL_THREADS = 1, 1
CLONE_THREAD = 0x00010000
TO_WRITE = 0o3 | 0o100 | 0o1000 | 0o20000000  # O_ACCMODE, O_CREAT, O_TRUNC, and O_TMPFILE's own bit
TERMINAL = (0x5401, 0x5450, 0x5451)  # ioctl: is it a terminal; close on exec, or not

# Per architecture: its name for auditing, and the numbers of its calls.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Name, then the number on x86-64 and on 64-bit ARM, which lacks some.
_ALLOWED = """
read 0 63, write 1 64, close 3 57, stat 4 -, fstat 5 80, lstat 6 -, poll 7 -, lseek 8 62,
mmap 9 222, mprotect 10 226, munmap 11 215, brk 12 214, rt_sigaction 13 134, rt_sigprocmask 14 135,
rt_sigreturn 15 139, pread64 17 67, pwrite64 18 68, readv 19 65, writev 20 66, access 21 -,
pipe 22 -, select 23 -, sched_yield 24 124, mremap 25 216, msync 26 227, mincore 27 232,
madvise 28 233, dup 32 23, dup2 33 -, pause 34 -, nanosleep 35 101, getpid 39 172, exit 60 93,
uname 63 160, fcntl 72 25, fsync 74 82, fdatasync 75 83, ftruncate 77 46, getdents 78 -,
getcwd 79 17, readlink 89 -, gettimeofday 96 169, getrlimit 97 163, getrusage 98 165,
sysinfo 99 179, times 100 153, getuid 102 174, getgid 104 176, geteuid 107 175, getegid 108 177,
getppid 110 173, getgroups 115 158, getresuid 118 148, getresgid 120 150, rt_sigpending 127 136,
rt_sigtimedwait 128 137, rt_sigsuspend 130 133, sigaltstack 131 132, statfs 137 43, fstatfs 138 44,
getpriority 140 141, sched_getparam 143 121, sched_getscheduler 145 120,
sched_get_priority_max 146 125, sched_get_priority_min 147 126, arch_prctl 158 -, gettid 186 178,
time 201 -, futex 202 98, sched_setaffinity 203 122, sched_getaffinity 204 123, getdents64 217 61,
set_tid_address 218 96, restart_syscall 219 128, fadvise64 221 223, clock_gettime 228 113,
clock_getres 229 114, clock_nanosleep 230 115, exit_group 231 94, get_mempolicy 239 236,
newfstatat 262 79, readlinkat 267 78, faccessat 269 48, pselect6 270 72, ppoll 271 73,
set_robust_list 273 99, get_robust_list 274 100, eventfd2 290 19, dup3 292 24, pipe2 293 59,
preadv 295 69, pwritev 296 70, getcpu 309 168, getrandom 318 278,
memfd_create 319 279, membarrier 324 283, statx 332 291, rseq 334 293,
faccessat2 439 439, futex_waitv 449 449, map_shadow_stack 453 453
"""
_FOREIGN = """
clone 56 220, fork 57 -, vfork 58 -, execve 59 221, execveat 322 281, kill 62 129, tkill 200 130,
ptrace 101 117, socket 41 198, socketpair 53 199, connect 42 203, shmget 29 194, msgget 68 186,
semget 64 190, mq_open 240 180, process_vm_readv 310 270, process_vm_writev 311 271,
pidfd_open 434 434, pidfd_getfd 438 438, setns 308 268, unshare 272 97, mount 165 40, bpf 321 280,
perf_event_open 298 241, userfaultfd 323 282, io_uring_setup 425 425, keyctl 250 219
"""
_WITH_CHECKS = """
open 2 -, openat 257 56, ioctl 16 29, tgkill 234 131, prctl 157 167, prlimit64 302 261,
clone3 435 435
"""


def confine() -> bool:
    """Install the filter in all threads of this process; whether the system has one.

    Then nothing can be compiled here: what is not in the cache is not there (NotBuiltError).
    """
    index = 0 if platform.machine() == "x86_64" else 1
    audit = _ARCHITECTURES.get(platform.machine())
    if audit is None or sys.platform != "linux" or struct.calcsize("P") != 8:
        return False
    program = _program(audit, index)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return False
    number = (317, 277)[index]
    code = ctypes.create_string_buffer(program, len(program))
    filter_ = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    confined = int(libc.syscall(number, SET_FILTER, ALL_THREADS, filter_)) == 0
    if confined:
        os.environ[READ_ONLY] = CLOSED
    return confined


def hide(*, hidden: bool = True) -> None:
    """Keep other processes of this user out of this one's memory and descriptors, or let them in.

    The system then treats some of its own files as another user's, too: a GPU's driver needs them.
    """
    ctypes.CDLL(None).prctl(DUMPABLE, int(not hidden), 0, 0, 0)


def _numbers(table: str, index: int) -> dict[str, int]:
    entries = (entry.split() for entry in table.replace("\n", " ").split(","))
    return {name: int(both[index]) for name, *both in entries if both[index] != "-"}


def _program(audit: int, index: int) -> bytes:
    """The filter, in the instructions of BPF."""
    code = _Code()
    code.load(_ARCHITECTURE)
    code.unless(audit, KILL)  # such as the calls of 32-bit programs
    code.load(_NUMBER)
    for number in _numbers(_ALLOWED, index).values():
        code.when(number, ALLOW)
    checked = _numbers(_WITH_CHECKS, index)
    code.when(
        checked["clone3"], ERRNO | ENOSYS
    )  # its flags are in memory; the C library uses clone
    for name, argument in (("open", 1), ("openat", 2)):
        if name in checked:
            code.branch(checked[name], argument, lambda: code.when_any_bit(TO_WRITE, ERRNO | EPERM))
    code.branch(checked["ioctl"], 1, lambda: code.unless_in(TERMINAL, ERRNO | EPERM))
    code.branch(checked["tgkill"], 0, lambda: code.unless_in((os.getpid(),), KILL))
    code.branch(checked["prctl"], 0, lambda: code.unless_in(_PRCTL, ERRNO | EPERM))
    code.branch(checked["prlimit64"], 0, lambda: code.unless_in((0,), ERRNO | EPERM))
    foreign = _numbers(_FOREIGN, index)
    code.branch(foreign.pop("clone"), 0, lambda: code.unless_bit(CLONE_THREAD, KILL))
    for number in foreign.values():
        code.when(number, KILL)
    code.end(ERRNO | ENOSYS)
    return code.bytes()


_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_PRCTL = (15, 16, 23, 0x53564D41)  # names of threads and of memory; reading the bounding set
_LOAD, _EQUAL, _BITS, _RETURN = 0x20, 0x15, 0x45, 0x06


class _Code:
    """Instructions of BPF: an operation, two jumps (over so many instructions) and a value."""

    def __init__(self) -> None:
        self._instructions: list[tuple[int, int, int, int]] = []

    def load(self, offset: int) -> None:
        """Load a word of the call's description."""
        self._instructions.append((_LOAD, 0, 0, offset))

    def end(self, verdict: int) -> None:
        self._instructions.append((_RETURN, 0, 0, verdict))

    def when(self, value: int, verdict: int) -> None:
        """End with a verdict if the word is `value`."""
        self._instructions.append((_EQUAL, 0, 1, value))
        self.end(verdict)

    def unless(self, value: int, verdict: int) -> None:
        """End with a verdict if the word is not `value`."""
        self._instructions.append((_EQUAL, 1, 0, value))
        self.end(verdict)

    def unless_in(self, values: tuple[int, ...], verdict: int) -> None:
        """Allow the values, and end with a verdict otherwise."""
        for value in values:
            self.when(value, ALLOW)
        self.end(verdict)

    def when_any_bit(self, bits: int, verdict: int) -> None:
        """End with a verdict if the word has any of the bits, and allow it otherwise."""
        self._instructions.append((_BITS, 0, 1, bits))
        self.end(verdict)
        self.end(ALLOW)

    def unless_bit(self, bit: int, verdict: int) -> None:
        """Allow the word if it has the bit, and end with a verdict otherwise."""
        self.when_any_bit(bit, ALLOW)
        self._instructions[-1] = (_RETURN, 0, 0, verdict)

    def branch(self, number: int, argument: int, then: Callable[[], None]) -> None:
        """For the call `number`, go on with the low half of an argument; `then` ends."""
        place = len(self._instructions)
        self._instructions.append((_EQUAL, 0, 0, number))
        self.load(_ARGUMENTS + 8 * argument)
        then()
        self._instructions[place] = (_EQUAL, 0, len(self._instructions) - place - 1, number)

    def bytes(self) -> bytes:
        """The filter as the kernel reads it."""
        return b"".join(struct.pack("HBBI", *one) for one in self._instructions)
