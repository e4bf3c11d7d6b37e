"""Attacks on the sandbox and its limits. Every sandbox that works here is tried."""

from __future__ import annotations

import itertools
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from cudalab.checker.sandbox import running, sandbox, watch
from cudalab.checker.sandbox.box import BOX_PREFIX, limit_tasks, open_to_all
from cudalab.checker.sandbox.running import Limits, MiB, Running
from cudalab.checker.submit import reports
from cudalab.checker.submit.submission import Command, Trial
from cudalab.errors import CudalabError, NoDeviceError
from cudalab.system import processes

PYTHON = sys.executable
# Not on a machine where even a contained fork bomb could disturb others.
TIGHT = Limits(seconds=5, memory_bytes=300 * MiB, output_bytes=1 * MiB, processes=16, threads=48)


def working():
    found = []
    for kind in ("bwrap", "user", "none"):
        try:
            found.append(sandbox.choose(kind))
        except NoDeviceError:
            continue
    return found


@pytest.fixture(params=sandbox.KINDS)
def chosen(request):
    try:
        return sandbox.choose(request.param)
    except NoDeviceError as error:
        pytest.skip(error.message)


@pytest.fixture
def run(chosen, tmp_path):
    def go(*command, limits=TIGHT, stdin=subprocess.DEVNULL, **options):
        with chosen.box(**options) as box:
            return chosen.run(list(command), box, limits, stdin=stdin, stdout=tmp_path / "out")

    go.out = tmp_path / "out"
    go.chosen = chosen
    return go


def python(program):
    return PYTHON, "-c", program


def test_some_sandbox_works_everywhere():
    assert working()
    assert sandbox.choose("auto").kind in sandbox.KINDS


def test_none_says_so_loudly():
    assert "NO SANDBOX" in sandbox.choose("none").words


def test_a_sandbox_that_does_not_work_is_an_error_and_not_a_weaker_one(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    sandbox._bubblewrap.cache_clear()
    try:
        with pytest.raises(NoDeviceError, match="bwrap"):
            sandbox.choose("bwrap")
    finally:
        sandbox._bubblewrap.cache_clear()


def test_bytes_pass_through(run, tmp_path):
    data = bytes(range(256)) * 100
    given = tmp_path / "in"
    given.write_bytes(data)
    with given.open("rb") as stdin:
        outcome = run("cat", stdin=stdin)
    assert outcome.ok
    assert run.out.read_bytes() == data
    assert outcome.stdout_bytes == len(data)


def test_the_sandbox_says_by_itself_whether_it_was_built(inside, monkeypatch):
    forged = "echo 'bwrap: Creating new namespace failed' >&2; exit 1"
    outcome = inside("sh", "-c", forged)
    assert (outcome.started, outcome.status) == (True, 1)
    monkeypatch.setattr(sandbox.boxes, "bubblewrap", lambda *_: ["--ro-bind", "/nowhere", "/"])
    with pytest.raises(OSError, match="could not be built"):
        inside("true")


def test_exit_status_and_signal(run):
    assert run("sh", "-c", "exit 7").status == 7
    assert run("sh", "-c", "kill -SEGV $$").status == -11
    assert run("sh", "-c", "echo problem >&2; exit 1").stderr == "problem\n"
    assert run("no-such-program").status not in (0, None)


def test_time_limit(run):
    began = time.monotonic()
    outcome = run("sleep", "60", limits=Limits(seconds=0.5))
    assert outcome.reason == "time"
    assert time.monotonic() - began < 10


BUSY = """import time
while time.process_time() < 0.3: pass
"""
SUPERVISED = f"""from cudalab.system.supervise import supervise
def work():
    exec({BUSY!r})
    return 7
raise SystemExit(supervise(work, 1.0))
"""


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="nothing tells who waits")
def test_time_in_which_others_have_the_processor_does_not_count(run):
    """A program that needs 0.3 s may take 1 s, and four others keep it from a processor."""
    core = str(min(os.sched_getaffinity(0)))
    hogs = [
        subprocess.Popen(
            ["taskset", "-c", core, *python("while True: pass")], start_new_session=True
        )
        for _ in range(4)
    ]
    try:
        outcome = run("taskset", "-c", core, *python(BUSY), limits=Limits(seconds=1.0))
        assert (outcome.status, outcome.reason) == (0, "")
        assert outcome.seconds > 1.0
        if run.chosen.kind == "none":
            command = ["taskset", "-c", core, *python(SUPERVISED)]
            assert subprocess.run(command, check=False).returncode == 7
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def test_what_counts_as_a_trees_own_time(monkeypatch):
    waits = {}
    monkeypatch.setattr(processes, "waits_of", lambda _: dict(waits))
    tree = [processes.Process(1, [b"0"] * 30)]
    waits["1"] = 5_000_000_000  # before
    turns = processes.Turns(tree)
    assert turns.own(1, 1, tree) == 1
    waits["1"] += 2_000_000_000
    assert turns.own(4, 2, tree) == 2
    waits["2"] = 30_000_000_000  # one of many threads, while the others run
    assert turns.own(8, 7, tree) == 7
    assert turns.own(1000, 7, tree) == 1000 - 32
    waits["2"] += 10**15
    assert turns.own(2000, 7, tree) == 2000 / (1 + processes.MAX_WAIT)


