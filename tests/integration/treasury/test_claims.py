"""Plain transfers: seen, claimed by who sent them, credited on chain, booked once."""

import secrets
from typing import Any

import pytest

from app.treasury.claim import PlainTransfer, TransferState
from app.treasury.claims import ClaimLoop, ClaimService
from app.treasury.errors import (
    ClaimDeadline,
    ClaimTooSmall,
    TransferClaimed,
    TransferNotFinal,
    TransferNotFound,
    TransferNotYours,
)
from app.wallets.errors import WrongSigner
from app.wallets.signatures import WalletSignatures
from ledger.authorization import SuspenseClaim
from ledger.money import Nano
from tests.chain import CHAIN_ID, OPERATOR, address_of_key
from tests.integration.treasury.house import ids
from tests.integration.treasury.watched import Wallet, Watched, has, house, watched

__all__ = ["house", "watched"]


def service(watched: Watched) -> ClaimService:
    house = watched.house
    return ClaimService(house.app, WalletSignatures(), house.domain, ids(), Nano(1_000_000))


def message(watched: Watched, payer: Wallet, transfer: PlainTransfer, **given: Any) -> Any:
    fields = {
        "payer": payer.address,
        "transaction": transfer.transaction,
        "log_index": transfer.log_index,
        "nonce": secrets.token_bytes(32),
        "deadline": watched.now() + 3_600,
        **given,
    }
    return SuspenseClaim(**fields)


async def ask(watched: Watched, signer: Wallet, claim: SuspenseClaim) -> PlainTransfer:
    signature = "0x" + signer.key.sign(claim.digest(watched.house.domain)).hex()
    return await service(watched).request(claim.message(), signature)


async def relay(watched: Watched) -> None:
    """What a worker does for claims, until nothing moves any more."""
    loop = ClaimLoop(
        watched.house.database,
        CHAIN_ID,
        watched.house.contracts.treasury,
        operator=address_of_key(OPERATOR),
        ids=ids(),
    )
    for _ in range(3):
        await loop.run_once()
        await watched.house.sender().run_once()
        await watched.finality()


async def sent(watched: Watched, amount: int = 5_000_000) -> tuple[Wallet, PlainTransfer]:
    """A wallet and its plain transfer, final."""
    wallet = await watched.wallet()
    await wallet.transfer(amount)
    await watched.finality()
    [transfer] = await service(watched).transfers(wallet.address)
    return wallet, transfer


async def test_a_plain_transfer_waits_in_suspense_until_its_sender_claims_it(
    watched: Watched,
) -> None:
    wallet = await watched.wallet()
    await wallet.transfer(5_000_000)
    await watched.look()
    [early] = await service(watched).transfers(wallet.address)
    assert early.state is TransferState.NOT_FINAL
    with pytest.raises(TransferNotFinal):
        await ask(watched, wallet, message(watched, wallet, early))
    await watched.finality()
    [transfer] = await service(watched).transfers(wallet.address)
    assert (transfer.state, transfer.amount) == (TransferState.UNCLAIMED, 5_000_000_000)
    assert watched.books.net("suspense") == 5_000_000_000
    claimed = await ask(watched, wallet, message(watched, wallet, transfer))
    assert claimed.state is TransferState.REQUESTED
    await relay(watched)
    assert watched.money(wallet) == has(5_000_000)
    assert await service(watched).transfers(wallet.address) == []
    assert watched.books.net("suspense") == 0
    await watched.check()


async def test_a_claim_is_taken_once_and_the_same_message_gets_the_same_answer(
    watched: Watched,
) -> None:
    wallet, transfer = await sent(watched)
    claim = message(watched, wallet, transfer)
    first = await ask(watched, wallet, claim)
    assert await ask(watched, wallet, claim) == first
    with pytest.raises(TransferClaimed):
        await ask(watched, wallet, message(watched, wallet, transfer))
    await relay(watched)
    with pytest.raises(TransferClaimed):
        await ask(watched, wallet, message(watched, wallet, transfer))
    again = await ask(watched, wallet, claim)
    assert again.state is TransferState.CREDITED
    await relay(watched)
    assert watched.money(wallet) == has(5_000_000)
    [row] = watched.books.rows("SELECT count(*) AS n FROM offpeak.chain_transaction")
    assert row.n == 1
    await watched.check()


async def test_nobody_claims_what_another_sent(watched: Watched) -> None:
    wallet, transfer = await sent(watched)
    thief = await watched.wallet()
    with pytest.raises(TransferNotYours):
        await ask(watched, thief, message(watched, thief, transfer))
    with pytest.raises(WrongSigner):
        await ask(watched, thief, message(watched, wallet, transfer))
    [row] = watched.books.rows("SELECT count(*) AS n FROM offpeak.suspense_claim")
    assert row.n == 0


async def test_a_claim_that_cannot_be_taken_says_why(watched: Watched) -> None:
    wallet, transfer = await sent(watched)
    for wrong in ({"log_index": transfer.log_index + 1}, {"transaction": bytes(32)}):
        with pytest.raises(TransferNotFound):
            await ask(watched, wallet, message(watched, wallet, transfer, **wrong))
    for deadline in (0, watched.now() - 1, watched.now() + 8 * 86_400, (1 << 64) - 1):
        late = message(watched, wallet, transfer, deadline=deadline)
        with pytest.raises(ClaimDeadline):
            await ask(watched, wallet, late)
    await wallet.transfer(999)
    await watched.finality()
    _, small = await service(watched).transfers(wallet.address)
    with pytest.raises(ClaimTooSmall):
        await ask(watched, wallet, message(watched, wallet, small))


async def test_a_deposit_is_no_plain_transfer_and_cannot_be_claimed(watched: Watched) -> None:
    wallet = await watched.wallet()
    deposited = await wallet.pay_in(5_000_000)
    await watched.finality()
    assert await service(watched).transfers(wallet.address) == []
    [row] = watched.books.rows("SELECT tx_hash, log_index FROM offpeak.chain_event")
    assert bytes(row.tx_hash) == deposited.hash
    for log_index in range(row.log_index + 1):
        claim = SuspenseClaim(
            payer=wallet.address,
            transaction=deposited.hash,
            log_index=log_index,
            nonce=bytes(32),
            deadline=watched.now() + 60,
        )
        with pytest.raises(TransferNotFound):
            await ask(watched, wallet, claim)


async def test_a_claim_waits_while_the_contract_is_paused(watched: Watched) -> None:
    wallet, transfer = await sent(watched)
    await ask(watched, wallet, message(watched, wallet, transfer))
    await watched.house.pause()
    await relay(watched)
    assert watched.books.net("suspense") == 5_000_000_000
    await watched.house.unpause()
    await relay(watched)
    assert watched.money(wallet) == has(5_000_000)
    await watched.check()
