"""Expected failures of talking to the chain.

* ChainError
  - RpcUnavailable      no endpoint gave a usable answer: nothing is known
  - RpcRefused          the call was executed and reverted
  - MalformedAnswer     a contract returned something else than its interface says
  - TransactionMalformed
  - KeyRefused          a key does not open, or signs something else
  - TransactionRefused, TransactionReverted, TransactionPending
"""

from collections.abc import Sequence
from typing import ClassVar


class ChainError(Exception):
    """Base of every expected failure of this package; `next_step` says what to do about it."""

    code: ClassVar[str]
    next_step: str = ""


class RpcUnavailable(ChainError):
    """No chain endpoint gave a usable answer, so nothing is known; try again.

    `reasons` has one short text for each endpoint asked, by its label, never its URL.
    """

    code = "rpc-unavailable"
    next_step = (
        "check that the node of --rpc, OFFPEAK_RPC_URL or OFFPEAK_RPC_URLS answers, then try again"
    )

    def __init__(self, method: str, reasons: Sequence[str]) -> None:
        super().__init__(f"{method}: {'; '.join(reasons) or 'no endpoint is set'}")
        self.method = method
        self.reasons = tuple(reasons)


class TooManyLogs(RpcUnavailable):
    """More logs in a range than are read at once; ask for fewer blocks."""

    def __init__(self, limit: int) -> None:
        super().__init__("eth_getLogs", [f"over {limit} logs in one scan"])
        self.limit = limit


class RpcRefused(ChainError):
    """The chain executed a call and it reverted.

    `name` is the contract's error where it is known (`Paused`), else empty; `data` its bytes.
    """

    code = "rpc-refused"

    def __init__(self, method: str, *, name: str, data: bytes, message: str) -> None:
        super().__init__(f"{method} reverted: {name or message}")
        self.method = method
        self.name = name
        self.data = data


class MalformedAnswer(ChainError):
    """A contract answered something else than its interface says."""

    code = "malformed-chain-answer"

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what = what
        self.reason = reason


class TransactionMalformed(ChainError):
    """Bytes that should be a signed EIP-1559 transaction of ours are not."""

    code = "transaction-malformed"


class KeyRefused(ChainError):
    """A chain key does not open, or its signer signs something else than it was given."""

    code = "chain-key-refused"
    next_step = "check the key's settings: keystore and password file, or signer command"

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key} key: {reason}")
        self.key = key
        self.reason = reason


class TransactionRefused(ChainError):
    """No node took a transaction; `outcome` is one of `rpc.SendOutcome`."""

    code = "transaction-refused"

    def __init__(self, transaction: bytes, *, outcome: str, detail: str) -> None:
        super().__init__(f"0x{transaction.hex()}: {outcome}: {detail}")
        self.outcome = outcome
        self.next_step = (
            "send native coins for gas to the sender, then try again"
            if outcome == "insufficient-funds"
            else "wait for the sender's earlier transactions, then try again"
        )


class TransactionReverted(ChainError):
    """A transaction was mined and changed nothing but its sender's gas money."""

    code = "transaction-reverted"

    def __init__(self, transaction: bytes) -> None:
        super().__init__(f"0x{transaction.hex()} was mined and reverted")


class TransactionPending(ChainError):
    """A transaction was sent and not mined in time; it may still be mined."""

    code = "transaction-pending"

    def __init__(self, transaction: bytes, *, wait_seconds: float) -> None:
        super().__init__(f"0x{transaction.hex()} was not mined within {wait_seconds:g} s")
        self.next_step = f"look for 0x{transaction.hex()} before you send another"
