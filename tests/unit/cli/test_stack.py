"""The all-in-one's small decisions."""

import socket

from app.embedded.stack import chosen_port


def test_a_port_that_is_taken_is_replaced_by_a_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert chosen_port(port) not in (0, port)
    assert chosen_port(port) == port
    assert chosen_port(0) > 0
