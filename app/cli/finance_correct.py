"""`offpeak finance correct`."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.errors import BadInput
from app.cli.options import DEFAULT_HOME, Home, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.finance.corrections import Correction
    from ledger.money import Nano

EXAMPLE = (
    "Example: offpeak finance correct job_01990000-0000-7000-8000-000000000000 --charge 0"
    " --because 'the answer was cut by our proxy'"
)

RecordId = Annotated[
    str, typer.Argument(help="The record to correct, job_<uuid>.", show_default=False)
]
Charge = Annotated[str, typer.Option(help="What it should have charged in all: less than it did.")]
Because = Annotated[str, typer.Option(help="Why; it is recorded.")]
CorrectionId = Annotated[
    str | None,
    typer.Option("--id", help="Id of a correction whose outcome is unknown, to repeat it safely."),
]


def correct(
    record: RecordId,
    *,
    charge: Charge,
    because: Because,
    correction_id: CorrectionId = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Charge less for a job: the difference goes back to its wallet.

    A record of its own says so, booked now; the worker signs and seals it like any other.
    """
    from app.kit.ids import IdPrefix, format_id  # noqa: PLC0415  # --help does without
    from ledger.money import format_amount  # noqa: PLC0415

    output = Output(as_json=as_json)
    said = correction_of(record, charge, because, correction_id)
    shown = format_id(IdPrefix.JOB, said.record_id)
    output.note(f"correction {shown}; if this breaks off, repeat it with --id {shown}")
    refund = asyncio.run(corrected(home, said))
    rows = [
        ("record", shown),
        ("corrects", record),
        ("charge", format_amount(said.charge)),
        ("refunded", format_amount(refund)),
        ("because", said.because),
    ]
    output.rows(dict(rows), rows)


def correction_of(
    record: str, charge: str, because: str, correction_id: str | None
) -> "Correction":
    """Return what the arguments say, under a new id unless one is given.

    Raises:
        MalformedId, BadAmount: an id or the charge cannot be read.
        BadInput: no reason, or one that is too long.
    """
    import secrets  # noqa: PLC0415  # --help does without

    from app.finance.corrections import MAX_REASON, Correction  # noqa: PLC0415
    from app.kit.clock import unix_ms  # noqa: PLC0415
    from app.kit.ids import IdPrefix, IdSource, parse_id  # noqa: PLC0415
    from ledger.money import parse_amount  # noqa: PLC0415

    reason = because.strip()
    if not 0 < len(reason) <= MAX_REASON or "\0" in reason:
        raise BadInput(f"--because must say why, in at most {MAX_REASON} characters")
    ids = IdSource(now_ms=unix_ms, random_bytes=secrets.token_bytes)
    given = None if correction_id is None else parse_id(IdPrefix.JOB, correction_id)
    return Correction(
        record_id=given or ids.new(),
        corrects=parse_id(IdPrefix.JOB, record),
        charge=parse_amount(charge),
        because=reason,
    )


async def corrected(home: Path, said: "Correction") -> "Nano":
    """Make the correction as the operator; return what went back."""
    from app.cli.server import operator_database  # noqa: PLC0415  # --help does without
    from app.finance.corrections import Corrections  # noqa: PLC0415

    async with operator_database(home) as (database, _):
        return await Corrections(database).correct(said)
