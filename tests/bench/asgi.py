"""Calling the application without a socket: one request in, status and body out."""

from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Scope

JSON_HEADERS = ((b"content-type", b"application/json"),)


@dataclass(slots=True)
class Reply:
    """What came back."""

    status: int = 0
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Post:
    """One prepared POST."""

    path: str
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = field(default=JSON_HEADERS)

    def scope(self) -> Scope:
        """Return what a server would pass on."""
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [*self.headers, (b"content-length", str(len(self.body)).encode())],
            "client": ("127.0.0.1", 40_000),
            "server": ("127.0.0.1", 8_700),
        }


async def call(app: ASGIApp, post: Post) -> Reply:
    """Return the application's reply."""
    reply = Reply()

    async def receive() -> Message:
        return {"type": "http.request", "body": post.body, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
        else:
            reply.body += message.get("body", b"")

    await app(post.scope(), receive, send)
    return reply
