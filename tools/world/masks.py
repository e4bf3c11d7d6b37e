"""What differs between two runs of one program, or between two devices that agree."""

import re
from collections import Counter

NUMBER = re.compile(
    r"(?<![A-Za-z_\d])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)|[-+]?\b(?:nan|inf)\b"
)
_OF_TIME = re.compile(
    r"time|\b(?:milli|micro|nano)?sec|\d *(?:[mun]s|s)\b|\([mun]?s\)|[a-z]?flops?\b|bandwidth"
    r"|throughput|[gmk]i?b(?:ytes)?/s|clock|elapsed|speed|latency|overhead|perf|/s\b|\bfps\b|cycles"
    r"|duration|\b[mun]s\b|per second",
    re.IGNORECASE,
)
_OF_DEVICE = re.compile(
    r"nvidia|tesla|geforce|quadro|amd epyc|\bh[12]00\b|hopper|ampere|compute capab|compute mode"
    r"|multi-processors|CUDA capability|number of host CPUs|OS_System_Type"
    r"|multiprocessor|\bSMs\b|using device|device \d+[ :\"]|device name|driver|memory bus"
    r"|total (?:amount of )?(?:global )?memory|L2 cache|\bSM ?\d",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")


def masked(text: str) -> str:
    """A program's output without times, rates, addresses and what describes the device."""
    lines: list[str] = []
    for line in text.splitlines():
        clean = " ".join(_ADDRESS.sub("ADDRESS", line).split())
        if _OF_DEVICE.search(clean):
            continue
        if _OF_TIME.search(clean):
            clean = NUMBER.sub("#", clean)
        if clean:
            lines.append(clean)
    return "".join(f"{line}\n" for line in lines)


def same_lines(one: str, other: str) -> bool:
    """Whether two outputs have the same lines, as threads of a grid print in no fixed order."""
    return Counter(one.splitlines()) == Counter(other.splitlines())


def close(one: str, other: str, tolerance: float) -> bool:
    """Whether two outputs are the same but for last digits of numbers that are no integers."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(a == b or _near(a, b, tolerance) for a, b in pairs)


def _near(one: str, other: str, tolerance: float) -> bool:
    if not any(set(each.lower()) & set(".e") for each in (one, other)):
        return False
    a, b = float(one), float(other)
    return abs(a - b) <= max(tolerance * max(abs(a), abs(b)), _unit(one), _unit(other))


def _unit(number: str) -> float:
    """The value of 1 in the last place that is printed."""
    digits, _, exponent = number.lower().partition("e")
    places = len(digits.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - places) * 1.000001
