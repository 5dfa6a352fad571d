"""What tests put into a database before the part they are about: wallets, suppliers, leases."""

import os
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from sqlalchemy import text

from app.db.calls import SqlFunction
from app.db.engine import Database
from app.jobs.content import StoredRequest, seal_request
from app.kit.cipher import ContentCipher
from ledger.commitment import request_digest
from ledger.encoding import canonical_json
from ledger.money import Nano
from pricing.charge import max_charge
from pricing.rates import Rates
from supplier_agent.identity import DeviceKey

ASSET = "0x" + "01" * 20
RATES = Rates(Nano(2_000_000_000), Nano(9_000_000_000), Nano(1_000))
ASK = 2_000

AS_OPERATOR = text("SET LOCAL ROLE offpeak_operator")
"""Until the end of the transaction; the tests log in as the superuser."""

ACCEPT = SqlFunction(
    "accept_many",
    {
        "job": "uuid[]",
        "lease": "uuid[]",
        "account": "uuid[]",
        "payer": "text[]",
        "amount": "bigint[]",
        "asset": "text",
        "auth_digest": "bytea[]",
        "nonce": "bytea[]",
        "quote_digest": "bytea[]",
        "request_digest": "bytea[]",
        "message": "bytea[]",
        "signature": "bytea[]",
        "quote": "bytea[]",
        "quote_signature": "bytea[]",
        "valid_after": "timestamptz[]",
        "valid_until": "timestamptz[]",
        "expires": "timestamptz[]",
        "release": "text[]",
        "region": "text[]",
        "revision": "bytea[]",
        "input_tokens": "int[]",
        "max_output": "int[]",
        "input_rate": "bigint[]",
        "output_rate": "bigint[]",
        "per_request": "bigint[]",
        "ask": "bigint[]",
        "run_seconds": "int[]",
        "request": "bytea[]",
        "candidates": "text[]",
        "max_open": "int",
        "retention": "interval",
    },
    columns="code, agent_id, deployment_id, replica",
)


@dataclass(frozen=True, slots=True)
class Wallet:
    """A funded wallet."""

    payer: str
    account_id: UUID


@dataclass(frozen=True, slots=True)
class SeededAgent:
    """A registered, authorized agent and its key."""

    agent_id: UUID
    key: DeviceKey


@dataclass(frozen=True, slots=True)
class Placed:
    """An accepted request: its outcome's code, and what its agent will be told."""

    code: str
    job_id: UUID
    lease_id: UUID
    agent_id: UUID | None
    deployment_id: UUID | None
    replica: str | None
    salt: bytes
    request: bytes
    request_digest: bytes
    input_tokens: int
    max_output: int
    max_charge: Nano


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A request to accept."""

    prompt: str = "Say hello."
    input_tokens: int = 12
    max_output: int = 64
    run_seconds: int = 60
    release: str = "smollm2-135m-instruct"
    region: str = "local"


async def fund_wallet(database: Database, *, amount: int = 10**12) -> Wallet:
    payer = "0x" + os.urandom(20).hex()
    async with database.transaction() as tx:
        await tx.execute(AS_OPERATOR)
        given = {"ref": uuid4(), "payer": payer, "asset": ASSET, "amount": amount}
        await tx.execute(
            text("SELECT offpeak.credit_deposit(:ref, :payer, :asset, :amount)"), given
        )
        account_id = await tx.scalar(
            text("SELECT id FROM offpeak.account WHERE owner = :payer AND kind = 'wallet'"),
            {"payer": payer},
        )
    assert isinstance(account_id, UUID)
    return Wallet(payer, account_id)


async def register_agent(database: Database, *, state: str = "authorized") -> SeededAgent:
    supplier, agent = uuid4(), SeededAgent(uuid4(), DeviceKey(os.urandom(32)))
    async with database.transaction() as tx:
        await tx.execute(AS_OPERATOR)
        await tx.execute(
            text(
                "INSERT INTO offpeak.supplier(id, name, state)"
                " VALUES (:id, CAST(:id AS text), 'authorized')"
            ),
            {"id": supplier},
        )
        await tx.execute(
            text("SELECT offpeak.open_account('supplier', :owner, :asset)"),
            {"owner": str(supplier), "asset": ASSET},
        )
        await tx.execute(
            text(
                "INSERT INTO offpeak.agent(id, supplier_id, device_key, state)"
                " VALUES (:id, :supplier, :key, :state)"
            ),
            {
                "id": agent.agent_id,
                "supplier": supplier,
                "key": agent.key.public,
                "state": state,
            },
        )
    return agent


async def accept(
    database: Database, cipher: ContentCipher, wallet: Wallet, wanted: Wanted | None = None
) -> Placed:
    """Accept one request with every fresh deployment as a candidate."""
    want = wanted or Wanted()
    job_id, lease_id, salt = uuid4(), uuid4(), os.urandom(32)
    request = canonical_json(
        {
            "model": want.release,
            "messages": [{"role": "user", "content": want.prompt}],
            "max_output_tokens": want.max_output,
        }
    )
    digest = request_digest(salt, request)
    amount = max_charge(RATES, want.input_tokens, want.max_output)
    sealed = seal_request(cipher, job_id, StoredRequest(salt, request))
    async with database.transaction() as tx:
        clock = (
            await tx.execute(
                text(
                    "SELECT now() - interval '5 s' AS after, now() + interval '60 s' AS until,"
                    " coalesce((SELECT array_agg(id ORDER BY occupied) FROM offpeak.deployment"
                    "  WHERE region = :region AND offered > 0), '{}') AS ids"
                ),
                {"region": want.region},
            )
        ).one()
        [row] = await ACCEPT.rows(
            tx,
            {
                "job": [job_id],
                "lease": [lease_id],
                "account": [wallet.account_id],
                "payer": [wallet.payer],
                "amount": [amount],
                "asset": ASSET,
                "auth_digest": [os.urandom(32)],
                "nonce": [os.urandom(32)],
                "quote_digest": [os.urandom(32)],
                "request_digest": [digest],
                "message": [b"{}"],
                "signature": [bytes(65)],
                "quote": [b"{}"],
                "quote_signature": [bytes(65)],
                "valid_after": [clock.after],
                "valid_until": [clock.until],
                "expires": [clock.until],
                "release": [want.release],
                "region": [want.region],
                "revision": [bytes(32)],
                "input_tokens": [want.input_tokens],
                "max_output": [want.max_output],
                "input_rate": [RATES.input_rate],
                "output_rate": [RATES.output_rate],
                "per_request": [RATES.per_request],
                "ask": [ASK],
                "run_seconds": [want.run_seconds],
                "request": [sealed],
                "candidates": ["{" + ",".join(map(str, clock.ids)) + "}"],
                "max_open": 1000,
                "retention": timedelta(days=1),
            },
        )
    code, agent_id, deployment_id, replica = row
    return Placed(
        code=code,
        job_id=job_id,
        lease_id=lease_id,
        agent_id=agent_id,
        deployment_id=deployment_id,
        replica=replica,
        salt=salt,
        request=request,
        request_digest=digest,
        input_tokens=want.input_tokens,
        max_output=want.max_output,
        max_charge=amount,
    )
