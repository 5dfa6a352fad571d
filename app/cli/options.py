"""Options that several commands share, each defined once."""

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_HOME = Path(".offpeak")
DEFAULT_MODEL = "smollm2-135m-instruct"
DEFAULT_PORT = 8700
UP_FILE = "up.json"
"""What `offpeak up` leaves in its home for the other commands: URL and terms, nothing secret."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]

Home = Annotated[
    Path,
    typer.Option(envvar="OFFPEAK_HOME", help="Where `offpeak up` keeps its data and its wallet."),
]

Url = Annotated[
    str | None,
    typer.Option(
        envvar="OFFPEAK_URL", help="Gateway. Without it: the one that `offpeak up` runs here."
    ),
]

KeystoreFile = Annotated[
    Path | None,
    typer.Option(
        "--keystore",
        envvar="ETH_KEYSTORE",
        help="Web3 v3 keystore file, or a folder that holds one.",
    ),
]

Account = Annotated[
    str | None,
    typer.Option(
        envvar="ETH_KEYSTORE_ACCOUNT",
        help="Name of a keystore in --keystore's folder or in ~/.foundry/keystores.",
    ),
]

PasswordFile = Annotated[
    Path | None,
    typer.Option(
        envvar="ETH_PASSWORD", help="File with the keystore's password; else it is asked."
    ),
]

Rpc = Annotated[
    str | None,
    typer.Option(
        "--rpc",
        envvar="OFFPEAK_RPC_URL",
        metavar="URL",
        help="JSON-RPC URL of the chain, or several with commas. Without it: the chain that"
        " `offpeak up` runs here.",
    ),
]

Mined = Annotated[
    float, typer.Option("--wait", min=1, max=86_400, help="Seconds to wait for what is sent.")
]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Sign without asking.")]

Model = Annotated[str, typer.Option(envvar="OFFPEAK_MODEL", help="Model release.")]
MaxTokens = Annotated[
    int, typer.Option(min=1, max=1_000_000, help="Ceiling of the answer, in text tokens.")
]
Region = Annotated[str | None, typer.Option(help="Where it must run; anywhere by default.")]
System = Annotated[str | None, typer.Option(help="System message.")]
Temperature = Annotated[float | None, typer.Option(min=0.0, max=2.0, help="0 is deterministic.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the sampling.")]
Schema = Annotated[Path | None, typer.Option(help="JSON schema file that the answer must satisfy.")]
Prompt = Annotated[
    str, typer.Argument(help="What to ask; - reads it from standard input.", show_default=False)
]
