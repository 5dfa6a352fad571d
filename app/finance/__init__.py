"""Reconciliation: the books recomputed from their rows.

`check` compares balances, holds, leases and records with what they follow from, in one snapshot.
"""
