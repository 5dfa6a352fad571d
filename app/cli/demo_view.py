"""How the demonstration looks: panels on a terminal, plain lines anywhere else."""

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from app.cli.demo_flow import Done, Refused
from app.cli.output import pairs, printable
from app.cli.shown import Rows, authorization_rows, job_rows, offer_rows, record_rows
from app.wallets.schemas import BalanceOut

NOT_PROVED = (
    "A usage record proves that the gateway signed this billing statement. It does not prove that "
    "a GPU did the work, that metering was truthful or that the answer is right."
)


def show_done(console: Console, number: int, done: Done) -> None:
    """Print one finished task."""
    rows: Rows = [
        ("asked", done.task.shown),
        *offer_rows(done.offer),
        *authorization_rows(done.offer),
        *job_rows(done.job),
        ("balance", f"{money(done.before)} before"),
        ("", f"{money(done.after)} after"),
        *record_rows(done.record, done.job),
    ]
    answer = done.job.answer.content if done.job.answer else ""
    table = pairs(None, rows)
    title = f"{number}. {done.task.title}"
    if console.is_terminal:
        body = Group(table, Text(), Text(printable(answer), style="bold green"))
        console.print(Panel(body, title=title, title_align="left"))
    else:
        _plain(console, title, table)
        console.print(Text(f"answer: {printable(answer)}"))


def show_refused(console: Console, number: int, refused: Refused) -> None:
    """Print the refusal."""
    problem = refused.problem
    rows: Rows = [
        ("asked", refused.task.shown),
        ("maximum", str(refused.offer.document.price.get("max_charge"))),
        ("refused", f"{problem.status} {problem.code}: {problem.detail}"),
        ("next", problem.next_step),
        ("balance", f"{money(refused.after)} after: unchanged"),
    ]
    title = f"{number}. {refused.task.title}"
    if console.is_terminal:
        panel = Panel(pairs(None, rows), title=title, title_align="left", border_style="yellow")
        console.print(panel)
    else:
        _plain(console, title, pairs(None, rows))


def show_end(console: Console, seconds: float) -> None:
    """Print what a record does not prove, and how long it took."""
    console.print()
    console.print(Text(NOT_PROVED, style="dim"))
    console.print(Text(f"Everything has stopped again. {seconds:.1f} s in all."))


def money(balance: BalanceOut) -> str:
    """Return the two buckets that a request moves."""
    return f"{balance.available} available, {balance.held} held"


def _plain(console: Console, title: str, table: Table) -> None:
    console.print()
    console.print(Text(title))
    console.print(table)
