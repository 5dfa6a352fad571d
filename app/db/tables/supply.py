"""Suppliers, their agents, and what those offer at which price."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from app.db.tables.base import metadata, not_negative, one_of, positive, timestamp

supplier = Table(
    "supplier",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("state", Text, nullable=False),
    # where payouts go; lower case
    Column("payout_address", Text),
    timestamp("created_at", default=True),
    one_of("state", "pending", "authorized", "suspended", "revoked"),
    CheckConstraint("payout_address ~ '^0x[0-9a-f]{40}$'", "payout_address"),
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
    timestamp("resting_until", nullable=True),
    timestamp("created_at", default=True),
    one_of("state", "pending", "authorized", "suspended", "revoked"),
)

agent_session = Table(
    "agent_session",
    metadata,
    Column("agent_id", Uuid, ForeignKey(agent.c.id), primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("replica", Text, nullable=False),
    Column("boot_id", Text, nullable=False),
    timestamp("seen_at"),
    # true once a capacity event took the offer of a silent agent out of the load
    Column("stale", Boolean, nullable=False, server_default=text("false")),
    one_of("state", "online", "draining", "offline"),
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
    timestamp("offer_until"),
    Column("prefill_tokens_per_second", Integer, nullable=False),
    Column("decode_tokens_per_second", Integer, nullable=False),
    # telemetry: shown, never priced
    Column("gpu_activity_ppm", Integer),
    timestamp("served_at", nullable=True),
    UniqueConstraint("agent_id", "name"),
    one_of("capacity_class", "flexible", "reclaimable"),
    positive("ask"),
    not_negative("offered"),
    not_negative("occupied"),
    postgresql_with={"fillfactor": "50"},
)

capacity_event = Table(
    "capacity_event",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("deployment_id", Uuid, nullable=False),
    Column("release", Text, nullable=False),
    Column("region", Text, nullable=False),
    timestamp("at"),
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
    timestamp("at"),
    Column("load_ppm", Integer, nullable=False),
    Column("floor_input", BigInteger, nullable=False),
    Column("floor_output", BigInteger, nullable=False),
    Column("floor_per_request", BigInteger, nullable=False),
    Column("floor_ask", BigInteger, nullable=False),
    Column("curve_version", Integer, nullable=False),
    PrimaryKeyConstraint("release", "region", "at"),
)