def test_the_end_is_noticed_at_once():
    with subprocess.Popen(["sleep", "0.01"]) as process:
        ends = watch.exit_of(process.pid)
        if not ends:
            pytest.skip("this system cannot wait for a process that way")
        assert select.select(ends, [], [], 10)[0] == ends
        assert process.wait(1) == 0
        os.close(ends[0])


def test_a_watcher_that_says_nothing_is_ended():
    report, theirs = os.pipe()
    watcher = subprocess.Popen(["sleep", "60"], stdout=theirs)
    os.close(theirs)
    threads = threading.active_count()
    outcome = Running(watcher, -1, report, None, None).wait(0.3)
    assert (outcome.reason, watcher.returncode) == ("lost", -signal.SIGKILL)
    assert threading.active_count() == threads


def test_processor_time_limit(run):
    limits = Limits(seconds=20, cpu_seconds=0.5)
    assert run(*python("while True: pass"), limits=limits).reason == "cpu"


def test_memory_bomb(run):
    bomb = "held = []\nwhile True: held.append(bytearray(b'x') * (4 << 20))"
    outcome = run(*python(bomb))
    assert outcome.reason == "memory"
    assert outcome.peak_bytes < 2 * TIGHT.memory_bytes


def test_memory_of_many_processes_counts_together(run):
    bomb = (
        "import os, time\n"
        "for _ in range(8):\n"
        "    if os.fork() == 0:\n"
        "        held = bytearray(b'x') * (60 << 20)\n"
        "        time.sleep(30)\n"
        "time.sleep(30)"
    )
    assert run(*python(bomb)).reason == "memory"


def test_shared_memory_is_counted_once(run):
    """Six processes that share 100 MiB hold 100 MiB, not 600."""
    fork = (
        "import os, time\n"
        "held = bytearray(b'x') * (100 << 20)\n"
        "for _ in range(6):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(0.5); os._exit(0)\n"
        "time.sleep(1)"
    )
    assert run(*python(fork)).ok


def test_reserved_memory_is_not_used_memory(run):
    """What CUDA does: it reserves hundreds of gigabytes, and uses little."""
    reserve = "import mmap; m = mmap.mmap(-1, 1 << 36, mmap.MAP_PRIVATE | 0x4000); m[0] = 1"
    assert run(*python(reserve)).ok


def test_fork_bomb(run):
    outcome = run(*python("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"))
    assert outcome.reason in ("processes", "cpu")
    assert outcome.processes <= TIGHT.threads + 2


