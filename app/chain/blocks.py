"""What a node tells about blocks: headers, logs, receipts, fees; and how blocks are named."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from app.chain.quantities import (
    MalformedValue,
    address,
    data,
    quantity,
    show_data,
    show_quantity,
    word,
)
from ledger.encoding import Address

Tag = Literal["earliest", "finalized", "safe", "latest", "pending"]
BlockRef = Tag | int | bytes
"""A block by tag, by number or by its 32-byte hash. Only a hash names the same block for ever."""

Topics = Sequence[bytes | None]
"""The first topics that logs must have, None for any."""

MAX_TOPICS: Final = 4


@dataclass(frozen=True, slots=True, order=True)
class BlockId:
    """One block of the chain: its number and its hash."""

    number: int
    hash: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block's header; `timestamp` in Unix seconds, `base_fee` in wei per gas."""

    number: int
    hash: bytes
    parent: bytes
    timestamp: int
    base_fee: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One event as a contract emitted it, and where it was mined."""

    address: Address
    topics: tuple[bytes, ...]
    data: bytes
    block_number: int
    block_hash: bytes
    transaction_hash: bytes
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionReceipt:
    """That a transaction was mined in this block; `succeeded` False when it reverted there."""

    transaction_hash: bytes
    block_number: int
    block_hash: bytes
    succeeded: bool
    sender: Address
    contract: Address | None
    gas_used: int
    gas_price: int
    logs: tuple[Log, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GasPrices:
    """Wei per gas: `base` of the next block, and the `priority` that recent blocks took."""

    base: int
    priority: int


def members(what: str, given: object) -> Mapping[str, object]:
    """The JSON object that `given` is.

    Raises:
        MalformedValue: it is something else.
    """
    if not isinstance(given, dict):
        raise MalformedValue(what)
    return given


def items(what: str, given: object) -> list[object]:
    """The JSON array that `given` is.

    Raises:
        MalformedValue: it is something else.
    """
    if not isinstance(given, list):
        raise MalformedValue(what)
    return given


def parse_block(given: object) -> Block:
    """The header in a node's answer.

    Raises:
        MalformedValue: a member is missing or malformed; pending blocks, without hash, too.
    """
    block = members("block", given)
    return Block(
        number=quantity("number", block.get("number")),
        hash=word("hash", block.get("hash")),
        parent=word("parentHash", block.get("parentHash")),
        timestamp=quantity("timestamp", block.get("timestamp")),
        base_fee=quantity("baseFeePerGas", block.get("baseFeePerGas")),
    )


def parse_log(given: object) -> Log:
    """One log in a node's answer.

    Raises:
        MalformedValue: a member is missing or malformed, or the log is marked as removed.
    """
    log = members("log", given)
    topics = items("topics", log.get("topics"))
    if log.get("removed") not in {None, False} or len(topics) > MAX_TOPICS:
        raise MalformedValue("log")
    return Log(
        address=address("address", log.get("address")),
        topics=tuple(word("topic", topic) for topic in topics),
        data=data("data", log.get("data")),
        block_number=quantity("blockNumber", log.get("blockNumber")),
        block_hash=word("blockHash", log.get("blockHash")),
        transaction_hash=word("transactionHash", log.get("transactionHash")),
        index=quantity("logIndex", log.get("logIndex")),
    )


def parse_receipt(given: object) -> TransactionReceipt:
    """The receipt in a node's answer.

    Raises:
        MalformedValue: a member is missing or malformed, or its logs are another transaction's.
    """
    receipt = members("receipt", given)
    status = quantity("status", receipt.get("status"))
    contract = receipt.get("contractAddress")
    found = TransactionReceipt(
        transaction_hash=word("transactionHash", receipt.get("transactionHash")),
        block_number=quantity("blockNumber", receipt.get("blockNumber")),
        block_hash=word("blockHash", receipt.get("blockHash")),
        succeeded=status == 1,
        sender=address("from", receipt.get("from")),
        contract=None if contract is None else address("contractAddress", contract),
        gas_used=quantity("gasUsed", receipt.get("gasUsed")),
        gas_price=quantity("effectiveGasPrice", receipt.get("effectiveGasPrice")),
        logs=tuple(parse_log(log) for log in items("logs", receipt.get("logs"))),
    )
    where = (found.transaction_hash, found.block_hash)
    if status > 1 or any((log.transaction_hash, log.block_hash) != where for log in found.logs):
        raise MalformedValue("receipt")
    return found


def parse_fees(given: object) -> GasPrices:
    """What `eth_feeHistory` of a few blocks with the reward of one percentile says.

    The priority fee is the median of the blocks' rewards, at least 1 wei.

    Raises:
        MalformedValue: a member is missing or malformed.
    """
    history = members("fee history", given)
    bases = items("baseFeePerGas", history.get("baseFeePerGas"))
    rewards = sorted(
        quantity("reward", one)
        for of_block in items("reward", history.get("reward") or [])
        for one in items("reward", of_block)
    )
    if not bases:
        raise MalformedValue("baseFeePerGas")
    priority = rewards[len(rewards) // 2] if rewards else 0
    return GasPrices(base=quantity("baseFeePerGas", bases[-1]), priority=max(priority, 1))


def log_range(first: int, last: int, topics: Topics) -> dict[str, object]:
    """A log query for blocks first .. last."""
    return {
        "fromBlock": show_quantity(first),
        "toBlock": show_quantity(last),
        "topics": [None if topic is None else show_data(topic) for topic in topics],
    }


def is_asked(first: int, last: int, topics: Topics) -> Callable[[Log], bool]:
    """Tells whether a log is one that `log_range` asks for."""

    def belongs(log: Log) -> bool:
        found = log.topics[: len(topics)]
        return (
            first <= log.block_number <= last
            and len(found) == len(topics)
            and all(want in {None, have} for want, have in zip(topics, found, strict=True))
        )

    return belongs


def block_parameter(block: BlockRef) -> object:
    """The block as a parameter of state calls; a hash in the form of EIP-1898."""
    if isinstance(block, bytes):
        return {"blockHash": show_data(block)}
    return show_quantity(block) if isinstance(block, int) else block
