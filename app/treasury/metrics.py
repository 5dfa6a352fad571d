"""The treasury's gauges, set from a status; no label names a wallet, base units where money."""

from prometheus_client import CollectorRegistry, Gauge

from app.treasury.status import TreasuryStatus
from app.treasury.watcher import WatcherHealth
from ledger.money import WEI_PER_COIN


class TreasuryMetrics:
    """What Prometheus sees of the treasury; docs/how-to/respond-to-an-alarm.md has the rules."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register every gauge, unset until the first status."""

        def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
            return Gauge(f"offpeak_treasury_{name}", text, labels, registry=registry)

        self.read_at = gauge("read_timestamp_seconds", "When the status was read last.")
        self.holds = gauge("identity_holds", "1: chain and books agree at the scanned block.")
        self.difference = gauge("difference_nano", "Tokens on chain less tokens by the books.")
        self.gap = gauge("gap_base_units", "Tokens less liability, earned and unaccounted.")
        self.events = gauge("events_missing", "The contract's count of events less ours.")
        self.block = gauge("scanned_block", "The last final block that is scanned.")
        self.tokens = gauge("tokens_base_units", "What the treasury holds, by part.", ("part",))
        self.pending = gauge("pending", "What waits, by kind.", ("kind",))
        self.age = gauge("pending_age_seconds", "How long the oldest of a kind waits.", ("kind",))
        self.nonce_gap = gauge("nonce_gap", "Signed less mined, by key.", ("sender",))
        self.gas = gauge("gas_coins", "Native coins of a sending key.", ("sender",))
        self.gas_needed = gauge("gas_needed_coins", "Native coins it needs.", ("sender",))
        self.owed = gauge("receivable_nano", "What wallets owe.")
        self.suspense = gauge("suspense_nano", "Plain transfers that nobody was credited for.")
        self.paused = gauge("paused", "1: the contract is paused.")
        self.alarms = gauge("alarms", "Alarms that are up, by name.", ("name",))
        self.watched = gauge("watch_block", "Where the chain is, by depth.", ("depth",))
        self.incomplete = gauge(
            "watch_incomplete_rounds", "Rounds in a row whose events were not all of them."
        )
        self.failed = gauge("watch_failed_rounds", "Rounds in a row that could not be ended.")
        self.unproven = gauge("watch_unproven", "Events not shown again, and not proved gone.")

    def show_watch(self, health: WatcherHealth) -> None:
        """Set the watcher's gauges."""
        for depth in ("latest", "finalized"):
            number = getattr(health, depth)
            if number is not None:
                self.watched.labels(depth).set(number)
        self.incomplete.set(health.incomplete_rounds)
        self.failed.set(health.failed_rounds)
        self.unproven.set(health.unproven)

    def show(self, status: TreasuryStatus) -> None:
        """Set every gauge to a status."""
        self.read_at.set(status.as_of.timestamp())
        self.holds.set(status.holds)
        self.difference.set(status.tokens_differ_nano)
        self.events.set(status.events_differ)
        self.owed.set(status.books.owed_nano)
        self.suspense.set(status.books.suspense_nano)
        if status.chain is not None:
            self.gap.set(status.chain.gap)
            self.block.set(status.chain.block.number)
            self.paused.set(status.chain.paused)
            for part in ("liability", "earned", "unaccounted"):
                self.tokens.labels(part).set(getattr(status.chain, part))
        for pending in status.books.pending:
            self.pending.labels(pending.kind).set(pending.count)
            self.age.labels(pending.kind).set(pending.age(status.as_of).total_seconds())
        for sender in status.senders:
            self.nonce_gap.labels(sender.address).set(sender.nonce_gap)
            self.gas.labels(sender.address).set(sender.balance_wei / WEI_PER_COIN)
            self.gas_needed.labels(sender.address).set(sender.needed_wei / WEI_PER_COIN)
        self.alarms.clear()
        for alarm in status.alarms():
            self.alarms.labels(alarm.name).inc()
