"""The all-in-one's small decisions."""

import socket
from pathlib import Path

from app.cli.failures import describe
from app.cli.up import stopping_text
from app.embedded.errors import HomeInUse
from app.embedded.services import chosen_port, settled_port


def test_a_port_that_is_taken_is_replaced_by_a_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert chosen_port(port) not in (0, port)
        said: list[str] = []
        other = settled_port(port, said.append)
        assert said == [f"port {port} is taken: using {other}"]
    assert chosen_port(port) == port
    assert chosen_port(0) > 0


def test_a_home_in_use_says_what_to_do() -> None:
    assert "use it, stop it, or name another --home" in describe(HomeInUse(Path("x"))).next_step


def test_stopping_says_what_is_waited_for() -> None:
    assert stopping_text(0) == "stopping"
    assert stopping_text(1).startswith("stopping: 1 job still runs")
    assert stopping_text(3).startswith("stopping: 3 jobs still run")
