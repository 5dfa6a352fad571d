"""From slot events to a price: load, cost floor, curve, rates, charge.

Pure: every function is a formula over its arguments. Imports `ledger.money` only.
Start with `rates`, which puts the others together.
"""
