"""`offpeak finance export`."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.errors import BadInput
from app.cli.finance_options import From, Month, To, required_interval
from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.finance.export.service import Export, ExportService, Order

FORMATS = ("jsonl", "csv", "parquet", "xlsx", "focus", "beancount", "hledger")
EXAMPLE = "Example: offpeak finance export --month 2026-11 --format csv -o november"

FormatName = Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")]
Folder = Annotated[Path, typer.Option("-o", "--output", help="Folder to make.")]
AllowOpen = Annotated[
    bool,
    typer.Option("--allow-open", help="Export what is in the log of an interval that is not over."),
]


def export(
    *,
    output: Folder,
    format_name: FormatName,
    start: From = None,
    end: To = None,
    month: Month = None,
    allow_open: AllowOpen = False,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Write the records and transfers of an interval, with what proves them.

    From --from up to but not including --to, UTC. The manifest is signed and logged; a rerun makes
    the same bytes. Check the folder anywhere with `offpeak-verify export`.
    """
    from app.finance.export.service import Order  # noqa: PLC0415  # --help does without
    from app.finance.export.writer import Format  # noqa: PLC0415

    if format_name not in FORMATS:
        raise BadInput(f"--format {format_name}: one of {', '.join(FORMATS)}")
    order = Order(
        interval=required_interval(start, end, month),
        format=Format(format_name),
        target=output.absolute(),
        allow_open=allow_open,
    )
    shown = Output(as_json=as_json)
    made = asyncio.run(exported(home, order, shown))
    shown.rows(document(made), rows(made))


async def exported(home: Path, order: "Order", output: Output) -> "Export":
    """Make the export with a progress bar on stderr."""
    from app.assembly import log_terms_of  # noqa: PLC0415  # --help does without
    from app.cli.server import store_settings  # noqa: PLC0415
    from app.db.engine import open_database  # noqa: PLC0415
    from app.finance.export.log import ExportLog  # noqa: PLC0415
    from app.finance.export.service import ExportService  # noqa: PLC0415

    settings = store_settings(home)
    terms = log_terms_of(settings)
    database = open_database(settings.database_url.get_secret_value(), pool_size=4)
    try:
        log = ExportLog(database, terms)
        service = ExportService(database, log, terms.record_domain)
        with progress(await total(service, order), output) as advance:
            return await service.export(order, advance)
    finally:
        await database.dispose()


async def total(service: "ExportService", order: "Order") -> int:
    """Return how many rows there will be, before anything is written."""
    extent = await service.extent(order)
    return extent.records + extent.transfers


@contextmanager
def progress(rows_expected: int, output: Output) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr while rows go by, where stderr is a terminal."""
    from rich.progress import Progress  # noqa: PLC0415  # --help does without

    with Progress(console=output.notes, transient=True, disable=output.as_json) as bar:
        task = bar.add_task("rows", total=rows_expected)
        yield lambda count: bar.advance(task, count)


def document(made: "Export") -> dict[str, object]:
    """Return an export as JSON."""
    from ledger.encoding import checksum_address  # noqa: PLC0415  # --help does without

    manifest = made.manifest
    return {
        "folder": str(made.folder),
        "format": manifest.format,
        "records": manifest.records,
        "transfers": manifest.transfers,
        "sums": [each.message() for each in manifest.sums],
        "paid_nano": {checksum_address(asset): str(paid) for asset, paid in made.paid.items()},
        "filters": dict(manifest.filters),
        "log_index": made.log_index,
        "new": made.is_new,
        "files": [each.message() for each in manifest.files],
    }


def rows(made: "Export") -> list[tuple[str, str]]:
    """Return an export's rows for people."""
    from ledger.encoding import checksum_address  # noqa: PLC0415  # --help does without
    from ledger.export_row import time_text  # noqa: PLC0415
    from ledger.money import format_amount  # noqa: PLC0415

    manifest = made.manifest
    shown = [
        ("folder", str(made.folder)),
        ("interval", f"{time_text(manifest.from_at)} up to {time_text(manifest.to_at)}"),
        ("records", str(manifest.records)),
        ("transfers", str(manifest.transfers)),
    ]
    shown += [
        ("paid", f"{format_amount(paid)} of {checksum_address(asset)}, corrections taken off")
        for asset, paid in sorted(made.paid.items())
    ]
    shown += list(manifest.filters)
    logged = "now" if made.is_new else "before: the same export"
    return [*shown, ("manifest", f"log entry {made.log_index}, logged {logged}")]
