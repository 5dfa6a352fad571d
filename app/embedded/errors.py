"""Why an engine or another supervised process did not start.

* EmbeddedError
  - BinaryMissing
  - ExecFailed
  - ExitedEarly
    - PortInUse
  - StartTimeout
  - HomeInUse
  - DataVersionMismatch
  - NodeMissing
  - NpmFailed
  - WrongChainId
"""

from pathlib import Path
from typing import ClassVar


class EmbeddedError(Exception):
    """Base of every expected failure of this package."""

    code: ClassVar[str]
    """Stable identifier of this failure."""


class BinaryMissing(EmbeddedError):
    """A server program is not installed where it was looked for."""

    code = "binary-missing"

    def __init__(self, program: str, *, looked_in: str) -> None:
        super().__init__(f"{program} was not found in {looked_in}")
        self.program = program
        self.looked_in = looked_in


class ExecFailed(EmbeddedError):
    """The operating system refused to run the program."""

    code = "exec-failed"

    def __init__(self, name: str, *, reason: str) -> None:
        super().__init__(f"{name} could not be run: {reason}")
        self.name = name
        self.reason = reason


class ExitedEarly(EmbeddedError):
    """The process ended before it was ready."""

    code = "exited-early"

    def __init__(self, name: str, *, status: int, log_tail: str) -> None:
        super().__init__(f"{name} ended with status {status} before it was ready\n{log_tail}")
        self.name = name
        self.status = status
        self.log_tail = log_tail


class PortInUse(ExitedEarly):
    """The process could not listen because somebody else holds its port."""

    code = "port-in-use"


class StartTimeout(EmbeddedError):
    """The process lives but was not ready in time; it has been stopped."""

    code = "start-timeout"

    def __init__(self, name: str, *, timeout_seconds: float, log_tail: str) -> None:
        super().__init__(f"{name} was not ready after {timeout_seconds:g} s\n{log_tail}")
        self.name = name
        self.timeout_seconds = timeout_seconds
        self.log_tail = log_tail


class HomeInUse(EmbeddedError):
    """Another running instance owns this data directory."""

    code = "home-in-use"

    def __init__(self, home: Path) -> None:
        super().__init__(f"{home} belongs to another running instance")
        self.home = home


class DataVersionMismatch(EmbeddedError):
    """The data directory was written by another major version of Postgres."""

    code = "data-version-mismatch"

    def __init__(self, home: Path, *, written_by: str, binaries: str) -> None:
        super().__init__(f"{home} was written by Postgres {written_by}, not {binaries}")
        self.home = home
        self.written_by = written_by
        self.binaries = binaries


class NodeMissing(EmbeddedError):
    """There is no development chain program, and no Node.js to install it with."""

    code = "node-missing"
    next_step = "install Node.js 20 with npm, or set OFFPEAK_ANVIL to an anvil program"

    def __init__(self) -> None:
        super().__init__("the development chain (anvil) needs node and npm on PATH")


class NpmFailed(EmbeddedError):
    """npm could not install the development chain program."""

    code = "npm-failed"
    next_step = "see that npm reaches its registry, or set OFFPEAK_ANVIL to an anvil program"

    def __init__(self, reason: str) -> None:
        super().__init__(f"npm could not install anvil: {reason}")
        self.reason = reason


class WrongChainId(EmbeddedError):
    """The development chain has another id than asked for."""

    code = "wrong-development-chain"
    next_step = "name another --home, or remove the folder `anvil` in it"

    def __init__(self, *, expected: int, found: int) -> None:
        super().__init__(f"the chain's id is {found}, not {expected}")
        self.expected = expected
        self.found = found
