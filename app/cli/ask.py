"""`offpeak ask`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.errors import Declined
from app.cli.options import (
    DEFAULT_HOME,
    DEFAULT_MODEL,
    Account,
    Home,
    Json,
    KeystoreFile,
    MaxTokens,
    Model,
    PasswordFile,
    Prompt,
    Region,
    Schema,
    Seed,
    System,
    Temperature,
    Url,
    Yes,
)
from app.cli.output import Output

if TYPE_CHECKING:
    from app.client.checks import CheckedQuote
    from app.client.documents import JobDocument

EXAMPLE = 'Example: offpeak ask "Name three uses of salt." --max 0.001 --yes'

Max = Annotated[
    str | None,
    typer.Option(
        "--max",
        "--max-charge",
        help="Most money to authorize, in the settlement token: 0.001. Dearer quotes are refused.",
    ),
]
Wait = Annotated[int, typer.Option(min=1, max=300, help="Seconds to wait for the answer.")]


def ask(
    prompt: Prompt,
    *,
    maximum: Max = None,
    yes: Yes = False,
    model: Model = DEFAULT_MODEL,
    max_tokens: MaxTokens = 128,
    system: System = None,
    temperature: Temperature = None,
    seed: Seed = None,
    schema: Schema = None,
    region: Region = None,
    wait: Wait = 60,
    keystore: KeystoreFile = None,
    account: Account = None,
    password_file: PasswordFile = None,
    url: Url = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Quote, confirm, sign, print the answer.

    Shows rates and maximum first; the answer alone goes to standard output.
    """
    from app.cli.answering import answered, require_json  # noqa: PLC0415  # --help does without
    from app.cli.buyer import BuyerOptions, paying  # noqa: PLC0415
    from app.cli.question import QuestionOptions, quoted, read_question  # noqa: PLC0415
    from app.cli.shown import quote_line, quote_rows  # noqa: PLC0415
    from app.cli.wallets import WalletOptions  # noqa: PLC0415
    from ledger.money import parse_amount  # noqa: PLC0415

    output = Output(as_json=as_json)
    limit = None if maximum is None else parse_amount(maximum)
    options = QuestionOptions(
        prompt=prompt,
        model=model,
        max_tokens=max_tokens,
        system=system,
        temperature=temperature,
        seed=seed,
        schema=schema,
        region=region,
    )
    question = read_question(options)
    wallet = WalletOptions(
        home=home, keystore=keystore, account=account, password_file=password_file
    )
    with paying(BuyerOptions(wallet=wallet, url=url)) as client:
        checked = quoted(client, question, options, limit=limit)
        if yes:
            output.note(quote_line(checked))
        else:
            output.note_rows(quote_rows(checked))
            confirm(checked)
        job = answered(client, checked, output, wait_seconds=wait)
        client.verify(job, checked)
    show(output, checked, job)
    if schema is not None:
        require_json(job)


def show(output: Output, checked: "CheckedQuote", job: "JobDocument") -> None:
    """Print the answer and what was paid for it; its record has been verified."""
    from app.cli.shown import job_document, job_rows, quote_document  # noqa: PLC0415  # --help does without

    if output.as_json:
        document = {
            "quote": quote_document(checked),
            "authorization_digest": "0x" + checked.authorization_digest.hex(),
            "job": job_document(job),
            "record_verified": True,
        }
        output.show(document)
    else:
        output.write(job.answer.content if job.answer else "")
        output.note_rows([*job_rows(job), ("record", "verified")])


def confirm(checked: "CheckedQuote") -> None:
    """Return if the buyer says yes on the terminal; Declined otherwise."""
    from app.cli.shown import maximum_text  # noqa: PLC0415  # --help does without

    if not sys.stdin.isatty():
        raise Declined
    question = f"Sign for at most {maximum_text(checked.quote)}?"
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:  # Ctrl-C at the question
        raise Declined from None
    if not agreed:
        raise Declined
