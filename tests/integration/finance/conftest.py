"""A market with a receipt log, as the receipts' tests have it."""

from collections.abc import AsyncIterator

import pytest

from app.db.engine import open_database
from tests.integration.books import Books
from tests.integration.finance.exporting import exporter, prepared
from tests.integration.receipts.conftest import Archive

__all__ = ["exporter", "prepared"]


@pytest.fixture
async def archive(fresh_database_url: str) -> AsyncIterator[Archive]:
    database = open_database(fresh_database_url, pool_size=4)
    with Books(fresh_database_url) as books:
        yield Archive(books, database, books.seller(10_000))
    await database.dispose()
