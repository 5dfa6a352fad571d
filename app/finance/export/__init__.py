"""Exports for finance: records and transfers of an interval, in the forms that finance uses.

`service.py` runs one export: `repository.py` reads a snapshot of the database, one writer
(`writer.py` names the seven) writes the rows, `evidence.py` what proves them, `folder.py` makes
the whole appear at once, and the manifest is signed and logged.

May import `receipts`, `db`, `kit` and `ledger`.
"""
