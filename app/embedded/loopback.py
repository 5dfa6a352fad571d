"""Free ports of 127.0.0.1."""

import socket

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """Return a port that was free a moment ago; whoever takes it must be ready to lose the race."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
