"""Usage records: read back as stored, signed, sealed into batches, logged, given out as receipts.

`record` and `service` sign; `sequencer` seals, logs and signs checkpoints; `rotation` changes the
log's keys; `appending` adds an entry once; `anchoring` brings checkpoints on chain. `log` reads it
for anybody, `proofs` proves what is stored, `bundle` makes a payer's receipt, `check` recomputes
it all.

May import `treasury`, `chain`, `wallets`, `jobs`, `db`, `kit` and `ledger`. Start with `record.py`,
then `sequencer.py`.
"""
