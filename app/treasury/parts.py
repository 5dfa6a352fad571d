"""From settings to the parts of the treasury that gateways and workers hold; opens nothing."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from app.chain.artifacts import load_artifact
from app.chain.checks import ChainGuard, chain_terms
from app.chain.endpoint import RpcLimits
from app.chain.rpc import ChainRpc, open_rpc
from app.config import Settings
from app.db.engine import TREASURY_ROLE, Database, DatabaseLimits, open_database
from app.kit.clock import unix_ms
from app.kit.ids import IdSource
from app.treasury.chain_view import ChainView, TreasuryPlace
from app.treasury.claims import ClaimService
from app.treasury.events import OurContracts
from app.treasury.status import Kind
from app.treasury.status_reader import StatusTerms
from app.treasury.transaction import Rules
from app.treasury.watcher import WatcherTerms
from app.treasury.withdrawal import WithdrawalTerms
from app.treasury.withdrawals import WithdrawalService
from app.wallets.contract_wallets import ContractWallets
from app.wallets.heads import ChainHeads
from app.wallets.probe import HEADS_APART, ContractProbe
from app.wallets.service import WalletService
from app.wallets.signatures import WalletSignatures
from ledger.authorization import authorization_domain
from ledger.encoding import Address
from ledger.money import parse_amount

WEI_PER_GWEI = 10**9
WEI_PER_NANO = 10**9
"""Of a native coin: it has 18 decimals."""
REBROADCAST_SECONDS = 10
POOL_SIZE = 16
"""Each loop may hold a lock's connection for a whole round."""


@dataclass(frozen=True, slots=True)
class MoneyParts:
    """What of a gateway knows wallets and their chain."""

    chain: ChainRpc | None
    signatures: WalletSignatures
    wallets: WalletService
    withdrawals: WithdrawalService
    claims: ClaimService


def money_of(settings: Settings, database: Database) -> MoneyParts:
    """Return what shows wallets' money, takes it back, and checks who signed."""
    chain = chain_of(settings)
    heads = None if chain is None else ChainHeads(chain, monotonic=time.monotonic)
    signatures = signatures_of(settings, database, chain)
    return MoneyParts(
        chain=chain,
        signatures=signatures,
        wallets=WalletService(
            database,
            token=Address(settings.token_address.lower()),
            safe_limit=parse_amount(settings.deposit_safe_limit),
            heads=heads,
        ),
        withdrawals=withdrawals_of(settings, database, chain, heads, signatures),
        claims=claims_of(settings, database, signatures),
    )


def chain_of(settings: Settings) -> ChainRpc | None:
    """Return the chain's nodes, None when none are set."""
    if not settings.rpc_url_list:
        return None
    limits = RpcLimits(log_blocks=settings.log_range_blocks)
    return open_rpc(settings.rpc_url_list, limits, expected_chain_id=settings.chain_id)


def signatures_of(
    settings: Settings, database: Database, chain: ChainRpc | None
) -> WalletSignatures:
    """Return what checks wallets' signatures; contract wallets' only where there is a chain."""
    if chain is None:
        return WalletSignatures()
    # a development chain stands still while nobody uses it
    max_age = None if settings.is_development else HEADS_APART
    probe = ContractProbe(chain, load_artifact("SignatureProbe").bytecode, max_age=max_age)
    return WalletSignatures(ContractWallets(probe, database, monotonic=time.monotonic))


def chain_guard_of(settings: Settings, chain: ChainRpc | None) -> ChainGuard | None:
    """Return what compares the settings with the chain."""
    if chain is None:
        return None
    terms = chain_terms(settings)
    return ChainGuard(chain, terms, retry_seconds=settings.chain_poll_seconds)


def treasury_database_of(settings: Settings) -> Database:
    """Return a lazy pool under the treasury's role."""
    return open_database(
        settings.treasury_url,
        pool_size=POOL_SIZE,
        role=TREASURY_ROLE,
        limits=DatabaseLimits(
            connect=settings.database_connect_seconds,
            statement=settings.database_statement_seconds,
            lock=settings.database_lock_seconds,
            idle_in_transaction=settings.database_statement_seconds,
        ),
    )


def rules_of(settings: Settings) -> Rules:
    """Return how patient and how generous senders are."""
    return Rules(
        replace_after=timedelta(seconds=settings.replace_after_seconds),
        rebroadcast_after=timedelta(seconds=REBROADCAST_SECONDS),
        fee_cap=settings.max_fee_gwei * WEI_PER_GWEI,
    )


def place_of(settings: Settings) -> TreasuryPlace:
    """Return where money goes in and out."""
    return TreasuryPlace(
        chain_id=settings.chain_id,
        treasury=Address(settings.treasury_address.lower()),
        receipt_anchor=Address(settings.receipt_anchor_address.lower()),
        deposit_safe_limit=parse_amount(settings.deposit_safe_limit),
    )


def watcher_terms(settings: Settings) -> WatcherTerms:
    """Return what is watched, and when deposits count."""
    place = place_of(settings)
    return WatcherTerms(
        chain_id=place.chain_id,
        contracts=OurContracts(
            token=Address(settings.token_address.lower()),
            treasury=place.treasury,
            anchor=place.receipt_anchor,
        ),
        first_block=settings.treasury_first_block,
        range_blocks=settings.log_range_blocks,
        safe_limit=place.deposit_safe_limit,
    )


def withdrawals_of(
    settings: Settings,
    database: Database,
    rpc: ChainRpc | None,
    heads: ChainHeads | None,
    signatures: WalletSignatures,
) -> WithdrawalService:
    """Return what takes withdrawals."""
    place = place_of(settings)
    return WithdrawalService(
        database=database,
        signatures=signatures,
        view=ChainView(rpc, parse_amount(settings.gas_token_price), time.monotonic),
        terms=WithdrawalTerms(
            token=Address(settings.token_address.lower()),
            minimum=parse_amount(settings.withdrawal_minimum),
        ),
        domain=authorization_domain(chain_id=place.chain_id, treasury=place.treasury),
        ids=new_ids(),
        heads=heads,
    )


def status_terms(settings: Settings, keys: Sequence[Address] = ()) -> StatusTerms:
    """Return what the treasury's status compares; `keys` are the addresses that send."""
    return StatusTerms(
        chain_id=settings.chain_id,
        treasury=Address(settings.treasury_address.lower()),
        token=Address(settings.token_address.lower()),
        keys=tuple(keys),
        gas_low=parse_amount(settings.gas_low) * WEI_PER_NANO,
        intervals={
            Kind.COMMIT: timedelta(seconds=settings.commit_interval_seconds),
            Kind.ANCHOR: timedelta(seconds=settings.anchor_interval_seconds),
        },
    )


def claims_of(settings: Settings, database: Database, signatures: WalletSignatures) -> ClaimService:
    """Return what takes claims of plain transfers."""
    place = place_of(settings)
    return ClaimService(
        database=database,
        signatures=signatures,
        domain=authorization_domain(chain_id=place.chain_id, treasury=place.treasury),
        ids=new_ids(),
        minimum=parse_amount(settings.withdrawal_minimum),
    )


def new_ids() -> IdSource:
    """Return a source of ids."""
    return IdSource(now_ms=unix_ms, random_bytes=os.urandom)
