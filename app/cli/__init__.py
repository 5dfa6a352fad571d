"""`offpeak`: one module per subcommand, thin over the client and the services.

May import everything; imports nothing heavy before a command runs, so that `--help` stays quick.
Data goes to stdout, progress and prompts to stderr. Start with `program.py` and `exits.py`.
"""

from app.cli.program import main

__all__ = ["main"]
