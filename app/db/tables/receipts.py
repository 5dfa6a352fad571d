"""The receipt log: batches, entries, tree nodes, checkpoints. Written once, never changed."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
)

from app.db.tables.base import metadata, not_negative, one_of, timestamp

receipt_batch = Table(
    "receipt_batch",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    # places in the one sequence of all records: start .. end - 1
    Column("start", BigInteger, nullable=False, unique=True),
    Column("end", BigInteger, nullable=False),
    Column("header", LargeBinary, nullable=False),
    # roots of the batch's subtrees of 256 leaves, 32 bytes each: a proof reads one of them whole
    Column("chunk_roots", LargeBinary, nullable=False),
    timestamp("sealed_at"),
    CheckConstraint('"end" > start', "not_empty"),
)

log_entry = Table(
    "log_entry",
    metadata,
    Column("index", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("entry", LargeBinary, nullable=False),
    # one entry is logged once: whoever repeats it finds it
    Column("leaf_hash", LargeBinary, nullable=False, unique=True),
    Column("batch_number", BigInteger, unique=True),
    timestamp("logged_at"),
    one_of("kind", "batch-header", "key-rotation", "export-manifest"),
    CheckConstraint("(kind = 'batch-header') = (batch_number IS NOT NULL)", "header_of_batch"),
    not_negative("index"),
)

log_node = Table(
    "log_node",
    metadata,
    # the complete subtree over leaves index << level .. (index + 1) << level
    Column("level", SmallInteger),
    Column("index", BigInteger),
    Column("hash", LargeBinary, nullable=False),
    PrimaryKeyConstraint("level", "index"),
)

log_checkpoint = Table(
    "log_checkpoint",
    metadata,
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("root", LargeBinary, nullable=False),
    Column("note", LargeBinary, nullable=False),
    timestamp("signed_at"),
)
