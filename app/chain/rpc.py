"""Asking a chain through several JSON-RPC URLs; the first that answers usably is asked first next.

What nodes say is not proof. `RpcUnavailable` means nothing is known. None means that no endpoint
that answered knows the block or receipt: it may still exist, so it is never a no. Reads that
must belong together name their block by hash. Endpoints may contradict each other: `by_url`
gives each one alone to a caller who must know.
"""

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Self, TypeVar

import httpx

from app.chain.blocks import (
    Block,
    BlockRef,
    GasPrices,
    Log,
    Topics,
    TransactionReceipt,
    block_parameter,
    is_asked,
    items,
    log_range,
    parse_block,
    parse_fees,
    parse_log,
    parse_receipt,
)
from app.chain.endpoint import AnswerTooLarge, Endpoint, EndpointFailed, RpcFault, RpcLimits
from app.chain.errors import RpcRefused, RpcUnavailable, TooManyLogs
from app.chain.outcomes import SendOutcome, send_outcome
from app.chain.quantities import MalformedValue, data, quantity, show_data, show_quantity, word
from app.chain.reverts import error_name
from ledger.encoding import Address
from ledger.hashing import keccak256

Parsed = TypeVar("Parsed")

FEE_BLOCKS: Final = 10
FEE_PERCENTILE: Final = 50
_EXECUTING: Final = frozenset({"eth_call", "eth_estimateGas"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What came of broadcasting: the transaction's hash, computed by us, and a node's word."""

    hash: bytes
    outcome: SendOutcome
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """A call to simulate. `to` None runs `data` as creation code (ERC-6492's deployless call)."""

    to: Address | None
    data: bytes
    sender: Address | None = None
    value: int = 0
    gas: int | None = None

    def parameter(self) -> dict[str, object]:
        """The call as a parameter."""
        call: dict[str, object] = {"data": show_data(self.data)}
        if self.to is not None:
            call["to"] = self.to
        if self.sender is not None:
            call["from"] = self.sender
        if self.value:
            call["value"] = show_quantity(self.value)
        if self.gas is not None:
            call["gas"] = show_quantity(self.gas)
        return call


class ChainRpc:
    """Typed calls with failover. One HTTP client; close it with `aclose`.

    Made for a chain id, it asks each endpoint for its own before the first call there and after
    each failure, and passes over one of another chain.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        client: httpx.AsyncClient,
        *,
        expected_chain_id: int | None,
        known: set[int] | None = None,
    ) -> None:
        """Take the endpoints in the order they are to be preferred; see `open_rpc`.

        `known` are those whose chain id was seen, shared by views of the same endpoints.
        """
        self.endpoints = tuple(endpoints)
        self._client = client
        self._expected = expected_chain_id
        self._known: set[int] = set() if known is None else known
        self._good = 0

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def by_url(self) -> tuple["ChainRpc", ...]:
        """Each endpoint alone, without failover; they share this one's connections."""
        return tuple(
            ChainRpc((one,), self._client, expected_chain_id=self._expected, known=self._known)
            for one in self.endpoints
        )

    @property
    def label(self) -> str:
        """Which endpoints these are, without their URLs."""
        return ", ".join(endpoint.label for endpoint in self.endpoints)

    async def chain_id(self) -> int:
        """The chain's EIP-155 id, as the first endpoint that answers says, whatever is expected."""
        return await self._first("eth_chainId", (), _chain_id)

    async def block(self, block: BlockRef) -> Block | None:
        """The header of a block; None when no endpoint that answers knows it.

        By hash it may be of any branch. By tag or number it is what one endpoint holds for
        canonical now.
        """
        if isinstance(block, bytes):
            method, named = "eth_getBlockByHash", show_data(block)
        else:
            method = "eth_getBlockByNumber"
            named = show_quantity(block) if isinstance(block, int) else block

        def parse(given: object) -> Block:
            found = parse_block(given)
            asked = found.hash if isinstance(block, bytes) else found.number
            if not isinstance(block, str) and asked != block:
                raise MalformedValue("the asked block")
            return found

        return await self._first_found(method, (named, False), parse)

    async def receipt(self, transaction: bytes) -> TransactionReceipt | None:
        """The receipt of a mined transaction; None when no endpoint that answers knows one."""

        def parse(given: object) -> TransactionReceipt:
            found = parse_receipt(given)
            if found.transaction_hash != transaction:
                raise MalformedValue("the asked receipt")
            return found

        return await self._first_found(
            "eth_getTransactionReceipt", (show_data(transaction),), parse
        )

    async def call(self, call: CallRequest, block: BlockRef) -> bytes:
        """What a call returns in the state after `block`; empty where there is no code.

        Raises:
            RpcRefused: it reverted. RpcUnavailable: nobody knows, an unknown block among it.
        """
        params = (call.parameter(), block_parameter(block))
        return await self._first("eth_call", params, lambda given: data("result", given))

    async def code(self, address: Address, block: BlockRef) -> bytes:
        """The code at an address, empty for none."""
        params = (address, block_parameter(block))
        return await self._first("eth_getCode", params, lambda given: data("code", given))

    async def balance(self, address: Address, block: BlockRef = "latest") -> int:
        """The native balance, wei."""
        params = (address, block_parameter(block))
        return await self._first("eth_getBalance", params, lambda given: quantity("balance", given))

    async def transaction_count(self, address: Address, block: BlockRef) -> int:
        """How many transactions of an address are mined (`latest`), or known too (`pending`)."""
        params = (address, block_parameter(block))
        return await self._first(
            "eth_getTransactionCount", params, lambda given: quantity("nonce", given)
        )

    async def estimate_gas(self, call: CallRequest) -> int:
        """The gas that a transaction would take now.

        Raises:
            RpcRefused: it would revert. RpcUnavailable
        """
        return await self._first(
            "eth_estimateGas", (call.parameter(),), lambda given: quantity("gas", given)
        )

    async def fees(self) -> GasPrices:
        """The next block's base fee and what recent blocks paid on top."""
        params = (show_quantity(FEE_BLOCKS), "latest", [FEE_PERCENTILE])
        return await self._first("eth_feeHistory", params, parse_fees)

    async def send_raw(self, raw: bytes) -> Sent:
        """Broadcast a signed transaction, to the first endpoint that takes it.

        Returns:
            `accepted`, or the first endpoint's refusal when none took it.

        Raises:
            RpcUnavailable: nobody answered; it may have been broadcast all the same.
        """
        digest, refusal = keccak256(raw), None
        reasons = []
        for endpoint in self._ordered():
            try:
                await self._require_chain(endpoint, "eth_sendRawTransaction")
                given = await endpoint.ask("eth_sendRawTransaction", [show_data(raw)])
                _require_hash(given, digest)
            except RpcFault as fault:
                outcome = send_outcome(fault.message)
                refusal = refusal or Sent(hash=digest, outcome=outcome, detail=fault.message)
            except (EndpointFailed, MalformedValue) as failure:
                reasons.append(self._failed(endpoint, failure))
            else:
                self._good = self.endpoints.index(endpoint)
                return Sent(hash=digest, outcome="accepted")
        if refusal is None:
            raise RpcUnavailable("eth_sendRawTransaction", reasons)
        return refusal

    async def logs(
        self, addresses: Sequence[Address], first: int, last: int, topics: Topics = ()
    ) -> tuple[Log, ...]:
        """The logs of these contracts in blocks first .. last, in the order of the chain.

        `topics` are the first ones that they must have, None for any.

        Ranges over the limit are split, and halved where an endpoint says that they are too
        large. A node that lags returns fewer logs and no error: count them against the contract.

        Raises:
            RpcUnavailable: a part of the range could not be had.
        """
        found: list[Log] = []
        limits = self.endpoints[0].limits if self.endpoints else RpcLimits()
        starts = range(first, last + 1, limits.log_blocks)
        parts = [(start, min(start + limits.log_blocks - 1, last)) for start in reversed(starts)]
        while parts:
            start, end = parts.pop()
            where = log_range(start, end, topics)
            try:
                found += await self._logs(addresses, where, is_asked(start, end, topics))
            except AnswerTooLarge as reason:
                if start == end:
                    raise RpcUnavailable("eth_getLogs", [str(reason)]) from None
                middle = (start + end) // 2
                parts += [(middle + 1, end), (start, middle)]
            if len(found) > limits.log_count:
                raise TooManyLogs(limits.log_count)
        return tuple(found)

    async def _logs(
        self, addresses: Sequence[Address], where: dict[str, object], belongs: Callable[[Log], bool]
    ) -> tuple[Log, ...]:
        def parse(given: object) -> tuple[Log, ...]:
            logs = tuple(parse_log(one) for one in items("logs", given))
            places = [(log.block_number, log.index) for log in logs]
            if places != sorted(set(places)):
                raise MalformedValue("the order of logs")
            if not all(log.address in addresses and belongs(log) for log in logs):
                raise MalformedValue("a log that was not asked for")
            return logs

        return await self._first("eth_getLogs", ({"address": list(addresses), **where},), parse)

    async def _first_found(
        self, method: str, params: Sequence[object], parse: Callable[[object], Parsed]
    ) -> Parsed | None:
        """The first answer that is not null; null only when all that answered said so."""
        reasons, absent = [], False
        for endpoint in self._ordered():
            try:
                given = await self._ask(endpoint, method, params)
                if given is not None:
                    found = parse(given)
                    self._good = self.endpoints.index(endpoint)
                    return found
            except (EndpointFailed, MalformedValue) as failure:
                reasons.append(self._failed(endpoint, failure))
            else:
                absent = True
        if not absent:
            raise RpcUnavailable(method, reasons)
        return None

    async def _first(
        self, method: str, params: Sequence[object], parse: Callable[[object], Parsed]
    ) -> Parsed:
        """The first usable answer.

        Raises:
            RpcRefused: an endpoint says that the call reverts. RpcUnavailable: none answered.
            AnswerTooLarge: none answered, and to one of them these logs were too many.
        """
        reasons: list[str] = []
        too_large: AnswerTooLarge | None = None
        for endpoint in self._ordered():
            try:
                found = parse(await self._ask(endpoint, method, params))
            except (EndpointFailed, MalformedValue) as failure:
                reasons.append(self._failed(endpoint, failure))
                too_large = failure if isinstance(failure, AnswerTooLarge) else too_large
            else:
                self._good = self.endpoints.index(endpoint)
                return found
        if too_large is not None and method == "eth_getLogs":
            raise too_large
        raise RpcUnavailable(method, reasons)

    async def _ask(self, endpoint: Endpoint, method: str, params: Sequence[object]) -> object:
        await self._require_chain(endpoint, method)
        try:
            return await endpoint.ask(method, params)
        except RpcFault as fault:
            if fault.is_revert and method in _EXECUTING:
                raise _refused(method, fault) from None
            if method == "eth_getLogs" and fault.is_too_large:
                raise AnswerTooLarge(str(fault)) from None
            raise EndpointFailed(str(fault)) from None

    async def _require_chain(self, endpoint: Endpoint, method: str) -> None:
        """Ask an endpoint for its chain id, once while it answers."""
        if self._expected is None or endpoint.index in self._known or method == "eth_chainId":
            return
        try:
            found = _chain_id(await endpoint.ask("eth_chainId", ()))
        except RpcFault as fault:
            raise EndpointFailed(str(fault)) from None
        if found != self._expected:
            raise EndpointFailed(f"chain {found}, not {self._expected}")
        self._known.add(endpoint.index)

    def _failed(self, endpoint: Endpoint, failure: Exception) -> str:
        self._known.discard(endpoint.index)
        return f"{endpoint.label}: {failure}"

    def _ordered(self) -> list[Endpoint]:
        """All endpoints once, from the last good one on."""
        return [*self.endpoints[self._good :], *self.endpoints[: self._good]]


def _chain_id(given: object) -> int:
    return quantity("chainId", given)


def _refused(method: str, fault: RpcFault) -> RpcRefused:
    found = fault.data or b""
    return RpcRefused(method, name=error_name(found), data=found, message=fault.message)


def _require_hash(given: object, expected: bytes) -> None:
    if word("hash", given) != expected:
        raise MalformedValue("hash")


@cache
def _authorities() -> ssl.SSLContext:
    """Whom to believe; read once, since that costs more than many calls."""
    return httpx.create_ssl_context(trust_env=False)


def open_rpc(
    urls: Sequence[str], limits: RpcLimits | None = None, *, expected_chain_id: int | None = None
) -> ChainRpc:
    """The chain behind these URLs, in order of preference. Opens no connection yet.

    Whatever serves or books names the chain id that it expects; without one any chain is taken.
    """
    limits = limits or RpcLimits()
    client = httpx.AsyncClient(
        timeout=httpx.Timeout(limits.call_seconds, connect=limits.connect_seconds),
        follow_redirects=False,
        trust_env=False,
        verify=_authorities(),
    )
    endpoints = [Endpoint(number, url, client, limits) for number, url in enumerate(urls)]
    return ChainRpc(endpoints, client, expected_chain_id=expected_chain_id)
