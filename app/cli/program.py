"""The program: its subcommands, its help, and one way for every failure to be told."""

import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from app.cli import (
    ask,
    capacity,
    check,
    demo,
    deposit,
    dev,
    fetch,
    finance,
    job,
    leave,
    ledger,
    log,
    migrate,
    models,
    quote,
    receipt,
    serve,
    supplier,
    treasury,
    up,
    wallet,
    withdraw,
    work,
)
from app.cli.exits import table
from app.cli.failures import describe

HELP = f"""Open-model inference on spare GPU capacity: quote, authorize, answer,
usage record.

Try it: `offpeak demo`. Stay up: `offpeak up`, then `offpeak ask "..."` in another shell.

\b
Exit codes:
{table()}
"""


class Program(TyperGroup):
    """The root command: a failure is one line on stderr and an exit code, never a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # typer's signature
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line; typer itself tells of wrong usage (2) and Ctrl-C (130)."""
        arguments = tuple(sys.argv[1:] if args is None else args)
        try:
            return super().main(
                without_debug(arguments),
                prog_name,
                complete_var,
                standalone_mode,
                windows_expand_args,
                **extra,
            )
        except Exception as error:  # noqa: BLE001  # the top of the program
            sys.exit(_tell(error, arguments))


app = typer.Typer(
    name="offpeak",
    cls=Program,
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    """Print the version and exit, if it is asked for."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  # --help without

    if not wanted:
        return
    try:
        typer.echo(f"offpeak {version('offpeak-inference')}")
    except PackageNotFoundError:
        typer.echo("offpeak 0.0.0+source")
    raise typer.Exit


@app.callback()
def root(
    *,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks. Any command takes it.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=show_version, help="Show it.")
    ] = False,
) -> None:
    del debug, version  # read from the arguments, so that a failure while parsing has it too


for name, function, example in (
    ("up", up.up, up.EXAMPLE),
    ("demo", demo.demo, demo.EXAMPLE),
    ("ask", ask.ask, ask.EXAMPLE),
    ("quote", quote.quote, quote.EXAMPLE),
    ("deposit", deposit.deposit, deposit.EXAMPLE),
    ("withdraw", withdraw.withdraw, withdraw.EXAMPLE),
    ("models", models.models, models.EXAMPLE),
    ("capacity", capacity.capacity, capacity.EXAMPLE),
    ("fetch", fetch.fetch, fetch.EXAMPLE),
    ("serve", serve.serve, serve.EXAMPLE),
    ("work", work.work, work.EXAMPLE),
    ("migrate", migrate.migrate, migrate.EXAMPLE),
    ("check", check.check, check.EXAMPLE),
):
    app.command(name, epilog=example)(function)
app.add_typer(wallet.app, name="wallet")
app.add_typer(leave.app, name="exit")
app.add_typer(job.app, name="job")
app.add_typer(supplier.app, name="supplier")
app.add_typer(receipt.app, name="receipt")
app.add_typer(treasury.app, name="treasury")
app.add_typer(ledger.app, name="ledger")
app.add_typer(finance.app, name="finance")
app.add_typer(log.app, name="log")
if os.environ.get("OFFPEAK_ENVIRONMENT", "development") != "production":
    app.add_typer(dev.app, name="dev")


def without_debug(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without `--debug`, which may stand anywhere before `--`."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    return [each for each in arguments[:end] if each != "--debug"] + list(arguments[end:])


def main() -> None:
    """Entry point of `offpeak`."""
    app(prog_name="offpeak")


def _tell(error: BaseException, arguments: tuple[str, ...]) -> int:
    if "--debug" in arguments:
        traceback.print_exception(error)
    failure = describe(error)
    if "--json" in arguments:
        sys.stderr.write(json.dumps(failure.document()) + "\n")
    else:
        sys.stderr.write(f"offpeak: {failure.detail} ({failure.code})\n")
        if failure.next_step:
            sys.stderr.write(f"  next: {failure.next_step}\n")
    return int(failure.exit)
