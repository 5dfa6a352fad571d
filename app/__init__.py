"""The gateway and its worker: composes pricing, ledger and the agents' protocol.

The only package with a database. Start with `main` (the HTTP application), then follow one
request: `quotes`, `admission`, `dispatch`, `jobs`.
"""
