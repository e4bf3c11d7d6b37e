"""The judge's packages in every sandbox, wherever they are installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from cudalab.checker.sandbox import box as packages
from cudalab.checker.sandbox import sandbox
from cudalab.checker.sandbox.running import Limits
from cudalab.checker.submit.program import Program
from cudalab.checker.submit.submission import Command, Trial
from cudalab.errors import NoDeviceError

ROOT = Path(packages.__file__).parents[3]
JUDGE = """
import json, sys
from pathlib import Path
from cudalab.checker.sandbox import sandbox
from cudalab.checker.sandbox.running import Limits

kind, secret = sys.argv[1:]
chosen = sandbox.choose(kind)
look = "import os, json, sys, numpy, pycuda as found; secret = os.access(sys.argv[1], os.R_OK); "
look += "print(json.dumps([found.__file__, found.WORD, secret]))"
out = Path(secret).with_name("out")
with chosen.box(extra_env={"PYTHONPATH": chosen.imports.path()}) as box:
    command = [chosen.imports.python, "-c", look, secret]
    done = chosen.run(command, box, Limits(), stdin=open(os.devnull), stdout=out)
print(out.read_text() if done.ok else done)
"""


@pytest.fixture(params=["a folder", "a file", "installed"])
def site(request, tmp_path):
    """A folder like that of `pip install --target`, which is closed to others."""
    home = tmp_path / "home"
    folder = home / "site"
    folder.mkdir(parents=True)
    text = "WORD = 'found'\n"
    if request.param == "a file":
        (folder / "pycuda.py").write_text(text)
    else:
        (folder / "pycuda").mkdir()
        (folder / "pycuda" / "__init__.py").write_text("from pycuda.part import WORD\n")
        (folder / "pycuda" / "part.py").write_text(text)
    if request.param == "installed":
        info = folder / "pycuda-2026.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pycuda\nVersion: 2026.1\n")
        (info / "RECORD").write_text(
            "pycuda/__init__.py,,\npycuda/part.py,,\npycuda-2026.1.dist-info/METADATA,,\n"
        )
    home.chmod(0o700)
    return folder


@pytest.mark.parametrize("kind", sandbox.KINDS)
def test_a_judged_process_imports_what_the_judge_does(kind, site, tmp_path):
    try:
        chosen = sandbox.choose(kind)
    except NoDeviceError as error:
        pytest.skip(error.message)
    secret = site / "hidden.toml"
    secret.write_text("the grader's")
    imports = [ROOT, site, *os.environ.get("PYTHONPATH", "").split(":")]
    imports = [path for path in imports if path == site or not Path(path, "pycuda").exists()]
    done = subprocess.run(
        [sys.executable, "-c", "import os" + JUDGE, kind, str(secret)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ":".join(map(str, imports))},
    )
    assert done.returncode == 0, done.stderr
    where, word, sees_the_graders_files = json.loads(done.stdout)
    assert word == "found"
    assert sees_the_graders_files == (kind == "none")
    assert Path(where).is_relative_to(site) == (not chosen.own_users)
    assert Path(where).is_relative_to(site) or not Path(where).exists()  # the copy is gone


def test_packages_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *extras["cuda"], *extras["nvcc"], *extras["cpu"]]
    names = {packages._NAME.match(line)[0].rstrip(">=") for line in asked}
    assert names - {"cudalab"} == {*packages.REQUIRED, *packages.EXTRA}


@pytest.fixture
def closed(monkeypatch, tmp_path):
    """An installation that only its owner can read."""
    folder = tmp_path / "closed"
    (folder / "cudalab").mkdir(parents=True)
    (folder / "cudalab" / "__init__.py").write_text("")
    (folder / "kernels" / "reduce").mkdir(parents=True)
    (folder / "kernels" / "reduce" / "mine.cu").write_text("// a kernel")
    folder.chmod(0o700)
    monkeypatch.setattr(packages, "PACKAGE_ROOT", folder)
    return folder


def test_what_others_cannot_read_is_copied(closed):
    imports = packages.for_others.__wrapped__()
    assert imports.root != closed
    assert imports.seen(closed / "kernels" / "reduce" / "mine.cu").read_text() == "// a kernel"
    assert all(packages.open_to_all(path) for path in imports.root.rglob("*"))
    assert imports.seen(Path("/elsewhere")) == Path("/elsewhere")
    assert imports.readers is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a run as another user")
@pytest.mark.usefixtures("closed")
def test_a_copy_of_cudalab_is_not_for_submissions():
    """Where runs see the machine's files: its variants would compute the answers."""
    imports = packages.for_others.__wrapped__(separate=True)
    box = sandbox.Sandbox("user", "", own_users=True, imports=imports)
    program = Program(files=[], sandbox=box, name="x.cu", device="cpu")
    command = ["/bin/cat", str(imports.root / "kernels" / "reduce" / "mine.cu")]
    with closing(program):
        program.begin()
        for own_code, seen in ((True, b"// a kernel"), (False, b"")):
            with program.box(own_code=own_code) as one:
                outcome, printed = box.capture(command, one, Limits())
                assert printed == seen, outcome
                assert (str(imports.root / "cudalab") in map(str, one.hidden)) is not own_code
    attempt = Command(command, box).attempt(Trial({}, Path("/dev/null"), Limits()))
    assert "Permission denied" in attempt.says
