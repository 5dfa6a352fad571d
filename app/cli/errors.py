"""Errors of the commands themselves.

* CliError
  - BadInput, Declined, AnswerIncomplete, NoPassword, BadSettings, DevelopmentOnly
  - LedgerMismatch
"""

from typing import ClassVar


class CliError(Exception):
    """Base of every expected failure of a command; `next_step` says what to do about it."""

    code: ClassVar[str]
    next_step: str = ""


class BadInput(CliError):
    """An input file or argument cannot be used."""

    code = "bad-input"


class Declined(CliError):
    """The buyer did not confirm."""

    code = "declined"
    next_step = "nothing was signed or charged; pass --yes to skip the question"

    def __init__(self) -> None:
        super().__init__("not confirmed")


class AnswerIncomplete(CliError):
    """The answer was paid for and printed, and is not the JSON that --schema asked for."""

    code = "answer-incomplete"
    next_step = "it was charged; raise --max-tokens, or allow less in the schema"

    def __init__(self, job: str, *, reason: str) -> None:
        super().__init__(f"{job}: {reason}")


class NoPassword(CliError):
    """A password is needed and there is nobody to ask."""

    code = "no-password"
    next_step = "pass --password-file FILE or set ETH_PASSWORD to a file"

    def __init__(self) -> None:
        super().__init__("the wallet has a password and this is not a terminal")


class BadSettings(CliError):
    """The settings do not let this process run; each problem is named."""

    code = "bad-settings"
    next_step = "see docs/reference/settings.md; `offpeak check` shows the effective ones"


class DevelopmentOnly(CliError):
    """This command does not exist in production."""

    code = "development-only"
    next_step = "in production money comes from deposits only"

    def __init__(self, command: str) -> None:
        super().__init__(f"`offpeak {command}` does not exist in production settings")


class LedgerMismatch(CliError):
    """The ledger does not add up; accepts, withdrawals and payouts are stopped."""

    code = "ledger-mismatch"
    next_step = "running jobs still settle; find the cause before anything is cleared"

    def __init__(self, broken: str) -> None:
        super().__init__(f"broken rules: {broken}")
        self.broken = broken
