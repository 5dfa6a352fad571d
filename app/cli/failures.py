"""Any exception as one line, one next step and one exit code."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from app.cli.exits import BY_CODE, Exit
from app.client.errors import NEXT_STEPS as OF_REFUSALS

UNEXPECTED_STEP = "run again with --debug for the traceback"
_SHOWN = 400
NEXT_STEPS: Final[Mapping[str, str]] = {
    **OF_REFUSALS,
    "home-in-use": "`offpeak up` runs there already: use it, stop it, or name another --home",
    "supplier-not-found": "see `offpeak supplier list`",
    "supplier-exists": "see `offpeak supplier list`; one agent's key belongs to one supplier",
    "malformed-id": "ids have a prefix and a UUID, as they are printed: job_..., sup_...",
    "bad-amount": "a decimal number with at most nine decimals: 0.001",
}
"""What to do about a failure that does not say it itself, by its code."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What a user is told."""

    code: str
    detail: str
    next_step: str
    exit: Exit

    def document(self) -> dict[str, object]:
        """Return it as `--json` shows it, on stderr."""
        return {
            "error": {
                "code": self.code,
                "detail": self.detail,
                "next_step": self.next_step,
                "exit": int(self.exit),
            }
        }


def describe(error: BaseException) -> Failure:
    """Return what to tell about an exception.

    Expected failures are known by their `code`, wherever they come from, so that no package has
    to be imported to tell.
    """
    if isinstance(error, KeyboardInterrupt):
        return Failure("interrupted", "stopped", "", Exit.INTERRUPTED)
    if type(error).__module__.startswith("pydantic"):
        return Failure("bad-settings", "; ".join(_problems(error)), _SETTINGS_STEP, Exit.SETTINGS)
    code = getattr(error, "code", None)
    if type(error).__name__ == "DatabaseUnavailable":  # ours, not what a gateway says
        cause = error.__cause__ or error
        return Failure("database-unreachable", _line(cause), _DATABASE_STEP, Exit.UNREACHABLE)
    if isinstance(code, str) and not type(error).__module__.startswith("sqlalchemy"):
        step = getattr(error, "next_step", "") or NEXT_STEPS.get(code, "") or _last_words(error)
        usual = Exit.REFUSED if hasattr(error, "figures") else Exit.FAILED  # the gateway said no
        return Failure(code, _line(error), str(step), BY_CODE.get(code, usual))
    return _of_others(error)


def _of_others(error: BaseException) -> Failure:
    """Return what to tell about an exception that has no code."""
    if isinstance(error, OSError) and error.filename is not None:
        detail = f"{error.filename}: {error.strerror}"
        return Failure("file-unusable", detail, _FILE_STEP, Exit.USAGE)
    if type(error).__name__ in {"OperationalError", "InterfaceError"}:
        return Failure("database-unreachable", _line(error), _DATABASE_STEP, Exit.UNREACHABLE)
    return Failure(
        "unexpected", f"{type(error).__name__}: {_line(error)}", UNEXPECTED_STEP, Exit.FAILED
    )


_DATABASE_STEP = (
    "check OFFPEAK_DATABASE_URL and that Postgres runs (for this machine's all-in-one: `make up`)"
)
_FILE_STEP = "name a file that exists and may be read, or a folder that may be written"
_SETTINGS_STEP = (
    "set it in the environment (OFFPEAK_...): docs/reference/settings.md; to try things out on this"
    " machine, start `offpeak up` (or `make up`)"
)


def _problems(error: BaseException) -> Iterator[str]:
    errors = getattr(error, "errors", None)
    if errors is None:
        yield _line(error)
        return
    for each in errors(include_url=False, include_input=False, include_context=False):
        where = "_".join(str(part) for part in each["loc"]).upper()
        message = str(each["msg"]).removeprefix("Value error, ")
        yield f"OFFPEAK_{where}: {message}" if where else message


def _last_words(error: BaseException) -> str:
    """Return the end of the log of a process that did not start, empty for other failures."""
    lines = str(getattr(error, "log_tail", "")).strip().splitlines()
    return f"its log ends: {lines[-1][:_SHOWN]}" if lines else ""


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:_SHOWN]
