"""Receipts and the log over HTTP: a wallet gets its own, anybody the log."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

import httpx
import pytest

from app.config import Settings
from app.kit.clock import unix_seconds, utc_now
from app.kit.ids import IdPrefix, format_id
from app.main import build_app
from app.wallets.read_access import read_access_header
from ledger.authorization import ReadAccess, authorization_domain
from ledger.checkpoint import LogProof, open_checkpoint
from ledger.encoding import parse_address
from ledger.hashing import sha256
from ledger.log_entry import BatchHeader, EntryKind, entry_leaf_hash
from ledger.merkle import TreeHead, verify_consistency, verify_inclusion
from ledger.note import VerifierKey
from ledger.onchain import ContractCheck, ContractMethod
from ledger.receipt import Receipt
from ledger.signing import SigningKey
from tests.integration.books import ASSET, wallet
from tests.integration.receipts.conftest import DOMAIN, ORIGIN, Archive, seed

NOW_AND_SOME = 300
KEY = SigningKey(sha256(b"OFFPEAK TEST key of a buyer, public, never fund it"))
STRANGER = SigningKey(sha256(b"OFFPEAK TEST key of a stranger, public, never fund it"))


@dataclass
class Site:
    """A gateway over an archive."""

    archive: Archive
    http: httpx.AsyncClient
    settings: Settings

    async def get(
        self, path: str, *, signer: SigningKey | None = None, scope: str = "receipts"
    ) -> httpx.Response:
        headers = {}
        if signer is not None:
            headers["Authorization"] = self.read_header(signer, scope)
        return await self.http.get(path, headers=headers)

    def read_header(self, signer: SigningKey, scope: str) -> str:
        until = unix_seconds(utc_now()) + NOW_AND_SOME
        access = ReadAccess(signer.address, scope, until, secrets.token_bytes(32))
        domain = authorization_domain(
            chain_id=self.settings.chain_id,
            treasury=parse_address(self.settings.treasury_address),
        )
        return read_access_header(access, signer.sign(access.digest(domain)))


@pytest.fixture
async def site(archive: Archive, fresh_database_url: str) -> AsyncIterator[Site]:
    settings = Settings.model_validate(
        {
            "database_url": fresh_database_url,
            "signing_key": seed("record").hex(),
            "content_key": secrets.token_hex(32),
            "token_address": ASSET,
            "receipt_anchor_address": DOMAIN.verifying_contract,
            "log_origin": ORIGIN,
        }
    )
    app = build_app(settings)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as http:
            yield Site(archive, http, settings)


def shown(record: UUID) -> str:
    return format_id(IdPrefix.JOB, record)


async def test_a_wallet_gets_its_receipt_with_every_proof(site: Site) -> None:
    await site.archive.seal(wallet(3), 2)
    [record] = await site.archive.seal(KEY.address)
    answer = await site.get(f"/v1/receipts/{shown(record)}", signer=KEY)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "private, no-store"
    receipt = Receipt.parse(answer.content)
    assert receipt.batch is not None
    assert receipt.log_proof is not None
    header = BatchHeader.parse(receipt.batch.header)
    assert header.count == 1
    latest = (await site.get("/v1/log/checkpoint")).content
    assert receipt.log_proof.checkpoint == latest
    assert [each.log_proof.checkpoint for each in receipt.keys] == [latest]


async def test_a_receipt_before_its_checkpoint_is_there_without_a_batch(site: Site) -> None:
    sequencer = site.archive.sequencer()
    await sequencer.run_once()
    [record] = site.archive.end_jobs(KEY.address)
    for step in (site.archive.sign, sequencer.seal_once, sequencer.log_headers):
        answer = await site.get(f"/v1/receipts/{shown(record)}", signer=KEY)
        receipt = Receipt.parse(answer.content)
        assert (receipt.batch, receipt.log_proof, len(receipt.keys)) == (None, None, 1)
        assert await step() == 1
    assert await sequencer.sign_checkpoints() == 1
    answer = await site.get(f"/v1/receipts/{shown(record)}", signer=KEY)
    assert Receipt.parse(answer.content).batch is not None


async def test_a_receipt_is_made_for_the_anchored_checkpoint_that_has_it(site: Site) -> None:
    [record] = await site.archive.seal(KEY.address)
    anchor = site.archive.anchor(2)
    [later] = await site.archive.seal(KEY.address)
    receipts = [
        Receipt.parse((await site.get(f"/v1/receipts/{shown(each)}", signer=KEY)).content)
        for each in (record, later)
    ]
    assert [each.anchor for each in receipts] == [anchor, None]
    for receipt, size in zip(receipts, (2, 3), strict=True):
        assert receipt.log_proof is not None
        notes = {
            receipt.log_proof.checkpoint,
            *(each.log_proof.checkpoint for each in receipt.keys),
        }
        assert notes == {(await site.get(f"/v1/log/checkpoints/{size}")).content}
    newer = site.archive.anchor(3)
    body = (await site.get(f"/v1/receipts/{shown(record)}", signer=KEY)).content
    assert Receipt.parse(body).anchor == newer


async def test_a_root_that_is_not_ours_anchors_nothing(site: Site) -> None:
    [record] = await site.archive.seal(KEY.address)
    site.archive.anchor(2, root=seed("another root"))
    body = (await site.get(f"/v1/receipts/{shown(record)}", signer=KEY)).content
    assert Receipt.parse(body).anchor is None


async def test_a_contract_wallets_receipt_says_where_its_contract_said_yes(site: Site) -> None:
    [record] = await site.archive.seal(KEY.address)
    site.archive.tamper(
        "SELECT offpeak.record_contract_signature(a.digest, a.payer, 'erc-1271', 7, %s)"
        " FROM offpeak.request_authorization a",
        seed("block"),
    )
    body = (await site.get(f"/v1/receipts/{shown(record)}", signer=KEY)).content
    seen = ContractCheck(ContractMethod.DEPLOYED, 7, seed("block"))
    assert Receipt.parse(body).acceptance.contract_check == seen


async def test_a_receipt_is_its_payers_only(site: Site) -> None:
    [record] = await site.archive.seal(KEY.address)
    path = f"/v1/receipts/{shown(record)}"
    assert (await site.get(path)).status_code == 401
    assert (await site.get(path, signer=KEY, scope="jobs")).status_code == 403
    refused = await site.get(path, signer=STRANGER)
    assert (refused.status_code, refused.json()["code"]) == (404, "record-not-found")
    unknown = await site.get(f"/v1/receipts/{shown(UUID(int=7))}", signer=KEY)
    assert unknown.status_code == 404


async def test_a_wallet_sees_its_history_in_order_without_a_gap(site: Site) -> None:
    await site.archive.seal(KEY.address, 3)
    await site.archive.seal(STRANGER.address, 2)
    site.archive.end_jobs(KEY.address, 2)
    first = (await site.get("/v1/receipts?limit=2", signer=KEY)).json()
    assert [each["payer_seq"] for each in first["receipts"]] == [1, 2]
    assert first["receipts"][0]["previous_record"] is None
    second = (await site.get(f"/v1/receipts?after={first['next']}", signer=KEY)).json()
    assert [each["payer_seq"] for each in second["receipts"]] == [3, 4, 5]
    assert [each["batch"] for each in second["receipts"]] == [0, None, None]
    assert second["next"] is None
    listed = [*first["receipts"], *second["receipts"]]
    for before, after in pairwise(listed):
        assert after["previous_record"] == before["record_id"]


async def test_the_log_is_everybodys_and_what_cannot_change_is_cacheable_for_ever(
    site: Site,
) -> None:
    for _ in range(3):
        await site.archive.seal(KEY.address, 2)
    keys = (await site.get("/v1/log/keys")).json()
    assert keys["size"] == "4"
    trusted = [VerifierKey.parse(keys["keys"][0]["key"])]
    heads = []
    for size in range(1, 5):
        answer = await site.get(f"/v1/log/checkpoints/{size}")
        assert "immutable" in answer.headers["cache-control"]
        heads.append(open_checkpoint(answer.content, origin=ORIGIN, keys=trusted)[0].head)
    latest = await site.get("/v1/log/checkpoint")
    assert latest.headers["cache-control"] == "public, max-age=5"
    proof = (await site.get("/v1/log/consistency?from=2&to=4")).json()
    hashes = [bytes.fromhex(each[2:]) for each in proof["proof"]]
    verify_consistency(heads[1], heads[3], hashes)
    for index in range(4):
        entry = await site.get(f"/v1/log/entries/{index}")
        kind = EntryKind(entry.headers["offpeak-entry-kind"])
        told = await site.get(f"/v1/log/proofs/{index}?size=4")
        LogProof.parse(told.text).verify(entry_leaf_hash(kind, entry.content), heads[3])
    await check_batch(site)


async def check_batch(site: Site) -> None:
    header = await site.get("/v1/log/batches/1")
    assert header.content == (await site.get("/v1/log/entries/2")).content
    told = (await site.get("/v1/log/batches/1/proofs/1")).json()
    verify_inclusion(
        bytes.fromhex(told["leaf_hash"][2:]),
        1,
        size=2,
        proof=[bytes.fromhex(each[2:]) for each in told["proof"]],
        root=BatchHeader.parse(header.content).records_root,
    )


REFUSED = [
    ("/v1/log/checkpoints/9", "checkpoint-not-found"),
    ("/v1/log/entries/2", "entry-not-found"),
    ("/v1/log/proofs/2", "entry-not-found"),
    ("/v1/log/proofs/1?size=1", "entry-not-found"),
    ("/v1/log/proofs/1?size=9", "checkpoint-not-found"),
    ("/v1/log/consistency?from=1&to=9", "checkpoint-not-found"),
    ("/v1/log/consistency?from=2&to=1", "bad-proof"),
    ("/v1/log/batches/1", "batch-not-found"),
    ("/v1/log/batches/0/proofs/1", "batch-not-found"),
    ("/v1/log/entries/-1", "malformed-request"),
    ("/v1/log/consistency?from=0&to=1", "malformed-request"),
    ("/v1/log/entries/99999999999999999999", "malformed-request"),
]


async def test_what_the_log_does_not_hold_is_a_typed_refusal(site: Site) -> None:
    await site.archive.seal(KEY.address)
    for path, code in REFUSED:
        answer = await site.get(path)
        told = (answer.status_code, answer.json()["code"])
        assert told in {(404, code), (422, code)}, path
        assert "immutable" not in answer.headers.get("cache-control", "")


async def test_nothing_that_has_no_checkpoint_is_shown(site: Site) -> None:
    answer = await site.get("/v1/log/checkpoint")
    assert (answer.status_code, answer.json()["code"]) == (404, "checkpoint-not-found")
    await site.archive.sequencer().run_once()
    site.archive.end_jobs(KEY.address)
    await site.archive.sign()
    await site.archive.sequencer().seal_once()
    await site.archive.sequencer().log_headers()
    for path in ("/v1/log/entries/1", "/v1/log/proofs/1", "/v1/log/batches/0"):
        assert (await site.get(path)).status_code == 404


async def test_readers_see_a_growing_log_consistent_at_every_moment(site: Site) -> None:
    async def read() -> TreeHead:
        note = (await site.get("/v1/log/checkpoint")).content
        return open_checkpoint(note, origin=ORIGIN, keys=[key])[0].head

    await site.archive.seal(KEY.address)
    key = site.archive.terms.signer.verifier
    seen = [await read()]
    for _ in range(5):
        grown, head = await asyncio.gather(site.archive.seal(KEY.address), read())
        assert grown
        seen.append(head)
    seen.append(await read())
    for old, new in pairwise(seen):
        path = f"/v1/log/consistency?from={old.size}&to={new.size}"
        proof = (await site.get(path)).json()["proof"]
        verify_consistency(old, new, [bytes.fromhex(each[2:]) for each in proof])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/log/checkpoints/99", 404),
        ("/v1/log/checkpoints/x", 422),
        ("/v1/log/nothing", 404),
        ("/v1/receipts", 401),
    ],
)
async def test_no_cache_may_keep_a_refusal(site: Site, path: str, status: int) -> None:
    await site.archive.seal(KEY.address)
    refused = await site.get(path)
    assert (refused.status_code, refused.headers["Cache-Control"]) == (status, "no-store")
