"""Receipts of real gateways and workers, through a change of the log's key."""

import asyncio
import secrets

from app.assembly import build_sequencer, database_of
from app.cli.policies import policy_text
from app.config import Settings
from app.receipts.rotation import Rotation, rotate
from ledger.note import NoteSigner
from ledger.verify.exits import Exit
from ledger.verify.heads import KnownHeads
from ledger.verify.policy import parse_policy
from ledger.verify.steps import Asked, verify_receipt
from tests.acceptance.endstate import count
from tests.acceptance.evidence import UNPUBLISHED, assert_evidence
from tests.acceptance.site import Buyer
from tests.acceptance.town import Town
from tests.waiting import wait_until

KEY = "OFFPEAK_CHECKPOINT_KEY"


async def introduce(settings: Settings, key: str) -> None:
    """Log the change to a new checkpoint key, as `offpeak log rotate` does."""
    signer = NoteSigner(settings.log_origin, bytes.fromhex(key))
    database = database_of(settings)
    await rotate(database, build_sequencer(settings, database), Rotation(checkpoint_key=signer))
    await database.dispose()


def published(town: Town) -> bool:
    return count(town.site, UNPUBLISHED) == 0


def exits(buyer: Buyer, jobs: list[str], policy: bytes) -> list[Exit]:
    """Return how the verifier ends for each job's receipt, fetched now."""
    trusted = parse_policy(policy)
    known = KnownHeads(None, [])
    return [verify_receipt(buyer.client.receipt(job), trusted, known, Asked()).exit for job in jobs]


def test_receipts_from_before_and_after_a_new_key_verify_under_the_first_policy(town: Town) -> None:
    buyer = town.site.buyer(gateway="gateway-a")
    before = buyer.ask_until_answered().id
    wait_until(lambda: published(town), timeout_seconds=60)
    policy = policy_text(buyer.client.log_keys(), buyer.client.terms).encode()
    early = buyer.client.receipt(before)
    new = secrets.token_hex(32)
    asyncio.run(introduce(town.site.settings(), new))

    between = buyer.ask_until_answered().id  # the worker still holds the old key: it signs nothing
    assert exits(buyer, [before, between], policy) == [Exit.VERIFIED, Exit.PENDING]

    town.site.set_key(KEY, new)
    town.kill_and_restart("worker")
    after = buyer.ask_until_answered().id
    wait_until(lambda: published(town), timeout_seconds=60)
    assert exits(buyer, [before, between, after], policy) == [Exit.VERIFIED] * 3
    verdict = verify_receipt(early, parse_policy(policy), KnownHeads(None, []), Asked())
    assert verdict.exit is Exit.VERIFIED
    assert_evidence(town.site)
