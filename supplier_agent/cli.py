"""`offpeak-agent`: serve a model to a gateway; show this host's device key.

Imports nothing heavy before a command runs.
"""

import time
from pathlib import Path
from typing import Annotated

import typer

EXIT_CODES = """\
Exit codes: 0 stopped as asked; 2 wrong usage or settings; 3 key file refused; 4 release or
weights refused (wrong digest, canary failed); 130 ended by a second signal.
"""
_EXITS = {
    "": 0,
    "bad-config": 2,
    "bad-key-file": 3,
    "bad-release": 4,
    "wrong-weights": 4,
    "canary-failed": 4,
    "interrupted": 130,
}
"""By the failure's code; an empty one is success."""

app = typer.Typer(
    name="offpeak-agent",
    help=f"Rent out spare serving slots.\n\n{EXIT_CODES}",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


@app.command(
    epilog="\b\nExample: offpeak-agent run --config agent.toml --slots 2\n"
    "# Every option is also OFFPEAK_AGENT_<NAME>, and a key of the file."
)
def run(
    *,
    config: Annotated[Path | None, typer.Option(help="TOML file with the settings.")] = None,
    gateway: Annotated[str | None, typer.Option(help="Gateway's URL.")] = None,
    agent_id: Annotated[str | None, typer.Option(help="Id from registration.")] = None,
    key_file: Annotated[Path | None, typer.Option(help="Device key; made if missing.")] = None,
    release: Annotated[Path | None, typer.Option(help="release.json to serve.")] = None,
    weights: Annotated[Path | None, typer.Option(help="GGUF file to serve.")] = None,
    engine_url: Annotated[str | None, typer.Option(help="Attach to a running server.")] = None,
    deployment: Annotated[str | None, typer.Option(help="Name of this deployment.")] = None,
    region: Annotated[str | None, typer.Option(help="Where it stands.")] = None,
    capacity_class: Annotated[str | None, typer.Option(help="flexible or reclaimable.")] = None,
    ask: Annotated[str | None, typer.Option(help="Money per slot-second, decimal.")] = None,
    slots: Annotated[int | None, typer.Option(help="Concurrent sequences.")] = None,
    json_output: Json = False,
) -> None:
    """Serve until SIGTERM: stop offering, finish what runs, exit."""
    from supplier_agent import commands  # noqa: PLC0415 - heavy; --help does without

    options: dict[str, object] = {
        "gateway": gateway,
        "agent_id": agent_id,
        "key_file": key_file,
        "release": release,
        "weights": weights,
        "engine_url": engine_url,
        "deployment": deployment,
        "region": region,
        "capacity_class": capacity_class,
        "ask": ask,
        "slots": slots,
    }
    _exit(commands.run(config, options, as_json=json_output, unix_now=time.time))


@app.command(epilog="Example: offpeak-agent key --key-file ~/.config/offpeak/device.key")
def key(
    *,
    key_file: Annotated[
        Path, typer.Option(envvar="OFFPEAK_AGENT_KEY_FILE", help="Made if missing, mode 0600.")
    ],
    json_output: Json = False,
) -> None:
    """Show the public key to register; make the key first if there is none."""
    from supplier_agent import commands  # noqa: PLC0415 - heavy; --help does without

    _exit(commands.show_key(key_file, as_json=json_output))


def _exit(code: str) -> None:
    raise typer.Exit(_EXITS.get(code, 1))


def main() -> None:
    """Entry point of `offpeak-agent`."""
    app()
