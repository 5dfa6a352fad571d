"""One job's life and its result: what is stored of it, who waits for it.

May import `db`, `kit` and `ledger`. Start with `content.py` and `waiters.py`.
"""
