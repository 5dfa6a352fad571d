"""From settings to the parts that gateway and worker are made of. Opens no connection."""

import os
import time
from dataclasses import dataclass
from datetime import timedelta

from redis.asyncio import Redis

from app.admission.repository import AcceptTerms
from app.admission.service import AdmissionService
from app.capacity.costs import PriorCost
from app.capacity.loop import MarketLoop, PricePointLoop, PriceRules
from app.capacity.market import MarketSnapshot
from app.capacity.service import MarketService
from app.config import Settings
from app.db.engine import Database, open_database
from app.db.migrate import head_revision
from app.dispatch.dispatcher import DispatchParts
from app.dispatch.metrics import DispatchMetrics
from app.dispatch.service import DispatchNeeds, DispatchService, served_releases
from app.jobs.waiters import JobWaiters
from app.kit.batcher import BatchLimits
from app.kit.cipher import ContentCipher
from app.kit.clock import unix_ms
from app.kit.ids import IdSource
from app.kit.metrics import Metrics
from app.kit.valkey import open_valkey
from app.kit.wakes import Wakes
from app.models.catalogue import Catalogue
from app.operations.service import ReadinessService
from app.quotes.service import PromptCounter, QuoteService, QuoteSources, QuoteTerms
from app.receipts.record import RecordSigner
from app.receipts.service import RecordService
from app.requests.service import RequestParts, RequestService, RequestTerms
from app.wallets.service import WalletService
from ledger.authorization import authorization_domain
from ledger.encoding import Address, Domain
from ledger.money import parse_amount
from ledger.signing import SigningKey
from ledger.usage import usage_record_domain
from pricing.curve import Curve


@dataclass(frozen=True, slots=True)
class Gateway:
    """Everything one gateway process holds."""

    settings: Settings
    database: Database
    valkey: Redis | None
    metrics: Metrics
    domain: Domain
    key: SigningKey
    cipher: ContentCipher
    ids: IdSource
    catalogue: Catalogue
    counter: PromptCounter
    market_loop: MarketLoop
    market: MarketService
    quotes: QuoteService
    wallets: WalletService
    wakes: Wakes
    waiters: JobWaiters
    records: RecordService
    dispatch: DispatchService
    admission: AdmissionService
    requests: RequestService
    readiness: ReadinessService

    async def drain(self, *, timeout_seconds: float) -> None:
        """Say not ready, accept nothing more, and let what runs here end.

        The agents stay connected meanwhile; what is left after the time is handed over by closing.
        """
        self.readiness.drain()
        await self.admission.drain()
        await self.dispatch.dispatcher.finish(timeout_seconds=timeout_seconds)

    @property
    def token(self) -> Address:
        """The settlement token."""
        return self.wallets.token


