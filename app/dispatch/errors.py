"""Errors of the channel and of attempts.

* DispatchError
  - SessionRefused (an agent's connection ends; its code goes to the agent)
  - AttemptFault (an attempt's result counts for nothing)
"""

from typing import ClassVar


class DispatchError(Exception):
    """Base of every expected failure in `app.dispatch`."""

    code: ClassVar[str]


class SessionRefused(DispatchError):
    """This connection ends; `reason` is one of the codes of `protocol.Refused`."""

    code = "session-refused"

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class AttemptFault(DispatchError):
    """What an agent delivered is not a result: unbilled, and tried elsewhere.

    `reason` is stable and goes to the lease; `blame` is False where the agent did nothing wrong.
    """

    code = "attempt-fault"

    def __init__(self, reason: str, detail: str = "", *, blame: bool = True) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail
        self.blame = blame
