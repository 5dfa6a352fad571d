"""The client can be taken without the gateway: what it imports is a short list."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import app.client

FOLDER = Path(app.client.__file__).parent
OTHERS = {"httpx", "pydantic"}
ON_CHAIN = {"chain.py", "deposits.py", "leaving.py"}
"""What a wallet does without a gateway."""


def imported(path: Path) -> Iterator[str]:
    """Yield the name of every module that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def allowed(name: str, *, file: str) -> bool:
    """Return whether the client may import a module."""
    top = name.partition(".")[0]
    if top == "app":
        on_chain = file in ON_CHAIN and (name == "app.chain" or name.startswith("app.chain."))
        return on_chain or name.startswith("app.client.") or name.endswith(".schemas")
    if top == "eth_account":
        return file == "keystore.py"
    return top in {"ledger", *OTHERS} or top in sys.stdlib_module_names


def test_the_client_imports_the_ledger_wire_schemas_and_for_its_own_transactions_the_chain() -> (
    None
):
    for path in FOLDER.glob("*.py"):
        for name in imported(path):
            assert allowed(name, file=path.name), f"{path.name} imports {name}"


def test_using_the_client_loads_neither_eth_account_nor_the_gateway() -> None:
    heavy = ("eth_account", "sqlalchemy", "fastapi", "psycopg")
    code = f"import sys, app.client.client; print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
