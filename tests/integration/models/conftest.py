"""The real engine, llama.cpp's own server, in a child process that ends with its parent."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from app.models.catalogue import Catalogue
from app.models.weights import cache_folder, fetch_weights

# One thread: two spin-wait and collapse on shared cores. The server ends when its input does.
HOST = """
import sys
import xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.n_parallel = 1
parameters.n_ctx = int(sys.argv[2])
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
parameters.endpoint_slots = True
server = xllamacpp.Server(parameters)
print("READY", server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def engine_url() -> Iterator[str]:
    """Serve the demo release with one slot; the weights come from the cache."""
    release = Catalogue().get("smollm2-135m-instruct")
    weights = fetch_weights(release, cache_folder(os.environ))
    command = [sys.executable, "-c", HOST, str(weights), str(release.context_tokens)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as host:
        try:
            assert host.stdout is not None
            for line in host.stdout:
                if line.startswith("READY"):
                    yield line.split()[1]
                    break
            else:
                pytest.fail("the engine did not start")
        finally:
            host.kill()
