"""Where a command's words go: data to stdout, everything else to stderr."""

import json
import sys

from rich.console import Console
from rich.table import Table

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
        """Print the result as JSON, as a table on a terminal, or as lines that nothing wraps."""
        if self.as_json:
            self.show(document)
        elif self.data.is_terminal:
            self.data.print(pairs(title, rows))
        else:
            self.write(plain_lines(rows))

    def write(self, text: str) -> None:
        """Print plain text on stdout, with no markup read into it."""
        sys.stdout.write(printable(text) + "\n")
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Print a line of progress on stderr."""
        self.notes.print(text, markup=False)


def printable(text: str) -> str:
    """Return a text from elsewhere without the control characters that steer a terminal."""
    return text.translate(_CONTROLS)


def plain_lines(rows: Rows) -> str:
    """Return names and values as lines that nothing wraps, for files and pipes."""
    width = max((len(name) for name, _ in rows), default=0) + 2
    return "\n".join(f"{name:<{width}}{printable(value)}".rstrip() for name, value in rows)


def pairs(title: str | None, rows: Rows) -> Table:
    """Return a two-column table of names and values."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, printable(value))
    return table
