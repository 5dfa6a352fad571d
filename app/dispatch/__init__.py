"""Attempts: give accepted work to agents, check what comes back, settle it or try elsewhere.

May import `admission`, `quotes`, `receipts`, `jobs`, `capacity`, `wallets`, `models`, `db`, `kit`,
`config` and `supplier_agent.protocol`. Pure: `work`, `attempt`, `metering`, `liveness`. Start with
`attempt.py`, then `dispatcher.py`, which owns the running attempts; `endpoints.py` is the agents'
socket and `loop.py` what finds everything that a crash or a lost wake-up left.
"""
