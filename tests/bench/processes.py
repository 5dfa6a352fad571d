"""The shipped programs on engines with fsync: gateway, worker, agent, and a fault engine."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from app.db.migrate import migrate
from app.embedded.postgres import EmbeddedPostgres, PostgresOptions
from app.embedded.valkey import EmbeddedValkey
from app.models.catalogue import Catalogue
from tests.acceptance.site import Site

RELEASE_FILE = (
    Catalogue().folder_of(Catalogue().get("smollm2-135m-instruct")) / "release.json"
).resolve()


@contextmanager
def open_site() -> Iterator[Site]:
    """Yield a site with nothing running but Postgres and Valkey."""
    with ExitStack() as stack:
        postgres = stack.enter_context(EmbeddedPostgres.start(PostgresOptions(fsync=True)))
        valkey = stack.enter_context(EmbeddedValkey.start())
        url = postgres.create_database("bench")
        migrate(url)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        site = stack.enter_context(Site(url, valkey.url, folder))
        yield site


@contextmanager
def open_serving_site(*, slots: int) -> Iterator[Site]:
    """Yield a site that serves, its engine answering at once; quotes last ten minutes."""
    with open_site() as site:
        site.gateway(offpeak_quote_expiry_seconds="600", offpeak_open_jobs_per_wallet="1000000")
        site.worker()
        site.engine(slots=slots)
        site.agent("agent", engine="engine", slots=slots)
        site.wait_for_slots(slots)
        yield site
