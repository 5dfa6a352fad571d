"""`offpeak up`: the all-in-one stays up."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.options import DEFAULT_HOME, DEFAULT_PORT, Home, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.embedded.stack import Stack

EXAMPLE = '\b\nExample: offpeak up\n# in another shell: offpeak ask "Say hello." --yes'
WATCH_SECONDS = 0.5

Port = Annotated[
    int, typer.Option(min=0, max=65_535, help="Gateway's port; a free one when it is taken.")
]
Balance = Annotated[str, typer.Option(help="Money that the development wallet is topped up to.")]


def up(
    *,
    port: Port = DEFAULT_PORT,
    balance: Balance = "1",
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Run everything on this machine until Ctrl-C.

    Engines, gateway, worker and one agent with a real model; makes and funds a wallet.
    """
    from app.embedded.stack import StackOptions, running_stack  # noqa: PLC0415  # --help without
    from ledger.money import parse_amount  # noqa: PLC0415

    output = Output(as_json=as_json)
    options = StackOptions(
        home=home, persistent=True, port=port, balance=parse_amount(balance), environ=os.environ
    )
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with running_stack(options, output.note) as stack:
        rows = up_rows(stack)
        output.rows(dict(rows), rows, title="OFFPEAK is up")
        if not as_json:
            output.note(f'\nAsk:   {own_name()} ask "Name three uses of salt."')
            output.note(f"Look:  curl {stack.url}/v1/capacity")
            output.note("Stop:  Ctrl-C")
        while not stop.wait(WATCH_SECONDS):
            stack.check()
        output.note(stopping_text(open_jobs(stack)))
    output.note("stopped; nothing is left running")


def open_jobs(stack: "Stack") -> int:
    """Return how many of the development wallet's jobs still run; 0 when nobody can say."""
    from app.cli.demo import demo_client  # noqa: PLC0415  # --help does without
    from app.client.errors import ClientError  # noqa: PLC0415

    try:
        with demo_client(stack) as client:
            return sum(job.completed_at is None for job in client.jobs(limit=100).jobs)
    except ClientError:
        return 0


def stopping_text(jobs: int) -> str:
    """Return what is waited for; a second Ctrl-C does not make it quicker."""
    if not jobs:
        return "stopping"
    what = "1 job still runs" if jobs == 1 else f"{jobs} jobs still run"
    return f"stopping: {what}; each may end first, within the drain time"


def own_name() -> str:
    """Return how this program was called, for somebody in the same folder to call it again."""
    script = Path(sys.argv[0])
    return os.path.relpath(script) if script.name == "offpeak" else "offpeak"


def up_rows(stack: "Stack") -> list[tuple[str, str]]:
    """Return what a buyer and an operator need to know."""
    from ledger.encoding import checksum_address  # noqa: PLC0415

    return [
        ("gateway", stack.url),
        ("probes", f"{stack.url}/readyz, {stack.url}/metrics"),
        ("api", f"{stack.url}/openapi.json"),
        ("chain", stack.chain.url if stack.chain else "none: the money is made up"),
        ("wallet", checksum_address(stack.wallet)),
        ("keystore", str(stack.home.keystore)),
        ("logs", str(stack.home.logs)),
    ]
