"""Capacity: what suppliers offer, how much is taken, and the price points that follow.

May import `db`, `kit`, `pricing` and `ledger`. Start with `market.py` (pure), then `loop.py`.
"""
