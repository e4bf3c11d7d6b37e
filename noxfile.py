"""What CI does besides the tests: `.venv/bin/nox` does all of it, `.venv/bin/nox -s lint` a part.

Sessions use the environment that nox itself is in; `package` makes one of its own.
"""

import os
import shutil
import sys
from pathlib import Path

import nox

CUDA = ("kernels", "tools", "samples/programs", "cudalab/backends/cpu/runtime")
CUDA_SUFFIXES = {".cu", ".cuh", ".h", ".cpp"}
SAMPLE = Path("samples/radixsort/course.uint32.in.bin").absolute()
TUTORIAL = Path("docs/notebooks/tutorial.ipynb")

nox.needs_version = ">=2024.4"
nox.options.default_venv_backend = "none"
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, types and layers."""
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")
    session.run("lint-imports", "--no-cache")
    paths = sorted(path for folder in CUDA for path in Path(folder).rglob("*"))
    names = Path(session.create_tmp(), "files")
    names.write_text("\n".join(str(path) for path in paths if path.suffix in CUDA_SUFFIXES))
    session.run("clang-format", "--dry-run", "-Werror", f"--files={names}")


@nox.session
def docs(session: nox.Session) -> None:
    """Repeat the commands that the documents show, and build the site without a broken link."""
    session.run("python", "-m", "tools.transcripts", "--check")
    folder = session.create_tmp()
    session.env["NO_MKDOCS_2_WARNING"] = "1"
    session.run("mkdocs", "build", "--quiet", "--strict", "--site-dir", folder)


@nox.session
def notebook(session: nox.Session) -> None:
    """Execute the tutorial, whose cells check their own results."""
    folder = session.create_tmp()
    shutil.copy(TUTORIAL, folder)  # its cells write files
    with session.chdir(folder):
        session.run("jupyter", "execute", TUTORIAL.name)


@nox.session(venv_backend="venv")
def package(session: nox.Session) -> None:
    """Build dist/, check its metadata, and use the wheel away from the repository."""
    built = Path("dist").absolute()
    shutil.rmtree(built, ignore_errors=True)
    # The wheel is built from the sdist, so the sdist is complete.
    session.run(sys.executable, "-m", "build", external=True)
    session.run("twine", "check", "--strict", *map(str, built.iterdir()), external=True)
    session.install(*map(str, built.glob("*.whl")))
    with session.chdir(session.create_tmp()):
        session.run("cudalab", "--version")
        session.run("cudalab", "radixsort", "--device=cpu", "-i", str(SAMPLE), "-o", "out.bin")
        session.run("cudalab", "verify", "radixsort", str(SAMPLE), "out.bin")
        code = "import cudalab; print(cudalab.run('table', 3, 0.25, device='cpu'))"
        session.run("python", "-c", code)
        at = Path.cwd()
        places = {"PIPX_HOME": at / "pipx", "PIPX_BIN_DIR": at / "bin", "PIPX_MAN_DIR": at / "man"}
        env = {name: str(path) for name, path in places.items()}
        wheel = next(built.glob("*.whl"))
        session.run("pipx", "install", "--quiet", str(wheel), env=env, external=True)
        session.run("bin/cudalab", "--version", external=True)
        session.run("pip", "download", "--quiet", "--dest", "wheels", str(wheel))
        uvx = ("uvx", "--no-cache", "--no-index", "--find-links", "wheels", "--from", str(wheel))
        session.run(*uvx, "--python", sys.executable, "cudalab", "--version", external=True)
        session.run("test", "-e", "man/man1/cudalab.1", external=True)
