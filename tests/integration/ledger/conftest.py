"""Books on an empty database."""

from collections.abc import Iterator

import pytest

from tests.integration.books import Books


@pytest.fixture
def books(fresh_database_url: str) -> Iterator[Books]:
    with Books(fresh_database_url) as books:
        yield books
