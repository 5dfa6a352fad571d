"""Checkpoints on a real chain: published with their proof, booked, and found there by anybody."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from app.chain.calls import publish
from app.chain.contracts import AnchorContract
from app.chain.errors import RpcUnavailable
from app.chain.keys import KeystoreKey
from app.chain.rpc import ChainRpc, open_rpc
from app.db.engine import TREASURY_ROLE, Database, open_database
from app.embedded.fault_rpc import Fault, FaultRpc
from app.receipts.anchor_repository import AnchorRepository
from app.receipts.anchoring import Anchoring, AnchoringTerms
from app.receipts.errors import AnchorContradicts
from app.treasury.events import OurContracts
from app.treasury.sender import ANCHOR_PURPOSES, Sender, SenderTerms
from app.treasury.watcher import Watcher, WatcherTerms
from ledger.encoding import Domain
from ledger.merkle import TreeHead
from ledger.money import Nano
from ledger.onchain import Anchor
from ledger.usage import usage_record_domain
from ledger.verify.errors import Refused
from ledger.verify.onchain import anchored_at
from ledger.verify.rpc import Nodes
from tests.chain import ANCHOR, CHAIN_ID, TEST_KEYS, Contracts, address_of_key
from tests.integration.books import wallet
from tests.integration.receipts.conftest import Archive, seed
from tests.integration.treasury.house import PATIENT, ids

PAYER = wallet(0xB0)
HOURLY = timedelta(hours=1)


@dataclass
class Harbour:
    """A log, its anchor on a chain, and the loops between them, each run by hand."""

    archive: Archive
    contracts: Contracts
    rpc: ChainRpc
    database: Database
    domain: Domain
    sender: Sender
    watcher: Watcher

    def anchoring(
        self, interval: timedelta = timedelta(0), *, rpc: ChainRpc | None = None
    ) -> Anchoring:
        sender = address_of_key(ANCHOR)
        given = AnchoringTerms(domain=self.domain, sender=sender, interval=interval)
        return Anchoring(self.database, rpc or self.rpc, given, ids())

    async def settle(self) -> None:
        """Send what is queued, let it become final, and book it."""
        for _ in range(3):
            await self.sender.run_once()
            self.contracts.chain.finalize()
        await self.watcher.run_once()

    async def anchor(self) -> Anchor:
        """Bring the latest checkpoint on chain."""
        assert await self.anchoring().run_once()
        await self.settle()
        found = await self.known()
        assert found is not None
        return found

    async def known(self) -> Anchor | None:
        async with self.database.transaction() as tx:
            return await AnchorRepository(tx).latest(self.domain)

    async def head(self) -> TreeHead:
        latest = await self.archive.reader.checkpoint()
        return TreeHead(latest.size, latest.root)

    async def publish(self, head: TreeHead, proof: tuple[bytes, ...] = ()) -> None:
        """Publish with the anchor's key, past our loops."""
        data = publish(head.size, head.root, proof)
        await self.contracts.chain.send_later(ANCHOR, self.contracts.anchor, data)

    def states(self) -> list[str]:
        query = "SELECT state FROM offpeak.chain_transaction ORDER BY id"
        return [row.state for row in self.archive.books.rows(query)]


@pytest.fixture
async def harbour(
    archive: Archive, fresh_database_url: str, contracts: Contracts
) -> AsyncIterator[Harbour]:
    before = contracts.chain.ask("evm_snapshot")
    treasury = open_database(fresh_database_url, pool_size=4, role=TREASURY_ROLE)
    place = OurContracts(
        token=contracts.token, treasury=contracts.treasury, anchor=contracts.anchor
    )
    watched = WatcherTerms(
        chain_id=CHAIN_ID,
        contracts=place,
        first_block=contracts.first_block,
        range_blocks=10_000,
        safe_limit=Nano(0),
    )
    async with open_rpc([contracts.chain.url], expected_chain_id=CHAIN_ID) as rpc:
        sent = SenderTerms(chain_id=CHAIN_ID, purposes=ANCHOR_PURPOSES, rules=PATIENT)
        made = Harbour(
            archive=archive,
            contracts=contracts,
            rpc=rpc,
            database=treasury,
            domain=usage_record_domain(chain_id=CHAIN_ID, receipt_anchor=contracts.anchor),
            sender=Sender(treasury, rpc, KeystoreKey(TEST_KEYS[ANCHOR]), sent),
            watcher=Watcher(treasury, rpc, watched),
        )
        await made.watcher.run_once()  # who plans waits for a cursor
        yield made
    await treasury.dispose()
    contracts.chain.ask("evm_revert", before)


