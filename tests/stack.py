"""The all-in-one for tests: the same processes that `offpeak up` runs, one per test worker.

With a chain where node is present; without one its money is made up, and what is about the chain is
skipped.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from app.embedded.stack import Stack

BALANCE_NANO = 1_000_000_000


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Stack]":
    """Engines, gateway, worker and an agent with the real model; home is a folder `.offpeak`."""
    from app.embedded.stack import StackOptions, running_stack  # noqa: PLC0415  # two seconds
    from ledger.money import Nano  # noqa: PLC0415

    home = tmp_path_factory.mktemp("stack") / ".offpeak"
    options = StackOptions(
        home=home,
        persistent=False,
        port=0,
        balance=Nano(BALANCE_NANO),
        environ=os.environ,
    )
    with running_stack(options, lambda _: None) as running:
        yield running
        running.check()
