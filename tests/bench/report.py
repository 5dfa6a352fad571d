"""Rows as a table for people and as JSON for programs."""

import json
import os
import platform
from collections.abc import Sequence

import psutil
from rich.console import Console
from rich.table import Table

from tests.bench.measure import Row

PERCENT = 100


def print_table(rows: Sequence[Row]) -> None:
    """Print one table of everything measured."""
    table = Table("row", "measured", "bar", "verdict", "note", title="bench", title_justify="left")
    for column in (1, 2):
        table.columns[column].justify = "right"
    for row in rows:
        table.add_row(
            row.name, figure(row.measured, row.unit), bar_text(row), verdict(row), row.note
        )
    Console(width=None if os.isatty(1) else 180).print(table)


def figure(value: float, unit: str) -> str:
    """Return a figure with its unit, at three significant digits or all before the point."""
    digits = 0 if abs(value) >= PERCENT else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()


def bar_text(row: Row) -> str:
    """Return the bar in words, or nothing."""
    if row.bar is None:
        return ""
    sign = "<=" if row.bar.rule == "at most" else ">="
    return f"{sign} {figure(row.bar.value, row.unit)}"


def verdict(row: Row) -> str:
    """Return whether the bar was met and by how much of the bar."""
    if row.bar is None:
        return ""
    distance = abs(row.measured - row.bar.value) / row.bar.value * PERCENT
    return (
        f"[green]met[/] by {distance:.0f} %"
        if row.is_met
        else f"[red]missed[/] by {distance:.0f} %"
    )


def document(rows: Sequence[Row], *, quick: bool) -> str:
    """Return everything as JSON with the machine it was measured on."""
    return json.dumps(
        {
            "machine": {
                "cores": psutil.cpu_count(),
                "load_average": os.getloadavg(),
                "python": platform.python_version(),
                "system": f"{platform.system()} {platform.release()}",
            },
            "quick": quick,
            "rows": [
                {
                    "name": row.name,
                    "measured": row.measured,
                    "unit": row.unit,
                    "bar": row.bar.value if row.bar else None,
                    "rule": row.bar.rule if row.bar else None,
                    "met": row.is_met,
                    "note": row.note,
                }
                for row in rows
            ],
        },
        indent=1,
    )
