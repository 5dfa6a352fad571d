"""Money between chain and ledger: deposits in, withdrawals and payouts out, exits beside us.

May import `app.chain`, `app.jobs`, `app.capacity`, `app.wallets`, `app.db` and below. Everything
that moves money is a function of the database; nothing is decided by the absence of an answer.
Start reading at `transaction.py` and `sender.py` (what we send) and `events.py` and `watcher.py`
(what we see).
"""