def test_the_system_bounds_processes_without_control_groups_too(run, monkeypatch):
    monkeypatch.setattr(watch.Group, "make", lambda *_: None)
    if os.getuid() == 0 and not run.chosen.own_users:
        pytest.skip("nothing but a control group bounds what root starts")
    fork = (
        "import os, time\n"
        "for n in range(1000):\n"
        "    try: pid = os.fork()\n"
        "    except OSError: break\n"
        "    if pid == 0: time.sleep(5); os._exit(0)\n"
        "print(n)"
    )
    outcome = run(*python(fork), limits=Limits(seconds=20, processes=2000, threads=50))
    assert outcome.ok, outcome
    assert int(run.out.read_text()) <= 50


FORK = """
import os, sys, time
most, seconds = int(sys.argv[1]), float(sys.argv[2])
print("ready", flush=True)
sys.stdin.read(1)
for n in range(most + 1):
    try: pid = n < most and os.fork()
    except OSError: break
    if pid == 0 and n < most: time.sleep(seconds); os._exit(0)
print(n, flush=True)
time.sleep(seconds)
"""
TWO_RUNS = """
import os, subprocess, sys, threading, time
from pathlib import Path
from cudalab.checker.sandbox import sandbox, watch
from cudalab.checker.sandbox.running import Limits
watch.Group.make = lambda *_: None
chosen, limits = sandbox.choose("bwrap"), Limits(seconds=30, processes=99, threads=40)
def run(path, stdin, *words):
    command = [sys.executable, "-c", sys.argv[2], *words]
    with chosen.box() as box: chosen.run(command, box, limits, stdin=stdin, stdout=path)
def start(name, stdin, *words):
    path = Path(sys.argv[1], name)
    threading.Thread(target=run, args=(path, stdin, *words)).start()
    return path
def wait(path, lines):
    while not path.exists() or path.read_text().count("\\n") < lines: time.sleep(0.05)
reading, writing = os.pipe()
beside = start("beside", reading, "30", "0")
wait(beside, 1)
wait(start("bomb", subprocess.DEVNULL, "99", "4"), 2)
os.write(writing, b"!")
wait(beside, 2)
"""


def test_a_fork_bomb_leaves_other_runs_of_an_ordinary_user_their_processes():
    if not limit_tasks(1):
        pytest.skip("this system counts processes by users, not by namespaces")
    if os.getuid() == 0 and not open_to_all(Path(PYTHON).resolve()):
        pytest.skip(f"only root can run {PYTHON}")
    user = {"user": 65_534, "group": 65_534, "extra_groups": []} if os.getuid() == 0 else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        done = subprocess.run(
            [PYTHON, "-c", TWO_RUNS, folder, FORK], capture_output=True, text=True, check=False,
            cwd=Path(sandbox.__file__).parents[3], **user,
        )  # fmt: skip
        if "NoDeviceError" in done.stderr or "PermissionError" in done.stderr:
            pytest.skip(done.stderr.splitlines()[-1])
        assert done.returncode == 0, done.stderr
        assert 30 < int((folder / "bomb").read_text().split()[1]) <= 42
        assert (folder / "beside").read_text() == "ready\n30\n"


def test_endless_output(run):
    endless = "import os\nwhile True: os.write(1, b'x' * 65536)"
    outcome = run(*python(endless))
    assert outcome.reason == "output"
    assert run.out.stat().st_size <= 64 * MiB


def test_full_disk(run):
    fill = "n = 0\nwhile True:\n    n += 1\n    open(f'file-{n}', 'wb').write(b'x' * (4 << 20))"
    limits = Limits(seconds=20, disk_bytes=32 * MiB)
    assert run(*python(fill), limits=limits).reason == "disk"


