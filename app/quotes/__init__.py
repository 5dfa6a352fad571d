"""Quotes: signed offers that reserve nothing and are stored nowhere until accepted.

May import `models`, `capacity`, `wallets`, `kit`, `pricing` and `ledger`. Start with `quote.py`
(pure), then `request.py` (what may be asked), then `service.py`.
"""
