"""`offpeak receipt list|get`."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import (
    DEFAULT_HOME,
    Account,
    Home,
    Json,
    KeystoreFile,
    PasswordFile,
    Url,
)
from app.cli.output import Output

app = typer.Typer(help="This wallet's receipts.", no_args_is_help=True)

RecordId = Annotated[str, typer.Argument(help="job_<uuid>", show_default=False)]
File = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Where to write it, replacing a file; else stdout."),
]
Limit = Annotated[int, typer.Option(min=1, max=100, help="Most records to show.")]
After = Annotated[int, typer.Option(min=0, help="Only records after this number.")]
SHORT_LINE = "{seq:>6}  {id}  {at}  {outcome:<10}  {charge}  {place}"


@app.command(
    epilog="Example: offpeak receipt get job_01990000-0000-7000-8000-000000000000 -o r.json"
)
def get(
    record_id: RecordId,
    *,
    file: File = None,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    url: Url = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Fetch a job's receipt: one file that `offpeak-verify` checks without this gateway."""
    from app.cli.buyer import BuyerOptions, paying  # noqa: PLC0415  # --help does without
    from app.cli.wallets import WalletOptions  # noqa: PLC0415
    from ledger.errors import BadReceipt  # noqa: PLC0415
    from ledger.receipt import Receipt  # noqa: PLC0415

    output = Output(as_json=as_json)
    wallet = WalletOptions(
        home=home, keystore=keystore, account=account, password_file=password_file
    )
    with paying(BuyerOptions(wallet=wallet, url=url)) as client:
        raw = client.receipt(record_id)
    try:
        is_logged = Receipt.parse(raw).batch is not None
    except BadReceipt as error:
        from app.client.errors import AnswerMalformed  # noqa: PLC0415

        raise AnswerMalformed("/v1/receipts", reason=str(error)) from None
    if file is None:
        typer.echo(raw.decode(), nl=False)
    else:
        file.write_bytes(raw)
        output.rows(
            {"file": str(file), "bytes": len(raw), "logged": is_logged},
            [("receipt", str(file)), ("in the log", "yes" if is_logged else "not yet")],
        )
    if not is_logged:
        output.note("not in the log yet: fetch it again in a minute")
    elif file is not None and not as_json:
        output.note(f"check it: offpeak-verify {file} --policy policy.txt")


@app.command("list", epilog="Example: offpeak receipt list --after 100")
def list_receipts(
    *,
    limit: Limit = 20,
    after: After = 0,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    url: Url = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """List this wallet's records in their order; a missing number would be a missing record."""
    from app.cli.buyer import BuyerOptions, paying  # noqa: PLC0415  # --help does without
    from app.cli.wallets import WalletOptions  # noqa: PLC0415

    output = Output(as_json=as_json)
    wallet = WalletOptions(
        home=home, keystore=keystore, account=account, password_file=password_file
    )
    with paying(BuyerOptions(wallet=wallet, url=url)) as client:
        page = client.receipts(limit=limit, after=after)
    if as_json:
        output.show(page.model_dump(mode="json"))
        return
    for line in page.receipts:
        place = "not sealed yet" if line.batch is None else f"batch {line.batch}"
        if line.corrects_record is not None:
            place += f", {line.released} given back of {line.corrects_record}"
        output.write(
            SHORT_LINE.format(
                seq=line.payer_seq,
                id=line.record_id,
                at=line.completed_at,
                outcome=line.outcome,
                charge=line.charge,
                place=place,
            )
        )
    if page.next is not None:
        output.note(f"more: offpeak receipt list --after {page.next}")
    elif not page.receipts:
        output.note(f"no records after number {after}" if after else "no records yet")
