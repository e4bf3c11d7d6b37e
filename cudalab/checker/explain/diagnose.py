"""Derives a likely cause from a wrong answer: where it is wrong, the pattern, and what to look at.

`examine` judges the bytes of an answer. Patterns of wrong elements are in patterns.py; this module
has the patterns of bytes, the places of wrong elements, how much of its bound an answer uses, and
the parameters of a kernel that are not what the lab launches it with.
"""

import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cudalab.backends.base import C_TYPES
from cudalab.checker.explain import patterns
from cudalab.errors import CudalabError, InputError
from cudalab.formats import InputStream, as_bytes
from cudalab.labs.base import Lab
from cudalab.labs.compare import SHOWN, Accuracy, Mismatches, differing
from cudalab.labs.evidence import BYTES, Evidence, Finding, Launches, place_of
from cudalab.labs.inputs import Array, Case, HostInputs
from cudalab.language import source

DIGITS = re.compile(rb"\s*[-+]?\d[-+\d.e\s]*")
TEXT = re.compile(rb"[\t\n\r\x20-\x7e]+")
PRINTED = re.compile(rb"([\t\x20-\x7e]{2,}\r?\n)+")  # whole lines
MAX_PATTERNS = 2  # the first is the most useful; a third would not help


@dataclass(frozen=True)
class Verdict:
    """The verdict on an answer, with its explanation."""

    right: bool
    _: KW_ONLY
    lines: tuple[str, ...] = ()  # how many elements are wrong; index, expected and got of a few
    findings: tuple[Finding, ...] = ()
    accuracy: Accuracy | None = None
    wrong: int = 0  # elements
    total: int = 0
    bare: bytes | None = None  # the answer without the text around it, if there is text


def examine(
    lab: Lab, case: Case, source: Path, answer: bytes, launches: Launches | None = None
) -> Verdict:
    """Judge the bytes of an answer to the input in `source`."""
    with source.open("rb") as file:
        stream = InputStream(file.fileno(), source.name)
        stream_inputs = lab.read(stream, case)
        header = stream.offset
        inputs = stream_inputs.load()
        header = header if not case.get("text") else 0
    with np.errstate(all="ignore"):
        got, problem = _elements(lab, case, inputs, answer)
        if got is None:
            expected = _expected_bytes(lab, case, inputs)
            findings = bytes_findings(source.read_bytes(), header, answer, expected, case)
            bare = without_text(answer, len(expected))
            if bare and expected not in answer:
                inside = _elements(lab, case, inputs, bare)[0]
                right = inside is not None and lab.compare(inside, inputs, case) is None
                problem += f"; without the text it is {'right' if right else 'wrong as well'}"
            return Verdict(False, lines=(problem,), findings=tuple(findings), bare=bare)
        mismatches = lab.compare(got, inputs, case)
        accuracy = lab.accuracy(got, inputs, case) if got.size else None
        if mismatches is None:
            return Verdict(True, accuracy=accuracy, total=got.size)
        return _wrong(lab, case, inputs, got, mismatches, accuracy, launches or Launches())


def is_right(lab: Lab, case: Case, source: Path, answer: bytes) -> bool:
    """Whether an answer to the input in `source` is right; it is not explained."""
    inputs = lab.read_file(source, case)
    with np.errstate(all="ignore"):
        got, _ = _elements(lab, case, inputs, answer)
        return got is not None and lab.compare(got, inputs, case) is None


def _elements(lab: Lab, case: Case, inputs: HostInputs, answer: bytes) -> tuple[Array | None, str]:
    """The answer as the lab reads it, or why its length is wrong."""
    with tempfile.TemporaryFile() as file:
        file.write(answer)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        stream = InputStream(file.fileno(), "stdout")
        try:
            got = lab.read_answer(stream, inputs, case)
        except InputError as error:
            if not answer:
                return None, "stdout is empty"
            return None, error.message
        if stream.trailing_bytes():
            return None, (
                f"stdout has {len(answer):,} bytes, {stream.offset:,} are expected: "
                f"{len(answer) - stream.offset:,} too many"
            )
    return got, ""


def _expected_bytes(lab: Lab, case: Case, inputs: HostInputs) -> bytes:
    """The reference answer as bytes; none if several answers are right."""
    try:
        empty = lab.empty_answer(inputs, case)
        reference = lab.reference(inputs, case) if empty is None else empty
    except CudalabError:
        return b""
    dtype = np.dtype(case["dtype"]) if reference.dtype.kind == "f" else reference.dtype
    return bytes(as_bytes(np.ascontiguousarray(reference.astype(dtype, copy=False))))


# Bytes -------------------------------------------------------------------------------------------


def without_text(answer: bytes, length: int) -> bytes | None:
    """An answer of `length` bytes without the lines of text around it; None if there is no text.

    The result is empty if all of it is text.
    """
    if len(answer) == length:
        return None
    if TEXT.fullmatch(answer[:4096]):
        return b""
    lines = PRINTED.match(answer)
    bare = answer[lines.end() :] if lines else answer
    if TEXT.fullmatch(bare[length:]):
        return bare[:length]
    return bare if lines else None