@pytest.mark.parametrize(
    "leave",
    [
        "sleep {} & exit 0",
        "setsid sleep {} & exit 0",
        "(setsid sh -c 'setsid sleep {} &' &) ; exit 0",
        "nohup sleep {} >/dev/null 2>&1 & disown; exit 0",
    ],
)
def test_nothing_runs_afterwards(run, leave):
    nap = a_nap()
    assert run("bash", "-c", leave.format(nap)).status == 0
    assert not sleeping(nap)


def test_an_ended_run_leaves_nothing_either(run):
    nap = a_nap()
    run("bash", "-c", f"setsid sleep {nap} & sleep {nap}", limits=Limits(seconds=0.5))
    assert not sleeping(nap)


naps = itertools.count(1)


def a_nap():
    """Seconds that no other test sleeps, by which its processes are known."""
    return f"{60 + next(naps)}.{os.getpid()}"


def sleeping(seconds):
    """The processes that sleep so long."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                if (path / "cmdline").read_bytes() == f"sleep\0{seconds}\0".encode():
                    found.append(path.name)
            except OSError:
                continue
    return found


def test_the_watcher_cannot_be_ended_and_pass(run):
    kill = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nprint('still here')"
    outcome = run(*python(kill))
    # In a space of its own the parent cannot be killed; elsewhere that is no pass.
    if run.chosen.kind == "none":
        assert outcome.reason == "lost"
        assert not outcome.ok
    assert outcome.status != 0 or run.chosen.kind == "bwrap"


@pytest.mark.skipif(os.getuid() != 0, reason="only root starts runs as other users")
def test_two_graders_never_have_the_same_user(monkeypatch, tmp_path):
    """Each kills all that runs as its user when its run ends."""
    monkeypatch.setattr(running, "USERS", tmp_path)
    monkeypatch.setattr(running, "NUM_UIDS", 2)
    claim = (
        "from pathlib import Path\n"
        "from cudalab.checker.sandbox import running\n"
        f"running.USERS, running.NUM_UIDS = Path({str(tmp_path)!r}), 2\n"
        "print(running.User.claim().uid, flush=True)\n"
        "input()\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(sandbox.__file__).parents[3])}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([PYTHON, "-c", claim], env=env, text=True, **pipes) as other:
        theirs = int(other.stdout.readline())
        ours = running.User.claim()
        assert {theirs, ours.uid} == {running.FIRST_UID, running.FIRST_UID + 1}
        with pytest.raises(OSError, match="in use"):
            running.User.claim()
        other.kill()
    assert running.User.claim().uid == theirs
    ours.release()
    assert running.User.claim().uid == ours.uid


def test_the_grader_ending_ends_the_run(tmp_path):
    """Killed without a chance to say anything, as a batch system does it."""
    nap = a_nap()
    program = (
        "import subprocess\n"
        "from pathlib import Path\n"
        "from cudalab.checker.sandbox import sandbox\n"
        "from cudalab.checker.sandbox.running import Limits\n"
        f"chosen = sandbox.choose('none')\n"
        "with chosen.box() as box:\n"
        f"    chosen.run(['sleep', {nap!r}], box, Limits(seconds=60),\n"
        f"              stdin=subprocess.DEVNULL, stdout=Path({str(tmp_path / 'out')!r}))\n"
    )
    root = Path(sandbox.__file__).parents[3]
    env = {**os.environ, "PYTHONPATH": str(root)}
    grader = subprocess.Popen([PYTHON, "-c", program], env=env)
    deadline = time.monotonic() + 20
    while not sleeping(nap) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert sleeping(nap)
    grader.kill()
    grader.wait()
    while sleeping(nap) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not sleeping(nap)


def test_a_process_that_the_verdict_goes_through_has_no_way_to_it(run):
    """Every descriptor that the submission has leads to its own stdin, stdout or stderr."""
    claim = (
        "import json, os\n"
        "said = json.dumps({'reason': '', 'status': 0, 'seconds': 0}).encode()\n"
        "for fd in range(3, 256):\n"
        "    try: os.write(fd, said)\n"
        "    except OSError: continue\n"
        "    else: print('wrote to', fd)\n"
        "raise SystemExit(9)"
    )
    outcome = run(*python(claim))
    assert outcome.status == 9
    assert run.out.read_bytes() == b""


def test_a_run_inherits_three_descriptors(run):
    """All of them lead to its own files: nothing of the judge's is among them."""
    program = (
        "import os\n"
        "for fd in sorted(map(int, os.listdir('/proc/self/fd'))):\n"
        "    try: print(fd, os.readlink(f'/proc/self/fd/{fd}'))\n"
        "    except OSError: pass"  # that of the listing itself
    )
    assert run(*python(program)).ok
    lines = dict(line.split(" ", 1) for line in run.out.read_text().splitlines())
    assert lines.keys() == {"0", "1", "2"}
    assert lines["0"] == "/dev/null"
    assert "deleted" in lines["2"] or lines["2"].startswith("/memfd")


