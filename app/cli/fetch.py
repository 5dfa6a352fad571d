"""`offpeak fetch`: what an agent needs to serve a model release."""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.options import DEFAULT_MODEL, Json
from app.cli.output import Output

if TYPE_CHECKING:
    from app.models.release import ModelRelease

EXAMPLE = "Example: offpeak fetch smollm2-135m-instruct ~/offpeak"

Release = Annotated[str, typer.Argument(help="Model release: `offpeak models`.")]
Target = Annotated[Path, typer.Argument(help="Where its folder is made.")]


def fetch(
    release: Release = DEFAULT_MODEL, target: Target = Path(), *, as_json: Json = False
) -> None:
    """Write a release's folder and weights, for an agent to serve.

    Downloads the weights once, checks every file against its digest; safe to repeat.
    """
    from app.embedded.weights import fetched_weights  # noqa: PLC0415  # --help does without
    from app.models.catalogue import Catalogue  # noqa: PLC0415

    output = Output(as_json=as_json)
    catalogue = Catalogue()
    wanted = catalogue.get(release)
    weights = fetched_weights(wanted, os.environ, output.note)
    folder = target.expanduser() / wanted.id
    written = write_release(wanted, catalogue.folder_of(wanted), weights, folder)
    rows = [("release", str(folder / "release.json")), ("weights", str(written))]
    output.rows(dict(rows), rows)


def write_release(release: "ModelRelease", source: Path, weights: Path, folder: Path) -> Path:
    """Copy a release's document, small files and weights into `folder`; return the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [file.name for file in release.files if file != release.weights]
    for name in ("release.json", *names):
        shutil.copyfile(source / name, folder / name)
    written = folder / release.weights.name
    if not (written.exists() and written.samefile(weights)):
        draft = folder / f".{release.weights.name}.part"
        shutil.copyfile(weights, draft)
        draft.replace(written)
    return written
