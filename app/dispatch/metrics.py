"""What dispatch counts. Labels are reasons and codes, never agents, wallets or jobs."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge


class DispatchMetrics:
    """Counters of one gateway's attempts and sessions."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.attempts = Counter(
            "offpeak_attempts", "Ended attempts, by how.", ("outcome",), registry=registry
        )
        self.jobs_failed = Counter(
            "offpeak_jobs_failed", "Jobs that ended without a result.", ("code",), registry=registry
        )
        self.unmetered = Counter(
            "offpeak_unmetered",
            "Answers without a usage: unbilled. Any increase is an alarm.",
            registry=registry,
        )
        self.flagged = Counter(
            "offpeak_recount_flags",
            "Settled answers whose text does not bear out the reported count.",
            registry=registry,
        )
        self.agent_faults = Counter(
            "offpeak_agent_faults", "Wrongs counted against agents.", registry=registry
        )
        self.sessions_ended = Counter(
            "offpeak_sessions_ended",
            "Agents' connections that ended.",
            ("code",),
            registry=registry,
        )

    def watch(self, name: str, help_text: str, value: Callable[[], float]) -> None:
        """Show a value that is read when scraped."""
        Gauge(f"offpeak_{name}", help_text, registry=self._registry).set_function(value)
