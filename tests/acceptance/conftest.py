"""One site per test, on a database of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.site import Site


@pytest.fixture
def site(fresh_database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Site]:
    with Site(fresh_database_url, redis_url, tmp_path) as site:
        yield site
