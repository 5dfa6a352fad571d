"""Quotes, jobs and records as rows of text and as JSON documents."""

from app.client.checks import CheckedQuote
from app.client.documents import JobDocument, JobLine
from app.client.records import SignedRecord
from app.client.terms import Terms
from ledger.encoding import checksum_address
from ledger.money import format_amount
from ledger.quote import Quote

Rows = list[tuple[str, str]]


def load_text(ppm: int) -> str:
    """Return a load in millionths as a fraction with six decimals."""
    return f"{ppm // 1_000_000}.{ppm % 1_000_000:06d}"


def rates_text(input_rate: str, output_rate: str, per_request: str) -> str:
    """Return rates on one line."""
    return f"{input_rate} in, {output_rate} out per million tokens; {per_request} per request"


def quote_rows(checked: CheckedQuote) -> Rows:
    """Return a quote's rows; every figure is read from the signed message itself."""
    quote = checked.quote
    return [
        ("quote", checked.document.id),
        ("model", f"{quote.model} in {quote.region}"),
        ("tokens", tokens_text(quote)),
        *price_rows(checked),
        ("money", f"all amounts are of the settlement token {checksum_address(quote.token)}"),
        ("expires in", f"{quote.expires_at - quote.issued_at} s"),
    ]


def quote_line(checked: CheckedQuote) -> str:
    """Return the least that a buyer who asked for no question should see of a quote."""
    return f"maximum {maximum_text(checked.quote)} for {tokens_text(checked.quote)}"


def tokens_text(quote: Quote) -> str:
    """Return a quote's text tokens: what the model reads, and the ceiling of what it writes."""
    read = f"{quote.input_tokens} in (instructions and chat template included)"
    return f"{read}, at most {quote.max_output_tokens} out"


def maximum_text(quote: Quote) -> str:
    """Return the most that accepting costs, with its unit."""
    return f"{format_amount(quote.max_charge_nano)} of the settlement token"


def price_rows(checked: CheckedQuote) -> Rows:
    """Return load, floor, rates and maximum; the floor is the gateway's word, unsigned."""
    quote = checked.quote
    rates = rates_text(
        format_amount(quote.input_rate_nano),
        format_amount(quote.output_rate_nano),
        format_amount(quote.per_request_nano),
    )
    rows = [("load", load_text(quote.load_ppm))]
    floor = checked.document.price.get("floor")
    if isinstance(floor, dict):
        names = ("input_per_mtok", "output_per_mtok", "per_request")
        lowest = rates_text(*[str(floor.get(name)) for name in names])
        if lowest == rates:
            rates += " (the cost floor)"
        else:
            rows.append(("floor", lowest))
    return [*rows, ("rates", rates), ("maximum", maximum_text(quote))]


def job_rows(job: JobDocument) -> Rows:
    """Return a job's rows; what is not known yet is left out."""
    rows = [("job", job.id), ("state", job.state)]
    if job.supplier:
        rows.append(("supplier", job.supplier))
    if job.usage:
        used = job.usage
        cached = f" ({used.cached_input_tokens} cached)" if used.cached_input_tokens else ""
        rows.append(("usage", f"{used.input_tokens} in{cached}, {used.output_tokens} out"))
    if job.answer and job.answer.finish_reason == "length":
        rows.append(("finish", cut_text(job)))
    for name in ("held", "charge", "released"):
        amount = getattr(job, name)
        if amount is not None:
            rows.append((name, amount))
    if job.failure:
        rows.append(("failure", f"{job.failure.code}: {job.failure.detail}"))
    return rows


def record_rows(digest: str, signed: SignedRecord, terms: Terms) -> Rows:
    """Return what was verified about a record and who signed it."""
    whose = "the pinned quote key" if terms.quote_signer else "not pinned: OFFPEAK_QUOTE_SIGNER"
    return [
        ("record", digest),
        ("signer", f"{checksum_address(signed.signer)} ({whose})"),
        ("verified", "digest, signature, charge, payer, token, and that it is about this answer"),
    ]


def cut_text(job: JobDocument) -> str:
    """Return that the ceiling ended the answer, which looks complete otherwise."""
    ceiling = f" {job.usage.output_tokens}" if job.usage else ""
    return f"length: cut at --max-tokens{ceiling}"


def job_line(line: JobLine) -> str:
    """Return one job of a list on one line, its columns in step."""
    money = f"charge {line.charge}" if line.charge is not None else f"held   {line.held}"
    return f"{line.id}  {line.created_at}  {line.state:<9}  {money}"


def quote_document(checked: CheckedQuote) -> dict[str, object]:
    """Return a quote as JSON: the gateway's own document."""
    return checked.document.model_dump(mode="json")


def job_document(job: JobDocument) -> dict[str, object]:
    """Return a job as JSON."""
    return job.model_dump(mode="json")
