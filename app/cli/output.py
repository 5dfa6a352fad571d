"""Where a command's words go: data to stdout, everything else to stderr."""

import json
import sys

from rich.console import Console
from rich.text import Text

Rows = list[tuple[str, str]]

_KEPT = {ord("\n"), ord("\t")}
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "�")
_CONTROLS = {code: shown for code, shown in _CONTROLS.items() if code not in _KEPT}
_ESCAPES = {code: f"\\u{code:04x}" for code in range(127, 160)}
"""C1 controls as JSON writes them; the lower ones JSON escapes by itself."""


class Output:
    """One command's output, as JSON or for people."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.data = Console(highlight=False, soft_wrap=False)
        self.notes = Console(stderr=True, highlight=False)

    def show(self, document: object) -> None:
        """Print the result as JSON, its text unchanged: what steers a terminal is escaped."""
        text = json.dumps(document, ensure_ascii=False, indent=2)
        sys.stdout.write(text.translate(_ESCAPES) + "\n")
        sys.stdout.flush()

    def rows(self, document: object, rows: Rows, *, title: str | None = None) -> None:
        """Print the result as JSON, or as lines that only the terminal's own edge wraps."""
        if self.as_json:
            self.show(document)
            return
        if title is not None and self.data.is_terminal:
            self.data.print(title, style="italic")
        print_pairs(self.data, rows)

    def note_rows(self, rows: Rows) -> None:
        """Print names and values on stderr."""
        print_pairs(self.notes, rows)

    def write(self, text: str) -> None:
        """Print plain text on stdout, with no markup read into it."""
        sys.stdout.write(printable(text) + "\n")
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Print a line of progress on stderr."""
        self.notes.print(text, markup=False, soft_wrap=True)


def printable(text: str) -> str:
    """Return a text from elsewhere without the control characters that steer a terminal."""
    return text.translate(_CONTROLS)


def print_pairs(console: Console, rows: Rows) -> None:
    """Print names and values, a line each; a long value stays one word that can be copied."""
    width = max((len(name) for name, _ in rows), default=0) + 2
    for name, value in rows:
        shown = printable(value)
        line = Text.assemble((f"{name:<{width}}", "dim"), shown) if shown else Text(name, "dim")
        console.print(line, soft_wrap=True)
