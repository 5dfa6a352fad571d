"""The chain: JSON-RPC, contract calls, keys and start-up checks. No database, no HTTP server.

May import `app.config`, `app.kit` and `ledger`. Rules that everything here keeps: what a node does
not know is unknown, never a no; no answer's shape is trusted; URLs and keys are never shown.

Start reading at `rpc.py` (asking nodes), then `contracts.py` (what is asked), `transaction.py` and
`keys.py` (what is sent), `checks.py` (what must hold before a process may serve).
"""
