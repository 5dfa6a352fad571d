"""Wallets: who signed, what they may read, what they hold.

May import `chain`, `db`, `kit` and `ledger`. Start with `signatures.py`, then `read_access.py`;
`balance.py` says what a wallet's money can be.
"""
