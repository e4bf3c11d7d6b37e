"""Explains findings: what happened, where, why it is a problem, and what usually cures it.

The table explanations.toml has what is the same for all findings of a kind, and for those that have
more in common.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

from cudalab.backends.trace import Finding, Kind, Place, Thread
from cudalab.language.tokens import CLOSING, Lines, Token, opening, tokenize
from cudalab.output.prose import counted

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

NULL = "through a null pointer"  # detail of an access
LEFT = "left"  # detail of a barrier: a thread has left the kernel without reaching it


@dataclass(frozen=True)
class Explanation:
    """The explanation of a finding."""

    title: str
    what: str
    why: str
    cure: str


@dataclass(frozen=True)
class About:
    """The texts that all findings of a kind share."""

    title: str
    why: str
    cure: str
    _: KW_ONLY
    what: str = ""  # a template
    orders_work: bool = False  # by what a whole program orders on the device, not by a kernel


def _texts(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of the table with each text in one line."""
    return {k: " ".join(v.split()) if isinstance(v, str) else v for k, v in entry.items()}


KINDS = {kind: About(**_texts(entry)) for kind, entry in _TABLE["kinds"].items()}
_CASES = [_texts(entry) for entry in _TABLE["case"]]

_VERBS: dict[Kind, str] = {"load": "reads", "store": "writes", "atomic": "changes (atomically)"}
_NOUNS: dict[Kind, str] = {"load": "read", "store": "write", "atomic": "atomic operation"}


def explain(finding: Finding) -> Explanation:
    """Explain a finding. KeyError for an unknown kind."""
    about = KINDS[finding.kind]
    title, what, why, cure = about.title, about.what, about.why, about.cure
    for case in _CASES:
        if _applies(case["when"], finding):
            title, cure = case.get("title", title), case.get("cure", cure)
            what = case.get("what", what)
            why = " ".join(filter(None, (case.get("why", why), case.get("adds"))))
            if "goes_on" not in case:
                break
    return Explanation(title, _what(finding, what), why, cure)


def _applies(when: dict[str, Any], finding: Finding) -> bool:
    """Whether all of a case's conditions hold; the table says what they mean."""
    blocks = finding.other_thread and finding.other_thread.block != finding.thread.block
    lanes = not blocks and (finding.missing == "__syncwarp" or finding.detail == "volatile")
    known = vars(finding) | {
        "between": "blocks" if blocks else "lanes" if lanes else "",
        "unlike": {finding.access, finding.other_access} == {"load", "atomic"},
        "is_before": finding.beyond is not None and finding.beyond < 0,
        "says": when.get("says") if when.get("says", "") in finding.detail else "",
    }
    for name, value in when.items():
        allowed = value if isinstance(value, list) else [value]
        if (known[name] or type(allowed[0])()) not in allowed:  # "" for None
            return False
    return True


def where(place: Place) -> str:
    """A place such as kernels/reduce/sequential.cu:31."""
    return f"{place.file}:{place.line}"


def name_of(thread: Thread) -> str:
    """A text such as "block 3, thread 17", with as many coordinates as are used."""
    return f"block {_index(thread.block)}, {_thread(thread)}"


def _thread(thread: Thread) -> str:
    return f"thread {_index(thread.thread)}"


def _index(at: tuple[int, int, int]) -> str:
    """17, or (17, 2) if the second coordinate is not 0."""
    used = 3 if at[2] else 2 if at[1] else 1
    return str(at[0]) if used == 1 else f"({', '.join(map(str, at[:used]))})"


def _memory(finding: Finding) -> str:
    """The accessed memory, such as "values[6] in shared memory"."""
    element = finding.buffer or "a word"
    if finding.buffer and finding.index is not None:
        element += f"[{finding.index}]"
    return f"{element} in {finding.space} memory" if finding.space else element


def _what(finding: Finding, template: str) -> str:
    """What happened, and where: by the table's template, or by a function of the kind's own."""
    if not template:
        special = {
            "race": _race,
            "out_of_bounds": _out_of_bounds,
            "barrier_divergence": _barrier,
            "after_free": _after_free,
            "same_value": _same_value,
            "infinite_loop": _endless,
            "host_crash": _host_crash,
        }
        return special.get(finding.kind, _otherwise)(finding)
    who = name_of(finding.thread)
    return template.format(
        who=who,
        both=f"{who} and {_other_name(finding)}" if finding.other_thread else who,
        noun=_NOUNS[finding.access or "load"],
        width=finding.bytes,
        bytes=counted(finding.bytes, "byte"),
        memory=_memory(finding),
        at=where(finding.place),
        unset=_unset(finding),
        detail=_detail(finding),
    )


def _unset(finding: Finding) -> str:
    """Why what is read has no value."""
    if finding.other_place is None:
        return "nobody has written it"
    return f"it is a copy, made at {where(finding.other_place)}, of what nobody has written"


