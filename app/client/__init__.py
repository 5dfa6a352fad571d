"""The SDK: look, quote, authorize, request, check the record; deposit, withdraw, leave.

May import `ledger`, `app.*.schemas` and, for a wallet's own transactions, `app.chain`; keys come
from `keystore.py`, which alone loads eth-account, when it is used. Start with `client.py`
(synchronous, over HTTP), then `checks.py`: nothing is signed before it has agreed. `chain.py`
(asynchronous, over JSON-RPC) is what `deposits.py` and `leaving.py` send with; neither they nor it
need a gateway.
"""
