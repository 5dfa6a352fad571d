"""A node that lies, in front of one that does not: a JSON-RPC proxy with scripted faults.

For tests of what must hold whatever a node says. Faults are given as objects (`FaultRpc.add`), or
over HTTP: `POST /faults` with a list of them as JSON, `DELETE /faults` to heal. As a program:
`python -m app.embedded.fault_rpc URL [PORT]` prints its own URL.

| kind | what a caller sees |
|---|---|
| `http-status` | this HTTP status (`value`, 500 by default) and no JSON |
| `rpc-error` | a JSON-RPC error (`value` {"code", "message"}), the call was not passed on |
| `error-after` | the same error, but the call was passed on: a transaction was taken |
| `cut` | the connection closes without an answer, the call was not passed on |
| `cut-after` | the same, but the call was passed on |
| `hang` | no answer until the caller gives up or the fault is healed |
| `null` | `result` null: no such block, no such receipt |
| `empty` | `result` []: no logs |
| `result` | this result (`value`), whatever was asked |
| `frozen` | the answer that the first call of this kind got, again and again: a stale node |
| `other-id` | the right answer with another call's id |
| `garbage` | something that is not JSON |
"""

import json
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Literal, Self, get_args

import httpx

from app.embedded.loopback import LOOPBACK

Kind = Literal[
    "http-status",
    "rpc-error",
    "error-after",
    "cut",
    "cut-after",
    "hang",
    "null",
    "empty",
    "result",
    "frozen",
    "other-id",
    "garbage",
]
KINDS: Final = frozenset(get_args(Kind))
FOR_EVER: Final = 1 << 30
_UPSTREAM_SECONDS: Final = 30.0
_HANG_SECONDS: Final = 60.0
_MAX_BODY: Final = 4 * 1024 * 1024
_INTERNAL_ERROR: Final = {"code": -32603, "message": "internal error"}


@dataclass(slots=True, kw_only=True)
class Fault:
    """One fault: for `count` calls of `method` ("*": of any), after `skip` that pass unharmed."""

    kind: Kind
    method: str = "*"
    count: int = FOR_EVER
    skip: int = 0
    value: Any = None
    seen: int = 0
    """How many calls it has spoiled."""
    frozen: dict[str, object] = field(default_factory=dict)

    def takes(self, method: str) -> bool:
        """Whether this call is spoiled; counts it."""
        if self.method not in {"*", method} or self.seen >= self.count:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.seen += 1
        return True


class FaultRpc:
    """A running proxy on 127.0.0.1; `stop()` it, or use it as a context manager."""

    def __init__(self, target: str, port: int = 0) -> None:
        """Serve at once in front of `target`; port 0 takes a free one."""
        self.target = target
        self.calls: list[str] = []
        self.faults: list[Fault] = []
        self.lock = threading.Lock()
        self.healed = threading.Event()
        self.upstream = httpx.Client(timeout=_UPSTREAM_SECONDS, trust_env=False)
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = _Server((LOOPBACK, port), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        """The proxy's JSON-RPC URL."""
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def add(self, *faults: Fault) -> None:
        """Let these faults happen from now on, the first that fits each call."""
        with self.lock:
            self.healed.clear()
            self.faults += faults

    def heal(self) -> None:
        """Pass everything on unharmed; hanging calls end."""
        with self.lock:
            self.faults.clear()
            self.healed.set()

    def count(self, method: str) -> int:
        """How many calls of a method have come."""
        with self.lock:
            return self.calls.count(method)

    def stop(self) -> None:
        """End; harmless when repeated."""
        self.heal()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self.upstream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def spoiled(self, method: str) -> Fault | None:
        """The fault that takes this call; notes the call."""
        with self.lock:
            self.calls.append(method)
            return next((fault for fault in self.faults if fault.takes(method)), None)

    def forward(self, request: Mapping[str, object]) -> dict[str, object]:
        """The target's own answer."""
        answer: dict[str, object] = self.upstream.post(self.target, json=request).json()
        return answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: callers that give up are what this is for."""


class _Handler(BaseHTTPRequestHandler):
    proxy: FaultRpc
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for the caller's delayed ACK

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_DELETE(self) -> None:
        self.proxy.heal()
        self._send(204, b"")

    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("Content-Length", "0")), _MAX_BODY))
        if self.path == "/faults":
            self.proxy.add(*(Fault(**one) for one in json.loads(body)))
            self._send(204, b"")
            return
        request = json.loads(body)
        fault = self.proxy.spoiled(str(request.get("method")))
        if fault is None:
            self._answer(self.proxy.forward(request))
        else:
            self._spoil(fault, request)

    def _spoil(self, fault: Fault, request: dict[str, object]) -> None:
        if fault.kind in {"error-after", "cut-after"}:
            self.proxy.forward(request)
        match fault.kind:
            case "http-status":
                self._send(int(fault.value or 500), b"no", "text/plain")
            case "cut" | "cut-after":
                self.close_connection = True
            case "hang":
                self.proxy.healed.wait(_HANG_SECONDS)
                self.close_connection = True
            case "garbage":
                self._send(200, b"<html>busy</html>", "text/html")
            case "other-id":
                self._answer({**self.proxy.forward(request), "id": -1})
            case "rpc-error" | "error-after":
                self._reply(request, "error", fault.value or _INTERNAL_ERROR)
            case _:
                self._reply(request, "result", self._result(fault, request))

    def _reply(self, request: Mapping[str, object], member: str, value: object) -> None:
        self._answer({"jsonrpc": "2.0", "id": request.get("id"), member: value})

    def _result(self, fault: Fault, request: dict[str, object]) -> object:
        if fault.kind == "frozen":
            return self._frozen(fault, request)
        return [] if fault.kind == "empty" else fault.value  # `null` has no value

    def _frozen(self, fault: Fault, request: dict[str, object]) -> object:
        asked = json.dumps([request.get("method"), request.get("params")])
        if asked not in fault.frozen:
            fault.frozen[asked] = self.proxy.forward(request).get("result")
        return fault.frozen[asked]

    def _answer(self, answer: Mapping[str, object]) -> None:
        self._send(200, json.dumps(answer).encode())

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Run until interrupted; prints the proxy's URL."""
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with FaultRpc(sys.argv[1], port) as proxy:
        sys.stdout.write(proxy.url + "\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
