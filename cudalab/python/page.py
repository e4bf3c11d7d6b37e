"""A report that a notebook shows as a page, and a terminal as text."""

from dataclasses import dataclass
from html import escape

HEIGHT_PX = 640


@dataclass(frozen=True, repr=False)
class Page:
    """The same report twice; whoever displays it takes the form that suits it."""

    text: str
    html: str  # a whole document

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """The text, for the prompt of a terminal."""
        return self.text

    def _repr_html_(self) -> str:
        """The page in a frame, so that its style and the notebook's stay apart."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" width="100%" height="{HEIGHT_PX}" '
            'style="border: 0"></iframe>'
        )
