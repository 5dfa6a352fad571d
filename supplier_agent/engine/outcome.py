"""What an engine can say about a stream and about itself."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from supplier_agent.errors import AgentError
from supplier_agent.protocol import Answer, FailKind

_FINAL: Final[frozenset[FailKind]] = frozenset({"bad-request", "lease-ended"})


@dataclass(frozen=True, slots=True)
class Delta:
    """The next raw bytes of the engine's event stream."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Finish:
    """The stream was a success; its engine slot is free."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Failure:
    """The stream is over without a result; its engine slot may still be busy."""

    kind: FailKind
    detail: str

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed elsewhere or later."""
        return self.kind not in _FINAL


Outcome: TypeAlias = Delta | Finish | Failure


class Condition(StrEnum):
    """Whether the engine can take work."""

    STARTING = "starting"
    READY = "ready"
    STALLED = "stalled"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class EngineState:
    """Condition and, in words, why."""

    condition: Condition
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Gauge:
    """The engine's own count of its slots."""

    total: int
    busy: frozenset[int]


@dataclass(frozen=True, slots=True)
class Speeds:
    """Tokens per second of one slot, as the probe measured them."""

    prefill: float
    decode: float


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds. A stream's total is its lease's remaining time."""

    connect: float = 2.0
    first_token: float = 60.0
    between_tokens: float = 20.0
    confirm: float = 10.0
    start: float = 120.0


class EngineFailed(AgentError):
    """The engine did not start, answer its probe, or free a slot. It may be started again."""

    code = "engine-failed"

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class CanaryFailed(AgentError):
    """The engine answers, but not as the release's weights do. Starting again does not help."""

    code = "canary-failed"

    def __init__(self, *, expected: str, found: str) -> None:
        super().__init__(f"the canary's answer is {found!r}, not {expected!r}")
        self.expected = expected
        self.found = found
