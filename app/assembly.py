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
from app.chain.checks import ChainGuard
from app.chain.rpc import ChainRpc
from app.config import Settings
from app.db.engine import Database, DatabaseLimits, open_database
from app.db.migrate import head_revision
from app.dispatch.dispatcher import DispatchParts
from app.dispatch.metrics import DispatchMetrics
from app.dispatch.offers import SpeedLimits
from app.dispatch.service import DispatchNeeds, DispatchService, served_releases
from app.dispatch.work import ServedRelease, SlotSpeeds
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
from app.receipts.bundle import ReceiptService
from app.receipts.log import LogReader
from app.receipts.record import RecordSigner
from app.receipts.sequencer import LogTerms, Sequencer
from app.receipts.service import RecordService
from app.requests.service import RequestParts, RequestService, RequestTerms
from app.treasury.claims import ClaimService
from app.treasury.parts import chain_guard_of, money_of
from app.treasury.withdrawals import WithdrawalService
from app.wallets.service import WalletService
from app.wallets.signatures import WalletSignatures
from ledger.authorization import authorization_domain
from ledger.encoding import Address, Domain
from ledger.money import parse_amount
from ledger.note import NoteSigner
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
    catalogue: Catalogue
    market_loop: MarketLoop
    market: MarketService
    quotes: QuoteService
    wallets: WalletService
    withdrawals: WithdrawalService
    claims: ClaimService
    signatures: WalletSignatures
    wakes: Wakes
    waiters: JobWaiters
    records: RecordService
    receipts: ReceiptService
    log: LogReader
    dispatch: DispatchService
    admission: AdmissionService
    requests: RequestService
    readiness: ReadinessService
    chain: ChainRpc | None
    chain_guard: ChainGuard | None

    @property
    def domain(self) -> Domain:
        """The EIP-712 domain of authorizations and quotes."""
        return self.quotes.key.domain

    @property
    def token(self) -> Address:
        """The settlement token."""
        return self.wallets.token

    async def drain(self) -> None:
        """Take nothing new, and end what runs while its agents are still connected.

        Not ready at once; who waits for an answer is told where it will be; running attempts have
        `drain_seconds` to settle; agents' sockets close last. May be called again.
        """
        self.readiness.drain()
        self.waiters.release()
        await self.admission.drain()
        await self.dispatch.drain()


def build_gateway(settings: Settings) -> Gateway:
    """Return the parts of a gateway.

    Raises:
        MissingKey: a key that a gateway needs is not set.
        BadAddress, BadPrivateKey, BadCurve, ReleaseBroken: a setting or a release is not usable.
    """
    cipher = ContentCipher(settings.content_keys())
    database = database_of(settings)
    valkey = open_valkey(settings.redis_url.get_secret_value()) if settings.redis_url else None
    metrics = Metrics()
    market_loop, market = market_of(settings, database, metrics)
    ids = IdSource(now_ms=unix_ms, random_bytes=os.urandom)
    catalogue = Catalogue()
    counter = PromptCounter(catalogue, max_prompt_tokens=settings.max_prompt_tokens)
    sources = QuoteSources(catalogue, counter, market, ids, os.urandom)
    quotes = quotes_of(settings, sources)
    wakes = Wakes(valkey)
    waiters = JobWaiters(database, wakes)
    records = record_service_of(settings, database)
    parts = DispatchParts(
        database=database,
        cipher=cipher,
        wakes=wakes,
        releases=releases_of(settings, catalogue, counter),
        market=market,
        speed_limits=speed_limits(settings),
    )
    needs = dispatch_needs(settings, records, waiters, metrics, ids)
    dispatch = DispatchService(settings.replica_id, parts, needs)
    admission = admission_of(settings, database, cipher)
    money = money_of(settings, database)
    behind = (admission, market, dispatch.dispatcher, waiters, records, money.signatures)
    terms = RequestTerms(quotes.key, money.wallets.token)
    requests = RequestService(RequestParts(database, cipher, *behind), terms)
    return Gateway(
        settings=settings,
        database=database,
        valkey=valkey,
        metrics=metrics,
        catalogue=catalogue,
        market_loop=market_loop,
        market=market,
        quotes=quotes,
        wallets=money.wallets,
        withdrawals=money.withdrawals,
        claims=money.claims,
        signatures=money.signatures,
        wakes=wakes,
        waiters=waiters,
        records=records,
        receipts=ReceiptService(database, record_signer_of(settings), cipher, token=terms.token),
        log=LogReader(database),
        dispatch=dispatch,
        admission=admission,
        requests=requests,
        readiness=ReadinessService(database, valkey, head=head_revision()),
        chain=money.chain,
        chain_guard=chain_guard_of(settings, money.chain),
    )


def quotes_of(settings: Settings, sources: QuoteSources) -> QuoteService:
    """Return what makes and checks quotes.

    Raises:
        MissingKey, BadPrivateKey: the signing key is not set or is none.
    """
    key = SigningKey(settings.signing_key_bytes())
    return QuoteService(sources, quote_terms(settings), key=key)


