"""One all-in-one per test module: the same processes that `offpeak up` runs."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.embedded.stack import Stack, StackOptions, running_stack
from ledger.money import Nano

BALANCE = Nano(1_000_000_000)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Engines, gateway, worker and an agent with the real model."""
    home: Path = tmp_path_factory.mktemp("stack")
    options = StackOptions(home=home, persistent=False, port=0, balance=BALANCE, environ=os.environ)
    with running_stack(options, lambda _: None) as running:
        yield running
        running.check()
