"""How the demonstration looks: panels on a terminal, plain lines anywhere else."""

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from app.cli.demo_flow import Done, Refused
from app.cli.output import Output, pairs, plain_lines, printable
from app.cli.shown import Rows, price_rows
from ledger.encoding import checksum_address
from ledger.money import format_amount

NOT_PROVED = (
    "A usage record proves that the gateway signed this billing statement. It does not prove\n"
    "that a GPU did the work, that metering was truthful or that the answer is right."
)


def show_done(output: Output, number: int, done: Done) -> None:
    """Print one finished task."""
    answer = done.job.answer.content if done.job.answer else ""
    _show(output, f"{number}. {done.task.title}", done_rows(done), answer=answer)


def done_rows(done: Done) -> Rows:
    """Return everything about one task, from its quote to its usage record."""
    job, quote = done.job, done.checked.quote
    assert job.usage is not None
    assert job.record is not None
    expiry = quote.expires_at - quote.issued_at
    return [
        ("asked", done.task.shown),
        ("quote", f"{done.checked.document.id}, good for {expiry} s"),
        ("tokens", f"{quote.input_tokens} in, at most {quote.max_output_tokens} out"),
        *price_rows(done.checked),
        ("signed", "0x" + done.checked.authorization_digest.hex()),
        ("signer", checksum_address(done.checked.authorization.payer)),
        ("supplier", f"{job.supplier} in {job.region}, {job.attempts} attempt"),
        ("used", f"{job.usage.input_tokens} in, {job.usage.output_tokens} out"),
        ("charge", f"{job.charge} of {job.held} held, {job.released} released"),
        ("balance", f"{done.before.available} before, {done.after.available} after"),
        ("record", job.record.digest),
        ("signature", job.record.signature),
        ("checked", "digest and charge recomputed, quote key's signature, same quote and signer"),
    ]


def show_refused(output: Output, number: int, refused: Refused) -> None:
    """Print the refusal."""
    problem = refused.problem
    figures = ", ".join(f"{name} {value}" for name, value in problem.figures.items())
    rows: Rows = [
        ("asked", f"{refused.task.shown} ({refused.checked.quote.max_output_tokens} tokens)"),
        ("maximum", format_amount(refused.checked.quote.max_charge_nano)),
        ("refused", f"{problem.status} {problem.code}: {figures}"),
        ("next", problem.next_step),
        ("balance", f"{refused.after.available}, {refused.after.held} held: unchanged"),
    ]
    _show(output, f"{number}. {refused.task.title}", rows)


def show_end(output: Output, seconds: float) -> None:
    """Print what a record does not prove, and how long it took."""
    output.write(f"\n{NOT_PROVED}")
    output.write(f"Everything has stopped again. {seconds:.1f} s in all.")


def _show(output: Output, title: str, rows: Rows, *, answer: str | None = None) -> None:
    if not output.data.is_terminal:
        output.write(f"\n{title}\n{plain_lines(rows)}")
        if answer is not None:
            output.write(f"answer: {answer}")
        return
    body: list[RenderableType] = [pairs(None, rows)]
    if answer is not None:
        body += [Text(), Text(printable(answer), style="bold green")]
    style = "none" if answer is not None else "yellow"
    output.data.print(Panel(Group(*body), title=title, title_align="left", border_style=style))
