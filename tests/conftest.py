"""What every test may use: the real engines of `tests/engines.py`."""

import logging
from collections.abc import Iterator
from typing import Protocol

import pytest
import structlog

from tests.chain import chain, contracts
from tests.engines import (
    RunningCluster,
    cluster,
    database_url,
    fresh_database_url,
    redis_url,
    valkey_url,
)
from tests.stack import stack

__all__ = [
    "chain",
    "cluster",
    "contracts",
    "database_url",
    "fresh_database_url",
    "redis_url",
    "stack",
    "valkey_url",
]


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Undo what a command does to its process's logging: here many share one process."""
    before, root = structlog.get_config(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.configure(**before)
    root.handlers[:] = handlers
    root.setLevel(level)


_RUNNING = pytest.StashKey[RunningCluster]()


class _WorkerNode(Protocol):
    config: pytest.Config
    workerinput: dict[str, object]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: _WorkerNode) -> None:
    """Give each xdist worker the one Postgres of the run, started before the first worker."""
    if _RUNNING not in node.config.stash:
        node.config.stash[_RUNNING] = RunningCluster()
    found = node.config.stash[_RUNNING].cluster
    node.workerinput["offpeak_cluster"] = {
        "server_url": found.server_url,
        "template": found.template,
    }


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the Postgres that the workers shared."""
    running = config.stash.get(_RUNNING, None)
    if running is not None:
        running.stop()
