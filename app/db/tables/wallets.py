"""What the chain said of contract wallets' signatures. Written once, never changed."""

from sqlalchemy import BigInteger, CheckConstraint, Column, LargeBinary, Table, Text

from app.db.tables.base import metadata, not_negative, one_of, timestamp

contract_signature = Table(
    "contract_signature",
    metadata,
    # what was signed: a message names its wallet, so a digest has one signer
    Column("digest", LargeBinary, primary_key=True),
    Column("signer", Text, nullable=False),
    Column("method", Text, nullable=False),
    # where the wallet's contract said yes, as our nodes showed it then
    Column("block_number", BigInteger, nullable=False),
    Column("block_hash", LargeBinary, nullable=False),
    timestamp("checked_at"),
    one_of("method", "erc-1271", "erc-6492"),
    not_negative("block_number"),
    CheckConstraint("octet_length(digest) = 32 AND octet_length(block_hash) = 32", "words"),
)
