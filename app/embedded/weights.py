"""Getting a release's weights, with a line for each slow stage."""

from collections.abc import Callable, Mapping
from pathlib import Path

from app.models.release import ModelRelease
from app.models.weights import cache_folder, fetch_weights

Say = Callable[[str], None]
"""Takes one line of progress."""


def fetched_weights(release: ModelRelease, environ: Mapping[str, str], say: Say) -> Path:
    """Return the checked weights in the cache that `environ` names; see `fetch_weights`."""
    told: set[str] = set()

    def progress(stage: str, done: int, total: int) -> None:
        if stage != "verify" and stage not in told:
            told.add(stage)
            size = f" ({total / 1e6:.0f} MB, once)" if total else ""
            say(f"weights: {stage}{size}")
        del done

    return fetch_weights(release, cache_folder(environ), progress)
