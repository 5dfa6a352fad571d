"""A clean stop is a success."""

import signal

import pytest

from tests.acceptance.site import Site


@pytest.mark.parametrize("name", ["gateway", "worker"])
def test_sigterm_ends_a_server_with_status_0(site: Site, name: str) -> None:
    site.gateway()
    if name == "worker":
        site.worker()
    process = site.processes[name]

    process.signal(signal.SIGTERM)

    assert process.wait(30) == 0