def dispatch_needs(
    settings: Settings,
    records: RecordService,
    waiters: JobWaiters,
    metrics: Metrics,
    ids: IdSource,
) -> DispatchNeeds:
    """Return what running and settling attempts needs besides its parts."""
    return DispatchNeeds(
        records=records,
        waiters=waiters,
        metrics=DispatchMetrics(metrics.registry),
        ids=ids,
        settle_queue_length=settings.settle_queue_length,
        drain_seconds=settings.drain_seconds,
    )


def record_service_of(settings: Settings, database: Database) -> RecordService:
    """Return what signs usage records.

    Raises:
        MissingKey: the record key is not set.
    """
    return RecordService(database, record_signer_of(settings))


def record_signer_of(settings: Settings) -> RecordSigner:
    """Return the key that signs usage records, with their domain.

    Raises:
        MissingKey: the record key is not set.
    """
    return RecordSigner(settings.signing_key_bytes(), record_domain_of(settings))


def log_terms_of(settings: Settings) -> LogTerms:
    """Return who the receipt log is.

    Raises:
        MissingKey: the record key or the checkpoint key is not set.
    """
    return LogTerms(
        signer=NoteSigner(settings.log_origin, settings.checkpoint_key_bytes()),
        record_key=SigningKey(settings.signing_key_bytes()).address,
        record_domain=record_domain_of(settings),
    )


def build_sequencer(settings: Settings, database: Database) -> Sequencer:
    """Return what seals records and signs the log.

    Raises:
        MissingKey: see `log_terms_of`.
    """
    return Sequencer(database, log_terms_of(settings), settings.seal_batch_limit)


def record_domain_of(settings: Settings) -> Domain:
    """Return the EIP-712 domain of usage records."""
    return usage_record_domain(
        chain_id=settings.chain_id, receipt_anchor=lower_address(settings.receipt_anchor_address)
    )


def market_of(
    settings: Settings, database: Database, metrics: Metrics
) -> tuple[MarketLoop, MarketService]:
    """Return the view of offers and prices, and the loop that keeps it fresh."""
    rules = price_rules(settings)
    stale = timedelta(seconds=settings.price_stale_seconds)
    loop = MarketLoop(
        database, rules, stale=stale, watch=lambda snapshot: show_slots(snapshot, metrics)
    )
    return loop, MarketService(loop, rules, stale=stale, monotonic=time.monotonic)


def releases_of(
    settings: Settings, catalogue: Catalogue, counter: PromptCounter
) -> dict[str, ServedRelease]:
    """Return what agents may serve, and how the tokens of their answers are counted."""
    return served_releases(
        catalogue,
        lambda release: counter.tokenizer(release).count_text,
        speed_limits(settings).prior,
    )


def quote_terms(settings: Settings) -> QuoteTerms:
    """Return what every quote is bound to."""
    return QuoteTerms(
        domain=authorization_domain(
            chain_id=settings.chain_id, treasury=lower_address(settings.treasury_address)
        ),
        token=lower_address(settings.token_address),
        expiry=timedelta(seconds=settings.quote_expiry_seconds),
        max_prompt_tokens=settings.max_prompt_tokens,
        min_run_seconds=settings.run_seconds_min,
        max_run_seconds=settings.run_seconds_max,
    )


def admission_of(settings: Settings, database: Database, cipher: ContentCipher) -> AdmissionService:
    """Return what books accepted quotes, in batches."""
    terms = AcceptTerms(
        asset=lower_address(settings.token_address),
        max_open_jobs=settings.open_jobs_per_wallet,
        retention=timedelta(seconds=settings.retention_seconds),
    )
    limits = BatchLimits(queue_length=settings.accept_queue_length)
    return AdmissionService(database, cipher, terms=terms, limits=limits)


def build_price_point_loop(settings: Settings, database: Database) -> PricePointLoop:
    """Return the worker's loop that stores price points."""
    return PricePointLoop(
        database, price_rules(settings), interval_seconds=settings.price_point_interval_seconds
    )


def database_of(settings: Settings) -> Database:
    """Return a lazy pool under the restricted role."""
    return open_database(
        settings.database_url.get_secret_value(),
        pool_size=settings.database_pool_size,
        limits=DatabaseLimits(
            connect=settings.database_connect_seconds,
            statement=settings.database_statement_seconds,
            lock=settings.database_lock_seconds,
            idle_in_transaction=settings.database_statement_seconds,
        ),
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
        curve=Curve.of(settings.price_curve),
        window=timedelta(seconds=settings.floor_window_seconds),
        cost_age=timedelta(seconds=settings.floor_refresh_seconds),
    )


def speed_limits(settings: Settings) -> SpeedLimits:
    """Return what agents may claim of their speeds."""
    prior = SlotSpeeds(
        settings.prior_prefill_tokens_per_second, settings.prior_decode_tokens_per_second
    )
    return SpeedLimits(prior, settings.slowest_speed_ppm)


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
