"""Quotes, jobs and records as rows of text and as JSON documents."""

from app.client.checks import CheckedQuote
from app.client.documents import JobDocument, JobLine
from ledger.money import format_amount

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
        ("tokens", f"{quote.input_tokens} in, at most {quote.max_output_tokens} out"),
        *price_rows(checked),
        ("expires in", f"{quote.expires_at - quote.issued_at} s"),
    ]


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
        rows.append(("floor", rates_text(*[str(floor.get(name)) for name in names])))
    return [*rows, ("rates", rates), ("maximum", format_amount(quote.max_charge_nano))]


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