def test_a_program_has_a_copy_of_its_input(chosen, tmp_path):
    """What it opens again for writing is its own; the judge's bytes stay as they are."""
    path = tmp_path / "input.bin"
    path.write_bytes(b"the judge's")
    rewrite = (
        "import os\nprint(open('/dev/stdin').read(), end='', flush=True)\n"
        "try:\n    os.chmod('/proc/self/fd/0', 0o666)\n"
        "    open('/proc/self/fd/0', 'r+b').write(b'mine')\n"
        "except OSError: pass"
    )
    attempt = Command(python(rewrite), chosen).attempt(Trial({}, path, TIGHT))
    assert attempt.outcome.ok
    assert attempt.answers == [b"the judge's"]
    assert path.read_bytes() == b"the judge's"


@pytest.mark.skipif(os.getuid() != 0, reason="only root removes another user's files")
def test_nothing_of_a_runs_user_survives(tmp_path):
    user = running.User.claim(tmp_path)
    owner = {"user": user.uid, "group": user.uid, "extra_groups": []}
    name = f"cudalab-test-{user.uid}"
    places = [Path(folder, name) for folder in running.shared_folders()]
    places = [path for path in places if not path.is_relative_to("/dev/mqueue")]
    assert Path("/dev/shm", name) in places  # noqa: S108 - it is what the test is about
    deep = f"mkdir -p {' '.join(f'{path}/a/b' for path in places)}; ipcmk -M 100 -S 2 -Q"
    subprocess.run(["sh", "-c", deep], **owner, check=True, stdout=subprocess.DEVNULL)
    assert all(path.is_dir() for path in places)
    assert [watch.owned(str(path.parent), user.uid) for path in places] == [
        [str(path)] for path in places
    ]
    assert running._objects("shm", user.uid)
    user.release()
    assert not any(path.exists() for path in places)
    assert not any(running._objects(kind, user.uid) for kind in ("shm", "sem", "msg"))


@pytest.mark.skipif(os.getuid() != 0, reason="only root removes another user's files")
def test_nor_does_it_if_the_grader_is_killed(tmp_path):
    """Its locks are gone then, and the next run of any user would find the files."""
    killed, at_work = running.User.claim(tmp_path), running.User.claim(tmp_path)
    paths = {
        user.uid: Path("/dev/shm", f"cudalab-test-{user.uid}")  # noqa: S108 - it is what it is about
        for user in (killed, at_work)
    }
    for uid, path in paths.items():
        path.write_text("left")
        os.chown(path, uid, uid)
    box = Path(tempfile.mkdtemp(prefix=BOX_PREFIX))  # that its judge may still read
    os.chown(box, killed.uid, killed.uid)
    os.close(killed.lock)
    running.User.claim(tmp_path).release()
    assert [path.exists() for path in paths.values()] == [False, True]
    box.rmdir()
    at_work.release()
    assert not paths[at_work.uid].exists()


