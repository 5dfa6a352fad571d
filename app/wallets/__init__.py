"""Wallets: who signed, what they may read, what they hold.

May import `db`, `kit` and `ledger`. Start with `signatures.py`, then `read_access.py`.
"""
