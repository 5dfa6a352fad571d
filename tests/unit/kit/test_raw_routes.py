import asyncio

import pytest
from starlette.types import Message

from app.kit.errors import BodyTooSlow
from app.kit.raw_routes import read_body


async def test_a_body_that_dribbles_in_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.kit.raw_routes.BODY_SECONDS", 0.01)

    async def receive() -> Message:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"", "more_body": True}

    with pytest.raises(BodyTooSlow):
        await read_body({"headers": []}, receive, limit_bytes=100)
