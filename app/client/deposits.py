"""Putting tokens into the treasury, by the best way that the token has.

By EIP-3009 (one transaction, nobody can front-run it: the signature names who is credited), else
by EIP-2612 permit (one transaction), else by approval (two).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from app.chain import calls
from app.chain.abi import Function
from app.chain.errors import MalformedAnswer, RpcRefused
from app.client.chain import Done, Step, WalletChain
from app.client.chain_errors import TokensMissing, WayMissing
from ledger.encoding import Domain, domain_separator
from ledger.token_messages import Permit, ReceiveWithAuthorization

VALID_SECONDS: Final = 3_600
DEPOSIT: Final = "deposit"
DEPOSIT_GAS: Final = 150_000
"""Shown for a deposit that can be tried only after its approval is mined; most take less."""

_AUTHORIZATION_STATE: Final = Function("authorizationState(address,bytes32)(bool)")


class Way(StrEnum):
    """How tokens reach the treasury."""

    AUTHORIZATION = "authorization"
    PERMIT = "permit"
    APPROVAL = "approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deposit:
    """A deposit that is ready to be sent: `amount` base units, known by `ref`."""

    way: Way
    amount: int
    ref: bytes
    steps: list[Step]

    @property
    def most_wei(self) -> int:
        """The most gas money that it takes."""
        return sum(step.most_wei for step in self.steps)


async def plan_deposit(
    chain: WalletChain, amount: int, *, way: Way | None, ref: bytes, now: int
) -> Deposit:
    """Return a deposit of `amount` base units for the wallet itself, ready to be sent.

    The wallet signs a typed message for the token here (none for an approval), which only the
    treasury can use; its transactions are signed when they are sent.

    Args:
        chain: Where, and who.
        amount: Base units, above 0.
        way: The way to take; None takes the best that the token has.
        ref: 32 random bytes.
        now: Unix seconds; the signature is good for an hour from then, or from the latest block.

    Raises:
        WrongChain, WrongContract, TokensMissing, WayMissing, GasMissing, ContractRefused
        RpcUnavailable: no node says.
    """
    await chain.check_contracts()
    have = await chain.token.balance_of(chain.address, "latest")
    if have < amount:
        raise TokensMissing(chain.address, need=amount, have=have)
    chosen, domain = await _way(chain, way)
    latest = await chain.rpc.block("latest")
    until = max(now, latest.timestamp if latest else 0) + VALID_SECONDS
    if chosen is Way.APPROVAL or domain is None:
        steps = await _approval(chain, amount, ref)
        chosen = Way.APPROVAL
    elif chosen is Way.PERMIT:
        steps = [await _permit(chain, domain, amount, ref, until)]
    else:
        steps = [await _authorization(chain, domain, amount, ref, until)]
    await chain.check_gas(steps)
    return Deposit(way=chosen, amount=amount, ref=ref, steps=steps)


async def send_deposit(
    chain: WalletChain, deposit: Deposit, *, wait_seconds: float, say: Callable[[str], None]
) -> Done:
    """Send a deposit's transactions, one after the other; return the one that deposits.

    Raises:
        See `WalletChain.send`. What was approved stays approved.
    """
    done: Done | None = None
    for step in deposit.steps:
        ready = step
        if done is not None:  # what could not be tried before
            assert step.transaction.to is not None
            ready = await chain.plan(step.what, step.transaction.to, step.transaction.data)
        done = await chain.send(ready, wait_seconds=wait_seconds, say=say)
    assert done is not None
    return done


async def _way(chain: WalletChain, wanted: Way | None) -> tuple[Way, Domain | None]:
    """Return the way to take, and the token's domain where something is signed for it."""
    if wanted is Way.APPROVAL:
        return Way.APPROVAL, None
    domain = await _token_domain(chain)
    if domain is None:
        if wanted is not None:
            raise WayMissing(wanted, reason="its signing domain is not one that we know")
        return Way.APPROVAL, None
    for way, probe in ((Way.AUTHORIZATION, _has_authorizations), (Way.PERMIT, _has_permits)):
        if wanted in {None, way} and await probe(chain):
            return way, domain
    if wanted is not None:
        raise WayMissing(wanted, reason="it does not have the function")
    return Way.APPROVAL, None


async def _token_domain(chain: WalletChain) -> Domain | None:
    """Return the token's EIP-712 domain; None when it is not what its name and version make."""
    try:
        domain = await chain.token.expected_domain(chain.terms.chain_id, "latest")
        found = await chain.token.domain_separator("latest")
    except (MalformedAnswer, RpcRefused):
        return None
    return domain if found == domain_separator(domain) else None


async def _has_authorizations(chain: WalletChain) -> bool:
    try:
        await chain.token.flag(_AUTHORIZATION_STATE, "latest", chain.address, bytes(32))
    except (MalformedAnswer, RpcRefused):
        return False
    return True


async def _has_permits(chain: WalletChain) -> bool:
    try:
        await chain.token.permit_nonce(chain.address, "latest")
    except (MalformedAnswer, RpcRefused):
        return False
    return True


async def _authorization(
    chain: WalletChain, domain: Domain, amount: int, ref: bytes, valid_before: int
) -> Step:
    call = calls.AuthorizedDeposit(
        payer=chain.address,
        beneficiary=chain.address,
        amount=amount,
        ref=ref,
        valid_after=0,
        valid_before=valid_before,
    )
    message = ReceiveWithAuthorization(
        from_=chain.address,
        to=chain.terms.treasury,
        value=amount,
        valid_after=0,
        valid_before=valid_before,
        nonce=call.nonce(),
    )
    await chain.check_chain()
    data = call.data(chain.wallet.sign_digest(message.digest(domain)))
    return await chain.plan("deposit by EIP-3009 authorization", chain.terms.treasury, data)


async def _permit(
    chain: WalletChain, domain: Domain, amount: int, ref: bytes, deadline: int
) -> Step:
    message = Permit(
        owner=chain.address,
        spender=chain.terms.treasury,
        value=amount,
        nonce=await chain.token.permit_nonce(chain.address, "latest"),
        deadline=deadline,
    )
    await chain.check_chain()
    signature = chain.wallet.sign_digest(message.digest(domain))
    data = calls.deposit_with_permit(
        chain.address, amount, ref, deadline=deadline, signature=signature
    )
    return await chain.plan("deposit by permit", chain.terms.treasury, data)


async def _approval(chain: WalletChain, amount: int, ref: bytes) -> list[Step]:
    """Return an approval where one is missing, then the deposit that it allows."""
    treasury = chain.terms.treasury
    deposit = calls.deposit(chain.address, amount, ref)
    if await chain.token.allowance(chain.address, treasury, "latest") >= amount:
        return [await chain.plan(DEPOSIT, treasury, deposit)]
    approve = calls.APPROVE.data(treasury, amount)
    first = await chain.plan("approve the treasury", chain.terms.token, approve)
    then = replace(
        first.transaction,
        nonce=first.transaction.nonce + 1,
        to=treasury,
        data=deposit,
        gas=DEPOSIT_GAS,
    )
    return [first, Step(DEPOSIT, then)]