async def test_each_checkpoint_goes_on_chain_with_its_proof_and_anybody_finds_it_there(
    harbour: Harbour,
) -> None:
    assert not await harbour.anchoring().run_once()
    for count in (1, 3, 2):
        await harbour.archive.seal(PAYER, count)
        await harbour.archive.seal(PAYER)
        head = await harbour.head()
        anchor = await harbour.anchor()
        assert (anchor.size, anchor.root) == (head.size, head.root)
        assert not await harbour.anchoring().run_once()
        nodes = Nodes([harbour.contracts.chain.url], chain_id=CHAIN_ID)
        block = await asyncio.to_thread(anchored_at, nodes, head, contract=harbour.contracts.anchor)
        assert block is not None
        assert block.number >= anchor.block_number
    assert harbour.states() == ["done"] * 3
    last = await harbour.known()
    assert last is not None
    receipt = await harbour.rpc.receipt(last.tx_hash)
    assert receipt is not None
    assert (receipt.block_number, receipt.block_hash) == (last.block_number, last.block_hash)


async def test_what_the_chain_holds_is_read_at_a_final_block_and_another_root_is_a_fork(
    harbour: Harbour,
) -> None:
    await harbour.archive.seal(PAYER)
    head = await harbour.head()

    async def found(wanted: TreeHead) -> object:
        nodes = Nodes([harbour.contracts.chain.url], chain_id=CHAIN_ID)
        contract = harbour.contracts.anchor
        return await asyncio.to_thread(anchored_at, nodes, wanted, contract=contract)

    await harbour.publish(head)
    assert await found(head) is None
    harbour.contracts.chain.finalize()
    assert await found(head) is not None
    assert await found(TreeHead(head.size + 1, head.root)) is None
    with pytest.raises(Refused, match="forked"):
        await found(TreeHead(head.size, bytes(32)))


async def test_one_anchor_is_on_the_way_at_a_time_however_many_plan(harbour: Harbour) -> None:
    await harbour.archive.seal(PAYER)
    queued = await asyncio.gather(*(harbour.anchoring().run_once() for _ in range(4)))
    assert sum(queued) == 1
    await harbour.archive.seal(PAYER)
    assert not await harbour.anchoring().run_once()
    await harbour.settle()
    assert (await harbour.anchor()).size == (await harbour.head()).size


async def test_the_interval_is_kept(harbour: Harbour) -> None:
    await harbour.archive.seal(PAYER)
    assert await harbour.anchoring(HOURLY).run_once()
    await harbour.settle()
    await harbour.archive.seal(PAYER)
    assert not await harbour.anchoring(HOURLY).run_once()
    harbour.archive.tamper(
        "UPDATE offpeak.chain_transaction SET created_at = created_at - interval '61 minutes'"
    )
    assert await harbour.anchoring(HOURLY).run_once()


async def test_an_anchor_that_others_overtook_gives_way_to_the_next(harbour: Harbour) -> None:
    await harbour.archive.seal(PAYER)
    assert await harbour.anchoring().run_once()
    await harbour.publish(await harbour.head())
    for _ in range(4):
        await harbour.sender.run_once()
    await harbour.archive.seal(PAYER)
    assert (await harbour.anchor()).size == (await harbour.head()).size
    assert harbour.states() == ["cancelled", "done"]


async def test_a_root_that_was_never_ours_stops_anchoring(harbour: Harbour) -> None:
    await harbour.archive.seal(PAYER)
    await harbour.publish(TreeHead(1, seed("another log")))
    with pytest.raises(AnchorContradicts):
        await harbour.anchoring().run_once()
    assert harbour.states() == []


async def test_a_node_that_fails_or_stands_still_anchors_nothing(harbour: Harbour) -> None:
    await harbour.archive.seal(PAYER)
    await harbour.anchor()
    await harbour.archive.seal(PAYER)
    with FaultRpc(harbour.contracts.chain.url) as proxy:
        async with open_rpc([proxy.url]) as rpc:
            for fault in (
                Fault(kind="http-status"),
                Fault(kind="null", method="eth_getBlockByNumber"),
                Fault(kind="result", method="eth_call", value="0x" + "00" * 32),
            ):
                proxy.add(fault)
                with pytest.raises(RpcUnavailable):
                    await harbour.anchoring(rpc=rpc).run_once()
                proxy.heal()
            assert await AnchorContract(rpc, harbour.contracts.anchor).size("latest") == 2
    assert harbour.states() == ["done"]
    await harbour.anchor()
