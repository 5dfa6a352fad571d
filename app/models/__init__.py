"""Approved model releases: what they are, how their tokens are counted, where weights come from.

A release is data (`releases/<id>/`): pinned digests, tokenizer, chat template, canary. Imports
`ledger` and other packages' leaves only. Start with `catalogue`, which reads the data; then
`tokenizer` (counting), `messages` (what a conversation may hold), `weights` (the download).
"""
