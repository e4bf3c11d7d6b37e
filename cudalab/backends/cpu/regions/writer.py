"""Text with #line directives, so that messages and crashes name the user's own lines."""

from collections.abc import Iterable

from cudalab.language.tokens import Token

Piece = Token | str
_FEW = 4  # lines that are skipped by empty ones


class Writer:
    """Collects words of the user and pieces of our own, which have no lines."""

    def __init__(self) -> None:
        """Start with an empty text."""
        self._pieces: list[str] = []
        self._file = ""
        self._line = 0

    def add(self, *pieces: Piece | Iterable[Piece]) -> None:
        """Append words, and texts without newlines."""
        for piece in pieces:
            if isinstance(piece, Token):
                self._move(piece)
                self._pieces.append(piece.text)
            elif isinstance(piece, str):
                self._pieces.append(piece)
            else:
                self.add(*piece)

    def text(self) -> str:
        """All that was added."""
        return " ".join(self._pieces) + "\n"

    def _move(self, word: Token) -> None:
        if not word.line or (word.file, word.line) == (self._file, self._line):
            return
        skipped = word.line - self._line
        if word.file == self._file and 0 < skipped <= _FEW:
            self._pieces.append("\n" * skipped)
        else:
            self._pieces.append(f'\n#line {word.line} "{word.file}"\n')
        self._file, self._line = word.file, word.line
