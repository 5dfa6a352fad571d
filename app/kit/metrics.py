"""Prometheus metrics of one process. No label names a wallet or a job."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300)
BATCH = (1, 2, 5, 10, 20, 50, 100, 200)


class Metrics:
    """What a gateway or worker counts, in a registry of its own."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "offpeak_http_requests",
            "Finished HTTP requests.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "offpeak_http_request_seconds",
            "Time from the request's first byte to the response's last.",
            ("route",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.refusals = Counter(
            "offpeak_refusals", "Typed errors answered, by code.", ("code",), registry=self.registry
        )
        self.batch_size = Histogram(
            "offpeak_batch_size",
            "Items per call of a micro-batcher.",
            ("batcher",),
            buckets=BATCH,
            registry=self.registry,
        )
        self.offered_slots = Gauge(
            "offpeak_offered_slots",
            "Slots on fresh offer.",
            ("release", "region"),
            registry=self.registry,
        )
        self.occupied_slots = Gauge(
            "offpeak_occupied_slots",
            "Slots of fresh offers that are taken.",
            ("release", "region"),
            registry=self.registry,
        )

    def exposition(self) -> bytes:
        """Return the text form that Prometheus scrapes."""
        return generate_latest(self.registry)
