"""A worker's metrics on a port of their own."""

import httpx
import pytest
from prometheus_client import CollectorRegistry, Gauge

from app.embedded.loopback import LOOPBACK, free_port
from app.kit.exposed import Exposed


def test_a_registry_is_served_while_entered_and_not_after() -> None:
    registry = CollectorRegistry()
    Gauge("offpeak_test", "A test's.", registry=registry).set(7)
    port = free_port()
    url = f"http://{LOOPBACK}:{port}/metrics"
    with Exposed(registry, LOOPBACK, port):
        assert "offpeak_test 7.0" in httpx.get(url, trust_env=False).text
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, trust_env=False)


def test_port_0_serves_nothing() -> None:
    with Exposed(CollectorRegistry(), LOOPBACK, 0) as exposed:
        assert exposed._running is None
