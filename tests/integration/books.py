"""A small market on a real database: sellers with slots, buyers with funds, and the SQL calls.

Calls the same functions as the gateway does, under the same restricted role, without a gateway.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import namedtuple_row

from app.admission.repository import _COLUMNS as ACCEPT_COLUMNS
from ledger.accounts import wallet_account
from ledger.encoding import Address

ASSET = Address("0x" + "a5" * 20)
RELEASE = "smollm2-135m-instruct"
REGION = "local"
FAR = datetime(2100, 1, 1, tzinfo=UTC)
PAST = datetime(2020, 1, 1, tzinfo=UTC)
ZERO32 = bytes(32)


def wallet(number: int) -> Address:
    """Return a made-up wallet address."""
    return Address(f"0x{number:040x}")


def digest(*parts: object) -> bytes:
    """Return 32 bytes that stand for a digest of `parts`."""
    return hashlib.sha256(repr(parts).encode()).digest()


@dataclass(frozen=True, slots=True)
class Seller:
    """One agent with one deployment."""

    agent_id: UUID
    deployment_id: UUID
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What one acceptance brings; everything not named is valid and new."""

    payer: Address
    amount: int
    candidates: tuple[UUID, ...]
    asset: Address = ASSET
    job_id: UUID = field(default_factory=uuid4)
    lease_id: UUID = field(default_factory=uuid4)
    quote: bytes = field(default_factory=lambda: digest(uuid4()))
    nonce: bytes = field(default_factory=lambda: digest(uuid4()))
    request: bytes = b"r" * 32
    expires: datetime = FAR
    valid_until: datetime = FAR
    valid_after: datetime = PAST
    per_request: int = 0
    ask: int = 10**9
    run_seconds: int = 30

    @property
    def auth_digest(self) -> bytes:
        """What the wallet would have signed."""
        return digest(self.payer, self.quote, self.nonce)

    def row(self) -> tuple[object, ...]:
        """Return the values of `accept_many`'s arrays for this order."""
        return (
            self.job_id,
            self.lease_id,
            wallet_account(self.payer, self.asset),
            self.payer,
            self.amount,
            self.auth_digest,
            self.nonce,
            self.quote,
            self.request,
            b"{}",
            b"s" * 65,
            b"{}",
            b"s" * 65,
            self.valid_after,
            self.valid_until,
            self.expires,
            RELEASE,
            REGION,
            ZERO32,
            10,
            20,
            1_000,
            1_000,
            self.per_request,
            self.ask,
            self.run_seconds,
            b"sealed",
            "{" + ",".join(map(str, self.candidates)) + "}",
        )


