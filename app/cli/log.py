"""`offpeak log check|seal|rotate|keys|policy`."""

import asyncio
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.errors import BadInput, LogMismatch
from app.cli.options import DEFAULT_HOME, Home, Json, Url
from app.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.config import Settings
    from app.receipts.check import LogReport, Progress
    from app.receipts.rotation import Rotation
    from app.receipts.sequencer import Round
    from ledger.merkle import LogIndex

app = typer.Typer(help="The receipt log.", no_args_is_help=True)

NewKey = Annotated[
    Path | None,
    typer.Option(help="File with the next checkpoint key: 64 hex digits (Ed25519 seed)."),
]
RecordKey = Annotated[
    str | None, typer.Option(help="Address of a further record key, from the next batch on.")
]
RetiredKey = Annotated[str | None, typer.Option(help="Address of a record key that signs no more.")]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Where to write it, replacing a file; else stdout."),
]


@app.command(epilog="Example: offpeak log check --json")
def check(*, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Recompute the log from scratch, from stored records to signed checkpoints.

    Reports the first difference and ends with exit code 10.
    """
    output = Output(as_json=as_json)
    with shown_progress(output) as progress:
        report = asyncio.run(checked(home, progress))
    rows = [(name, str(value)) for name, value in asdict(report).items() if name != "difference"]
    rows.append(("difference", report.difference or "none"))
    output.rows({**asdict(report), "clean": report.is_clean}, rows)
    if report.difference is not None:
        raise LogMismatch(report.difference)


@app.command(epilog="Example: offpeak log seal")
def seal(*, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Seal, log and publish now what the worker would at its next round."""
    from app.cli.server import store_settings  # noqa: PLC0415  # --help does without

    done = asyncio.run(sealed(store_settings(home)))
    rows = [
        ("records sealed", str(done.sealed)),
        ("headers logged", str(done.logged)),
        ("checkpoints signed", str(done.checkpoints)),
    ]
    Output(as_json=as_json).rows(asdict(done), rows)


@app.command(epilog="Example: offpeak log rotate --checkpoint-key-file next.key")
def rotate(
    *,
    checkpoint_key_file: NewKey = None,
    record_key: RecordKey = None,
    retire_record_key: RetiredKey = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Change the log's keys: an entry that the old and the new checkpoint key sign.

    Afterwards give the workers the new checkpoint key; until then they sign nothing and lose
    nothing. Receipts from before stay good.
    """
    from app.cli.server import store_settings  # noqa: PLC0415  # --help does without
    from app.config_rules import key_lines, read_secret  # noqa: PLC0415
    from app.receipts.rotation import Rotation  # noqa: PLC0415
    from ledger.encoding import parse_address  # noqa: PLC0415
    from ledger.note import NoteSigner  # noqa: PLC0415

    settings = store_settings(home)
    signer = None
    if checkpoint_key_file is not None:
        try:
            keys = key_lines(read_secret(checkpoint_key_file))
        except ValueError as error:
            raise BadInput(str(error)) from None
        if len(keys) != 1:
            raise BadInput(f"{checkpoint_key_file}: not one line of 64 hex digits")
        signer = NoteSigner(settings.log_origin, keys[0])
    rotation = Rotation(
        checkpoint_key=signer,
        record_key=None if record_key is None else parse_address(record_key),
        retired_record_key=None if retire_record_key is None else parse_address(retire_record_key),
    )
    index = asyncio.run(rotated(settings, rotation))
    output = Output(as_json=as_json)
    output.rows({"log_index": int(index)}, [("logged as entry", str(index))])
    if signer is not None:
        output.note("now give the workers the new key: OFFPEAK_CHECKPOINT_KEY_FILE")


@app.command(epilog="Example: offpeak log keys --json")
def keys(*, url: Url = None, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Show which keys sign the log and its records, with their validity by log size."""
    from app.cli.buyer import BuyerOptions, looking  # noqa: PLC0415  # --help does without
    from app.cli.wallets import WalletOptions  # noqa: PLC0415

    with looking(BuyerOptions(wallet=WalletOptions(home=home), url=url)) as client:
        found = client.log_keys()
    rows = [("origin", found.origin), ("size", found.size)]
    for key in found.keys:
        until = "" if key.until is None else f" to {key.until}"
        rows.append((f"{key.role} key", f"{key.key} from {key.from_place}{until}"))
    Output(as_json=as_json).rows(found.model_dump(mode="json", by_alias=True), rows)


@app.command(epilog="Example: offpeak log policy -o policy.txt")
def policy(
    *, file: PolicyFile = None, url: Url = None, home: Home = DEFAULT_HOME, as_json: Json = False
) -> None:
    """Print a policy for `offpeak-verify` that trusts this log's first key and these contracts.

    It is the gateway's word: compare the key with what the operator publishes elsewhere.
    """
    from app.cli.buyer import BuyerOptions, looking  # noqa: PLC0415  # --help does without
    from app.cli.policies import policy_text  # noqa: PLC0415
    from app.cli.wallets import WalletOptions  # noqa: PLC0415

    with looking(BuyerOptions(wallet=WalletOptions(home=home), url=url)) as client:
        text = policy_text(client.log_keys(), client.terms)
    output = Output(as_json=as_json)
    if file is not None:
        file.write_text(text)
        output.rows({"file": str(file), "policy": text}, [("policy", str(file))])
    elif as_json:
        output.show({"policy": text})
    else:
        output.write(text.removesuffix("\n"))


@contextmanager
def shown_progress(output: Output) -> "Iterator[Progress]":
    """Yield what shows how many entries of the log are done, on stderr."""
    from rich.progress import Progress as Bar  # noqa: PLC0415  # --help does without

    with Bar(console=output.notes, transient=True, disable=not output.notes.is_terminal) as bar:
        task = bar.add_task("log entries", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


async def checked(home: Path, progress: "Progress") -> "LogReport":
    """Recompute the log of the database."""
    from app.assembly import database_of, record_domain_of  # noqa: PLC0415  # --help does without
    from app.cli.server import store_settings  # noqa: PLC0415
    from app.receipts.check import LogCheck  # noqa: PLC0415

    settings = store_settings(home)
    database = database_of(settings)
    domain = record_domain_of(settings)
    try:
        return await LogCheck(database, origin=settings.log_origin, record_domain=domain).run(
            progress
        )
    finally:
        await database.dispose()


async def sealed(settings: "Settings") -> "Round":
    """Sign what is unsigned and do a round of the sequencer, as the worker does once a minute.

    Raises:
        DatabaseConflict: the worker's own rounds came between again and again.
    """
    from app.assembly import build_sequencer, database_of, record_service_of  # noqa: PLC0415
    from app.receipts.appending import retried  # noqa: PLC0415
    from app.worker import SIGN_LIMIT  # noqa: PLC0415

    database = database_of(settings)
    try:
        await record_service_of(settings, database).sign_unsigned(SIGN_LIMIT)
        return await retried(build_sequencer(settings, database).run_once)
    finally:
        await database.dispose()


async def rotated(settings: "Settings", rotation: "Rotation") -> "LogIndex":
    """Log a change of keys."""
    from app.assembly import build_sequencer, database_of  # noqa: PLC0415  # --help does without
    from app.receipts.rotation import rotate as log_rotation  # noqa: PLC0415

    database = database_of(settings)
    try:
        return await log_rotation(database, build_sequencer(settings, database), rotation)
    finally:
        await database.dispose()
