"""Tables, in one place because foreign keys cross features.

Money is nano in `BigInteger`; digests are 32 bytes in `LargeBinary`; times are `timestamptz`
written by the database clock. Ledger, lease and job rows are written by the functions in
`functions/` only: the application's role has SELECT on them and nothing more.

Rows on the money path have no foreign keys but the one that makes charge <= hold a constraint.
Each would cost a query and a key-share lock per row; the functions make parents and children
together, and `offpeak ledger check` looks for orphans.
"""

from app.db.tables.base import SCHEMA, Xid8, metadata
from app.db.tables.finance import accounting_period, correction
from app.db.tables.jobs import cost_entry, job, lease, request_authorization, usage_record
from app.db.tables.ledger import (
    account,
    hold,
    hold_resolution,
    house_balance,
    ledger_halt,
    transfer,
    wallet_balance,
)
from app.db.tables.receipts import log_checkpoint, log_entry, log_node, receipt_batch
from app.db.tables.supply import (
    agent,
    agent_session,
    capacity_event,
    deployment,
    price_point,
    supplier,
)
from app.db.tables.treasury import (
    anchor,
    chain_attempt,
    chain_cursor,
    chain_event,
    chain_transaction,
    payout,
    suspense_claim,
    wallet_chain,
    wallet_exit,
    withdrawal,
)
from app.db.tables.version import schema_functions
from app.db.tables.wallets import contract_signature

__all__ = [
    "SCHEMA",
    "Xid8",
    "account",
    "accounting_period",
    "agent",
    "agent_session",
    "anchor",
    "capacity_event",
    "chain_attempt",
    "chain_cursor",
    "chain_event",
    "chain_transaction",
    "contract_signature",
    "correction",
    "cost_entry",
    "deployment",
    "hold",
    "hold_resolution",
    "house_balance",
    "job",
    "lease",
    "ledger_halt",
    "log_checkpoint",
    "log_entry",
    "log_node",
    "metadata",
    "payout",
    "price_point",
    "receipt_batch",
    "request_authorization",
    "schema_functions",
    "supplier",
    "suspense_claim",
    "transfer",
    "usage_record",
    "wallet_balance",
    "wallet_chain",
    "wallet_exit",
    "withdrawal",
]
