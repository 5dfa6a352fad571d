"""What the commands of `offpeak-agent` do. Each returns a failure's code, or an empty text."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

from supplier_agent.compose import run_agent
from supplier_agent.config import load_settings
from supplier_agent.errors import AgentError
from supplier_agent.identity import load_or_create_key
from supplier_agent.logs import configure_logs


def run(
    config: Path | None,
    options: dict[str, object],
    *,
    as_json: bool,
    unix_now: Callable[[], float],
) -> str:
    """Serve until stopped."""
    configure_logs(as_json=as_json)
    try:
        run_agent(load_settings(config, options), unix_now=unix_now)
    except AgentError as error:
        return _told(error, as_json=as_json)
    except asyncio.CancelledError:
        return "interrupted"
    return ""


def show_key(key_file: Path, *, as_json: bool) -> str:
    """Print the public half of the device key, 64 hex digits."""
    try:
        public = load_or_create_key(key_file).public.hex()
    except AgentError as error:
        return _told(error, as_json=as_json)
    _print(json.dumps({"public_key": public}) if as_json else public)
    return ""


def _told(error: AgentError, *, as_json: bool) -> str:
    if as_json:
        _print(json.dumps({"error": {"code": error.code, "detail": str(error)}}))
    sys.stderr.write(f"offpeak-agent: {error} ({error.code})\n")
    return error.code


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
