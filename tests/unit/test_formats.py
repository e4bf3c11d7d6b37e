"""The binary streams: every way in which they can be cut, stretched or delivered."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudalab.errors import CudalabError, InputError
from cudalab.formats import InputStream, as_bytes, output_file, write_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KEYS = np.array([9, 0x80000000, 0, 0x0A0D1A0A, 0xFFFFFFFF, 7, 1], np.uint32)
STREAM = np.int32(len(KEYS)).tobytes() + KEYS.tobytes()


@contextmanager
def piped(content: bytes, sizes: Sequence[int] = (1 << 16,)) -> Iterator[int]:
    """The reading end of a pipe into which a thread writes `content` in pieces of `sizes`."""
    reading, writing = os.pipe()

    def feed() -> None:
        start, turn = 0, 0
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            while start < len(content):
                start += pipe.write(content[start : start + sizes[turn % len(sizes)]])
                turn += 1

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield reading
    finally:
        while os.read(reading, 1 << 20):  # so that the thread ends
            pass
        thread.join()
        os.close(reading)


@contextmanager
def stored(path: Path, content: bytes, skip: int = 0) -> Iterator[int]:
    """A descriptor of a regular file with `content`, `skip` bytes from its start."""
    path.write_bytes(b"x" * skip + content)
    fd = os.open(path, os.O_RDONLY)
    os.lseek(fd, skip, os.SEEK_SET)
    try:
        yield fd
    finally:
        os.close(fd)


def read_keys(fd: int) -> np.ndarray:
    stream = InputStream(fd)
    (n,) = stream.header("n")
    return stream.payload("keys", np.uint32, n).array()


def test_regular_file(tmp_path):
    with stored(tmp_path / "in", STREAM) as fd:
        np.testing.assert_array_equal(KEYS, read_keys(fd), strict=True)


def test_regular_file_is_read_from_where_the_descriptor_stands(tmp_path):
    with stored(tmp_path / "in", STREAM, skip=3) as fd:
        np.testing.assert_array_equal(KEYS, read_keys(fd), strict=True)


@pytest.mark.parametrize("sizes", [(1,), (3,), (5, 1), (4,), (1 << 16,)])
def test_pipe_that_delivers_odd_pieces(sizes):
    with piped(STREAM, sizes) as fd:
        np.testing.assert_array_equal(KEYS, read_keys(fd), strict=True)


@settings(deadline=None)
@given(
    values=st.lists(st.integers(0, 2**32 - 1), max_size=50),
    sizes=st.lists(st.integers(1, 70), min_size=1, max_size=5),
)
def test_any_keys_in_any_pieces(values, sizes):
    keys = np.array(values, np.uint32)
    with piped(np.int32(len(keys)).tobytes() + keys.tobytes(), sizes) as fd:
        np.testing.assert_array_equal(keys, read_keys(fd), strict=True)


def test_large_pipe(monkeypatch):
    monkeypatch.setattr("cudalab.formats.READ_BYTES", 100_003)  # several reads, none aligned
    keys = np.arange(1_000_003, dtype=np.uint32)
    with piped(np.int32(len(keys)).tobytes() + keys.tobytes(), (65_537, 9)) as fd:
        np.testing.assert_array_equal(keys, read_keys(fd), strict=True)


def test_payload_is_read_in_parts_of_any_size():
    whole = bytearray(KEYS.nbytes)
    with piped(STREAM, (5,)) as fd:
        stream = InputStream(fd)
        payload = stream.payload("keys", np.uint32, *stream.header("n"))
        for start in range(0, len(whole), 9):
            payload.readinto(memoryview(whole)[start : start + 9])
        assert stream.offset == len(STREAM)
    assert bytes(whole) == KEYS.tobytes()
    assert payload.seconds > 0


def test_n_zero_is_legal(tmp_path):
    zero = np.int32(0).tobytes()
    with stored(tmp_path / "in", zero) as fd:
        assert read_keys(fd).shape == (0,)
    with piped(zero) as fd:
        assert read_keys(fd).shape == (0,)


@pytest.mark.parametrize("length", range(4))
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_truncated_header(tmp_path, kind, length):
    source = stored(tmp_path / "in", STREAM[:length]) if kind == "file" else piped(STREAM[:length])
    with source as fd, pytest.raises(InputError) as caught:
        read_keys(fd)
    assert caught.value.message == (
        f"stdin: truncated header: ends at byte {length}, expected 4 bytes for n"
    )
    assert caught.value.hint


@pytest.mark.parametrize("length", range(4, len(STREAM)))
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_truncated_payload(tmp_path, kind, length):
    content = STREAM[:length]
    source = stored(tmp_path / "in", content) if kind == "file" else piped(content, (3,))
    with source as fd, pytest.raises(InputError) as caught:
        read_keys(fd)
    assert caught.value.message == (
        f"stdin: truncated: ends at byte {length}, expected byte {len(STREAM)}: "
        f"keys is 7 uint32, got {(length - 4) // 4} complete elements"
    )


def test_regular_file_is_checked_before_anything_is_allocated(tmp_path):
    with stored(tmp_path / "in", np.int32(2**31 - 1).tobytes()) as fd:
        stream = InputStream(fd)
        (n,) = stream.header("n")
        with pytest.raises(InputError, match="expected byte 17179869180"):
            stream.payload("keys", np.float64, n)


def test_second_payload_of_a_file_is_checked_before_the_first_is_read(tmp_path):
    with stored(tmp_path / "in", b"\2\0\0\0" + bytes(4 * 4 + 3)) as fd:
        stream = InputStream(fd, "my.bin")
        (n,) = stream.header("n")
        stream.payload("A", np.float32, n, n)
        with pytest.raises(InputError) as caught:
            stream.payload("f", np.float32, n)
        assert stream.offset == 4
    assert caught.value.message == (
        "my.bin: truncated: ends at byte 23, expected byte 28: f is 2 float32, "
        "got 0 complete elements"
    )


def test_text_is_told_from_a_truncated_stream(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("10\n1 2 3 4 5 6 7 8 9 10\n")
    with path.open("rb") as file:
        stream = InputStream(file.fileno())
        (n,) = stream.header("n")
        with pytest.raises(InputError) as caught:
            stream.payload("items", np.int32, n)
    assert caught.value.hint.startswith("the input looks like text: it must be binary")


def test_dimensions_of_a_truncated_matrix(tmp_path):
    with stored(tmp_path / "in", b"\2\0\0\0\3\0\0\0" + bytes(23)) as fd:
        stream = InputStream(fd)
        with pytest.raises(InputError, match="A is 2 x 3 float32, got 5 complete elements"):
            stream.payload("A", np.float32, *stream.header("rows", "cols"))


@pytest.mark.parametrize("n", [-1, -(2**31)])
def test_negative_n(n):
    with piped(np.int32(n).tobytes()) as fd, pytest.raises(InputError) as caught:
        read_keys(fd)
    assert caught.value.message == f"stdin: n = {n} at byte 0: must not be negative"


def test_negative_second_number():
    with piped(np.array([3, -4], np.int32).tobytes()) as fd, pytest.raises(InputError) as caught:
        InputStream(fd).header("rows", "cols")
    assert caught.value.message == "stdin: cols = -4 at byte 4: must not be negative"


def test_more_elements_than_memory():
    with piped(np.int32(2**31 - 1).tobytes()) as fd:
        stream = InputStream(fd)
        (n,) = stream.header("n")
        with pytest.raises(CudalabError, match="out of host memory: A needs 36,893,"):
            stream.payload("A", np.float64, n, n).array()


@pytest.mark.parametrize(("extra", "expected"), [(b"", False), (b"\n", True)])
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_trailing_bytes(tmp_path, kind, extra, expected):
    content = STREAM + extra
    with stored(tmp_path / "in", content) if kind == "file" else piped(content) as fd:
        stream = InputStream(fd)
        stream.payload("keys", np.uint32, *stream.header("n")).array()
        assert expected == stream.trailing_bytes()


def test_trailing_bytes_do_not_wait_for_an_open_pipe():
    reading, writing = os.pipe()
    os.write(writing, STREAM)
    stream = InputStream(reading)
    stream.payload("keys", np.uint32, *stream.header("n")).array()
    assert not stream.trailing_bytes()
    os.close(writing)
    os.close(reading)


def test_unreadable_input(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(InputError, match="stdin: cannot be read: Is a directory"):
        InputStream(fd).header("n")
    os.close(fd)


@pytest.mark.parametrize("dtype", [np.uint32, np.float64, np.uint8])
@pytest.mark.parametrize("shape", [(0,), (3,), (2, 5)])
def test_as_bytes(shape, dtype):
    array = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    assert as_bytes(array) == array.tobytes()


def test_round_trip_through_a_pipe():
    with piped(STREAM) as fd:
        answer = read_keys(fd)
    reading, writing = os.pipe()
    write_all(writing, [as_bytes(answer), b"", memoryview(answer)])
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == 2 * KEYS.tobytes()


def test_short_writes_lose_nothing(monkeypatch, tmp_path):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, view: write(fd, bytes(view)[:5]))
    path = tmp_path / "out"
    with path.open("wb") as file:
        write_all(file.fileno(), [memoryview(KEYS), as_bytes(KEYS)])
    assert path.read_bytes() == 2 * KEYS.tobytes()


def test_closed_pipe_ends_the_process_like_any_filter():
    code = "from cudalab.formats import write_all\nwrite_all(1, [bytes(1 << 24)])\nprint('late')"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert len(process.stdout.read(10)) == 10
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == -signal.SIGPIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_full_disk():
    with Path("/dev/full").open("wb") as full, pytest.raises(CudalabError) as caught:
        write_all(full.fileno(), [b"abc"], "out.bin")
    assert caught.value.message == ("out.bin: cannot be written: No space left on device")
    assert caught.value.hint == "the output is incomplete: do not use it"


def test_output_file_appears_only_when_complete(tmp_path):
    path = tmp_path / "out.bin"
    with output_file(path) as fd:
        write_all(fd, [STREAM])
        assert not path.exists()
    assert path.read_bytes() == STREAM
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [CudalabError("no"), KeyboardInterrupt()])
def test_failed_output_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")

    def write_and_fail() -> None:
        with output_file(path) as fd:
            write_all(fd, [b"half"])
            raise error

    with pytest.raises(type(error)):
        write_and_fail()
    assert path.read_bytes() == b"old"
    assert [path] == list(tmp_path.iterdir())


def test_what_a_killed_process_of_the_same_number_has_left_is_not_in_the_way(tmp_path):
    """Containers count their processes from 1, each for itself."""
    path = tmp_path / "out.bin"
    path.with_name(f".out.bin.{os.getpid()}.partial").write_bytes(b"left")
    with output_file(path) as first, output_file(path) as second:
        write_all(first, [b"first"])
        write_all(second, [STREAM])
    assert path.read_bytes() == b"first"


def test_output_file_replaces_the_target_of_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with output_file(link) as fd:
        write_all(fd, [b"new"])
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_output_to_a_device_is_written_in_place():
    with output_file(Path(os.devnull)) as fd:
        write_all(fd, [STREAM])
    assert Path(os.devnull).is_char_device()


def test_output_that_cannot_be_created(tmp_path):
    gone = output_file(tmp_path / "no such folder" / "out.bin")
    with pytest.raises(CudalabError, match=r"out\.bin: cannot be written: No such file"), gone:
        pass
    folder = output_file(tmp_path)
    with pytest.raises(CudalabError, match="cannot be written: Is a directory"), folder:
        pass
    root = output_file(Path("/"))
    with pytest.raises(CudalabError, match="/: cannot be written: Is a directory"), root:
        pass


def test_an_error_of_the_block_is_not_blamed_on_the_file(tmp_path):
    with pytest.raises(ConnectionError), output_file(tmp_path / "out.bin"):
        raise ConnectionError
    assert list(tmp_path.iterdir()) == []