def test_environment_is_clean(run, monkeypatch):
    monkeypatch.setenv("CUDALAB_SECRET_TOKEN", "7c1e")
    assert run(*python("import os; print(dict(os.environ))")).ok
    assert b"7c1e" not in run.out.read_bytes()


# What only bubblewrap keeps out -----------------------------------------------------------------


@pytest.fixture
def inside(run):
    if run.chosen.kind != "bwrap":
        pytest.skip(f"sandbox {run.chosen.kind} does not isolate")
    return run


def test_files_are_not_there(inside, tmp_path):
    secret = tmp_path / "expected.bin"
    secret.write_bytes(b"42")
    for path in (secret, Path("/etc/passwd"), Path("/etc/shadow"), Path.home() / ".bashrc"):
        assert inside("cat", str(path)).status != 0
    assert inside("sh", "-c", "ls -A /home /var /srv 2>/dev/null; true").ok
    assert inside.out.read_bytes() == b""


def test_only_the_box_can_be_written(inside):
    assert inside("sh", "-c", "echo x > here && cat here").ok
    for target in ("/usr/x", "/x", "/etc/x", str(Path(sandbox.__file__).with_name("x.py"))):
        assert inside("sh", "-c", f"echo x > {target}").status != 0


def test_a_link_leads_nowhere(inside, tmp_path):
    (tmp_path / "secret").write_text("42")
    link = f"ln -s {tmp_path}/secret link; cat link"
    assert inside("sh", "-c", link).status != 0


def test_hidden_files_stay_hidden(inside, tmp_path):
    (tmp_path / "tests.toml").write_text("secret")
    (tmp_path / "program.txt").write_text("open")
    options = {"readable": (tmp_path,), "hidden": (tmp_path / "tests.toml",)}
    inside("cat", str(tmp_path / "program.txt"), **options)
    assert inside.out.read_text() == "open"
    inside("cat", str(tmp_path / "tests.toml"), **options)
    assert inside.out.read_text() == ""


def test_no_network(inside):
    ask = "import socket; socket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"
    assert inside(*python(ask)).status == 1


def test_other_processes_are_not_seen(inside):
    inside("sh", "-c", "ls /proc | grep -c '^[0-9]'")
    assert int(inside.out.read_text()) < 8


def test_memory_of_the_grader_is_out_of_reach(run):
    if run.chosen.kind == "none":
        pytest.skip("sandbox none does not isolate")
    read = f"open('/proc/{os.getpid()}/mem', 'rb').read(1)"
    assert run(*python(read)).status == 1


# The grader's own side ---------------------------------------------------------------------------


def test_what_a_submission_leaves_is_read_carefully(tmp_path):
    (tmp_path / "secret").write_bytes(b"42")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("link", "pipe", "folder", "absent"):
        with pytest.raises(CudalabError):
            reports.read_regular(tmp_path / name, 100)
    assert reports.read_regular(tmp_path / "secret", 100) == b"42"
    with pytest.raises(CudalabError):
        reports.read_regular(tmp_path / "secret", 1)


def test_a_box_is_gone_whatever_was_done_to_it(chosen):
    with chosen.box() as box:
        (box.path / "a").mkdir()
        (box.path / "a" / "b").write_text("x")
        (box.path / "a").chmod(0)
        (box.path / "link").symlink_to("/")
    assert not box.path.exists()
    assert Path("/usr").exists()


def test_removing_a_folder_that_is_gone_leaves_the_one_around_it(tmp_path):
    tmp_path.chmod(0o751)
    sandbox.remove(tmp_path / "gone")
    assert tmp_path.stat().st_mode & 0o777 == 0o751


def test_groups_are_given_back():
    group = watch.Group.make(f"cudalab-test-{os.getpid()}", 10)
    if group is None:
        pytest.skip("no control groups that this user may make")
    assert Path(group.path).is_dir()
    assert group.members() == []
    group.remove()
    assert not Path(group.path).exists()