def bytes_findings(
    source: bytes, header: int, answer: bytes, expected: bytes, case: Case
) -> list[Finding]:
    """The patterns in an answer of the wrong length."""
    findings = _bytes_findings(source, header, answer, expected, np.dtype(case["dtype"]))
    return list(findings)[:MAX_PATTERNS]


def _bytes_findings(
    source: bytes, header: int, answer: bytes, expected: bytes, dtype: np.dtype[Any]
) -> Iterator[Finding]:
    if not answer:
        if expected:
            yield Finding(
                "nothing on stdout",
                "not a single byte was written",
                "the result is never written, or the program returns early: "
                "fwrite(result, sizeof *result, n, stdout) belongs at its end",
                "{run} | wc -c",
            )
        return
    if TEXT.fullmatch(answer[:4096]):
        yield _text(answer)
        return
    around = list(_around(source[:header], answer, expected))
    if around:
        yield from around
        return
    if answer in (source, source[header:]):
        yield Finding("the input itself", "stdout holds the input", "nothing was computed", BYTES)
        return
    if expected and answer.replace(b"\r\n", b"\n") == expected.replace(b"\r\n", b"\n"):
        yield Finding(
            "line ends translated",
            "bytes 0A became 0D 0A, or the other way round",
            "stdout was in text mode: open it as binary",
            BYTES,
        )
        return
    yield from _length_findings(answer, expected, dtype)


def _around(header: bytes, answer: bytes, expected: bytes) -> Iterator[Finding]:
    """Findings about a header, text or other bytes around the right answer."""
    if len(expected) >= 4 and expected in answer:
        before, _, after = answer.partition(expected)
        if header and before == header:
            yield Finding(
                "header repeated",
                f"the first {len(header)} bytes repeat the input's header; what follows is right",
                "an answer consists of the elements only: do not write n",
                BYTES,
            )
            return
        for part, where in ((before, "before"), (after, "behind")):
            if part:
                kind = "text" if TEXT.fullmatch(part) else "bytes"
                yield _printed(
                    f"{kind} {where} the answer",
                    f"the right answer is there, with {len(part):,} bytes of {kind} {where} it",
                    part,
                )
    elif 0 < len(expected) < len(answer):
        lines, behind = PRINTED.match(answer), answer[len(expected) :]
        if lines:
            yield _printed("text before the answer", "stdout begins with text", lines[0])
        elif TEXT.fullmatch(behind):
            yield _printed("text behind the answer", "stdout ends with text", behind)


def _printed(pattern: str, says: str, part: bytes) -> Finding:
    cause = "a message or a time was printed on stdout: print it on stderr"
    return Finding(pattern, f"{says}: {part[:40]!r}", cause, BYTES)


def _text(answer: bytes) -> Finding:
    return Finding(
        "text on stdout",
        f"stdout holds text: {answer[:60].decode(errors='replace').strip()!r}",
        "stdout must hold the result's bytes and nothing else: use fwrite, not printf or print; "
        "messages belong on stderr",
        BYTES,
    )


def _length_findings(answer: bytes, expected: bytes, dtype: np.dtype[Any]) -> Iterator[Finding]:
    if len(answer) == 2 * len(expected) and dtype.itemsize == 4:
        other = "double" if dtype.kind == "f" else "a 64-bit integer"
        yield Finding(
            "elements twice as wide",
            f"exactly twice as many bytes as expected: {len(answer):,}",
            f"elements were computed or written as {other}: use {dtype.name}",
            BYTES,
        )
    elif expected and len(answer) * dtype.itemsize == len(expected) and dtype.itemsize > 1:
        yield Finding(
            "bytes for elements",
            f"as many bytes were written as there are elements: {len(answer):,}",
            "fwrite and cudaMemcpy count bytes: multiply n by sizeof the element",
            BYTES,
        )
    elif expected and expected.startswith(answer):
        count = len(answer) // dtype.itemsize
        yield Finding(
            "cut short",
            f"the first {count:,} elements are right, the rest is missing",
            "a short write, or the program ended before stdout was flushed",
            BYTES,
        )
    elif expected and len(answer) < len(expected):
        yield Finding(
            "too short",
            f"{len(answer):,} of {len(expected):,} bytes",
            "is n rounded down to whole blocks? The last, partial block belongs to the answer too",
            BYTES,
        )
    elif expected and len(answer) > len(expected):
        yield Finding(
            "too long",
            f"{len(answer):,} bytes instead of {len(expected):,}",
            "is n rounded up to whole blocks? The last block's padding is no part of the answer",
            BYTES,
        )


# Elements ----------------------------------------------------------------------------------------


def _expected(lab: Lab, case: Case, inputs: HostInputs, got: Array) -> tuple[Array, Array]:
    """The expected elements and the places of those that are wrong."""
    bounds = lab.bounds(inputs, case)
    if bounds is not None:
        expected, allowed = bounds[0].reshape(-1), bounds[1].reshape(-1)
        near = np.isfinite(expected) & np.isfinite(got) & (np.abs(got - expected) <= allowed)
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
        # Where the bound is none, any value will do.
        return expected, np.flatnonzero(~(near | same) & np.isfinite(allowed))
    try:
        expected = lab.reference(inputs, case).reshape(-1)
    except CudalabError:
        expected = np.full(got.shape, np.nan)
    return expected, differing(got, expected)


