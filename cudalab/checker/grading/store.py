"""The results of a class in SQLite. A stored result survives the end of the grader at any time."""

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

from cudalab.checker import verdicts
from cudalab.checker.grading import unpack
from cudalab.errors import CudalabError, UsageError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
WAITING, RUNNING, DONE, BROKEN = "waiting", "running", "done", "broken"
REMOVED = "removed"  # by the student, before it was judged
FORMAT = 2  # version of the database
_SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS submissions (
    name TEXT PRIMARY KEY,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting',
    attempts INTEGER NOT NULL DEFAULT 0,
    started REAL,
    finished REAL,
    report TEXT,
    prints TEXT,
    problem TEXT
);
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One submission's result."""

    name: str
    path: str
    state: str
    attempts: int
    report: verdicts.Report | None
    prints: frozenset[int]
    problem: str | None


def _explained(method: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let a method of the store report what the database cannot do, such as on a full disk."""

    @wraps(method)
    def explained(*args: Arguments.args, **named: Arguments.kwargs) -> Result:
        try:
            return method(*args, **named)
        except sqlite3.Error as error:
            raise CudalabError(
                f"the results cannot be stored: {error}",
                hint="what has been stored stays: free some space where --out is, and call again",
            ) from None

    return explained


def _difference(setting: str, before: Any, now: Any) -> str:
    """What has changed in a setting, by the options that choose it."""
    if isinstance(before, dict) and isinstance(now, dict):
        changed = [key for key in before | now if before.get(key) != now.get(key)]
        return ", ".join(_difference(key, before.get(key), now.get(key)) for key in changed)
    if setting == "tests":
        return "--tests names other tests"
    if setting == "version":
        return f"cudalab {before}, and this is {now}"
    words = {None: "not given", False: "not given", True: "given"}
    was, is_now = (words.get(each, each) for each in (before, now))
    return f"--{setting.replace('_', '-')} was {was}, is {is_now}"


class Store:
    """The database in a folder of results, open to one grader at a time."""

    @_explained
    def __init__(self, folder: Path) -> None:
        """Open or create it. CudalabError if another grader uses the folder."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise CudalabError(
                f"--out {folder}: the results cannot be stored there: {error.strerror}",
                hint="name a folder that you may write to",
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise CudalabError(
                f"another `cudalab grade` is using {folder}", hint="wait for it to end"
            ) from None
        try:
            self._db = sqlite3.connect(folder / "results.sqlite", isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(_SCHEMA)
        except sqlite3.Error:
            os.close(self._lock)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()
        os.close(self._lock)

    @_explained
    def settle(self, settings: dict[str, object]) -> dict[str, Any]:
        """Store the first call's settings; later calls must have the same, except for the seed."""
        settings = {"format": FORMAT, **settings}
        rows = dict(self._db.execute("SELECT name, value FROM settings").fetchall())
        if not rows:
            with self._db:
                self._db.execute("BEGIN")
                for name, value in settings.items():
                    self._db.execute(
                        "INSERT INTO settings VALUES (?, ?)", (name, json.dumps(value))
                    )
            return settings
        stored = {name: json.loads(value) for name, value in rows.items()}
        for name, value in settings.items():
            if name != "seed" and stored.get(name) != json.loads(json.dumps(value)):
                raise UsageError(
                    "these results were begun with other settings: "
                    + _difference(name, stored.get(name), json.loads(json.dumps(value))),
                    hint="use another --out, or the settings of the first call",
                )
        return stored

    @_explained
    def add(self, entries: Iterable[unpack.Entry], again: Sequence[str] = ()) -> list[str]:
        """Queue what is new, unfinished, changed, or named in `again`.

        Return the names of the changed ones that had been judged before.
        """
        now = {entry.name: (entry, unpack.digest(entry.path)) for entry in entries}
        changed = []
        with self._db:
            self._db.execute("BEGIN")
            known = self._db.execute("SELECT name, state, digest FROM submissions").fetchall()
            for name, state, digest in known:
                entry, new_digest = now.pop(name, (None, digest))
                if state == DONE and new_digest == digest and name not in again:
                    continue
                self._db.execute(
                    "UPDATE submissions SET state = ?, digest = ?, report = NULL, prints = NULL"
                    " WHERE name = ?",
                    (WAITING if entry else REMOVED, new_digest, name),
                )
                if state == DONE and new_digest != digest:
                    changed.append(name)
            for name, (entry, digest) in now.items():
                self._db.execute(
                    "INSERT INTO submissions (name, path, digest) VALUES (?, ?, ?)",
                    (name, unpack.shown(str(entry.path)), digest),
                )
        return changed

    @_explained
    def waiting(self) -> list[str]:
        """The names of the submissions still to be judged."""
        rows = self._db.execute(
            "SELECT name FROM submissions WHERE state = ? ORDER BY name", (WAITING,)
        )
        return [name for (name,) in rows]

    @_explained
    def begin(self, name: str) -> None:
        """Note that its judging has begun."""
        self._db.execute(
            "UPDATE submissions SET state = ?, attempts = attempts + 1, started = ? WHERE name = ?",
            (RUNNING, time.time(), name),
        )

    @_explained
    def finish(self, name: str, report: verdicts.Report, prints: Iterable[int]) -> None:
        """Store its report in one transaction: completely or not at all."""
        changed = self._db.execute(
            "UPDATE submissions SET state = ?, finished = ?, report = ?, prints = ?, problem = NULL"
            " WHERE name = ? AND state != ?",
            (DONE, time.time(), json.dumps(report.json()), json.dumps(sorted(prints)), name, DONE),
        )
        if changed.rowcount != 1:
            raise AssertionError(f"{name} was judged twice")

    @_explained
    def fail(self, name: str, problem: str) -> None:
        """Note that the grader itself failed; the next call tries again."""
        self._db.execute(
            "UPDATE submissions SET state = ?, finished = ?, problem = ? WHERE name = ?",
            (BROKEN, time.time(), problem, name),
        )

    def rows(self) -> Iterator[Row]:
        """The results of all submissions, by name."""
        query = (
            "SELECT name, path, state, attempts, report, prints, problem "
            "FROM submissions ORDER BY name"
        )
        for name, path, state, attempts, report, prints, problem in self._db.execute(query):
            yield Row(
                name=name,
                path=path,
                state=state,
                attempts=attempts,
                report=verdicts.from_json(json.loads(report)) if report else None,
                prints=frozenset(json.loads(prints)) if prints else frozenset(),
                problem=problem,
            )
