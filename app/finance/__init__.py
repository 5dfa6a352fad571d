"""The books as finance needs them: checked, reconciled, closed by month, stated, exported.

`check` recomputes balances, holds, leases and records from their rows, in one snapshot; `reconcile`
compares ledger, records and log. `periods` closes months, `corrections` charges less afterwards,
`statement` shows one account; `export/` writes an interval with what proves it. When a row counts
is said, and proved, in `app/db/functions/80_finance.sql`: start there.

May import `receipts`, `db`, `kit` and `ledger`.
"""
