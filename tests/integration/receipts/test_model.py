"""Random histories of ending, signing, sealing, crashing, rotating, correcting and exporting.

After every step: each record is in at most one batch, sequence and batches have no gap, every proof
that was ever given out still verifies and its checkpoint is the start of the present log, and
header, export and statement say the same sums.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from uuid import UUID, uuid4

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.db.engine import open_database
from app.finance.corrections import Correction, Corrections
from app.finance.export.log import ExportLog
from app.finance.export.service import ExportService, Order
from app.finance.export.writer import Format
from app.finance.interval import Interval
from app.finance.statement import Holder, Statements
from app.receipts.check import LogCheck
from app.receipts.log_repository import LogRepository
from app.receipts.rotation import Rotation, rotate
from ledger.accounts import AccountKind
from ledger.checkpoint import LogProof, open_checkpoint
from ledger.encoding import Address
from ledger.log_entry import BatchHeader, EntryKind, entry_leaf_hash
from ledger.merkle import LogIndex, TreeHead, verify_consistency
from ledger.money import Nano
from ledger.note import NoteSigner, VerifierKey
from ledger.signing import SigningKey
from ledger.verify.export import verify_export
from ledger.verify.export_report import show
from ledger.verify.policy import parse_policy
from tests.engines import Cluster
from tests.integration.books import ASSET, Books, wallet
from tests.integration.finance.exporting import policy
from tests.integration.receipts.conftest import DOMAIN, ORIGIN, Archive, seed

Returned = TypeVar("Returned")

BUYERS = [wallet(1), wallet(2), wallet(3)]
EVER = Interval(datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
STEPS = ["seal", "append", "store_checkpoint"]


class Killed(BaseException):
    """The process is gone."""


class ReceiptMachine(RuleBasedStateMachine):
    """Plays one history. `cluster` is set by the test."""

    cluster: Cluster
    logged: ClassVar[list[int]]
    """Entries of the log that each history made."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.url = self.cluster.create()
        self.books = Books(self.url)
        self.database = open_database(self.url, pool_size=6)
        self.charges: dict[UUID, tuple[Address, int]] = {}
        self.given: list[tuple[bytes, LogProof]] = []
        self.signers: list[VerifierKey] = []
        self.rotations = 0

    def teardown(self) -> None:
        self.logged.append(self.books.one("SELECT count(*) AS n FROM offpeak.log_entry").n)
        self.run(self.database.dispose())
        self.runner.close()
        self.books.connection.close()
        self.cluster.drop(self.url)

    def run(self, work: Awaitable[Returned]) -> Returned:
        async def awaited() -> Returned:
            return await work

        return self.runner.run(awaited())

    @initialize()
    def open_archive(self) -> None:
        self.archive = Archive(self.books, self.database, self.books.seller(10_000))
        self.signers.append(self.archive.terms.signer.verifier)
        self.round()

    # --- steps ------------------------------------------------------------------------------

    @rule(payer=st.sampled_from(BUYERS), count=st.integers(1, 4), charge=st.integers(0, 9))
    def settle(self, payer: Address, count: int, charge: int) -> None:
        for record in self.archive.end_jobs(payer, count, charge=charge):
            self.charges[record] = (payer, charge)

    @rule(limit=st.integers(1, 6))
    def sign(self, limit: int) -> None:
        self.run(self.archive.sign(limit))

    @rule(limit=st.integers(1, 5))
    def round(self, limit: int = 5) -> None:
        self.run(self.archive.sequencer(limit=limit).run_once())

    @rule(step=st.sampled_from(STEPS), is_committed=st.booleans(), limit=st.integers(1, 3))
    def crash(self, step: str, is_committed: bool, limit: int) -> None:  # noqa: FBT001 -- drawn
        """The process dies at a write, before or after its commit."""
        real: Callable[..., Awaitable[None]] = getattr(LogRepository, step)

        async def killed(repository: LogRepository, *given: Any, **named: Any) -> None:
            await real(repository, *given, **named)
            if is_committed:
                await repository._tx.commit()
            raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LogRepository, step, killed)
            with suppress(Killed):
                self.run(self.archive.sequencer(limit=limit).run_once())

    @precondition(lambda self: self.rotations < 4)
    @rule(is_record_key=st.booleans())
    def rotate(self, is_record_key: bool) -> None:  # noqa: FBT001 -- drawn
        self.rotations += 1
        name = f"key {self.rotations}"
        if is_record_key:
            rotation = Rotation(record_key=SigningKey(seed(name)).address)
        else:
            rotation = Rotation(checkpoint_key=NoteSigner(ORIGIN, seed(name)))
        self.run(rotate(self.database, self.archive.sequencer(), rotation))
        if rotation.record_key is not None:
            self.archive.record_key = name
        if rotation.checkpoint_key is not None:
            self.archive.terms = replace(self.archive.terms, signer=rotation.checkpoint_key)
            self.signers.append(rotation.checkpoint_key.verifier)

    @precondition(lambda self: any(charge for _, charge in self.charges.values()))
    @rule(data=st.data())
    def correct(self, data: st.DataObject) -> None:
        paid = [record for record, (_, charge) in self.charges.items() if charge]
        record = data.draw(st.sampled_from(sorted(paid)))
        payer, charge = self.charges[record]
        less = data.draw(st.integers(0, charge - 1))
        said = Correction(
            record_id=uuid4(), corrects=record, charge=Nano(less), because="a TEST correction"
        )
        self.run(self.corrected(said))
        self.charges[record] = (payer, 0)
        self.charges[said.record_id] = (payer, less)

    async def corrected(self, said: Correction) -> None:
        operator = open_database(self.url, pool_size=1, role="offpeak_operator")
        await Corrections(operator).correct(said)
        await operator.dispose()

    @rule()
    def give_out_a_proof(self) -> None:
        checkpoint = self.run(self.archive.reader.checkpoint())
        index = LogIndex(checkpoint.size - 1)
        entry = self.run(self.archive.reader.entry(index))
        proof = self.run(self.archive.reader.proof(index))
        self.given.append((entry_leaf_hash(entry.kind, entry.entry), proof))

    @rule()
    def export(self) -> None:
        """Everything that is published, checked by the verifier, with the sums of the headers."""
        self.round()
        log = ExportLog(self.database, self.archive.terms)
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / "export"
            order = Order(interval=EVER, format=Format.CSV, target=folder, allow_open=True)
            made = self.run(ExportService(self.database, log, DOMAIN).export(order, lambda _: None))
            trusted = parse_policy(policy().encode())
            said: list[str] = []
            code = show(verify_export(str(folder), trusted), said.append, as_json=False)
            assert code == 0, "".join(said)
        headers = [sums for header in self.headers() for sums in header.sums]
        for name in ("charge", "held", "released"):
            exported = sum(getattr(sums, name) for sums in made.manifest.sums)
            assert exported == sum(getattr(sums, name) for sums in headers)

    # --- what must hold ---------------------------------------------------------------------

    def headers(self) -> list[BatchHeader]:
        async def read() -> list[BatchHeader]:
            size = (await self.archive.reader.checkpoint()).size
            entries = [await self.archive.reader.entry(index) for index in range(size)]
            headers = [each for each in entries if each.kind is EntryKind.BATCH_HEADER]
            return [BatchHeader.parse(each.entry) for each in headers]

        return self.run(read())

    @invariant()
    def each_record_is_in_at_most_one_batch_and_no_place_is_left_out(self) -> None:
        places = [
            row.leaf_index
            for row in self.books.rows(
                "SELECT leaf_index FROM offpeak.usage_record WHERE leaf_index IS NOT NULL"
                " ORDER BY leaf_index"
            )
        ]
        assert places == list(range(len(places)))
        batches = self.books.rows('SELECT start, "end" FROM offpeak.receipt_batch ORDER BY number')
        ends = [0, *(row.end for row in batches)]
        assert [row.start for row in batches] == ends[:-1]
        assert ends[-1] == len(places)

    @invariant()
    def every_wallets_records_lie_in_its_own_order(self) -> None:
        broken = self.books.rows(
            "SELECT FROM offpeak.usage_record a JOIN offpeak.usage_record b"
            " ON b.account_id = a.account_id AND b.payer_seq > a.payer_seq"
            " WHERE b.leaf_index < a.leaf_index OR (a.leaf_index IS NULL AND b.leaf_index >= 0)"
        )
        assert broken == []

    @invariant()
    def what_was_proved_once_is_proved_for_good(self) -> None:
        latest = self.run(self.archive.reader.checkpoint())
        now, _ = open_checkpoint(latest.note, origin=ORIGIN, keys=self.signers)
        for leaf, proof in self.given[-5:]:
            then, _ = open_checkpoint(proof.checkpoint, origin=ORIGIN, keys=self.signers)
            proof.verify(leaf, then.head)
            grown = self.run(self.archive.reader.consistency(then.head.size, now.head.size))
            verify_consistency(then.head, TreeHead(now.head.size, now.head.root), grown)

    @invariant()
    def every_statement_says_what_the_records_charge(self) -> None:
        for payer in BUYERS:
            charges = sum(charge for owner, charge in self.charges.values() if owner == payer)
            funded = self.books.one(
                "SELECT coalesce(sum(t.amount), 0)::bigint AS n FROM offpeak.transfer t"
                " JOIN offpeak.account d ON d.id = t.debit AND d.kind = 'deposit_clearing'"
                " JOIN offpeak.account c ON c.id = t.credit WHERE c.owner = %s",
                payer,
            ).n
            if funded:
                assert self.run(self.closing(payer)) == funded - charges

    async def closing(self, payer: Address) -> int:
        holder = Holder(AccountKind.WALLET, payer, ASSET)
        async with Statements(self.database).of(holder, EVER) as statement:
            return statement.closing

    @invariant()
    def the_log_adds_up_from_scratch(self) -> None:
        check = LogCheck(self.database, origin=ORIGIN, record_domain=DOMAIN)
        report = self.run(check.run())
        assert report.difference is None, report.difference


@pytest.mark.timeout(600)
def test_records_are_sealed_once_proved_for_good_and_summed_alike(cluster: Cluster) -> None:
    logged: list[int] = []
    machine = type("Machine", (ReceiptMachine,), {"cluster": cluster, "logged": logged})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=8,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # a step is a process's work: shrinking takes minutes
        ),
    )
    assert sum(logged) > len(logged)  # more than each log's own beginning