def build_gateway(settings: Settings) -> Gateway:
    """Return the parts of a gateway.

    Raises:
        MissingKey: a key that a gateway needs is not set.
        BadAddress, BadPrivateKey, BadCurve, ReleaseBroken: a setting or a release is not usable.
    """
    key = SigningKey(settings.signing_key_bytes())
    cipher = ContentCipher(settings.content_keys())
    database = database_of(settings)
    valkey = open_valkey(settings.redis_url.get_secret_value()) if settings.redis_url else None
    domain = domain_of(settings)
    rules = price_rules(settings)
    metrics = Metrics()
    market_loop = MarketLoop(
        database,
        fresh=timedelta(seconds=settings.fresh_seconds),
        watch=lambda snapshot: show_slots(snapshot, metrics),
    )
    market = MarketService(
        market_loop,
        rules,
        stale=timedelta(seconds=settings.price_stale_seconds),
        monotonic=time.monotonic,
    )
    ids = IdSource(now_ms=unix_ms, random_bytes=os.urandom)
    catalogue = Catalogue()
    counter = PromptCounter(catalogue, max_prompt_tokens=settings.max_prompt_tokens)
    token = lower_address(settings.token_address)
    terms = QuoteTerms(
        domain=domain,
        token=token,
        expiry=timedelta(seconds=settings.quote_expiry_seconds),
        max_prompt_tokens=settings.max_prompt_tokens,
        max_run_seconds=settings.run_seconds_max,
    )
    sources = QuoteSources(catalogue, counter, market, ids, os.urandom)
    wakes = Wakes(valkey)
    waiters = JobWaiters(database, wakes)
    records = record_service_of(settings, database)
    dispatch = DispatchService(
        settings.replica_id,
        DispatchParts(
            database=database,
            cipher=cipher,
            wakes=wakes,
            releases=served_releases(
                catalogue, lambda release: counter.tokenizer(release).count_text
            ),
        ),
        DispatchNeeds(
            records=records,
            waiters=waiters,
            metrics=DispatchMetrics(metrics.registry),
            ids=ids,
            settle_queue_length=settings.settle_queue_length,
            drain_seconds=settings.drain_seconds,
        ),
    )
    admission = AdmissionService(
        database,
        cipher,
        terms=AcceptTerms(
            asset=token,
            max_open_jobs=settings.open_jobs_per_wallet,
            retention=timedelta(seconds=settings.retention_seconds),
        ),
        limits=BatchLimits(queue_length=settings.accept_queue_length),
    )
    requests = RequestService(
        RequestParts(database, cipher, admission, market, dispatch.dispatcher, waiters, records),
        RequestTerms(quote_signer=key.address, domain=domain, token=token),
    )
    return Gateway(
        settings=settings,
        database=database,
        valkey=valkey,
        metrics=metrics,
        domain=domain,
        key=key,
        cipher=cipher,
        ids=ids,
        catalogue=catalogue,
        counter=counter,
        market_loop=market_loop,
        market=market,
        quotes=QuoteService(sources, terms, key=key),
        wallets=WalletService(database, token=token),
        wakes=wakes,
        waiters=waiters,
        records=records,
        dispatch=dispatch,
        admission=admission,
        requests=requests,
        readiness=ReadinessService(database, valkey, head=head_revision()),
    )


def record_service_of(settings: Settings, database: Database) -> RecordService:
    """Return what signs usage records.

    Raises:
        MissingKey: the record key is not set.
    """
    domain = usage_record_domain(
        chain_id=settings.chain_id, receipt_anchor=lower_address(settings.receipt_anchor_address)
    )
    return RecordService(database, RecordSigner(settings.signing_key_bytes(), domain))


def build_price_point_loop(settings: Settings, database: Database) -> PricePointLoop:
    """Return the worker's loop that stores price points."""
    return PricePointLoop(
        database, price_rules(settings), interval_seconds=settings.price_point_interval_seconds
    )


def database_of(settings: Settings) -> Database:
    """Return a lazy pool under the restricted role."""
    return open_database(
        settings.database_url.get_secret_value(), pool_size=settings.database_pool_size
    )


def domain_of(settings: Settings) -> Domain:
    """Return the EIP-712 domain of authorizations and quotes."""
    return authorization_domain(
        chain_id=settings.chain_id, treasury=lower_address(settings.treasury_address)
    )


def price_rules(settings: Settings) -> PriceRules:
    """Return the configured part of every price."""
    return PriceRules(
        prior=PriorCost(
            input_tokens=settings.prior_input_tokens,
            output_tokens=settings.prior_output_tokens,
            prefill_tokens_per_second=settings.prior_prefill_tokens_per_second,
            decode_tokens_per_second=settings.prior_decode_tokens_per_second,
            ask=parse_amount(settings.prior_ask),
            overhead=parse_amount(settings.prior_overhead),
        ),
        margin_ppm=settings.price_margin_ppm,
        curve=Curve(version=settings.price_curve_version, points=settings.price_curve),
        window=timedelta(seconds=settings.floor_window_seconds),
        cost_age=timedelta(seconds=settings.floor_refresh_seconds),
    )


def show_slots(snapshot: MarketSnapshot, metrics: Metrics) -> None:
    """Set the slot gauges to the latest view."""
    for market in snapshot.markets:
        offered = market.offer.offered if market.offer else 0
        occupied = market.offer.occupied if market.offer else 0
        metrics.offered_slots.labels(market.release, market.region).set(offered)
        metrics.occupied_slots.labels(market.release, market.region).set(occupied)


def lower_address(text: str) -> Address:
    """Return a configured address in internal form; Settings has checked its shape."""
    return Address(text.lower())
