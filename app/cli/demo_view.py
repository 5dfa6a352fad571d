"""How the demonstration looks: lines, with a little colour on a terminal."""

from rich.text import Text

from app.cli.demo_flow import Done, Refused
from app.cli.demo_receipt import ProvedReceipt
from app.cli.output import Output, print_pairs, printable
from app.cli.shown import Rows, maximum_text, price_rows, tokens_text
from ledger.encoding import checksum_address

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
        ("tokens", tokens_text(quote)),
        *price_rows(done.checked),
        ("signed", f"0x{done.checked.authorization_digest.hex()} (digest of the authorization)"),
        ("signer", f"{checksum_address(done.checked.authorization.payer)} (the wallet)"),
        ("supplier", f"{job.supplier} in {job.region}, {job.attempts} attempt"),
        ("used", f"{job.usage.input_tokens} in, {job.usage.output_tokens} out"),
        ("charge", f"{job.charge} of {job.held} held, {job.released} released"),
        ("balance", f"{done.before.available} before, {done.after.available} after"),
        ("record", f"{job.record.digest} (digest of the usage record)"),
        ("signature", f"{job.record.signature} (by the quote key)"),
        ("checked", "digest and charge recomputed, quote key's signature, same quote and signer"),
    ]


def show_refused(output: Output, number: int, refused: Refused) -> None:
    """Print the refusal."""
    problem = refused.problem
    figures = ", ".join(f"{name} {value}" for name, value in problem.figures.items())
    rows: Rows = [
        ("asked", refused.task.shown),
        ("tokens", tokens_text(refused.checked.quote)),
        ("maximum", maximum_text(refused.checked.quote)),
        ("refused", f"{problem.status} {problem.code}: {figures}"),
        ("next", problem.next_step),
        ("balance", f"{refused.after.available}, {refused.after.held} held: unchanged"),
    ]
    _show(output, f"{number}. {refused.task.title}", rows)


def show_money(output: Output, title: str, rows: Rows) -> None:
    """Print what came in or went back."""
    _show(output, title, rows)


def show_receipt(output: Output, number: int, proved: ProvedReceipt) -> None:
    """Print what the verifier found, step by step, and what became of the tampered copy."""
    asked = "no network, no gateway" if proved.node is None else "a node for the anchor, no gateway"
    rows: Rows = [
        ("receipt", f"of {proved.job_id}, {proved.size} bytes"),
        ("policy", f"the log's first key and the two contracts; {asked}"),
        *((step["step"], f"{step['result']}: {step['detail']}") for step in proved.good.steps),
        ("verdict", "VERIFIED (offpeak-verify, exit 0)"),
        ("tampered", proved.tampering),
        *(
            (step["step"], f"{step['result']}: {step['detail']}")
            for step in proved.tampered.steps
            if step["result"] == "refused"
        ),
        ("verdict", "INVALID (offpeak-verify, exit 1)"),
    ]
    title = "The receipt of the first task, and a copy with one figure changed"
    _show(output, f"{number}. {title}", rows)


def show_end(output: Output, seconds: float) -> None:
    """Print what a record does not prove, and how long it took."""
    output.write(f"\n{NOT_PROVED}")
    output.write(f"Everything has stopped again. {seconds:.1f} s in all.")


def _show(output: Output, title: str, rows: Rows, *, answer: str | None = None) -> None:
    output.write("")
    output.data.print(title, style="bold" if answer is not None else "bold yellow", markup=False)
    print_pairs(output.data, rows)
    if answer is not None:
        output.data.print(Text(f"answer: {printable(answer)}", "bold green"), soft_wrap=True)
