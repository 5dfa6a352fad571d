"""The one SQL call that accepts, and the look-up of what was accepted."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.admission.acceptance import Acceptance, AcceptCode, AcceptOutcome
from app.db.calls import SqlFunction
from app.db.tables import request_authorization
from app.kit.clock import from_unix_seconds
from ledger.encoding import Address
from ledger.quote import Quote

_COLUMNS = {
    "job": "uuid",
    "lease": "uuid",
    "account": "uuid",
    "payer": "text",
    "amount": "bigint",
    "auth_digest": "bytea",
    "nonce": "bytea",
    "quote_digest": "bytea",
    "request_digest": "bytea",
    "message": "bytea",
    "signature": "bytea",
    "quote": "bytea",
    "quote_signature": "bytea",
    "valid_after": "timestamptz",
    "valid_until": "timestamptz",
    "expires": "timestamptz",
    "release": "text",
    "region": "text",
    "revision": "bytea",
    "input_tokens": "int",
    "max_output": "int",
    "input_rate": "bigint",
    "output_rate": "bigint",
    "per_request": "bigint",
    "ask": "bigint",
    "run_seconds": "int",
    "request": "bytea",
    "candidates": "text",
}
_ACCEPT = SqlFunction(
    "accept_many",
    {name: f"{kind}[]" for name, kind in _COLUMNS.items()}
    | {"asset": "text", "max_open": "int", "retention": "interval"},
    columns=(
        "code, job_id, lease_id, agent_id, deployment_id, replica, deadline_at, available, held"
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptTerms:
    """What holds for every acceptance of this gateway."""

    asset: Address
    max_open_jobs: int
    retention: timedelta


class AdmissionRepository:
    """Queries on authorizations within one transaction."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    async def accept_many(
        self, items: Sequence[Acceptance], terms: AcceptTerms
    ) -> list[AcceptOutcome]:
        """Decide all items in one call and return their outcomes in the same order."""
        columns = zip(*(_row(item) for item in items), strict=True)
        values: dict[str, object] = dict(zip(_COLUMNS, map(list, columns), strict=True))
        values |= {
            "asset": terms.asset,
            "max_open": terms.max_open_jobs,
            "retention": terms.retention,
        }
        rows = await _ACCEPT.rows(self._tx, values)
        return [AcceptOutcome(AcceptCode(code), *rest) for code, *rest in rows]

    async def is_quote_used(self, quote_digest: bytes, account_id: UUID) -> bool:
        """Return whether this wallet has accepted this quote."""
        query = select(request_authorization.c.digest).where(
            request_authorization.c.quote_digest == quote_digest,
            request_authorization.c.account_id == account_id,
        )
        return (await self._tx.execute(query)).first() is not None


def _row(item: Acceptance) -> tuple[object, ...]:
    """Return the item's values in the order of `_COLUMNS`."""
    checked = item.checked
    presented = checked.presented
    quote, authorization = presented.quote, presented.authorization
    return (
        item.job_id,
        item.lease_id,
        item.account_id,
        authorization.payer,
        quote.max_charge_nano,
        checked.authorization_digest,
        authorization.nonce,
        checked.quote_digest,
        quote.request_digest,
        authorization.canonical(),
        presented.signature,
        quote.canonical(),
        presented.quote_signature,
        from_unix_seconds(authorization.valid_after),
        from_unix_seconds(authorization.deadline),
        from_unix_seconds(quote.expires_at),
        quote.model,
        quote.region,
        quote.model_revision,
        *_figures(quote),
        item.request_sealed,
        "{" + ",".join(map(str, item.candidates)) + "}",
    )


def _figures(quote: Quote) -> tuple[int, ...]:
    return (
        quote.input_tokens,
        quote.max_output_tokens,
        quote.input_rate_nano,
        quote.output_rate_nano,
        quote.per_request_nano,
        quote.ask_nano,
        quote.run_seconds,
    )
