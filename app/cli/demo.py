"""`offpeak demo`: the whole flow on real engines, then everything stops."""

import os
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.options import DEFAULT_MODEL, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.client.client import Client
    from app.embedded.stack import Stack

EXAMPLE = "Example: offpeak demo --json"
BALANCE = "0.000150000"
"""Money in the demonstration's wallet: enough for the three tasks, too little for the fourth."""
COMMIT_SECONDS = 2
"""How often spending is committed on the demonstration's chain."""

Keep = Annotated[
    Path | None, typer.Option("--home", help="Keep data and logs here instead of a temporary one.")
]


def demo(*, home: Keep = None, as_json: Json = False) -> None:
    """Run the whole flow on real engines, then stop.

    Three tasks of a real model and one refusal; leaves nothing running.
    """
    started = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    output = Output(as_json=as_json)
    if home is not None:
        document = run(home, output, persistent=True)
    else:
        with tempfile.TemporaryDirectory(
            prefix="offpeak-demo-", ignore_cleanup_errors=True
        ) as folder:
            document = run(Path(folder), output, persistent=False)
    if as_json:
        document["seconds"] = round(time.monotonic() - started, 1)
        output.show(document)
    else:
        from app.cli.demo_view import show_end  # noqa: PLC0415  # --help does without

        show_end(output, time.monotonic() - started)


def run(home: Path, output: Output, *, persistent: bool) -> dict[str, object]:
    """Start everything, run the tasks, stop everything; return what happened as JSON."""
    from app.embedded.stack import StackOptions, running_stack  # noqa: PLC0415  # --help without
    from ledger.money import parse_amount  # noqa: PLC0415

    options = StackOptions(
        home=home,
        persistent=persistent,
        port=0,
        balance=parse_amount(BALANCE),
        commit_seconds=COMMIT_SECONDS,
        environ=os.environ,
    )
    with running_stack(options, output.note) as stack, demo_client(stack) as client:
        document: dict[str, object] = {}
        first = show_deposit(stack, output, document)
        job_id = tasks(client, output, document, first=first)
        document["receipt"] = receipt(stack, client, job_id, output, number=first + 4)
        if stack.chain is not None:
            document["brought_back"] = brought_back(stack, client, output, number=first + 5)
        stack.check()
    return document


def show_deposit(stack: "Stack", output: Output, document: dict[str, object]) -> int:
    """Show what was deposited, if there is a chain; return the number of the first task."""
    from app.cli.demo_money import deposit_document, deposit_rows  # noqa: PLC0415
    from app.cli.demo_view import show_money  # noqa: PLC0415  # --help does without

    if stack.deposited is None:
        return 1
    document["deposit"] = deposit_document(stack.deposited)
    if not output.as_json:
        show_money(output, "1. The deposit", deposit_rows(stack.deposited, stack))
    return 2


def brought_back(
    stack: "Stack", client: "Client", output: Output, *, number: int
) -> dict[str, object]:
    """Withdraw the rest and compare chain and books."""
    from app.cli.demo_money import bring_back, brought_back_rows  # noqa: PLC0415
    from app.cli.demo_view import show_money  # noqa: PLC0415  # --help does without

    output.note("withdrawing the rest")
    back = bring_back(client, stack)
    if not output.as_json:
        show_money(output, f"{number}. The rest goes back", brought_back_rows(back))
    return back.document()


def receipt(
    stack: "Stack", client: "Client", job_id: str, output: Output, *, number: int
) -> dict[str, object]:
    """Seal, fetch and verify a receipt, and show a tampered copy refused."""
    from app.cli.demo_receipt import prove_receipt  # noqa: PLC0415  # --help does without
    from app.cli.demo_view import show_receipt  # noqa: PLC0415

    output.note("sealing the records and checking a receipt")
    proved = prove_receipt(client, stack.settings, job_id=job_id, folder=stack.home.path)
    if not output.as_json:
        show_receipt(output, number, proved)
    return proved.document()


def tasks(client: "Client", output: Output, document: dict[str, object], *, first: int) -> str:
    """Run the three tasks and the refusal, showing each as it ends; return the first job's id."""
    from app.cli.demo_flow import run_refusal, run_task  # noqa: PLC0415  # --help does without
    from app.cli.demo_tasks import demo_tasks, unaffordable  # noqa: PLC0415
    from app.cli.demo_view import show_done, show_refused  # noqa: PLC0415

    finished = []
    for number, task in enumerate(demo_tasks(DEFAULT_MODEL), start=first):
        output.note(f"asking: {task.title.lower()}")
        done = run_task(client, task)
        finished.append(done)
        if not output.as_json:
            show_done(output, number, done)
    refused = run_refusal(client, unaffordable(DEFAULT_MODEL))
    if not output.as_json:
        show_refused(output, first + len(finished), refused)
    document["tasks"] = [done.document() for done in finished]
    document["refused"] = refused.document()
    return finished[0].job.id


def demo_client(stack: "Stack") -> "Client":
    """Return a client of the stack's gateway that pays with its wallet."""
    from app.cli.buyer import terms_of  # noqa: PLC0415  # --help does without
    from app.client.client import Client  # noqa: PLC0415
    from app.client.transport import Transport  # noqa: PLC0415
    from app.client.wallet import Wallet  # noqa: PLC0415
    from app.embedded.stack import up_document  # noqa: PLC0415

    terms = terms_of(up_document(stack.url, stack.home, stack.settings, stack.chain), environ={})
    return Client(Transport(stack.url), terms, wallet=Wallet(stack.wallet_key))
