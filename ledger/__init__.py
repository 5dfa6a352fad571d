"""Money and evidence: amounts, holds, typed data, signatures, usage records, the receipt log.

Pure: no IO, no clock, no randomness; imports nothing else of ours. Start with `money`,
then `usage` (what a finished job is worth) and `signing` (who said so). Of the log: `merkle`,
`log_entry` (what it holds), `checkpoint`, `log_keys` (who speaks for it), `receipt`; of exports
`manifest`, `export_evidence` and `export_row`. `verify/` is the only edge: `offpeak-verify`.
"""
