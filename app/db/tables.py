"""Tables, in one place because foreign keys cross features.

Money is nano in `BigInteger`; digests are 32 bytes in `LargeBinary`; times are `timestamptz`
written by the database clock. Ledger, lease and job rows are written by the functions in
`functions/` only: the application's role has SELECT on them and nothing more.

Rows on the money path have no foreign keys but the one that makes charge <= hold a constraint.
Each would cost a query and a key-share lock per row; the functions make parents and children
together, and `offpeak ledger check` looks for orphans.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import UserDefinedType

SCHEMA = "offpeak"

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    },
)


class Xid8(UserDefinedType[str]):
    """A 64-bit transaction id (core Postgres 13+). Reads as text; never compared in Python."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"


# Checks stand at the table: Alembic does not carry those written inside a column into a migration.


def _one_of(column: str, *values: str) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", column)


def _positive(column: str) -> CheckConstraint:
    return CheckConstraint(f"{column} > 0", column)


def _not_negative(column: str) -> CheckConstraint:
    return CheckConstraint(f"{column} >= 0", column)


def _time(name: str, *, default: bool = False, nullable: bool = False) -> Column[object]:
    server_default = func.now() if default else None
    return Column(name, DateTime(timezone=True), nullable=nullable, server_default=server_default)


# --- ledger ---------------------------------------------------------------------------------

account = Table(
    "account",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("asset", Text, nullable=False),
    Column("kind", Text, nullable=False),
    _time("created_at", default=True),
    UniqueConstraint("owner", "asset", "kind"),
    _one_of(
        "kind",
        "wallet",
        "supplier",
        "fee",
        "treasury",
        "withdraw_clearing",
        "deposit_clearing",
        "suspense",
    ),
)

