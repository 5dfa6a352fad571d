"""`offpeak job list|show|record`."""

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

app = typer.Typer(help="Look at this wallet's jobs.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(help="job_<uuid>", show_default=False)]


Limit = Annotated[int, typer.Option(min=1, max=100, help="Most jobs to show.")]
Before = Annotated[str | None, typer.Option(help="Only jobs older than this one.")]


@app.command("list", epilog="Example: offpeak job list --limit 5")
def list_jobs(
    *,
    limit: Limit = 20,
    before: Before = None,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    url: Url = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """List this wallet's jobs, newest first: id, time, state, charge."""
    from app.cli.buyer import BuyerOptions, paying  # noqa: PLC0415  # --help does without
    from app.cli.shown import job_line  # noqa: PLC0415
    from app.cli.wallets import WalletOptions  # noqa: PLC0415

    output = Output(as_json=as_json)
    wallet = WalletOptions(
        home=home, keystore=keystore, account=account, password_file=password_file
    )
    with paying(BuyerOptions(wallet=wallet, url=url)) as client:
        page = client.jobs(limit=limit, before=before)
    if as_json:
        output.show(page.model_dump(mode="json"))
        return
    for line in page.jobs:
        output.write(job_line(line))
    if page.next:
        output.note(f"more: offpeak job list --before {page.next}")
    elif not page.jobs:
        output.note("no jobs yet")


@app.command(epilog="Example: offpeak job show job_01990000-0000-7000-8000-000000000000")
def show(
    job_id: JobId,
    *,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    url: Url = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Show a job: state, supplier, usage, charge, answer, verified usage record.

    Recomputes the record; a wrong one is not shown and ends with exit code 10.
    """
    from app.cli.buyer import BuyerOptions, paying  # noqa: PLC0415  # --help does without
    from app.cli.shown import job_document, job_rows, record_rows  # noqa: PLC0415
    from app.cli.wallets import WalletOptions  # noqa: PLC0415

    output = Output(as_json=as_json)
    wallet = WalletOptions(
        home=home, keystore=keystore, account=account, password_file=password_file
    )
    with paying(BuyerOptions(wallet=wallet, url=url)) as client:
        job = client.job(job_id)
        rows = job_rows(job)
        if job.record:
            rows += record_rows(job.record.digest, client.verify_stored(job), client.terms)
    if job.answer:
        rows.append(("answer", job.answer.content))
    output.rows(job_document(job), rows)


@app.command(epilog="Example: offpeak job record job_01990000-0000-7000-8000-000000000000 > r.json")
def record(
    job_id: JobId,
    *,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    url: Url = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = True,
) -> None:
    """Print a job's signed usage record to keep: always JSON, verified first."""
    from app.cli.buyer import BuyerOptions, paying  # noqa: PLC0415  # --help does without
    from app.cli.wallets import WalletOptions  # noqa: PLC0415

    del as_json
    wallet = WalletOptions(
        home=home, keystore=keystore, account=account, password_file=password_file
    )
    with paying(BuyerOptions(wallet=wallet, url=url)) as client:
        job = client.job(job_id)
        client.verify_stored(job)
    assert job.record is not None
    kept = {"domain": client.terms.record_domain.message(), **job.record.model_dump(mode="json")}
    Output(as_json=True).show(kept)
