"""The tables of suppliers and capacity."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    create_supplier()
    create_agent()
    create_agent_session()
    create_deployment()
    create_capacity_event()
    create_price_point()


def create_supplier() -> None:
    op.create_table(
        "supplier",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'authorized', 'suspended', 'revoked')",
            name=op.f("ck_supplier_state"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_supplier")),
        sa.UniqueConstraint("name", name=op.f("uq_supplier_name")),
        schema="offpeak",
    )


def create_agent() -> None:
    op.create_table(
        "agent",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("supplier_id", sa.Uuid(), nullable=False),
        sa.Column("device_key", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("faults", sa.Integer(), server_default="0", nullable=False),
        sa.Column(
            "fault_times",
            postgresql.ARRAY(sa.DateTime(timezone=True)),
            server_default="{}",
            nullable=False,
        ),
        sa.Column("rests", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("resting_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'authorized', 'suspended', 'revoked')",
            name=op.f("ck_agent_state"),
        ),
        sa.ForeignKeyConstraint(
            ["supplier_id"], ["offpeak.supplier.id"], name=op.f("fk_agent_supplier_id_supplier")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent")),
        sa.UniqueConstraint("device_key", name=op.f("uq_agent_device_key")),
        schema="offpeak",
    )


def create_agent_session() -> None:
    op.create_table(
        "agent_session",
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("replica", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stale", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.CheckConstraint(
            "state IN ('online', 'draining', 'offline')", name=op.f("ck_agent_session_state")
        ),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["offpeak.agent.id"], name=op.f("fk_agent_session_agent_id_agent")
        ),
        sa.PrimaryKeyConstraint("agent_id", name=op.f("pk_agent_session")),
        schema="offpeak",
        postgresql_with={"fillfactor": "50"},
    )


def create_deployment() -> None:
    op.create_table(
        "deployment",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("capacity_class", sa.Text(), nullable=False),
        sa.Column("region", sa.Text(), nullable=False),
        sa.Column("ask", sa.BigInteger(), nullable=False),
        sa.Column("offered", sa.Integer(), nullable=False),
        sa.Column("occupied", sa.Integer(), nullable=False),
        sa.Column("offer_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("prefill_tokens_per_second", sa.Integer(), nullable=False),
        sa.Column("decode_tokens_per_second", sa.Integer(), nullable=False),
        sa.Column("gpu_activity_ppm", sa.Integer(), nullable=True),
        sa.Column("served_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "capacity_class IN ('flexible', 'reclaimable')",
            name=op.f("ck_deployment_capacity_class"),
        ),
        sa.CheckConstraint("ask > 0", name=op.f("ck_deployment_ask")),
        sa.CheckConstraint("occupied >= 0", name=op.f("ck_deployment_occupied")),
        sa.CheckConstraint("offered >= 0", name=op.f("ck_deployment_offered")),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["offpeak.agent.id"], name=op.f("fk_deployment_agent_id_agent")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deployment")),
        sa.UniqueConstraint("agent_id", "name", name=op.f("uq_deployment_agent_id_name")),
        schema="offpeak",
        postgresql_with={"fillfactor": "50"},
    )


def create_capacity_event() -> None:
    op.create_table(
        "capacity_event",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("deployment_id", sa.Uuid(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("region", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("offered", sa.Integer(), nullable=False),
        sa.Column("occupied", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_capacity_event")),
        schema="offpeak",
    )
    op.create_index(
        "ix_capacity_event_deployment",
        "capacity_event",
        ["deployment_id", "at"],
        unique=False,
        schema="offpeak",
    )
    op.create_index(
        "ix_capacity_event_market",
        "capacity_event",
        ["release", "region", "at"],
        unique=False,
        schema="offpeak",
    )


def create_price_point() -> None:
    op.create_table(
        "price_point",
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("region", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("load_ppm", sa.Integer(), nullable=False),
        sa.Column("floor_input", sa.BigInteger(), nullable=False),
        sa.Column("floor_output", sa.BigInteger(), nullable=False),
        sa.Column("floor_per_request", sa.BigInteger(), nullable=False),
        sa.Column("floor_ask", sa.BigInteger(), nullable=False),
        sa.Column("curve_version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("release", "region", "at", name=op.f("pk_price_point")),
        schema="offpeak",
    )
