"""All that leaves a sandbox, as a submission may have written it."""

from __future__ import annotations

import json
import os
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudalab.checker.submit.reports import (
    MAX_RECORD_BYTES,
    CaseReport,
    Failure,
    Reply,
    UnreadableError,
    parse_record,
    read_record,
)
from cudalab.checker.verdicts import Report, encodable
from cudalab.microscope.findings import Findings

KINDS = (CaseReport, Failure, Reply, Report, Findings)
FIELDS = sorted({name for kind in KINDS for name in kind.__dataclass_fields__})
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(FIELDS), inner),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), VALUES) | VALUES)
def test_json_of_any_shape_is_a_record_or_unreadable(kind, value):
    try:
        record = parse_record(kind, json.dumps(value).encode(), "report")
    except UnreadableError:
        return
    assert isinstance(record, kind)
    json.dumps(record.__dict__, default=vars, allow_nan=False)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(KINDS), st.binary())
def test_bytes_of_any_kind_are_a_record_or_unreadable(kind, data):
    with suppress(UnreadableError):
        assert isinstance(parse_record(kind, data, "report"), kind)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[" * 300_000,
        b'{"a":' * 100_000,
        b'{"status": 1e400, "loaded": true, "peak_bytes": 0}',
        b'{"status": NaN, "loaded": true, "peak_bytes": 0}',
        b'{"status": true, "loaded": true, "peak_bytes": 0}',
        b'{"status": 0, "loaded": true, "peak_bytes": 0, "more": 0}',
        b'{"status": ' + b"9" * 10_000 + b', "loaded": true, "peak_bytes": 0}',
        b"\xff\xfe{\x00",
    ],
)
def test_what_is_no_reply_is_unreadable(data):
    with pytest.raises(UnreadableError):
        parse_record(Reply, data, "reply")


def test_a_record_is_a_small_regular_file(tmp_path):
    path = tmp_path / "report.json"
    path.write_text('{"status": 0, "loaded": true, "peak_bytes": 7}')
    assert read_record(Reply, path).peak_bytes == 7
    with path.open("ab") as file:
        file.truncate(MAX_RECORD_BYTES + 1)
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("report.json", "link", "pipe", "folder", "absent", "a\0b"):
        with pytest.raises(UnreadableError):
            read_record(Reply, tmp_path / name)


@given(st.text(st.characters()))
def test_every_text_of_a_report_can_be_written(text):
    failure = encodable(Failure(message=text, hint=text + "\udce9"))
    assert failure.message.encode() is not None
    assert failure.hint.endswith("\\xe9") or failure.hint.endswith("\\udce9")
