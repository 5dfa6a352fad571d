"""Quotes, jobs and records as rows of text and as JSON documents."""

from app.client.checks import Offer
from app.client.documents import JobDocument
from ledger.encoding import checksum_address
from ledger.money import Nano, format_amount
from ledger.usage import UsageRecord

Rows = list[tuple[str, str]]


def load_text(ppm: int) -> str:
    """Return a load in millionths as a fraction with six decimals."""
    return f"{ppm // 1_000_000}.{ppm % 1_000_000:06d}"


def rates_text(input_rate: Nano, output_rate: Nano, per_request: Nano) -> str:
    """Return rates on one line."""
    return (
        f"{format_amount(input_rate)} in, {format_amount(output_rate)} out per million tokens, "
        f"{format_amount(per_request)} per request"
    )


def offer_rows(offer: Offer) -> Rows:
    """Return a quote's rows; every figure is read from the signed message itself."""
    quote = offer.quote
    floor = offer.document.price.get("floor")
    rows = [
        ("quote", offer.document.id),
        ("model", f"{quote.model} in {quote.region}"),
        ("tokens", f"{quote.input_tokens} in, at most {quote.max_output_tokens} out"),
        ("load", load_text(quote.load_ppm)),
        (
            "rates",
            rates_text(quote.input_rate_nano, quote.output_rate_nano, quote.per_request_nano),
        ),
        ("maximum", format_amount(quote.max_charge_nano)),
        ("expires in", f"{quote.expires_at - quote.issued_at} s"),
    ]
    if isinstance(floor, dict):
        text = (
            f"{floor.get('input_per_mtok')} in, {floor.get('output_per_mtok')} out per million "
            f"tokens, {floor.get('per_request')} per request"
        )
        rows.insert(4, ("floor", text))
    return rows


def authorization_rows(offer: Offer) -> Rows:
    """Return what is signed and by whom."""
    return [
        ("authorizes", f"at most {format_amount(offer.authorization.max_charge_nano)}"),
        ("digest", "0x" + offer.authorization_digest.hex()),
        ("signer", checksum_address(offer.authorization.payer)),
    ]


def job_rows(job: JobDocument) -> Rows:
    """Return a job's rows; what is not known yet is left out."""
    rows = [("job", job.id), ("state", job.state)]
    if job.supplier:
        rows.append(("supplier", job.supplier))
    if job.usage:
        used = job.usage
        cached = f" ({used.cached_input_tokens} cached)" if used.cached_input_tokens else ""
        rows.append(("usage", f"{used.input_tokens} in{cached}, {used.output_tokens} out"))
    for name in ("held", "charge", "released"):
        amount = getattr(job, name)
        if amount is not None:
            rows.append((name, amount))
    if job.failure:
        rows.append(("failure", f"{job.failure.code}: {job.failure.detail}"))
    return rows


def record_rows(record: UsageRecord, job: JobDocument) -> Rows:
    """Return a verified record's rows."""
    assert job.record is not None
    return [
        ("record", job.record.digest),
        ("signature", job.record.signature),
        ("sequence", f"{record.payer_seq} of this wallet"),
        ("checked", "digest and charge recomputed, signed by the quote key, fits quote"),
    ]


def offer_document(offer: Offer) -> dict[str, object]:
    """Return a quote as JSON: the gateway's own document."""
    return offer.document.model_dump(mode="json")


def job_document(job: JobDocument) -> dict[str, object]:
    """Return a job as JSON."""
    return job.model_dump(mode="json")