def _wrong(
    lab: Lab,
    case: Case,
    inputs: HostInputs,
    got: Array,
    mismatches: Mismatches,
    accuracy: Accuracy | None,
    launches: Launches,
) -> Verdict:
    """The verdict on a wrong answer of the right length."""
    flat = got.reshape(-1)
    expected, wrong = _expected(lab, case, inputs, flat)
    evidence = Evidence(
        case=case,
        inputs=inputs,
        got=flat,
        expected=expected,
        wrong=wrong,
        launches=launches,
        reference=partial(lab.reference, inputs),
        shape=lab.teaching.matrix_shape(inputs.params),
        scattered=lab.teaching.scattered,
    )
    as_a_whole = bool(mismatches.compared)
    lines = [f"{mismatches.count:,} of {mismatches.total:,} elements differ"]
    if as_a_whole:
        lines = [*mismatches.findings, f"{mismatches.compared}:"]
    for index, want, have in mismatches.first[:SHOWN]:
        place = "" if as_a_whole else place_of(evidence, index)
        lines.append(f"[{index:,}] expected {want}, got {have}{place}")
    if mismatches.count > len(mismatches.first) > 0 and not as_a_whole:
        lines.append(f"… and {mismatches.count - len(mismatches.first):,} more")
    if accuracy is not None and not as_a_whole and 1 < accuracy.used < math.inf:
        lines.append(str(accuracy))
    if launches.launched:
        lines.append(f"launched: {launches.words()}")
    findings = _patterns(evidence, lab) if len(wrong) else []
    answer = bytes(as_bytes(np.ascontiguousarray(flat[:1024])))
    if DIGITS.fullmatch(answer):  # text may happen to have the right length
        findings = [_text(answer)]
    if not findings and not as_a_whole:
        title = f"found by {lab.name}"
        findings = [Finding(title, text, "", "") for text in mismatches.findings[:1]]
    return Verdict(
        False,
        lines=tuple(lines),
        findings=tuple(findings[:MAX_PATTERNS]),
        accuracy=accuracy,
        wrong=len(wrong),
        total=flat.size,
    )


def _patterns(evidence: Evidence, lab: Lab) -> list[Finding]:
    """The patterns that fit. A rule that fails on strange numbers must not stop the verdict."""
    try:
        return patterns.findings(evidence, lab.teaching.mistakes)
    except (ArithmeticError, ValueError, IndexError, MemoryError) as error:
        return [Finding("no explanation", f"the search for a pattern failed: {error}", "")]


# Parameters --------------------------------------------------------------------------------------

# A kernel may read its data as it likes: as vectors, as bytes (uint8), or a float as its bits. So a
# type is only said to be another one where both are numbers of a known kind and size, and only to
# explain an answer that is wrong.
_NUMBERS = {words: np.dtype(name) for name, words in C_TYPES.items() if name != "uint8"} | {
    "size_t": np.dtype("uint64"),
    "unsigned int": np.dtype("uint32"),
    "short": np.dtype("int16"),
    "unsigned short": np.dtype("uint16"),
}


def mismatches(
    text: str, macros: Mapping[str, str | int], launched: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """What differs, for each kernel that was `launched` with these types of arguments."""
    names, types = source.parameter_names(text), source.parameter_types(text)
    for kernel, arguments in launched.items():
        declared = types.get(kernel, ())
        for number, (own, passed) in enumerate(zip(declared, arguments, strict=False)):
            words, star, _ = own.partition(" *")
            number_type = _NUMBERS.get(str(macros.get(words, words)))
            passed_type = _NUMBERS.get(passed.removesuffix(" *"))
            if number_type is None or passed_type is None:
                continue
            is_array = passed.endswith(" *")
            # A sign is a matter of how one reads numbers of a kind and size.
            one, other = ((each.itemsize, each.kind == "f") for each in (number_type, passed_type))
            if bool(star) != is_array or one != other:
                called = names[kernel][number] or f"number {number}"
                yield f"parameter {called} of kernel {kernel} is {own}, the lab passes {passed}"


def reordered(text: str, contract: str, launched: Iterable[str]) -> Iterator[str]:
    """Kernels whose parameters have the contract's names, in another order."""
    for kernel, own in source.parameter_names(text).items():
        described = re.search(rf"^{re.escape(kernel)}\(([^()]*)\)", contract, re.MULTILINE)
        if kernel not in launched or described is None:
            continue
        wanted = [(re.findall(r"\w+", one) or [""])[-1] for one in described[1].split(",")]
        if own != wanted and sorted(own) == sorted(wanted):
            words = f"are {', '.join(own)}, the lab passes {', '.join(wanted)}"
            yield f"the parameters of kernel {kernel} {words}"
