"""Accounting periods, and which record corrects which."""

from sqlalchemy import BigInteger, CheckConstraint, Column, Table, Text, UniqueConstraint, Uuid

from app.db.tables.base import Xid8, metadata, one_of, timestamp

accounting_period = Table(
    "accounting_period",
    metadata,
    # the month, YYYY-MM in UTC: starts_at <= booked < ends_at
    Column("name", Text, primary_key=True),
    timestamp("starts_at"),
    timestamp("ends_at"),
    Column("state", Text, nullable=False),
    timestamp("soft_closed_at", nullable=True),
    timestamp("closed_at", nullable=True),
    # records sealed from this place on, and transfers by this transaction or a later one, missed it
    Column("closed_leaf", BigInteger),
    Column("closed_xid", Xid8),
    UniqueConstraint("ends_at"),
    one_of("state", "open", "soft-closed", "closed"),
    CheckConstraint("starts_at < ends_at", "interval"),
    CheckConstraint("(state = 'open') = (soft_closed_at IS NULL)", "soft_closed"),
    CheckConstraint(
        "(state = 'closed') = (closed_at IS NOT NULL) AND (state = 'closed') ="
        " (closed_leaf IS NOT NULL) AND (state = 'closed') = (closed_xid IS NOT NULL)",
        "closed",
    ),
)

correction = Table(
    "correction",
    metadata,
    Column("record_id", Uuid, primary_key=True),
    # a record is corrected once; what comes after that corrects the correction
    Column("corrects", Uuid, nullable=False, unique=True),
    Column("job_id", Uuid, nullable=False, index=True),
    Column("because", Text, nullable=False),
    timestamp("made_at"),
    CheckConstraint("record_id <> corrects", "another"),
    CheckConstraint("because <> ''", "reason"),
)
