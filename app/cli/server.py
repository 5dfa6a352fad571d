"""Settings for the commands that work on a gateway's own stores."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.errors import DevelopmentOnly, NotUp
from app.cli.options import UP_FILE

if TYPE_CHECKING:
    from app.config import Settings
    from app.db.engine import Database
    from ledger.encoding import Address

SETTINGS_FILE = "settings.env"
"""`offpeak up` keeps the effective settings of its home here, mode 0600."""


def read_settings(home: Path) -> "Settings":
    """Return the settings: the environment's, completed by the home's when `up` made one.

    Raises:
        pydantic.ValidationError: something is missing or not allowed; shown as `bad-settings`.
    """
    from app.config import Settings  # noqa: PLC0415  # half a second

    path = home / SETTINGS_FILE
    return Settings(_env_file=path if path.is_file() else None)


def store_settings(home: Path) -> "Settings":
    """Return the settings for a command that opens the stores: those of the home only while up.

    Raises:
        NotUp: they are a home's, whose Postgres does not run.
        pydantic.ValidationError: as `read_settings`.
    """
    from app.kit.log import configure_logging  # noqa: PLC0415  # --help does without

    configure_logging(level="WARNING")  # or the pieces of the server would write to stdout
    settings = read_settings(home)
    if "OFFPEAK_DATABASE_URL" not in os.environ and not (home / UP_FILE).is_file():
        raise NotUp(home)
    return settings


def require_development(settings: "Settings", command: str) -> None:
    """Return in development; DevelopmentOnly anywhere else."""
    if not settings.is_development:
        raise DevelopmentOnly(command)


@asynccontextmanager
async def operator_database(home: Path) -> "AsyncGenerator[tuple[Database, Settings]]":
    """Yield the operator's database and the settings."""
    from app.db.engine import OPERATOR_ROLE, open_database  # noqa: PLC0415  # --help does without

    settings = store_settings(home)
    database = open_database(settings.operator_url, pool_size=1, role=OPERATOR_ROLE)
    try:
        yield database, settings
    finally:
        await database.dispose()


@asynccontextmanager
async def reader_database(home: Path) -> "AsyncGenerator[tuple[Database, Settings]]":
    """Yield the application's database, for commands that only read, and the settings."""
    from app.db.engine import open_database  # noqa: PLC0415  # --help does without

    settings = store_settings(home)
    database = open_database(settings.database_url.get_secret_value(), pool_size=1)
    try:
        yield database, settings
    finally:
        await database.dispose()


def sending_keys(settings: "Settings") -> "list[Address]":
    """Return the addresses that the settings' keystores name in the clear.

    A signer command's key is known once it has sent something.
    """
    from app.client.keystore import keystore_address  # noqa: PLC0415  # --help does without

    files = (settings.operator_keystore, settings.anchor_keystore)
    found = (keystore_address(path) for path in files if path is not None)
    return [address for address in found if address is not None]
