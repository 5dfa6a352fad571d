"""The first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from app.db.tables import Xid8

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "account",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("asset", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "kind IN ('wallet', 'supplier', 'fee', 'treasury', 'withdraw_clearing', 'deposit_clearing', 'suspense')",
            name=op.f("ck_account_kind"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
        sa.UniqueConstraint("owner", "asset", "kind", name=op.f("uq_account_owner_asset_kind")),
        schema="offpeak",
    )
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
    op.create_table(
        "cost_entry",
        sa.Column("lease_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("slot_ms", sa.BigInteger(), nullable=False),
        sa.Column("booked_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "kind IN ('served', 'failed_work', 'overhead')", name=op.f("ck_cost_entry_kind")
        ),
        sa.CheckConstraint("amount >= 0", name=op.f("ck_cost_entry_amount")),
        sa.CheckConstraint("slot_ms >= 0", name=op.f("ck_cost_entry_slot_ms")),
        sa.PrimaryKeyConstraint("lease_id", "kind", name=op.f("pk_cost_entry")),
        schema="offpeak",
    )
    op.create_index(
        "ix_cost_entry_release",
        "cost_entry",
        ["release", "booked_at"],
        unique=False,
        schema="offpeak",
    )
    op.create_table(
        "hold",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("amount > 0", name=op.f("ck_hold_amount")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hold")),
        sa.UniqueConstraint("id", "amount", name=op.f("uq_hold_id_amount")),
        schema="offpeak",
    )
    op.create_table(
        "house_balance",
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.Column("up_to", Xid8(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_house_balance")),
        schema="offpeak",
    )
    op.create_table(
        "job",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("authorization_digest", sa.LargeBinary(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("region", sa.Text(), nullable=False),
        sa.Column("group", sa.Text(), nullable=True),
        sa.Column("lease_id", sa.Uuid(), nullable=True),
        sa.Column("asset", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("max_output_tokens", sa.Integer(), nullable=False),
        sa.Column("input_rate", sa.BigInteger(), nullable=False),
        sa.Column("output_rate", sa.BigInteger(), nullable=False),
        sa.Column("per_request", sa.BigInteger(), nullable=False),
        sa.Column("ask_ceiling", sa.BigInteger(), nullable=False),
        sa.Column("model_revision", sa.LargeBinary(), nullable=False),
        sa.Column("run_seconds", sa.Integer(), nullable=False),
        sa.Column("faults", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("dispatches", sa.SmallInteger(), server_default="1", nullable=False),
        sa.Column(
            "failed_agents", postgresql.ARRAY(sa.Uuid()), server_default="{}", nullable=False
        ),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deadline_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("request", sa.LargeBinary(), nullable=True),
        sa.Column("result", sa.LargeBinary(), nullable=True),
        sa.Column("content_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finish", sa.Text(), nullable=True),
        sa.Column("failure_code", sa.Text(), nullable=True),
        sa.Column("failure_detail", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(state IN ('accepted', 'running')) = (lease_id IS NOT NULL)", name=op.f("ck_job_lease")
        ),
        sa.CheckConstraint(
            "(state IN ('completed', 'failed', 'cancelled', 'expired')) = (ended_at IS NOT NULL)",
            name=op.f("ck_job_ended"),
        ),
        sa.CheckConstraint("kind IN ('interactive', 'batch')", name=op.f("ck_job_kind")),
        sa.CheckConstraint(
            "state IN ('queued', 'accepted', 'running', 'completed', 'failed', 'cancelled', 'expired')",
            name=op.f("ck_job_state"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
        sa.UniqueConstraint("authorization_digest", name=op.f("uq_job_authorization_digest")),
        schema="offpeak",
    )
    op.create_index("ix_job_account", "job", ["account_id", "id"], unique=False, schema="offpeak")
    op.create_index(
        "ix_job_content",
        "job",
        ["content_until"],
        unique=False,
        schema="offpeak",
        postgresql_where=sa.text("request IS NOT NULL"),
    )
    op.create_index(
        "ix_job_open",
        "job",
        ["deadline_at"],
        unique=False,
        schema="offpeak",
        postgresql_where=sa.text("state IN ('queued', 'accepted', 'running')"),
    )
    op.create_index(
        "ix_job_queued",
        "job",
        ["release", "region"],
        unique=False,
        schema="offpeak",
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_table(
        "lease",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("deployment_id", sa.Uuid(), nullable=False),
        sa.Column("agent_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.SmallInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ask", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("statement", sa.LargeBinary(), nullable=True),
        sa.Column("statement_signature", sa.LargeBinary(), nullable=True),
        sa.CheckConstraint(
            "(state IN ('active', 'ending')) = (ended_at IS NULL)", name=op.f("ck_lease_ended")
        ),
        sa.CheckConstraint(
            "state IN ('active', 'ending', 'done', 'lost', 'reclaimed')",
            name=op.f("ck_lease_state"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lease")),
        schema="offpeak",
    )
    op.create_index(
        "ix_lease_occupying",
        "lease",
        ["agent_id", "deployment_id"],
        unique=False,
        schema="offpeak",
        postgresql_where=sa.text("state IN ('active', 'ending')"),
    )
    op.create_index(
        op.f("ix_offpeak_lease_job_id"), "lease", ["job_id"], unique=False, schema="offpeak"
    )
    op.create_table(
        "ledger_halt",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column(
            "halted_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("cleared_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cleared_because", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(cleared_at IS NULL) = (cleared_because IS NULL)", name=op.f("ck_ledger_halt_cleared")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_halt")),
        schema="offpeak",
    )
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
    op.create_table(
        "request_authorization",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("payer", sa.Text(), nullable=False),
        sa.Column("nonce", sa.LargeBinary(), nullable=False),
        sa.Column("quote_digest", sa.LargeBinary(), nullable=False),
        sa.Column("request_digest", sa.LargeBinary(), nullable=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.Column("quote", sa.LargeBinary(), nullable=False),
        sa.Column("quote_signature", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_request_authorization")),
        sa.UniqueConstraint(
            "nonce", "account_id", name=op.f("uq_request_authorization_nonce_account_id")
        ),
        sa.UniqueConstraint(
            "quote_digest",
            "account_id",
            name=op.f("uq_request_authorization_quote_digest_account_id"),
        ),
        schema="offpeak",
    )
    op.create_table(
        "schema_functions",
        sa.Column("only_row", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.CheckConstraint("only_row", name=op.f("ck_schema_functions_only_row")),
        sa.PrimaryKeyConstraint("only_row", name=op.f("pk_schema_functions")),
        schema="offpeak",
    )
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
    op.create_table(
        "transfer",
        sa.Column("ref", sa.Uuid(), nullable=False),
        sa.Column("leg", sa.SmallInteger(), nullable=False),
        sa.Column("debit", sa.Uuid(), nullable=False),
        sa.Column("credit", sa.Uuid(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("asset", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("xid", Xid8(), server_default=sa.text("pg_current_xact_id()"), nullable=False),
        sa.CheckConstraint("amount > 0", name=op.f("ck_transfer_amount")),
        sa.CheckConstraint("debit <> credit", name=op.f("ck_transfer_two_sides")),
        sa.PrimaryKeyConstraint("ref", "leg", name=op.f("pk_transfer")),
        schema="offpeak",
    )
    op.create_index("ix_transfer_xid", "transfer", ["xid"], unique=False, schema="offpeak")
    op.create_table(
        "usage_record",
        sa.Column("record_id", sa.Uuid(), nullable=False),
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("payer_seq", sa.BigInteger(), nullable=False),
        sa.Column("previous_record", sa.Uuid(), nullable=True),
        sa.Column("supplier_statement", sa.LargeBinary(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("charge", sa.BigInteger(), nullable=False),
        sa.Column("released", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.SmallInteger(), nullable=False),
        sa.Column("response_digest", sa.LargeBinary(), nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("include_by", sa.DateTime(timezone=True), nullable=False),
        sa.Column("flags", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column("signature", sa.LargeBinary(), nullable=True),
        sa.CheckConstraint(
            "(signature IS NULL) = (key_id IS NULL)", name=op.f("ck_usage_record_signed_by")
        ),
        sa.CheckConstraint(
            "cached_input_tokens <= input_tokens", name=op.f("ck_usage_record_cached")
        ),
        sa.CheckConstraint("held = charge + released", name=op.f("ck_usage_record_conserved")),
        sa.CheckConstraint(
            "reasoning_tokens <= output_tokens", name=op.f("ck_usage_record_reasoning")
        ),
        sa.PrimaryKeyConstraint("record_id", name=op.f("pk_usage_record")),
        sa.UniqueConstraint(
            "account_id", "payer_seq", name=op.f("uq_usage_record_account_id_payer_seq")
        ),
        schema="offpeak",
    )
    op.create_index(
        "ix_usage_record_completed",
        "usage_record",
        ["completed_at"],
        unique=False,
        schema="offpeak",
    )
    op.create_index(
        "ix_usage_record_unsigned",
        "usage_record",
        ["record_id"],
        unique=False,
        schema="offpeak",
        postgresql_where=sa.text("signature IS NULL"),
    )
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
    op.create_table(
        "hold_resolution",
        sa.Column("hold_id", sa.Uuid(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("charged", sa.BigInteger(), nullable=False),
        sa.Column("released", sa.BigInteger(), nullable=False),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "(kind = 'settled') = (charged > 0)", name=op.f("ck_hold_resolution_zero_is_a_release")
        ),
        sa.CheckConstraint(
            "kind IN ('settled', 'released', 'expired')", name=op.f("ck_hold_resolution_kind")
        ),
        sa.CheckConstraint(
            "charged + released = amount", name=op.f("ck_hold_resolution_conserved")
        ),
        sa.CheckConstraint("charged >= 0", name=op.f("ck_hold_resolution_charged")),
        sa.CheckConstraint("released >= 0", name=op.f("ck_hold_resolution_released")),
        sa.ForeignKeyConstraint(
            ["hold_id", "amount"],
            ["offpeak.hold.id", "offpeak.hold.amount"],
            name=op.f("fk_hold_resolution_hold_id_amount_hold"),
        ),
        sa.PrimaryKeyConstraint("hold_id", name=op.f("pk_hold_resolution")),
        schema="offpeak",
    )
    op.create_table(
        "wallet_balance",
        sa.Column("account_id", sa.Uuid(), nullable=False),
        sa.Column("available", sa.BigInteger(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("open_jobs", sa.Integer(), nullable=False),
        sa.Column("payer_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_record", sa.Uuid(), nullable=True),
        sa.CheckConstraint("available >= 0", name=op.f("ck_wallet_balance_available")),
        sa.CheckConstraint("held >= 0", name=op.f("ck_wallet_balance_held")),
        sa.CheckConstraint("open_jobs >= 0", name=op.f("ck_wallet_balance_open_jobs")),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["offpeak.account.id"],
            name=op.f("fk_wallet_balance_account_id_account"),
        ),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_wallet_balance")),
        schema="offpeak",
        postgresql_with={"fillfactor": "50"},
    )
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
