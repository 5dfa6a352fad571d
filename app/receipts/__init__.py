"""Usage records: read back as stored, signed, and later sealed into the receipt log.

May import `jobs`, `db`, `kit` and `ledger`. Start with `record.py`.
"""