wallet_balance = Table(
    "wallet_balance",
    metadata,
    Column("account_id", Uuid, ForeignKey(account.c.id), primary_key=True),
    Column("available", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("open_jobs", Integer, nullable=False),
    Column("payer_seq", BigInteger, nullable=False, server_default="0"),
    Column("last_record", Uuid),
    _not_negative("available"),
    _not_negative("held"),
    _not_negative("open_jobs"),
    postgresql_with={"fillfactor": "50"},
)

hold = Table(
    "hold",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("account_id", Uuid, nullable=False),
    Column("amount", BigInteger, nullable=False),
    _time("created_at"),
    _time("expires_at"),
    # the target of hold_resolution's foreign key, which makes charge <= hold a CHECK
    UniqueConstraint("id", "amount"),
    _positive("amount"),
)

hold_resolution = Table(
    "hold_resolution",
    metadata,
    Column("hold_id", Uuid, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("charged", BigInteger, nullable=False),
    Column("released", BigInteger, nullable=False),
    _time("resolved_at"),
    ForeignKeyConstraint(["hold_id", "amount"], [hold.c.id, hold.c.amount]),
    CheckConstraint("charged + released = amount", "conserved"),
    CheckConstraint("(kind = 'settled') = (charged > 0)", "zero_is_a_release"),
    _one_of("kind", "settled", "released", "expired"),
    _not_negative("charged"),
    _not_negative("released"),
)

transfer = Table(
    "transfer",
    metadata,
    Column("ref", Uuid),
    Column("leg", SmallInteger),
    Column("debit", Uuid, nullable=False),
    Column("credit", Uuid, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("asset", Text, nullable=False),
    _time("created_at"),
    Column("xid", Xid8, nullable=False, server_default=text("pg_current_xact_id()")),
    PrimaryKeyConstraint("ref", "leg"),
    CheckConstraint("debit <> credit", "two_sides"),
    Index("ix_transfer_xid", "xid"),
    _positive("amount"),
)

house_balance = Table(
    "house_balance",
    metadata,
    Column("account_id", Uuid, primary_key=True),
    Column("balance", BigInteger, nullable=False),
    # every transfer with a smaller xid is inside `balance`, none with a larger or equal one
    Column("up_to", Xid8, nullable=False),
)

ledger_halt = Table(
    "ledger_halt",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("reason", Text, nullable=False),
    _time("halted_at", default=True),
    _time("cleared_at", nullable=True),
    Column("cleared_because", Text),
    CheckConstraint("(cleared_at IS NULL) = (cleared_because IS NULL)", "cleared"),
)

# --- suppliers and capacity -----------------------------------------------------------------

supplier = Table(
    "supplier",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("state", Text, nullable=False),
    _time("created_at", default=True),
    _one_of("state", "pending", "authorized", "suspended", "revoked"),
)

agent = Table(
    "agent",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("supplier_id", Uuid, ForeignKey(supplier.c.id), nullable=False),
    Column("device_key", LargeBinary, nullable=False, unique=True),
    Column("state", Text, nullable=False),
    Column("faults", Integer, nullable=False, server_default="0"),
    # the breaker: faults of late with nothing served since, and how often in a row it had to rest
    Column("fault_times", ARRAY(DateTime(timezone=True)), nullable=False, server_default="{}"),
    Column("rests", SmallInteger, nullable=False, server_default="0"),
    _time("resting_until", nullable=True),
    _time("created_at", default=True),
    _one_of("state", "pending", "authorized", "suspended", "revoked"),
)

agent_session = Table(
    "agent_session",
    metadata,
    Column("agent_id", Uuid, ForeignKey(agent.c.id), primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("replica", Text, nullable=False),
    Column("boot_id", Text, nullable=False),
    _time("seen_at"),
    # true once a capacity event took the offer of a silent agent out of the load
    Column("stale", Boolean, nullable=False, server_default=text("false")),
    _one_of("state", "online", "draining", "offline"),
    postgresql_with={"fillfactor": "50"},
)

deployment = Table(
    "deployment",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("agent_id", Uuid, ForeignKey(agent.c.id), nullable=False),
    Column("name", Text, nullable=False),
    Column("release", Text, nullable=False),
    Column("capacity_class", Text, nullable=False),
    Column("region", Text, nullable=False),
    Column("ask", BigInteger, nullable=False),
    Column("offered", Integer, nullable=False),
    Column("occupied", Integer, nullable=False),
    _time("offer_until"),
    Column("prefill_tokens_per_second", Integer, nullable=False),
    Column("decode_tokens_per_second", Integer, nullable=False),
    # telemetry: shown, never priced
    Column("gpu_activity_ppm", Integer),
    _time("served_at", nullable=True),
    UniqueConstraint("agent_id", "name"),
    _one_of("capacity_class", "flexible", "reclaimable"),
    _positive("ask"),
    _not_negative("offered"),
    _not_negative("occupied"),
    postgresql_with={"fillfactor": "50"},
)

capacity_event = Table(
    "capacity_event",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("deployment_id", Uuid, nullable=False),
    Column("release", Text, nullable=False),
    Column("region", Text, nullable=False),
    _time("at"),
    Column("offered", Integer, nullable=False),
    Column("occupied", Integer, nullable=False),
    Index("ix_capacity_event_market", "release", "region", "at"),
    Index("ix_capacity_event_deployment", "deployment_id", "at"),
)

price_point = Table(
    "price_point",
    metadata,
    Column("release", Text),
    Column("region", Text),
    _time("at"),
    Column("load_ppm", Integer, nullable=False),
    Column("floor_input", BigInteger, nullable=False),
    Column("floor_output", BigInteger, nullable=False),
    Column("floor_per_request", BigInteger, nullable=False),
    Column("floor_ask", BigInteger, nullable=False),
    Column("curve_version", Integer, nullable=False),
    PrimaryKeyConstraint("release", "region", "at"),
)

# --- jobs -----------------------------------------------------------------------------------

request_authorization = Table(
    "request_authorization",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("account_id", Uuid, nullable=False),
    Column("payer", Text, nullable=False),
    Column("nonce", LargeBinary, nullable=False),
    Column("quote_digest", LargeBinary, nullable=False),
    Column("request_digest", LargeBinary, nullable=False),
    # exactly what was signed, for the receipt: canonical JSON and 65-byte signatures
    Column("message", LargeBinary, nullable=False),
    Column("signature", LargeBinary, nullable=False),
    Column("quote", LargeBinary, nullable=False),
    Column("quote_signature", LargeBinary, nullable=False),
    # the digest first: with the wallet first a busy wallet would scan all its rows
    UniqueConstraint("quote_digest", "account_id"),
    UniqueConstraint("nonce", "account_id"),
)

job = Table(
    "job",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("account_id", Uuid, nullable=False),
    Column("authorization_digest", LargeBinary, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("release", Text, nullable=False),
    Column("region", Text, nullable=False),
    Column("group", Text),
    Column("lease_id", Uuid),
    Column("asset", Text, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("max_output_tokens", Integer, nullable=False),
    Column("input_rate", BigInteger, nullable=False),
    Column("output_rate", BigInteger, nullable=False),
    Column("per_request", BigInteger, nullable=False),
    Column("ask_ceiling", BigInteger, nullable=False),
    Column("model_revision", LargeBinary, nullable=False),
    Column("run_seconds", Integer, nullable=False),
    Column("faults", SmallInteger, nullable=False, server_default="0"),
    Column("dispatches", SmallInteger, nullable=False, server_default="1"),
    Column("failed_agents", ARRAY(Uuid), nullable=False, server_default="{}"),
    _time("accepted_at"),
    _time("queued_at", nullable=True),
    _time("deadline_at"),
    _time("ended_at", nullable=True),
    Column("request", LargeBinary),
    Column("result", LargeBinary),
    _time("content_until"),
    Column("finish", Text),
    Column("failure_code", Text),
    Column("failure_detail", Text),
    _one_of("kind", "interactive", "batch"),
    _one_of(
        "state", "queued", "accepted", "running", "completed", "failed", "cancelled", "expired"
    ),
    CheckConstraint("(state IN ('accepted', 'running')) = (lease_id IS NOT NULL)", "lease"),
    CheckConstraint(
        "(state IN ('completed', 'failed', 'cancelled', 'expired')) = (ended_at IS NOT NULL)",
        "ended",
    ),
    Index(
        "ix_job_open",
        "deadline_at",
        postgresql_where=text("state IN ('queued', 'accepted', 'running')"),
    ),
    Index("ix_job_queued", "release", "region", postgresql_where=text("state = 'queued'")),
    Index("ix_job_content", "content_until", postgresql_where=text("request IS NOT NULL")),
    Index("ix_job_account", "account_id", "id"),
)

lease = Table(
    "lease",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("job_id", Uuid, nullable=False, index=True),
    Column("deployment_id", Uuid, nullable=False),
    Column("agent_id", Uuid, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("state", Text, nullable=False),
    _time("started_at"),
    _time("ends_at"),
    _time("ended_at", nullable=True),
    Column("ask", BigInteger, nullable=False),
    Column("reason", Text),
    Column("statement", LargeBinary),
    Column("statement_signature", LargeBinary),
    _one_of("state", "active", "ending", "done", "lost", "reclaimed"),
    CheckConstraint("(state IN ('active', 'ending')) = (ended_at IS NULL)", "ended"),
    Index(
        "ix_lease_occupying",
        "agent_id",
        "deployment_id",
        postgresql_where=text("state IN ('active', 'ending')"),
    ),
)

usage_record = Table(
    "usage_record",
    metadata,
    Column("record_id", Uuid, primary_key=True),
    Column("account_id", Uuid, nullable=False),
    Column("payer_seq", BigInteger, nullable=False),
    Column("previous_record", Uuid),
    Column("supplier_statement", LargeBinary, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("cached_input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("reasoning_tokens", Integer, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("charge", BigInteger, nullable=False),
    Column("released", BigInteger, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    Column("response_digest", LargeBinary, nullable=False),
    Column("salt", LargeBinary, nullable=False),
    _time("completed_at"),
    _time("include_by"),
    Column("flags", ARRAY(Text), nullable=False, server_default="{}"),
    Column("key_id", Text),
    Column("signature", LargeBinary),
    UniqueConstraint("account_id", "payer_seq"),
    CheckConstraint("held = charge + released", "conserved"),
    CheckConstraint("cached_input_tokens <= input_tokens", "cached"),
    CheckConstraint("reasoning_tokens <= output_tokens", "reasoning"),
    CheckConstraint("(signature IS NULL) = (key_id IS NULL)", "signed_by"),
    Index("ix_usage_record_completed", "completed_at"),
    Index("ix_usage_record_unsigned", "record_id", postgresql_where=text("signature IS NULL")),
)

cost_entry = Table(
    "cost_entry",
    metadata,
    Column("lease_id", Uuid, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("release", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("slot_ms", BigInteger, nullable=False),
    _time("booked_at"),
    _one_of("kind", "served", "failed_work", "overhead"),
    Index("ix_cost_entry_release", "release", "booked_at"),
    _not_negative("amount"),
    _not_negative("slot_ms"),
)

schema_functions = Table(
    "schema_functions",
    metadata,
    Column("only_row", Boolean, primary_key=True, server_default=text("true")),
    Column("digest", Text, nullable=False),
    CheckConstraint("only_row", "only_row"),
)
