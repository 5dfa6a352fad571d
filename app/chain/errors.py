"""Expected failures of talking to the chain.

* ChainError
  - RpcUnavailable      no endpoint gave a usable answer: nothing is known
  - RpcRefused          the call was executed and reverted
  - MalformedAnswer     a contract returned something else than its interface says
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
    next_step = "check OFFPEAK_RPC_URLS and that one of the endpoints answers; it is tried again"

    def __init__(self, method: str, reasons: Sequence[str]) -> None:
        super().__init__(f"{method}: {'; '.join(reasons) or 'no endpoint is set'}")
        self.method = method
        self.reasons = tuple(reasons)


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
