"""Exports for finance: records and transfers of an interval, in the forms that finance uses.

`service.py` runs one export: `repository.py` reads a snapshot of the database, one writer
(`writer.py` names the seven) writes the rows, `ledger.export_evidence` has the lines that prove
them, `folder.py` makes the whole appear at once, and `log.py` logs the signed manifest.

May import `finance`'s intervals, `receipts`, `db`, `kit` and `ledger`.
"""
