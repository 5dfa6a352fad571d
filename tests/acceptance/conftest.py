"""One site per test on a database of its own, or the town that many tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.site import Site
from tests.acceptance.town import Town, running_town


@pytest.fixture
def site(fresh_database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Site]:
    with Site(fresh_database_url, redis_url, tmp_path) as site:
        yield site


@pytest.fixture(scope="session")
def _town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with running_town(tmp_path_factory.mktemp("town")) as town:
        yield town


@pytest.fixture
def town(_town: Town) -> Town:
    """The shared town, whole."""
    _town.repair()
    return _town
