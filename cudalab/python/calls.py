"""The functions `cudalab.sort`, `cudalab.run`, `cudalab.profile` and `cudalab.sanitize`.

docs/python.md describes them. The variants of cudalab run in this process; a kernel of yours, and
every kernel under the microscope, in one of its own.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cudalab import labs, runner
from cudalab.backends import DEVICES, open_device
from cudalab.backends.base import Device
from cudalab.errors import CudalabError, InputError, UsageError, nearest
from cudalab.formats import InputStream, write_all
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Array, Case, HostInputs, Size
from cudalab.labs.sizes import in_words
from cudalab.microscope import document, findings
from cudalab.microscope.document import Document
from cudalab.microscope.findings import Findings
from cudalab.python import arrays
from cudalab.python.command import Page, call, error_of, finished, without_folder

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_log = logging.getLogger("cudalab")


@cache
def sorts() -> str:
    """The lab behind `cudalab.sort`: the one that moves values with their keys."""
    pairs = (name for name in labs.names() if "pairs" in labs.get(name).axes.get("layout", ()))
    return next(pairs)


@contextmanager
def hint_shown() -> Iterator[None]:
    """Add the hint of an error to what Python prints of it."""
    try:
        yield
    except CudalabError as error:
        if error.hint:
            error.add_note(f"Hint: {error.hint}")
        raise


@overload
def sort(
    keys: ArrayLike,
    values: None = None,
    *,
    variant: str | None = None,
    device: str | Device = "auto",
    kernel: str | Path | None = None,
) -> Array: ...
@overload
def sort(
    keys: ArrayLike,
    values: ArrayLike,
    *,
    variant: str | None = None,
    device: str | Device = "auto",
    kernel: str | Path | None = None,
) -> tuple[Array, Array]: ...
def sort(
    keys: ArrayLike,
    values: ArrayLike | None = None,
    *,
    variant: str | None = None,
    device: str | Device = "auto",
    kernel: str | Path | None = None,
) -> Array | tuple[Array, Array]:
    """Sort `keys` with the lab `radixsort`; with `values`, sort pairs and return both arrays.

    keys: one dimension, of uint32, int32, float32, uint64 or float64. Floats are ordered by their
    bits: -NaN, -inf, ..., -0, +0, ..., inf, NaN.
    values: as many uint32, each moved with its key; equal keys keep their order. Keys of pairs have
    4 bytes.
    variant, device, kernel: as in `run`.
    """
    options: dict[str, Any] = {"variant": variant, "device": device, "kernel": kernel}
    if values is None:
        return run(sorts(), keys, **options)
    keys, values = (np.asarray(arrays.plain(sorts(), one)) for one in (keys, values))
    if keys.ndim != 1 or values.shape != keys.shape or values.dtype != np.uint32:
        raise InputError(
            f"values: expected uint32 for each of {keys.size:,} keys, got {values.dtype} "
            f"in the shape {values.shape} for keys in the shape {keys.shape}"
        )
    # The lab has dtypes of 4 bytes only for pairs, and says so itself.
    both = np.stack([keys, values.view(keys.dtype)]) if keys.itemsize == 4 else keys
    sorted_keys, moved = run(sorts(), both, layout="pairs", **options)
    return sorted_keys, moved.view(np.uint32)


@hint_shown()
def run(
    lab: str,
    *inputs: ArrayLike,
    variant: str | None = None,
    device: str | Device = "auto",
    kernel: str | Path | None = None,
    **options: Any,
) -> Array:
    """Compute the answer of a lab.

    lab: a name of `cudalab list`.
    inputs: the arrays of the lab's stream, in its order and without its header; the numbers of one
    that has no arrays. They are never written.
    variant: the device's default, if absent.
    device: "auto", "cuda" or "cpu", or a device that `cudalab.open_device` has opened, which saves
    opening it each time.
    kernel: your own file, in place of a variant. It runs in a process of its own.
    options: those of the command, as keywords: op="max", bins=64; rows=True is along="rows". The
    element type is that of the arrays.

    Returns a new array in the shape and type that the lab describes.
    Raises a `cudalab.CudalabError`: InputError for arrays that do not fit, UsageError for an option
    or a name that does not exist, NoDeviceError, KernelCompileError, KernelError, TimeLimitError.
    """
    chosen = _lab(lab)
    _check_file(kernel)
    if lab == sorts() and len(inputs) > 1:
        raise InputError(
            f"{lab}: expected an array of keys, got {len(inputs)} inputs",
            hint="cudalab.sort(keys, values) sorts pairs",
        )
    stream, read, case = arrays.read(chosen, inputs, options)
    known = ("auto", *DEVICES)
    if kernel is None and isinstance(device, str) and device not in known:
        raise UsageError(f"there is no device '{device}'", hint=nearest(device, known))
    if kernel is not None:
        if variant is not None:
            raise UsageError("variant and kernel exclude each other", hint="leave one of them out")
        if not isinstance(device, str):
            raise UsageError(
                "a kernel of yours runs in a process of its own, which opens the device itself",
                hint="name the device",
            )
        return _run_file(chosen, kernel, device, stream, read, case)
    with ExitStack() as stack:
        opened = stack.enter_context(open_device(device)) if isinstance(device, str) else device
        if variant is None:
            selected = registry.choose(chosen, read, case, opened)
        else:
            selected = registry.find(chosen, variant)
            registry.check_applies(selected, chosen, case)
        registry.check_features(selected, opened.name, opened.features)
        result = runner.run(chosen, selected, opened, read, case)
        for note in result.notes:
            _log.info(note)
        chosen.finish(result.array, case)
        return arrays.shaped(result.array(), chosen, read, case)


def _run_file(
    lab: Lab,
    kernel: str | Path,
    device: str,
    stream: arrays.ArrayStream,
    inputs: HostInputs,
    case: Case,
) -> Array:
    """The answer of a kernel file of one's own, by the lab's command."""
    with TemporaryDirectory(prefix="cudalab-") as folder:
        answer = Path(folder, "out.bin")
        files = ("-i", str(_stored(stream, folder)), "-o", str(answer))
        words = lab.words(case, runs=True)
        call(lab.name, "--kernel", str(kernel), "--device", device, *words, *files)
        with answer.open("rb") as file:
            return lab.read_answer(InputStream(file.fileno(), "answer"), inputs, case)


@dataclass(frozen=True, repr=False)
class Profile(Page):
    """A profile: as text, as a page, and as `document`, which has every count."""

    document: Document


@hint_shown()
def profile(
    lab: str,
    *inputs: ArrayLike,
    variant: str | None = None,
    kernel: str | Path | None = None,
    n: Size | None = None,
    banks: int = 32,
    **options: Any,
) -> Profile:
    """Count what each line's memory accesses cost, on the CPU device.

    lab, inputs, kernel, options: as in `run`. Without inputs they are random, of size `n`: a
    number, or the dimensions as a tuple.
    variant: one name, several with commas between them, or "all"; chosen as by `cudalab profile`,
    if absent.
    banks: 32, or 16 for the rule of the lecture's GPUs.

    Returns the profile, which a notebook shows as a page; its `document` has what
    `cudalab profile --json` writes. Raises a `cudalab.CudalabError` if no variant could run.
    """
    _check_file(kernel)
    source = ("--kernel", kernel) if kernel else ("--variants", variant)
    with TemporaryDirectory(prefix="cudalab-") as folder:
        words = _subject(lab, inputs, n, options, folder, *source)
        counts, page = Path(folder, "profile.json"), Path(folder, "profile.html")
        files = ("--json", str(counts), "--html", str(page))
        done = finished("profile", *words, "--banks", str(banks), *files)
        if not counts.exists():
            raise error_of(done.returncode, done.stderr)
        read = document.from_json(json.loads(_text(counts)))
        if all(row.failed for row in read.variants):
            raise error_of(done.returncode, f"Error: {read.variants[0].failed}")
        return Profile(without_folder(done.stdout, folder), _text(page), read)


@hint_shown()
def sanitize(
    lab: str,
    *inputs: ArrayLike,
    variant: str | None = None,
    kernel: str | Path | None = None,
    n: Size | None = None,
    **options: Any,
) -> Findings:
    """Look for races, bad barriers and bad accesses, on the CPU device.

    lab, inputs, kernel, n, options: as in `profile`.
    variant: the CPU device's default, if absent.

    Returns what was found: `clean`, and `findings` with the line, the threads and the cure of each,
    as `cudalab sanitize --json` writes them. Raises a `cudalab.CudalabError` if nothing could be
    judged.
    """
    _check_file(kernel)
    source = ("--kernel", kernel) if kernel else ("--variant", variant)
    with TemporaryDirectory(prefix="cudalab-") as folder:
        words = _subject(lab, inputs, n, options, folder, *source)
        report = Path(folder, "findings.json")
        done = finished("sanitize", *words, "--json", str(report))
        if not report.exists():
            raise error_of(done.returncode, done.stderr)
        return findings.from_json(_text(report))


def _subject(
    name: str,
    inputs: Sequence[ArrayLike],
    n: Size | None,
    options: dict[str, Any],
    folder: str,
    *source: object,
) -> list[str]:
    """The words that tell a command what to look at: the lab, its case, its data and its source."""
    lab = _lab(name)
    data: tuple[str, ...] = ()
    if inputs:
        if n is not None:
            raise UsageError("n is the size of random inputs", hint="leave n or the inputs out")
        stream, _, case = arrays.read(lab, inputs, options)
        data = ("--data", str(_stored(stream, folder)))
    else:
        case = arrays.case_of(lab, (), options)
        data = () if n is None else ("--n", in_words(n))
    chosen = map(str, source) if source[1] is not None else ()
    return [name, *lab.words(case), *data, *chosen]


def _stored(stream: arrays.ArrayStream, folder: str) -> Path:
    """The stream in a file."""
    path = Path(folder, "in.bin")
    with path.open("wb") as file:
        write_all(file.fileno(), stream.pieces(), path.name)
    return path


def _text(path: Path) -> str:
    """What a command wrote; it calls files of this folder by their names alone."""
    return without_folder(path.read_text(encoding="utf-8"), path.parent)


def _lab(name: str) -> Lab:
    if name not in labs.names():
        raise UsageError(f"there is no lab '{name}'", hint=nearest(name, labs.names()))
    return labs.get(name)


def _check_file(kernel: str | Path | None) -> None:
    if kernel is not None and not Path(kernel).is_file():
        raise UsageError(f"kernel: there is no file {str(kernel)!r}")
