"""Contract wallets: where the chain confirmed a signature, and how long one may be."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "contract_signature",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("signer", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("block_number", sa.BigInteger(), nullable=False),
        sa.Column("block_hash", sa.LargeBinary(), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "method IN ('erc-1271', 'erc-6492')", name=op.f("ck_contract_signature_method")
        ),
        sa.CheckConstraint("block_number >= 0", name=op.f("ck_contract_signature_block_number")),
        sa.CheckConstraint(
            "octet_length(digest) = 32 AND octet_length(block_hash) = 32",
            name=op.f("ck_contract_signature_words"),
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_contract_signature")),
        schema="offpeak",
    )
    op.create_check_constraint(
        op.f("ck_request_authorization_signature"),
        "request_authorization",
        "octet_length(signature) <= 4096",
        schema="offpeak",
    )
