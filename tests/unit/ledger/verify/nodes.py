"""Chains that say what a test wants, and nodes that answer so over HTTP."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from ledger.encoding import Address
from ledger.merkle import TreeHead
from ledger.verify.errors import ChainTrouble
from ledger.verify.onchain import CONFIRMED, IS_VALID_SIGNATURE, ROOT_AT, Block, View
from tests.receipt_world import CHAIN_ID, NOW, RECEIPT_ANCHOR

FINALIZED = Block(2_000, b"\x0f" * 32, NOW + 1_000)
NO = b"\xff" * 32
"""What a contract answers that does not confirm."""


@dataclass
class Stated:
    """A chain as stated: roots by log size, and the wallets that confirm, by block hash."""

    roots: dict[int, bytes] = field(default_factory=dict)
    confirms: dict[bytes, bytes] = field(default_factory=dict)
    """Block hash to the answer of every wallet; without an entry the call fails."""
    hashes: dict[int, bytes] = field(default_factory=dict)
    block: Block = FINALIZED
    contracts: frozenset[Address] = frozenset({RECEIPT_ANCHOR})
    asked: list[bytes] = field(default_factory=list)

    def code(self, address: Address) -> bytes:
        return b"\x60" if address in self.contracts else b""

    def call(self, to: Address, data: bytes, *, at: bytes | None = None) -> bytes:
        assert to in self.contracts
        self.asked.append(data)
        if data.startswith(ROOT_AT):
            return self.roots.get(int.from_bytes(data[4:]), bytes(32))
        assert data.startswith(IS_VALID_SIGNATURE)
        answer = self.confirms.get(self.block.hash if at is None else at)
        if answer is None:
            raise ChainTrouble("execution reverted")
        return answer

    def hash_at(self, number: int) -> bytes:
        if number not in self.hashes:
            raise ChainTrouble("not found")
        return self.hashes[number]


@dataclass
class Nodes:
    """Several of them."""

    nodes: tuple[View, ...]

    def views(self) -> tuple[View, ...]:
        return self.nodes


def chain_of(*nodes: View) -> Nodes:
    return Nodes(nodes)


def anchoring(head: TreeHead) -> Stated:
    """A chain on which exactly this head is anchored."""
    return Stated(roots={head.size: head.root})


Answer = Callable[[str, list[Any]], Any]
"""From method and parameters to the result; bytes are sent as they are."""


def honest(stated: Stated, *, chain_id: int = CHAIN_ID) -> Answer:
    """Answers as a node of this chain does."""

    def block(number: int, found: bytes) -> dict[str, str]:
        return {
            "number": hex(number),
            "hash": "0x" + found.hex(),
            "timestamp": hex(stated.block.time),
        }

    def answer(method: str, params: list[Any]) -> Any:
        if method == "eth_chainId":
            return hex(chain_id)
        if method == "eth_getBlockByNumber" and params[0] == "finalized":
            return block(stated.block.number, stated.block.hash)
        if method == "eth_getBlockByNumber":
            found = stated.hashes.get(int(params[0], 16))
            return None if found is None else block(int(params[0], 16), found)
        at = bytes.fromhex(params[1]["blockHash"][2:])
        if method == "eth_getCode":
            return "0x" + stated.code(params[0]).hex()
        data = bytes.fromhex(params[0]["data"][2:])
        return "0x" + stated.call(params[0]["to"], data, at=at).hex()

    return answer


def told(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, **members}).encode()


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """Serve a node over HTTP; yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                result = answer(asked["method"], asked["params"])
                data = result if isinstance(result, bytes) else told(result=result)
            except ChainTrouble as error:
                data = told(error={"code": 3, "message": str(error)})
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/secret-key"
        finally:
            server.shutdown()
            thread.join()


__all__ = ["CONFIRMED", "FINALIZED", "NO", "Stated", "anchoring", "chain_of", "honest", "serving"]
