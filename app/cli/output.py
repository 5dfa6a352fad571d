"""Where a command's words go: data to stdout, everything else to stderr."""

import json
import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

Draw = Callable[[Console], None]

_KEPT = {ord("\n"), ord("\t")}
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "�")
_CONTROLS = {code: shown for code, shown in _CONTROLS.items() if code not in _KEPT}


class Output:
    """One command's output, as JSON or for people."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.data = Console(highlight=False, soft_wrap=False)
        self.notes = Console(stderr=True, highlight=False)

    def show(self, document: object, draw: Draw) -> None:
        """Print the result: the document as JSON, or what `draw` makes of it."""
        if self.as_json:
            self.write(json.dumps(document, ensure_ascii=False, indent=2))
        else:
            draw(self.data)

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


def pairs(title: str | None, rows: list[tuple[str, str]]) -> Table:
    """Return a two-column table of names and values."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, printable(value))
    return table


def columns(names: list[str], rows: list[list[str]]) -> Table:
    """Return a table with a heading line; columns of figures are right-aligned."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(names):
        figures = all(_is_figure(row[index]) for row in rows) and bool(rows)
        table.add_column(name, justify="right" if figures else "left", overflow="fold")
    for row in rows:
        table.add_row(*[printable(cell) for cell in row])
    return table


def _is_figure(text: str) -> bool:
    return text == "-" or text.replace(".", "", 1).isdigit()