def _race(finding: Finding) -> str:
    verb = _VERBS[finding.access or "load"]
    text = f"{name_of(finding.thread)} {verb} {_memory(finding)} at {where(finding.place)}"
    if finding.other_thread and finding.other_place:
        verb = _VERBS[finding.other_access or "load"]
        text += f", {_other_name(finding)} {verb} it at {_there(finding)}"
    return f"{text}: {_what_is_missing(finding)}."


def _what_is_missing(finding: Finding) -> str:
    """What keeps the two accesses of a race from being ordered."""
    missing, detail = finding.missing, finding.detail
    if detail == BIT_FIELDS:
        return "the lines use different bit fields, which share a word"
    if finding.by and detail == "unlock":
        return f"the lock is given back by a plain store at {where(finding.by)}"
    if finding.by and missing:
        by = "the atomic operation" if detail == "ticket" else "the flag that is set"
        return f"there is no {missing}() between the write and {by} at {where(finding.by)}"
    if missing == "__threadfence" and detail == "lock":
        return "no __threadfence() follows the lock under which it does so"
    if detail == "scope":
        scope = "what orders the two has block scope, and they are in different blocks"
        return scope if missing else "one of the two is atomic in its own block only"
    return (
        f"there is {f'no {missing}()' if missing else 'nothing that orders them'} between the two"
    )


def _other_name(finding: Finding) -> str:
    assert finding.other_thread is not None
    if finding.other_thread.block == finding.thread.block:
        return _thread(finding.other_thread)
    return name_of(finding.other_thread)


def _there(finding: Finding) -> str:
    """Where the other side is."""
    assert finding.other_place is not None
    return "the same line" if finding.other_place == finding.place else where(finding.other_place)


def _out_of_bounds(finding: Finding) -> str:
    if finding.detail.startswith("index"):  # as the array's type says
        return f"{name_of(finding.thread)}: {finding.detail}, at {where(finding.place)}."
    noun = _NOUNS[finding.access or "load"]
    size, at = counted(finding.bytes, "byte"), where(finding.place)
    text = f"{name_of(finding.thread)}: {noun} of {size} at {at}"
    if finding.beyond is None and finding.index is not None:
        return f"{text}, in memory that no argument of the launch leads to."
    if finding.detail == NULL:
        return f"{text}, {NULL}."
    if finding.beyond is None:
        return f"{text}, outside of every buffer{_detail(finding)}."
    buffer = f"'{finding.buffer}'" if finding.buffer else "a buffer"
    if finding.space:
        buffer += f" in {finding.space} memory"
    if finding.index is not None:
        text += f", element {finding.index:,}"
    if finding.beyond < 0:
        before = counted(-finding.beyond, "byte")
        return f"{text}: {before} before the start of {buffer}{_detail(finding)}."
    past = f"{counted(finding.beyond, 'byte')} past" if finding.beyond else "just past"
    return f"{text}: {past} the end of {buffer}{_detail(finding)}."


def _barrier(finding: Finding) -> str:
    text = f"{name_of(finding.thread)} waits at {where(finding.place)}"
    if finding.other_thread:
        other, at = _thread(finding.other_thread), finding.other_place
        if finding.detail == LEFT or finding.note:
            text += f", but {other} has left the kernel"
            text += f", last seen at {where(at)}" if at else ""
        elif at:
            text += f", but {other} at {where(at)}"
    return f"{text}."


def _after_free(finding: Finding) -> str:
    text = f"{name_of(finding.thread)}"
    freed = f", freed at {where(finding.other_place)}" if finding.other_place else ""
    at = where(finding.place)
    if finding.access:
        noun = f"{_NOUNS[finding.access]} of {counted(finding.bytes, 'byte')}"
        return f"{text}: {noun} at {at} in memory that a kernel has allocated{freed}."
    if finding.other_place:
        return f"{text} frees memory at {at} that has been{freed.removeprefix(',')}."
    return f"{text} frees at {at} what no malloc or new of a kernel has given."


def _same_value(finding: Finding) -> str:
    text = f"{name_of(finding.thread)} writes {_memory(finding)} at {where(finding.place)}"
    if finding.other_thread and finding.other_place:
        text += f", as {_other_name(finding)} does at {_there(finding)}"
    return f"{text}, and the value does not change."


def _endless(finding: Finding) -> str:
    if not finding.place.line:
        return _otherwise(finding)
    at = f"{name_of(finding.thread)} was at {where(finding.place)}"
    return f"{at} when the time limit was reached{_detail(finding)}."


def _host_crash(finding: Finding) -> str:
    at = f" at {where(finding.place)}" if finding.place.line else ""
    return f"{finding.detail.replace('host code', f'Host code{at}', 1)}."


def _otherwise(finding: Finding) -> str:
    text = finding.detail or KINDS[finding.kind].title
    if finding.place.line and not KINDS[finding.kind].orders_work:
        text = f"{name_of(finding.thread)} at {where(finding.place)}: {text}"
    return text if text.endswith(".") else f"{text}."


