"""Names of files as assembly and PTX have them: between quotes, with bytes beyond ASCII escaped."""

import re

QUOTED = r'"((?:[^"\\]|\\.)*)"'  # a regular expression
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)


def unquoted(text: str) -> str:
    """What QUOTED has found, without escapes."""

    def byte(escape: re.Match[bytes]) -> bytes:
        return bytes([int(escape[1], 8) & 255]) if len(escape[1]) == 3 else escape[1]

    return _ESCAPE.sub(byte, text.encode()).decode(errors="replace")
