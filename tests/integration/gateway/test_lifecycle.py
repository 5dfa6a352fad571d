"""Starting and stopping a gateway."""

import asyncio

import pytest

from app.config import Settings
from app.main import build_app


@pytest.mark.parametrize("after_seconds", [0, 0.01, 0.02, 0.05, 0.1])
async def test_a_gateway_stops_whenever_it_is_told_even_while_it_connects(
    settings: Settings, after_seconds: float
) -> None:
    """redis-py swallows a cancellation that meets it while it connects."""
    before = asyncio.all_tasks()
    app = build_app(settings)
    async with asyncio.timeout(20):
        async with app.router.lifespan_context(app):
            await asyncio.sleep(after_seconds)
    assert asyncio.all_tasks() == before
