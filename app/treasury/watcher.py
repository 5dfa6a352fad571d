"""The watcher: sees what happens on the chain, and books each event when its depth is reached.

A round may be cut off after any statement: events are stored and booked once each whoever does
it again, and the cursor moves last. Nothing is concluded from what is missing.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import structlog

from app.chain.blocks import Block, BlockId
from app.chain.errors import ChainError, TooManyLogs
from app.chain.rpc import ChainRpc
from app.db.engine import Database
from app.kit.clock import from_unix_seconds, utc_now
from app.treasury.errors import ChainMoved, TreasuryError
from app.treasury.events import CREDITING, EventKind, LogPlace, OurContracts
from app.treasury.scan import chain_sums, credited_to, event_counts, look_out, read_range
from app.treasury.sight import is_gone
from app.treasury.watch_repository import WatchRepository
from app.treasury.watching import (
    NOTHING_STORED,
    Outlook,
    StoredEvent,
    StoredSums,
    due_at_safe,
    gaps,
    ranges,
    rewritten,
    suspects,
)
from ledger.encoding import Address
from ledger.money import Nano

LOCK: Final = "offpeak.watcher:"
RANGES_AT_ONCE: Final = 20
"""Most ranges of blocks that one round reads."""
BOOKED_AT_ONCE: Final = 1_000
"""Most events of a depth that one round books."""
ASKED_AT_ONCE: Final = 100
"""Most blocks that one round asks for because their events were not shown again."""
COVERED_AT_ONCE: Final = 100

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatcherTerms:
    """What is watched, and when deposits count."""

    chain_id: int
    contracts: OurContracts
    first_block: int
    """No event of ours is in an earlier one."""
    range_blocks: int
    safe_limit: Nano


@dataclass(frozen=True, slots=True, kw_only=True)
class WatcherHealth:
    """How the watcher of this process stands; numbers are block numbers, None: not known yet."""

    latest: int | None = None
    finalized: int | None = None
    cursor: int | None = None
    unproven: int = 0
    """Stored events that the last round was not shown again and that are not proved to be gone."""
    incomplete_rounds: int = 0
    """Rounds in a row whose events at the final block were not all that the contract counts."""
    failed_rounds: int = 0
    """Rounds in a row that could not be ended."""
    why: str = ""
    """Of the last incomplete or failed round."""


@dataclass(slots=True)
class _Round:
    """What one round has found out so far."""

    books: WatchRepository
    rpc: ChainRpc
    """The endpoint that is read in this round."""
    outlook: Outlook
    cursor: int
    trusted: int
    """Every stored event up to this block is final and was shown before."""
    shown: set[LogPlace] = field(default_factory=set)
    unproven: list[StoredEvent] = field(default_factory=list)
    asked: int = 0
    is_doubtful: bool = False
    """Whether the events that were shown are not those that the contract counts."""

    def is_shown(self, event: StoredEvent) -> bool:
        """Whether an event may be booked as far as its block goes."""
        return event.place.block_number <= self.trusted or event.place in self.shown


@dataclass(slots=True)
class Watcher:
    """Watches one chain. Any number of workers may run one; one of them acts at a time."""

    database: Database
    """As role `offpeak_treasury`."""
    rpc: ChainRpc
    terms: WatcherTerms
    clock: Callable[[], datetime] = utc_now
    """Whose blocks are from the future; a chain of tests may have another time."""
    health: WatcherHealth = field(default_factory=WatcherHealth, init=False)
    _fewer: int = field(default=0, init=False)
    """How often the ranges that are read are halved: somebody may fill blocks with dust."""
    _turn: int = field(default=0, init=False)
    """Raised after a round that was no good: another endpoint is read next."""
    _is_doubtful: bool = field(default=False, init=False)
    """Whether the round under way has failed, or its endpoint does not show all events."""
    _clean: int | None = field(default=None, init=False)
    """A final block up to which this process has stored everything that it was shown."""
    _base: tuple[int, StoredSums] | None = field(default=None, init=False)
    """The stored sums up to a block at which they agreed with the chain."""

    async def run_once(self) -> bool:
        """Do one round; return whether everything up to the final block is stored and booked.

        False too where another worker acts, or more ranges are left than one round reads.

        Raises:
            RpcUnavailable, MalformedAnswer, ChainMoved, EndpointsDisagree: the round was given
                up where it was; what it had stored and booked stays, the next one goes on.
        """
        async with self.database.locked(f"{LOCK}{self.terms.chain_id}") as connection:
            if connection is None:
                return False
            books = WatchRepository(
                connection, chain_id=self.terms.chain_id, asset=self.terms.contracts.token
            )
            self._is_doubtful = True
            try:
                whole = await self._round(books)
            except (ChainError, TreasuryError) as error:
                self._fewer += isinstance(error, TooManyLogs)
                rounds = self.health.failed_rounds + 1
                self.health = replace(self.health, failed_rounds=rounds, why=str(error))
                raise
            finally:
                self._turn += self._is_doubtful
            self.health = replace(self.health, failed_rounds=0)
            self._fewer = max(self._fewer - 1, 0) if whole else self._fewer
            return whole

    async def _round(self, books: WatchRepository) -> bool:
        reader, outlook = await look_out(self.rpc, turn=self._turn, now=self.clock())
        at = await self._cursor(books, reader)
        trusted = max(at, at if self._clean is None else self._clean)
        look = _Round(books, reader, outlook, cursor=at, trusted=trusted)
        read_to = await self._read(look)
        final = outlook.finalized.number
        if not look.unproven and min(read_to, final) > trusted:
            self._clean = min(read_to, final)
        self.health = replace(
            self.health,
            latest=outlook.latest.number,
            finalized=final,
            cursor=at,
            unproven=len(look.unproven),
        )
        await self._book_exits(look)
        if read_to >= outlook.safe.number:
            await self._book_safe(look)
        whole = read_to >= final and await self._book_final(look)
        await books.cover_receivables(limit=COVERED_AT_ONCE)
        self._is_doubtful = look.is_doubtful or bool(look.unproven)
        return whole

    async def _cursor(self, books: WatchRepository, reader: ChainRpc) -> int:
        """Return the block after which is read: the cursor, or further back if that is gone."""
        cursor = await books.cursor()
        if cursor is None:
            return self.terms.first_block - 1
        header = await reader.block(cursor.number)
        if header is None or header.hash == cursor.hash or not await is_gone(self.rpc, cursor):
            return cursor.number
        log.critical("a final block is gone from the chain", number=cursor.number)
        self._clean = self._base = None
        for place in await books.blocks_down_from(cursor.number, limit=ASKED_AT_ONCE):
            header = await reader.block(place.number)
            if header is not None and header.hash == place.hash:
                return place.number
        return self.terms.first_block - 1

    # --- seeing ---------------------------------------------------------------------------------

    async def _read(self, look: _Round) -> int:
        """Read on towards the latest block, and return up to which everything was read."""
        parts = ranges(
            look.trusted,
            look.outlook.latest.number,
            size=max(self.terms.range_blocks >> self._fewer, 1),
            limit=RANGES_AT_ONCE,
        )
        for first, last in parts:
            stored = await look.books.between(first, last)
            known = {event.place for event in stored}
            reading = await read_range(look.rpc, self.terms.contracts, first, last, known=known)
            shown = {event.place for event in reading.events}
            await self._take_back(look, suspects(stored, shown), reading.of_deposits)
            changed = rewritten(stored, reading.events)
            for event in changed:
                await look.books.orphan(event.id)
                log.error("an event is told otherwise", id=str(event.id))
            if changed:
                raise ChainMoved(number=changed[0].place.block_number)  # read it afresh
            new = [event for event in reading.events if event.place not in known]
            added = await look.books.record(new, reading.mined_at)
            if added:
                log.info("events on chain", first=first, last=last, new=added)
            look.shown |= shown
        return parts[-1][1] if parts else look.trusted

    async def _take_back(
        self, look: _Round, missing: Sequence[StoredEvent], of_deposits: Collection[LogPlace]
    ) -> None:
        """Undo what is proved to be gone, the newest first; the rest stays as it is.

        A transfer that was taken for a plain one, since its deposit was hidden, is none.
        """
        gone: dict[BlockId, bool] = {}
        for event in missing:
            block = BlockId(event.place.block_number, event.place.block_hash)
            if event.place not in of_deposits and block not in gone and look.asked < ASKED_AT_ONCE:
                look.asked += 1
                gone[block] = await is_gone(self.rpc, block)
            if event.place in of_deposits or gone.get(block, False):
                code = await look.books.orphan(event.id)
                log.warning("an event is gone from the chain", id=str(event.id), code=code)
            else:
                look.unproven.append(event)

    # --- booking --------------------------------------------------------------------------------

    async def _book(self, look: _Round, due: Sequence[StoredEvent]) -> int:
        """Book events in their order, once each; return how many wait to be shown again.

        One that the ledger cannot hold stays as it is and holds nothing up: a person must look.
        """
        left = 0
        for event in due:
            if not look.is_shown(event):
                left += 1
            elif not event.is_bookable:
                log.error("more than the ledger can hold", id=str(event.id))
            else:
                code = await look.books.book(event.id)
                log.info("booked", kind=event.kind.value, id=str(event.id), code=code)
        return left

    async def _book_exits(self, look: _Round) -> None:
        """Close wallets that want to leave, as soon as their request is seen at all."""
        requests = await look.books.waiting(
            up_to=look.outlook.latest.number, limit=BOOKED_AT_ONCE, kind=EventKind.EXIT_REQUESTED
        )
        await self._book(look, requests)

    async def _book_safe(self, look: _Round) -> None:
        """Credit small deposits at `safe`, unless events up to there are missing or too many."""
        outlook, books = look.outlook, look.books
        final = outlook.finalized.number
        waiting = await books.waiting(
            up_to=outlook.safe.number, limit=BOOKED_AT_ONCE, kind=EventKind.DEPOSITED
        )
        credited = await books.credited_after(final)
        due = due_at_safe(
            [event for event in waiting if look.is_shown(event)],
            finalized=final,
            credited=credited,
            safe_limit=self.terms.safe_limit,
        )
        if due and await self._counts_agree(look, outlook.safe):
            await self._book(look, await self._confirmed(look, due, outlook.safe))

    async def _book_final(self, look: _Round) -> bool:
        """Book what is final, move the cursor; return whether all of it is stored and booked."""
        books, final = look.books, look.outlook.finalized
        if final.number > look.cursor and not await self._is_complete(look):
            return False
        waiting = await books.waiting(up_to=max(final.number, look.cursor), limit=BOOKED_AT_ONCE)
        due = (
            await self._confirmed(look, waiting, final) if final.number >= look.cursor else waiting
        )
        left = await self._book(look, due)
        if left or len(due) < len(waiting) or len(waiting) == BOOKED_AT_ONCE:
            return False
        if final.number >= look.cursor:
            await books.set_cursor(BlockId(final.number, final.hash))
            self.health = replace(self.health, cursor=final.number)
            await books.lapse_exits(from_unix_seconds(final.timestamp))
        return True

    async def _stored_sums(self, look: _Round, block: Block) -> StoredSums:
        number, base = self._base or (self.terms.first_block - 1, NOTHING_STORED)
        return base + await look.books.sums(after=number, up_to=block.number)

    async def _counts_agree(self, look: _Round, block: Block) -> bool:
        """Whether as many events are stored up to a block as the treasury counts there."""
        stored = await self._stored_sums(look, block)
        said = await event_counts(self.rpc, self.terms.contracts, block)
        agree = said == {stored.counted}
        if not agree:
            look.is_doubtful = True
            log.warning("counts differ", block=block.number, stored=stored.counted, chain=said)
        return agree

    async def _confirmed(
        self, look: _Round, due: Sequence[StoredEvent], block: Block
    ) -> list[StoredEvent]:
        """Return those of the events that may be booked by what every endpoint says at a block.

        Events are read from one endpoint. What it makes up for a wallet, the others' state of the
        contract does not show, so nothing of that wallet is booked. Alone it is believed.
        """
        wallets = {Address(event.payer) for event in due if event.kind in CREDITING}
        if len(self.rpc.endpoints) == 1 or not wallets:
            return list(due)
        stored = await look.books.deposited(wallets, up_to=block.number)
        doubted = set()
        for wallet in sorted(wallets):
            said = await credited_to(self.rpc, self.terms.contracts, wallet, block)
            if said != {stored.get(wallet, 0)}:
                doubted.add(wallet)
                log.error(
                    "deposits differ", wallet=wallet, stored=stored.get(wallet, 0), chain=said
                )
        if doubted:
            look.is_doubtful, self._clean, self._base = True, None, None
        return [event for event in due if event.payer not in doubted]

    async def _is_complete(self, look: _Round) -> bool:
        """Whether what is stored up to the final block is what the contracts say, to the unit."""
        final = look.outlook.finalized
        stored = await self._stored_sums(look, final)
        found = []
        for said in await chain_sums(self.rpc, self.terms.contracts, final):
            found += gaps(stored, said)
        found += [
            f"event {event.id} is stored and not shown"
            for event in look.unproven
            if event.place.block_number <= final.number
        ]
        if not found:
            self._base = (final.number, stored)
            self.health = replace(self.health, incomplete_rounds=0, why="")
            return True
        # All of it is read again, by another endpoint where there is one.
        self._clean = self._base = None
        look.is_doubtful = True
        rounds = self.health.incomplete_rounds + 1
        self.health = replace(self.health, incomplete_rounds=rounds, why="; ".join(found))
        log.error("events are missing", block=final.number, rounds=rounds, why=found)
        return False
