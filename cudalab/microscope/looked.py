"""What a verdict covers: the lines whose accesses were looked at, and what was not, for reports."""

import re
from collections.abc import Callable, Iterable, Sequence

from cudalab.backends.trace import Looks, Place
from cudalab.microscope.explanations import where

OWN = "the ends and values of some local variables"
WHOLE = "whether what is copied whole or may be packed is aligned"
SHOWN = 8  # places on a terminal; documents have all of them
_IN_PART = re.compile(f"(?P<file>.*):(?P<line>[0-9]+): (?P<what>{OWN}|{WHOLE})")


def not_looked_at(looks: Looks) -> list[str]:
    """The lines with something that was not looked at, and what it is or why."""
    return [
        *(f"{where(place)}: {looks.missed[place]}" for place in _in_order(looks.missed)),
        *(f"{where(place)}: {OWN}" for place in _in_order(looks.own)),
        *(f"{where(place)}: {WHOLE}" for place in _in_order(looks.unaligned)),
    ]


def covered(
    looked: str,
    observed: int,
    listed: Sequence[str],
    never: Iterable[str],
    short: Callable[[str], str] = str,
) -> list[str]:
    """What a verdict covers, and what it does not, as lines of text.

    `looked` says what was looked at; on `observed` lines all accesses were. `listed` is what
    `not_looked_at` gives; `never` is what is not looked at anywhere. `short` shortens paths.
    """
    places: dict[str, list[tuple[str, str]]] = {}  # of what is not looked at there
    missed = []
    for text in listed:
        if found := _IN_PART.fullmatch(text):
            places.setdefault(found["what"], []).append((found["file"], found["line"]))
        else:
            missed.append(f"   {short(text)}")
    in_part = [*never, *(f"{what} ({short(_joined(them))})" for what, them in places.items())]
    return [
        f"Looked at: {looked}; accesses on {observed} of {observed + len(missed)} lines observed.",
        *(["Not looked at: the accesses of these lines:", *missed] if missed else []),
        *([f"{'Nor' if missed else 'Not looked at:'} {', '.join(in_part)}."] if in_part else []),
    ]


def _joined(places: Sequence[tuple[str, str]]) -> str:
    """The first places, with the file before the first line of each."""
    files = [None, *(file for file, _ in places)]
    shown = [
        line if file == before else f"{file}:{line}"
        for before, (file, line) in zip(files, places[:SHOWN], strict=False)
    ]
    more = [f"and {len(places) - SHOWN} more lines"] if len(places) > SHOWN else []
    return ", ".join([*shown, *more])


def _in_order(places: Iterable[Place]) -> list[Place]:
    return sorted(places, key=lambda place: (place.file, place.line))
