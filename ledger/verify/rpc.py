"""The verifier's only way to a network: reads of a chain from nodes that the reader names.

JSON-RPC over HTTP with the standard library. Each node is pinned to the hash of its finalized
block. Whatever is not a well-formed answer raises ChainTrouble: "not found" is no "no".
"""

import json
import re
import time
from collections.abc import Sequence
from http.client import HTTPException
from typing import Final, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ledger.encoding import Address
from ledger.verify.errors import ChainTrouble, Unusable
from ledger.verify.onchain import Block

MAX_ANSWER_BYTES: Final = 1_000_000
TIMEOUT_SECONDS: Final = 10
_PIECE: Final = 65_536
_QUANTITY = re.compile(r"0x(?:0|[1-9a-f][0-9a-f]{0,15})")
_DATA = re.compile(r"0x(?:[0-9a-fA-F]{2})*")


class _NoRedirect(HTTPRedirectHandler):
    """The reader has named a node; another one is not asked in its place: its status says so."""

    def redirect_request(self, *_: object) -> None:
        """Follow nothing."""


def _host_of(url: str) -> str:
    """All that is ever shown of a URL: the rest may hold the reader's key.

    Raises:
        Unusable: not an http or https URL.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme in {"http", "https"} and parts.port != 0 else None
    except ValueError:
        host = None
    if host is None or not url.isascii() or not url.isprintable() or " " in url:
        raise Unusable("--rpc: not an http or https URL")
    return host


class Node:
    """One node's chain as of its finalized block; see `onchain.View`."""

    def __init__(self, url: str, *, chain_id: int) -> None:
        """Take an http or https URL; nothing is asked yet.

        Raises:
            Unusable: another URL.
        """
        self._url = url
        self._host = _host_of(url)
        self._chain_id = chain_id
        self._opener = build_opener(_NoRedirect)
        self._block: Block | None = None
        self._read: dict[tuple[object, ...], bytes] = {}

    @property
    def block(self) -> Block:
        """The finalized block, looked up once, of the right chain."""
        if self._block is None:
            chain_id = self._quantity(self._ask("eth_chainId"))
            if chain_id != self._chain_id:
                self._trouble(f"is of chain {chain_id}, not of {self._chain_id}")
            self._block = self._block_at("finalized")
        return self._block

    def code(self, address: Address) -> bytes:
        """The contract code of an address at the pinned block."""
        return self._once("eth_getCode", address, at=self.block.hash)

    def call(self, to: Address, data: bytes, *, at: bytes | None = None) -> bytes:
        """What a contract answers at a block, the pinned one by default."""
        asked = {"to": to, "data": "0x" + data.hex()}
        return self._once("eth_call", asked, at=self.block.hash if at is None else at)

    def hash_at(self, number: int) -> bytes:
        """The hash of the block at a height."""
        return self._block_at(hex(number)).hash

    def _once(self, method: str, what: object, *, at: bytes) -> bytes:
        key = (method, json.dumps(what), at)
        if key not in self._read:
            self._read[key] = self._data(self._ask(method, what, {"blockHash": "0x" + at.hex()}))
        return self._read[key]

    def _block_at(self, tag: str) -> Block:
        given = self._ask("eth_getBlockByNumber", tag, False)
        if not isinstance(given, dict):
            self._trouble(f"shows no block {tag}")
        found = Block(
            self._quantity(given.get("number")),
            self._data(given.get("hash")),
            self._quantity(given.get("timestamp")),
        )
        if len(found.hash) != 32 or tag not in {"finalized", hex(found.number)}:
            self._trouble(f"shows another block for {tag}")
        return found

    def _ask(self, method: str, *params: object) -> object:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "offpeak-verify"}
        request = Request(self._url, data=body, headers=headers)  # noqa: S310 -- http(s) only
        try:
            answer = json.loads(self._fetch(request))
        except HTTPError as error:
            self._trouble(f"answers with HTTP status {error.code}")
        except URLError as error:
            self._trouble(f"cannot be reached: {error.reason}")
        except (OSError, HTTPException) as error:
            self._trouble(f"cannot be reached: {type(error).__name__}")
        except (ValueError, RecursionError):
            self._trouble("does not answer in JSON")
        if not isinstance(answer, dict) or "result" not in answer:
            failed = answer.get("error") if isinstance(answer, dict) else None
            message = failed.get("message") if isinstance(failed, dict) else None
            self._trouble(f"refuses {method}: {ascii(message)[:120]}")
        return answer["result"]

    def _fetch(self, request: Request) -> bytes:
        until = time.monotonic() + TIMEOUT_SECONDS
        with self._opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
            read = b""
            while piece := answer.read1(_PIECE):
                read += piece
                if len(read) > MAX_ANSWER_BYTES or time.monotonic() > until:
                    self._trouble("answers too much, or too slowly")
        return read

    def _quantity(self, value: object) -> int:
        if not isinstance(value, str) or _QUANTITY.fullmatch(value) is None:
            self._trouble("gives a number of another form")
        return int(value, 16)

    def _data(self, value: object) -> bytes:
        if not isinstance(value, str) or _DATA.fullmatch(value) is None:
            self._trouble("gives bytes of another form")
        return bytes.fromhex(value[2:])

    def _trouble(self, what: str) -> NoReturn:
        raise ChainTrouble(f"the node at {self._host} {what}")


class Nodes:
    """The nodes that the reader named, all of which must confirm."""

    def __init__(self, urls: Sequence[str], *, chain_id: int) -> None:
        """Take the URLs; raises Unusable when one is none."""
        self._nodes = tuple(Node(url, chain_id=chain_id) for url in urls)

    def views(self) -> Sequence[Node]:
        """All of them, each with its finalized block; raises ChainTrouble when one has none."""
        for each in self._nodes:
            _ = each.block
        return self._nodes
