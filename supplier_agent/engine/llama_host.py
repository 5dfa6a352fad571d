"""The child process: llama.cpp's own C++ HTTP server, on a loopback port the kernel chose.

Run by `child`, never by hand. Prints one line, `READY <url>`, when the model is loaded; logs to
stderr. It dies with its parent (Linux PR_SET_PDEATHSIG), so a killed agent leaves no engine
behind, and SIGTERM ends it at once: the server's own shutdown hangs while a request is in flight.
"""

import argparse
import ctypes
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xllamacpp import CommonParams

_PR_SET_PDEATHSIG = 1
EXIT_ORPHAN = 3


def main() -> None:
    """Serve until SIGTERM, SIGINT or the parent's death."""
    options = _parser().parse_args()
    _die_with(options.parent)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    import xllamacpp  # noqa: PLC0415 - loads the engine's libraries; only after the line above

    parameters = xllamacpp.CommonParams()
    _configure(parameters, options)
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"READY {server.listening_address}\n")
    sys.stdout.flush()
    stop.wait()
    os._exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="llama_host", description=__doc__)
    parser.add_argument("--weights", required=True, help="GGUF file")
    parser.add_argument("--name", required=True, help="model name to answer with")
    parser.add_argument("--slots", type=int, required=True, help="concurrent sequences")
    parser.add_argument("--context", type=int, required=True, help="tokens per slot")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--parent", type=int, required=True, help="process to die with")
    return parser


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above took effect
        sys.exit(EXIT_ORPHAN)


def _configure(parameters: "CommonParams", options: argparse.Namespace) -> None:
    parameters.model.path = options.weights
    parameters.model_alias = {options.name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_parallel = options.slots
    parameters.n_ctx = options.slots * options.context
    # A second thread spins while it waits and halves the speed on a shared core.
    parameters.cpuparams.n_threads = options.threads
    parameters.cpuparams_batch.n_threads = options.threads
    parameters.endpoint_slots = True
    parameters.ui = False
    # Prompts of different wallets share nothing: no cache in memory, no slot kept for a prefix.
    parameters.cache_ram_mib = 0
    parameters.cache_prompt = False
    parameters.verbosity = 2


if __name__ == "__main__":
    main()
