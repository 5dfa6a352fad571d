"""Errors of the commands themselves.

* CliError
  - BadInput, BadSchemaFile, Declined, AnswerIncomplete, NoPassword
  - BadSettings, NotUp, NotOwner, DevelopmentOnly
  - LedgerMismatch, LogMismatch, TreasuryMismatch
"""

from pathlib import Path
from typing import ClassVar


class CliError(Exception):
    """Base of every expected failure of a command; `next_step` says what to do about it."""

    code: ClassVar[str]
    next_step: str = ""


class BadInput(CliError):
    """An input file or argument cannot be used."""

    code = "bad-input"


class BadSchemaFile(CliError):
    """The gateway refuses the JSON schema of this file."""

    code = "bad-schema"
    next_step = "docs/spec/quote.md says which schemas are taken"


class NotUp(CliError):
    """This home's Postgres runs only while `offpeak up` does."""

    code = "not-up"
    next_step = "start `offpeak up` (or `make up`) first"

    def __init__(self, home: Path) -> None:
        super().__init__(f"nothing runs for {home}")


class NotOwner(CliError):
    """The database's schema can be changed by its owner only."""

    code = "not-owner"
    next_step = "set OFFPEAK_MIGRATION_DATABASE_URL to the login that owns the database"


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


class LogMismatch(CliError):
    """The receipt log is not what its records, entries and signatures make of it."""

    code = "log-mismatch"
    next_step = "stop `offpeak work`, keep the database as it is, and find the cause"

    def __init__(self, difference: str) -> None:
        super().__init__(f"first difference: {difference}")
        self.difference = difference


class TreasuryMismatch(CliError):
    """Chain and books do not agree at a final block."""

    code = "treasury-mismatch"
    next_step = "docs/how-to/respond-to-an-alarm.md; pause first if money could be leaving"