def _detail(finding: Finding) -> str:
    return f" ({finding.detail})" if finding.detail else ""


BIT_FIELDS = "bit fields"  # the detail of a race between two that share a word
_CONDITIONAL = frozenset({"if", "for", "while", "switch"})
_BIT_FIELD = re.compile(r"\b(\w+)\s*:\s*\d+\s*[;,=]")
_DECIDES = re.compile(r"\b(?:if|while|switch|assert|printf)\b|\?|&&|\|\|")
_SEVERAL_STORES = re.compile(r"\]\s*=[^=].*\]\s*=[^=]|=\s*(\w+)\s*;\s*\1\s*=[^=]")
_MEMBER = re.compile(r"(?:\.|->)\s*(\w+)")
_OF_TYPE = re.compile(r"^index (?P<index>-?\d+) of an array of type \S+?(?P<size>\[.*)")


def with_clues(finding: Finding, texts: Mapping[str, Sequence[str]]) -> Finding:
    """The finding with what the lines of the source, by file, say about it."""
    lines = texts.get(finding.place.file, ())
    line = lines[finding.place.line - 1] if 1 <= finding.place.line <= len(lines) else ""
    other = finding.other_place
    if finding.kind == "barrier_divergence" and finding.note and other:
        same = other.file == finding.place.file
        skipped = same and _skips("\n".join(lines), finding.place.line, other.line)
        return replace(finding, note=not skipped)
    if finding.kind == "uninitialised" and finding.note and finding.space == "shared":
        return replace(finding, note=not _DECIDES.search(line))
    if finding.kind == "lost_update" and _SEVERAL_STORES.search(line):
        return replace(finding, kind="race")
    if finding.kind in ("race", "lost_update") and other and not finding.detail:
        one, two = (_bit_fields(place, texts) for place in (finding.place, other))
        return replace(finding, detail=BIT_FIELDS) if len(one | two) > 1 else finding
    match = _OF_TYPE.match(finding.detail)
    if finding.kind == "out_of_bounds" and match and line:
        indexed = re.findall(r"(\w+)\s*\[", line)
        declared = rf"\w[\s*&]+(\w+)\s*{re.escape(match['size'])}"
        names = {name for name in re.findall(declared, "\n".join(lines)) if name in indexed}
        if len(names) == 1:
            array = f"{names.pop()}{match['size']}"
            return replace(finding, detail=f"index {match['index']} of the array {array}")
    return finding


def _bit_fields(place: Place, texts: Mapping[str, Sequence[str]]) -> set[str]:
    """The bit fields that a line names."""
    lines = texts.get(place.file, ())
    if not 1 <= place.line <= len(lines):
        return set()
    fields = {name for text in texts.values() for name in _BIT_FIELD.findall("\n".join(text))}
    return fields.intersection(_MEMBER.findall(lines[place.line - 1]))


def _skips(text: str, barrier: int, last: int) -> bool:
    """Whether a thread that was last seen at the line `last` has gone around the barrier.

    It has if that is where a branch begins, or another part of it, inside of which the barrier is.
    """
    tokens, lines = tokenize(text), Lines(text)
    on_line = [i for i, token in enumerate(tokens) if lines[token.start] == barrier]
    barriers = [i for i in on_line if "sync" in tokens[i].text] or on_line
    return bool(barriers) and any(
        lines[tokens[first].start] <= last <= lines[tokens[end].start]
        for first, end in _branches(tokens, barriers[0])
    )


def _branches(tokens: list[Token], i: int) -> Iterator[tuple[int, int]]:
    """The conditions of which a statement at `i` depends, from their first to their last token."""
    while i > 0:
        i -= 1
        text = tokens[i].text
        if text in CLOSING:
            other = opening(tokens, i)
            if other is None:
                return
            if text == ")" and other and tokens[other - 1].text in _CONDITIONAL:
                yield other - 1, i
            i = other
            if text == "}":  # of a statement before this one
                i = _before_statements(tokens, i)
        elif text == ";":
            i = _before_statements(tokens, i)
        elif text == "else":
            begin = _begin_of_if(tokens, i)
            yield begin, i
            i = begin


def _before_statements(tokens: list[Token], i: int) -> int:
    """The index of the brace in which the statement that `i` ends, or begins, stands."""
    while i > 0:
        i -= 1
        if tokens[i].text in CLOSING:
            i = opening(tokens, i) or 0
        elif tokens[i].text == "{":
            return i
    return 0


def _begin_of_if(tokens: list[Token], i: int) -> int:
    """The index of the `if` to which the `else` at `i` belongs."""
    pending = 1
    while i > 0 and pending:
        i -= 1
        if tokens[i].text in CLOSING:
            i = opening(tokens, i) or 0
        elif tokens[i].text in ("if", "else"):
            pending += 1 if tokens[i].text == "else" else -1
    return i
