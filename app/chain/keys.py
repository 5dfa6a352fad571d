"""The keys that send transactions: a keystore file here, or a signer of somebody else's.

Neither shows its key: not in text forms, errors or logs. What a signer command returns is decoded
and compared with what it was asked to sign before anything is done with it (docs/spec/
signer-command.md).
"""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from app.chain.errors import KeyRefused, TransactionMalformed
from app.chain.quantities import MalformedValue, address, data
from app.chain.transaction import MAX_RAW_BYTES, SignedTransaction, Transaction
from ledger.encoding import Address
from ledger.errors import BadPrivateKey
from ledger.signing import SigningKey

SIGN_SECONDS: Final = 30.0
MAX_FILE_BYTES: Final = 65_536
_OURS: Final = "OFFPEAK_"
"""Settings, secrets among them: none of a signer's business."""
_MAX_ANSWER_BYTES: Final = 2 * MAX_RAW_BYTES + 16


class ChainKey(Protocol):
    """A key that signs transactions of one address."""

    @property
    def address(self) -> Address:
        """Who sends what it signs."""

    async def sign(self, transaction: Transaction) -> SignedTransaction:
        """Exactly this transaction, signed by this address.

        Raises:
            KeyRefused: it did not come, or is another one.
        """


class KeystoreKey:
    """A key from a web3 v3 keystore file, held in memory."""

    __slots__ = ("_key",)

    def __init__(self, private_key: bytes) -> None:
        """Take 32 bytes; BadPrivateKey when they are no key."""
        self._key: Final = SigningKey(private_key)

    def __repr__(self) -> str:
        return f"KeystoreKey({self.address})"

    @property
    def address(self) -> Address:
        """Who sends what it signs."""
        return self._key.address

    async def sign(self, transaction: Transaction) -> SignedTransaction:
        """Exactly this transaction, signed."""
        return transaction.signed(self._key.sign(transaction.digest()))


class CommandKey:
    """A key that a program holds: the transaction on stdin, raw hex on stdout. No shell."""

    __slots__ = ("_argv", "_name", "_seconds", "address")

    def __init__(self, name: str, argv: list[str], holder: Address, seconds: float) -> None:
        """Take what `open_chain_key` made; `holder` is the address that the program named."""
        self._name: Final = name
        self._argv: Final = argv
        self._seconds: Final = seconds
        self.address: Final = holder

    def __repr__(self) -> str:
        return f"CommandKey({self.address})"

    async def sign(self, transaction: Transaction) -> SignedTransaction:
        """Exactly this transaction, signed by the program.

        Raises:
            KeyRefused: it failed, timed out, or returned anything else.
        """
        request = {"sign": transaction.message(), "address": self.address}
        answer = await _run(self._name, self._argv, request, self._seconds)
        try:
            signed = SignedTransaction.parse(data("raw transaction", answer))
        except (MalformedValue, TransactionMalformed) as error:
            raise KeyRefused(self._name, f"the signer's answer: {error}") from None
        if signed.sender != self.address:
            raise KeyRefused(self._name, f"signed by {signed.sender}, not {self.address}")
        if signed.transaction != transaction:
            raise KeyRefused(self._name, "the signer changed the transaction")
        return signed


async def open_chain_key(
    name: str, *, keystore: Path | None, password_file: Path | None, command: str
) -> ChainKey | None:
    """The key that settings name; None when they name none. `name` is for messages.

    Raises:
        KeyRefused: the keystore does not open, or the command names no address.
    """
    if keystore is not None and password_file is not None:
        return await asyncio.to_thread(open_keystore_key, name, keystore, password_file)
    if not command:
        return None
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise KeyRefused(name, f"the signer command: {error}") from None
    answer = await _run(name, argv, {"address": None}, SIGN_SECONDS)
    try:
        return CommandKey(name, argv, address("address", answer), SIGN_SECONDS)
    except MalformedValue:
        raise KeyRefused(name, "the signer names no address") from None


def open_keystore_key(name: str, keystore: Path, password_file: Path) -> KeystoreKey:
    """The key in a web3 v3 keystore; a second or so, by the keystore's own cost.

    Raises:
        KeyRefused: a file cannot be read, is no keystore, or the password does not open it.
    """
    from eth_keyfile.keyfile import decode_keyfile_json  # noqa: PLC0415  # only where one is used

    password = _read(name, password_file).rstrip(b"\r\n")
    try:
        document = json.loads(_read(name, keystore))
        return KeystoreKey(bytes(decode_keyfile_json(document, password)))
    except (ValueError, KeyError, TypeError, AttributeError, NotImplementedError, BadPrivateKey):
        # no reason: what these say may show what they read
        raise KeyRefused(name, f"{keystore} does not open with its password") from None


def _read(name: str, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise KeyRefused(name, f"{path}: {error.strerror}") from None
    if len(found) > MAX_FILE_BYTES:
        raise KeyRefused(name, f"{path} is over {MAX_FILE_BYTES} bytes")
    return found


async def _run(name: str, argv: list[str], request: Mapping[str, object], seconds: float) -> str:
    try:
        status, answer = await asyncio.to_thread(
            _exchange, argv, json.dumps(request).encode() + b"\n", seconds
        )
    except (OSError, ValueError, IndexError):
        raise KeyRefused(name, "the signer command cannot be run") from None
    if status is None:
        raise KeyRefused(name, f"the signer did not answer within {seconds:g} s")
    if status != 0:
        raise KeyRefused(name, f"the signer ended with status {status}")
    return answer.decode("ascii", errors="replace").strip()


def _exchange(argv: list[str], request: bytes, seconds: float) -> tuple[int | None, bytes]:
    """Run a program to its end: its status, None when it was ended for time, and its output.

    It has a process group of its own, so that whatever it started ends with it.
    """
    late = threading.Event()
    with subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if not name.startswith(_OURS)},
        start_new_session=True,
    ) as process:

        def end_late() -> None:
            late.set()
            _end(process.pid)

        timer = threading.Timer(seconds, end_late)
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):
                process.stdin.write(request)
                process.stdin.close()
            answer = process.stdout.read(_MAX_ANSWER_BYTES + 1)
            if len(answer) > _MAX_ANSWER_BYTES:
                _end(process.pid)  # no transaction is that long
            status = process.wait()
        finally:
            timer.cancel()
    return None if late.is_set() else status, answer


def _end(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
