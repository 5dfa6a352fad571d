"""What settings may not be: malformed keys, curves that fall, development values in production."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from pydantic import SecretStr

SECRET_FILES = ("signing_key", "content_key", "checkpoint_key")
"""Secrets that may be given as a file."""
CONTRACT_ADDRESSES = ("token_address", "treasury_address", "receipt_anchor_address")
GATEWAY_KEYS = ("signing_key", "content_key")
"""What every process of production needs; only the worker may hold the checkpoint key."""
ORDERED = (("wait_default_seconds", "wait_max_seconds"), ("run_seconds_min", "run_seconds_max"))
"""Settings of which the first is at most the second."""
DEVELOPMENT_ORIGIN = "localhost/offpeak-receipts"
DEVELOPMENT_CHAIN_IDS = frozenset({1_337, 31_337})
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
KEY = re.compile(r"(0x)?[0-9a-fA-F]{64}")
SECRET_FILE_LIMIT = 4_096
PLACEHOLDER_LIMIT = 1 << 64
FULL_LOAD_PPM = 1_000_000

WELL_KNOWN_KEYS = frozenset(
    {
        "59891c96881dfbcf",
        "bca4c2c0761d850f",
        "193ae84c4c9567c2",
        "e25a680eff8baac7",
        "6718ba8966161cc8",
        "ac29b3735d1b5718",
        "93e372c67f7238fa",
        "59ad99d565557cc0",
        "2d1831e800ec18fe",
        "25061aad2bb09178",
    }
)
"""First 16 hex digits of SHA-256 of the keys that development chains publish."""


class ConfigError(Exception):
    """Base of every expected failure of the settings."""

    code: ClassVar[str]


class MissingKey(ConfigError):
    """A key that this process needs is not set."""

    code = "missing-key"

    def __init__(self, name: str) -> None:
        super().__init__(f"set OFFPEAK_{name.upper()} or OFFPEAK_{name.upper()}_FILE")
        self.name = name


def is_log_origin(text: str) -> bool:
    """Return whether a text can name a log (C2SP signed-note, key names)."""
    return text.isprintable() and "+" not in text and not any(one.isspace() for one in text)


def placeholder_address(number: int) -> str:
    """Return an address that stands in for a contract until there is one."""
    return f"0x{number:040x}"


def is_placeholder_address(address: str) -> bool:
    """Return whether an address is too small a number to be a real contract's."""
    return int(address, 16) < PLACEHOLDER_LIMIT


def is_local_url(url: str) -> bool:
    """Return whether a URL cannot be a public one: no TLS, loopback or an example host."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    local = host in {"", "localhost", "::1"} or host.startswith("127.")
    return parts.scheme != "https" or local or host.endswith((".example", "example.com"))


def url_problems(urls: Sequence[str], *, production: bool) -> Iterator[str]:
    """Yield what is wrong with the chain's URLs, by place: they may hold keys.

    Production asks over TLS, or a node (or a tunnel's end) on its own machine: who can change
    answers on the way can invent deposits.
    """
    for place, url in enumerate(urls):
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme not in {"http", "https"} or not host:
            yield f"rpc_urls[{place}] is not an http or https URL"
        elif production and parts.scheme == "http" and host not in LOOPBACK_HOSTS:
            yield f"rpc_urls[{place}] must be https, or on this machine"


def url_list(secret: SecretStr | None) -> list[str]:
    """Return the URLs of a list with commas, in its order."""
    held = secret.get_secret_value() if secret is not None else ""
    return [url.strip() for url in held.split(",") if url.strip()]


CHAIN_KEY_PARTS = ("keystore", "password_file", "signer_command")


def chain_key_problems(
    key: str, keystore: Path | None, password: Path | None, command: str
) -> Iterator[str]:
    """Yield why a chain key is neither a keystore with its password nor a command."""
    if (keystore is None) != (password is None):
        yield f"{key}_keystore and {key}_password_file belong together"
    if keystore is not None and command:
        yield f"{key}_keystore and {key}_signer_command: only one may be set"


def read_secret(path: Path) -> SecretStr:
    """Return a secret file's text without its last line break.

    Raises:
        ValueError: it cannot be read or is far too long to be keys. Pydantic reports it.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(SECRET_FILE_LIMIT + 1)
    except OSError as error:
        raise ValueError(f"secret file {path}: {error.strerror}") from None
    if len(raw) > SECRET_FILE_LIMIT:
        raise ValueError(f"secret file {path} is over {SECRET_FILE_LIMIT} bytes")
    return SecretStr(raw.decode("ascii", errors="replace").strip())


def key_lines(secret: SecretStr) -> list[bytes]:
    """Return the 32-byte keys of a secret, one a line; empty when any line is malformed."""
    lines = [line.strip() for line in secret.get_secret_value().splitlines() if line.strip()]
    if not lines or not all(KEY.fullmatch(line) for line in lines):
        return []
    keys = [bytes.fromhex(line.removeprefix("0x")) for line in lines]
    return keys if all(any(key) for key in keys) else []


def key_problems(name: str, held: SecretStr | None) -> Iterator[str]:
    """Yield what is wrong with the form of a secret that is set."""
    if held is not None and not key_lines(held):
        yield f"{name} must be 64 hex digits, not zero"


def production_key_problems(name: str, held: SecretStr | None) -> Iterator[str]:
    """Yield why production refuses a secret."""
    if held is None:
        if name in GATEWAY_KEYS:
            yield f"{name} is not set"
    elif any(is_development_key(key) for key in key_lines(held)):
        yield f"{name} is a development key"


def required_keys(name: str, secret: SecretStr | None) -> list[bytes]:
    """Return the keys of a secret that must be there.

    Raises:
        MissingKey: it is not set.
    """
    if secret is None:
        raise MissingKey(name)
    return key_lines(secret)


def is_development_key(key: bytes) -> bool:
    """Return whether a key is published, a small number, or one or two bytes repeated."""
    digest = hashlib.sha256(key).hexdigest()[:16]
    return digest in WELL_KNOWN_KEYS or not any(key[:16]) or len(set(key)) <= 2


def curve_problems(curve: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield what is wrong with a price curve; source: the design's section "Price"."""
    loads = [load for load, _ in curve]
    factors = [factor for _, factor in curve]
    if len(curve) < 2 or loads[0] != 0 or loads[-1] != FULL_LOAD_PPM:
        yield "price_curve must run from load 0 to load 1000000"
    if any(later <= earlier for earlier, later in pairwise(loads)):
        yield "price_curve loads must rise"
    if any(later < earlier for earlier, later in pairwise(factors)):
        yield "price_curve factors must not fall"


def described_value(value: object) -> str:
    """Return a setting as text; of a secret URL only scheme, host, port and path are shown."""
    if not isinstance(value, SecretStr):
        return "" if value is None else str(value)
    parts = urlsplit(value.get_secret_value())
    if not parts.scheme or not parts.hostname:
        return "(set)"
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://(hidden)@{parts.hostname}{port}{parts.path}"


def described_hosts(urls: Sequence[str]) -> str:
    """Return the hosts of URLs whose path is often the key itself."""
    return ", ".join(urlsplit(url).hostname or "?" for url in urls)
