"""What a gateway and a worker load of the chain's libraries: a codec, never a key's or web3."""

import subprocess
import sys


def test_gateway_and_worker_load_neither_web3_nor_what_opens_keys() -> None:
    heavy = ("web3", "eth_account", "eth_keyfile", "eth_keys")
    code = f"import sys, app.main, app.worker; print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
