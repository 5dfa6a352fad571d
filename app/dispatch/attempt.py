"""One attempt: from frames and time to the next step. Pure; the dispatcher carries steps out.

`now` is this process's monotonic clock, in seconds. An attempt is `sent` (RUN is out), `accepted`
(a slot works on it), `decided` (its end is being booked; nothing more counts).
"""

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal

from app.dispatch.errors import AttemptFault
from app.dispatch.work import Work
from supplier_agent.protocol import (
    Answer,
    AnswerAssembler,
    DataFrame,
    Done,
    FailKind,
    MalformedStream,
)

LeaseEnd = Literal["ending", "lost", "reclaimed"]


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """How long an attempt may say nothing and a job wait, in seconds."""

    accept_seconds: float = 2.0
    unaccepted_seconds: float = 6.0
    """After which any replica moves a lease that no agent has accepted: its owner is gone."""
    stall_seconds: float = 10.0
    """Between two signs of progress, on top of the time the prompt takes."""
    grace_seconds: float = 2.0
    """After the deadline, for a result under way."""
    queue_seconds: float = 5.0
    """The most a job waits for another slot."""


@dataclass(frozen=True, slots=True)
class GiveBack:
    """The attempt is over without a result.

    `fault` counts against the job's two faulted attempts, `blame` against the agent. `ending`:
    the agent may still hold the slot and is told to stop; else the slot is free.
    """

    reason: str
    fault: bool
    blame: bool
    lease_state: LeaseEnd


FAILS: Final = MappingProxyType[FailKind, GiveBack](
    {
        "bad-request": GiveBack("bad-request", fault=True, blame=False, lease_state="lost"),
        "engine-busy": GiveBack("engine-busy", fault=False, blame=False, lease_state="lost"),
        "engine-error": GiveBack("engine-error", fault=True, blame=True, lease_state="lost"),
        "engine-lost": GiveBack("engine-lost", fault=True, blame=True, lease_state="lost"),
        "malformed-stream": GiveBack(
            "malformed-stream", fault=True, blame=True, lease_state="lost"
        ),
        "too-large": GiveBack("too-large", fault=True, blame=True, lease_state="lost"),
        "timed-out": GiveBack("timed-out", fault=True, blame=True, lease_state="lost"),
        "lease-ended": GiveBack("lease-ended", fault=True, blame=False, lease_state="lost"),
        "wrong-release": GiveBack("wrong-release", fault=True, blame=True, lease_state="lost"),
        "stopping": GiveBack("stopping", fault=False, blame=False, lease_state="reclaimed"),
    }
)
"""What each FAIL of an agent means. A 4xx of the engine never counts against the agent."""

BUSY: Final = GiveBack("busy", fault=False, blame=False, lease_state="lost")
NOT_ACCEPTED: Final = GiveBack("not-accepted", fault=True, blame=True, lease_state="lost")
STALLED: Final = GiveBack("stalled", fault=True, blame=True, lease_state="ending")
UNASKED_CANCEL: Final = GiveBack("cancelled", fault=True, blame=False, lease_state="lost")
AGENT_LOST: Final = GiveBack("agent-lost", fault=True, blame=False, lease_state="lost")
REPLICA_LOST: Final = GiveBack("replica-lost", fault=False, blame=False, lease_state="ending")
UNKNOWN: Final = GiveBack("not-in-hand", fault=False, blame=False, lease_state="lost")
NOT_HELD: Final = GiveBack("not-held", fault=False, blame=False, lease_state="lost")


class Stage(StrEnum):
    """Where an attempt stands."""

    SENT = "sent"
    ACCEPTED = "accepted"
    DECIDED = "decided"


class Attempt:
    """A running lease. No task of its own: frames and a clock tick drive it."""

    __slots__ = ("_assembler", "_limits", "_next_seq", "_progress_at", "_received", "stage", "work")

    def __init__(self, work: Work, *, now: float, limits: AttemptLimits, resumed: bool) -> None:
        """Begin.

        Args:
            work: The lease.
            now: The present.
            limits: How long silence lasts.
            resumed: The agent holds the lease from an earlier session and sends it again.
        """
        self.work = work
        self.stage = Stage.ACCEPTED if resumed else Stage.SENT
        self._limits = limits
        self._progress_at = now
        self._next_seq = 0
        self._received = 0
        self._assembler = AnswerAssembler(max_output_tokens=work.accepted.max_output_tokens)

    def on_accept(self, *, now: float) -> bool:
        """Take ACCEPT; return whether it is the first."""
        if self.stage is not Stage.SENT:
            return False
        self.stage = Stage.ACCEPTED
        self._progress_at = now
        return True

    def on_first(self, *, now: float) -> None:
        """Take FIRST, which is a sign of progress."""
        self._progress_at = now

    def on_data(self, frame: DataFrame, *, now: float) -> str:
        """Take a piece of the stream; return the text it completes.

        Raises:
            AttemptFault: out of order, or no longer a possible success.
        """
        if frame.seq != self._next_seq:
            raise AttemptFault("out-of-order", f"frame {frame.seq}, not {self._next_seq}")
        self._next_seq += 1
        self._received += len(frame.payload)
        try:
            text = self._assembler.feed(frame.payload)
        except MalformedStream as error:
            raise fault_of(error) from error
        if text:
            self._progress_at = now
        return text

    def answer(self, done: Done) -> Answer:
        """Return the whole answer that DONE ends.

        Raises:
            AttemptFault: a frame is missing, or the stream was no success.
        """
        if done.stream_bytes != self._received:
            raise AttemptFault("frames-lost", f"{self._received} of {done.stream_bytes} bytes")
        try:
            return self._assembler.finish()
        except MalformedStream as error:
            raise fault_of(error) from error

    def overdue(self, *, now: float) -> GiveBack | None:
        """Return why the attempt is given up at this time, or None while it may go on."""
        if self.stage is Stage.DECIDED:
            return None
        silent = now - self._progress_at
        if self.stage is Stage.SENT:
            return NOT_ACCEPTED if silent > self._limits.accept_seconds else None
        prefill = self.work.speeds.expected_ms(
            input_tokens=self.work.accepted.input_tokens, output_tokens=0, per_mille=2000
        )
        allowed = self._limits.stall_seconds + (prefill / 1000 if self._received == 0 else 0)
        return STALLED if silent > allowed else None

    def expired(self, *, now: float) -> bool:
        """Return whether deadline and grace have passed: nothing it sends counts any more."""
        return now > self.work.deadline + self._limits.grace_seconds


def fault_of(error: MalformedStream) -> AttemptFault:
    """Return what a broken stream means. An answer without a usage is `unmetered`: unbilled."""
    reason = "unmetered" if error.reason == "no-usage" else error.reason
    return AttemptFault(reason, error.detail)


def give_back(fault: AttemptFault, *, slot_free: bool) -> GiveBack:
    """Return the step that a faulty result leads to."""
    return GiveBack(
        fault.reason,
        fault=True,
        blame=fault.blame,
        lease_state="lost" if slot_free else "ending",
    )
