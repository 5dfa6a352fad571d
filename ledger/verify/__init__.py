"""`offpeak-verify`: whether a receipt or an export says what it should, by its reader's own keys.

Imports `ledger` only; needs the base install and no network. Pure but for `cli`, which also reads
the clock, and `files`. Start with `steps` (what is checked of a receipt, in which order), then
`trust` (why a key counts); `export` is the same for a finance export.
"""
