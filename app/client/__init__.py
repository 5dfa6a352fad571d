"""The SDK: look, quote, authorize, request, check the record. Synchronous, over HTTP.

May import `ledger` and `app.*.schemas` only; keys come from `keystore.py`, which alone loads
eth-account, when it is used. Start with `client.py`, then `checks.py`: nothing is signed before it
has agreed.
"""