class Books:
    """One connection under the application's role; all money is in `asset`."""

    asset: Address = ASSET

    def __init__(self, url: str, *, role: str = "offpeak_app") -> None:
        self.connection = psycopg.connect(url, autocommit=True, row_factory=namedtuple_row)
        self.connection.execute(f"SET ROLE {role}".encode())
        self._role = role

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def rows(self, query: str, *values: object) -> list[Any]:
        return self.connection.execute(query.encode(), values).fetchall()

    def one(self, query: str, *values: object) -> Any:
        [row] = self.rows(query, *values)
        return row

    @contextmanager
    def as_operator(self) -> Iterator[None]:
        """Do what only the operator's role may."""
        self.connection.execute("SET ROLE offpeak_operator")
        yield
        self.connection.execute(f"SET ROLE {self._role}".encode())

    # --- sellers and buyers -----------------------------------------------------------------

    def fund(self, payer: Address, amount: int) -> None:
        with self.as_operator():
            self.one(
                "SELECT offpeak.credit_deposit(%s, %s, %s, %s)", uuid4(), payer, self.asset, amount
            )

    def lift_halt(self) -> int:
        with self.as_operator():
            return int(self.one("SELECT offpeak.clear_halt('a test')")[0])

    def seller(self, slots: int, *, ask: int = 1_000) -> Seller:
        supplier_id, agent_id = uuid4(), uuid4()
        with self.as_operator():
            self.connection.execute(
                "INSERT INTO offpeak.supplier(id, name, state) VALUES (%s, %s, 'authorized')",
                (supplier_id, f"supplier {supplier_id}"),
            )
            self.connection.execute(
                "INSERT INTO offpeak.agent(id, supplier_id, device_key, state)"
                " VALUES (%s, %s, %s, 'authorized')",
                (agent_id, supplier_id, digest(agent_id)),
            )
            self.one(
                "SELECT offpeak.open_account('supplier', %s, %s)", str(supplier_id), self.asset
            )
        epoch = self.one("SELECT offpeak.open_session(%s, 'replica-1', 'boot')", agent_id)[0]
        seller = Seller(agent_id, uuid4(), epoch)
        self.offer(seller, slots, ask=ask)
        return seller

    def offer(self, seller: Seller, slots: int, *, ask: int = 1_000) -> None:
        self.one(
            "SELECT offpeak.offer_capacity(%s, %s, %s, 'gpu-0', %s, 'flexible', %s, %s, %s, %s,"
            " 1000, 50, NULL)",
            seller.deployment_id,
            seller.agent_id,
            seller.epoch,
            RELEASE,
            REGION,
            ask,
            slots,
            datetime.now(UTC) + timedelta(hours=1),
        )

    # --- jobs -------------------------------------------------------------------------------

    def accept(self, orders: Sequence[Order], *, max_open: int = 1_000) -> list[Any]:
        """Accept all orders in one call; one outcome per order, in order."""
        columns = list(zip(*(order.row() for order in orders), strict=True))
        arrays = ", ".join(f"p_{name} => %b::{kind}[]" for name, kind in ACCEPT_COLUMNS.items())
        return self.rows(
            f"SELECT * FROM offpeak.accept_many({arrays}, p_asset => %s, p_max_open => %s,"
            " p_retention => interval '1 day') ORDER BY ord",
            *(list(column) for column in columns),
            self.asset,
            max_open,
        )

    def settle(self, outcomes: Sequence[Any], charge: int) -> list[str]:
        """Settle accepted orders in one call, each for `charge`; return the codes."""
        n = len(outcomes)
        found = self.rows(
            "SELECT code FROM offpeak.settle_many(%s::uuid[], %s::uuid[], %s::uuid[], %s::bigint[],"
            " %s::smallint[], %s::int[], %s::text[], %s::bytea[], %s::bytea[], %s::bytea[],"
            " %s::bytea[], %s::bytea[], %s::bigint[], %s::boolean[]) ORDER BY ord",
            [o.job_id for o in outcomes],
            [o.lease_id for o in outcomes],
            [o.agent_id for o in outcomes],
            [charge] * n,
            [1] * n,
            [10, 0, 5, 0] * n,
            ["stop"] * n,
            [b"result"] * n,
            [ZERO32] * n,
            [ZERO32] * n,
            [b"{}"] * n,
            [b"s" * 64] * n,
            [60_000] * n,
            [False] * n,
        )
        return [row.code for row in found]

    def end(
        self, job_id: UUID, *, state: str = "failed", lease_state: str = "lost", paid: bool = False
    ) -> str:
        """End a job without a result; return the code."""
        row = self.one(
            "SELECT code FROM offpeak.end_many(%s::uuid[], %s::uuid[], %s::text[], %s::text[],"
            " %s::text[], %s::text[], %s::bigint[])",
            [job_id],
            [None],
            [state],
            ["supplier-failed"],
            ["test"],
            [lease_state],
            [60_000 if paid else None],
        )
        return str(row.code)

    def correct(
        self,
        record: UUID,
        charge: int,
        *,
        correction: UUID | None = None,
        because: str = "a test",
    ) -> str:
        """Charge less for a record, as the operator; return the code."""
        with self.as_operator():
            row = self.one(
                "SELECT offpeak.correct_record(%s, %s, %s, %s) AS code",
                correction or uuid4(),
                record,
                charge,
                because,
            )
        return str(row.code)

    def reassign(
        self,
        lease_id: UUID,
        candidates: Sequence[UUID],
        *,
        fault: bool = True,
        paid: bool = False,
    ) -> Any:
        """Move a lease's job to another slot; return the outcome row."""
        return self.one(
            "SELECT * FROM offpeak.reassign_many(%s::uuid[], %s::uuid[], %s::text[], %s::boolean[],"
            " %s::text[], %s::bigint[], %s::text[])",
            [lease_id],
            [uuid4()],
            ["engine-error"],
            [fault],
            ["lost"],
            [60_000 if paid else None],
            ["{" + ",".join(map(str, candidates)) + "}"],
        )

    # --- looking ----------------------------------------------------------------------------

    def balance(self, payer: Address) -> tuple[int, int]:
        """Return (available, held)."""
        row = self.one(
            "SELECT available, held FROM offpeak.wallet_balance WHERE account_id = %s",
            wallet_account(payer, self.asset),
        )
        return row.available, row.held

    def occupied(self, seller: Seller) -> int:
        row = self.one(
            "SELECT occupied FROM offpeak.deployment WHERE id = %s", seller.deployment_id
        )
        return int(row.occupied)

    def job_state(self, job_id: UUID) -> str:
        return str(self.one("SELECT state FROM offpeak.job WHERE id = %s", job_id).state)
