"""What a GPU owner installs: drives a serving engine and dials out to a gateway.

Imports `ledger` only. The gateway imports `supplier_agent.protocol` and nothing else of it.
Start with `protocol` (the messages), then `agent` (one session).
"""
