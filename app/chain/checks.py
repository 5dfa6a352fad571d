"""What must hold of the chain before a process may rely on it: our settings mean these contracts.

A wrong chain, token or treasury makes every signature fail, or count somewhere else. The worker
does not start before all of this was seen to hold. A gateway that finds no node to ask starts all
the same: running jobs and balances need no chain, and a node's outage must not become ours; it
asks again until it knows (`ChainGuard`). Whatever contradicts the settings stops both.
"""

import asyncio
from dataclasses import dataclass
from typing import ClassVar, Final

import structlog

from app.chain.contracts import AnchorContract, TokenContract, TreasuryContract
from app.chain.errors import ChainError, MalformedAnswer, RpcRefused, RpcUnavailable
from app.chain.rpc import ChainRpc
from app.config import Settings
from ledger.authorization import authorization_domain
from ledger.encoding import Address, Domain, domain_separator, parse_address

log = structlog.get_logger()

TOKEN_DECIMALS: Final = 6
"""The scale of the settlement token: 1000 nano are one base unit."""
START_MARGIN_SECONDS: Final = 60
GUARD_SECONDS: Final = 5.0
"""How long a gateway's start may wait for nodes that hang."""


class ChainMismatch(ChainError):
    """The chain says something else than the settings; `expected` and `found` are shown texts."""

    code: ClassVar[str] = "chain-mismatch"
    what: ClassVar[str] = ""

    def __init__(self, *, expected: object, found: object) -> None:
        super().__init__(f"{self.what} is {found}, expected {expected}")
        self.expected = str(expected)
        self.found = str(found)


class ChainIdDiffers(ChainMismatch):
    """An endpoint is of another chain."""

    code = "chain-id-differs"
    what = "the chain's id"
    next_step = "set OFFPEAK_CHAIN_ID, or URLs of that chain in OFFPEAK_RPC_URLS"


class ContractMissing(ChainMismatch):
    """There is no contract, or another one, where a setting names ours."""

    code = "contract-missing"
    next_step = (
        "deploy with `offpeak treasury deploy`, or set OFFPEAK_TOKEN_ADDRESS,"
        " OFFPEAK_TREASURY_ADDRESS and OFFPEAK_RECEIPT_ANCHOR_ADDRESS"
    )

    def __init__(self, what: str, address: Address, *, found: str) -> None:
        ChainError.__init__(self, f"at {address} is {found}, expected {what}")
        self.expected = what
        self.found = found


class TokenDomainDiffers(ChainMismatch):
    """The token's DOMAIN_SEPARATOR is not the one of its name and version on this chain."""

    code = "token-domain-differs"
    what = "the token's DOMAIN_SEPARATOR"
    next_step = "is OFFPEAK_TOKEN_ADDRESS the token itself, on the chain of OFFPEAK_CHAIN_ID?"


class TokenScaleDiffers(ChainMismatch):
    """The token has another number of decimals than amounts are counted in."""

    code = "token-scale-differs"
    what = "the token's number of decimals"
    next_step = "choose a token of 6 decimals for OFFPEAK_TOKEN_ADDRESS"


class TreasuryTokenDiffers(ChainMismatch):
    """The treasury holds another token."""

    code = "treasury-token-differs"
    what = "the treasury's token"
    next_step = "set OFFPEAK_TOKEN_ADDRESS to it, or OFFPEAK_TREASURY_ADDRESS to its treasury"


class TreasuryDomainDiffers(ChainMismatch):
    """The treasury checks signatures for another EIP-712 domain than wallets are asked for."""

    code = "treasury-domain-differs"
    what = "the treasury's EIP-712 domain"
    next_step = "set OFFPEAK_TREASURY_ADDRESS to a treasury that was deployed on this chain"


class ExitDelayTooShort(ChainMismatch):
    """An exit could ripen while a job of its wallet still holds the money."""

    code = "exit-delay-too-short"
    what = "the treasury's exit delay in seconds"
    next_step = (
        "lower OFFPEAK_RUN_SECONDS_MAX or OFFPEAK_COMMIT_INTERVAL_SECONDS, or deploy a treasury"
        " with a longer delay"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTerms:
    """What the settings say of the chain. `exit_delay_above`: what the delay must exceed."""

    chain_id: int
    token: Address
    treasury: Address
    anchor: Address
    exit_delay_above: int

    @property
    def domain(self) -> Domain:
        """The EIP-712 domain of authorizations and withdrawals."""
        return authorization_domain(chain_id=self.chain_id, treasury=self.treasury)


def chain_terms(settings: Settings) -> ChainTerms:
    """The settings' chain; the exit delay must exceed the longest hold and two commit intervals."""
    longest = settings.run_seconds_max + START_MARGIN_SECONDS
    return ChainTerms(
        chain_id=settings.chain_id,
        token=parse_address(settings.token_address.lower()),
        treasury=parse_address(settings.treasury_address.lower()),
        anchor=parse_address(settings.receipt_anchor_address.lower()),
        exit_delay_above=longest + 2 * settings.commit_interval_seconds,
    )


async def check_chain(rpc: ChainRpc, terms: ChainTerms) -> None:
    """Return when everything holds, at one block and for each endpoint that answers.

    Raises:
        ChainMismatch: a subclass says what differs.
        RpcUnavailable: no endpoint answered, so nothing is known.
    """
    await _check_ids(rpc, terms.chain_id)
    head = await rpc.block("latest")
    if head is None:
        raise RpcUnavailable("eth_getBlockByNumber", ["no latest block"])
    treasury = TreasuryContract(rpc, terms.treasury)
    token = TokenContract(rpc, terms.token)
    anchor = AnchorContract(rpc, terms.anchor)
    for what, contract in (("a token", token), ("a treasury", treasury), ("an anchor", anchor)):
        if not await rpc.code(contract.address, head.hash):
            raise ContractMissing(what, contract.address, found="no contract")
    try:
        await _check_token(token, terms, head.hash)
    except (MalformedAnswer, RpcRefused) as error:
        raise ContractMissing("a token", terms.token, found=f"another ({error})") from None
    try:
        await _check_treasury(treasury, terms, head.hash)
    except (MalformedAnswer, RpcRefused) as error:
        raise ContractMissing("a treasury", terms.treasury, found=f"another ({error})") from None
    try:
        await anchor.size(head.hash)
        await anchor.anchor_role(head.hash)
    except (MalformedAnswer, RpcRefused) as error:
        raise ContractMissing("an anchor", terms.anchor, found=f"another ({error})") from None


async def _check_ids(rpc: ChainRpc, expected: int) -> None:
    """Ask each endpoint by itself: one of another chain would be asked when the others fail."""
    reasons: list[str] = []
    for one in rpc.by_url():
        try:
            found = await one.chain_id()
        except RpcUnavailable as error:
            reasons += error.reasons
            continue
        if found != expected:
            raise ChainIdDiffers(expected=expected, found=f"{found} at {one.label}")
    if len(reasons) == len(rpc.endpoints):
        raise RpcUnavailable("eth_chainId", reasons)


async def _check_token(token: TokenContract, terms: ChainTerms, block: bytes) -> None:
    if (found := await token.decimals(block)) != TOKEN_DECIMALS:
        raise TokenScaleDiffers(expected=TOKEN_DECIMALS, found=found)
    domain = await token.expected_domain(terms.chain_id, block)
    expected, separator = domain_separator(domain), await token.domain_separator(block)
    if separator != expected:
        raise TokenDomainDiffers(
            expected=f"0x{expected.hex()} ({domain.name!r}, {domain.version!r})",
            found=f"0x{separator.hex()}",
        )


async def _check_treasury(treasury: TreasuryContract, terms: ChainTerms, block: bytes) -> None:
    if (held := await treasury.token(block)) != terms.token:
        raise TreasuryTokenDiffers(expected=terms.token, found=held)
    if (domain := await treasury.domain(block)) != terms.domain:
        raise TreasuryDomainDiffers(expected=terms.domain, found=domain)
    delay = await treasury.exit_delay(block)
    if delay <= terms.exit_delay_above:
        raise ExitDelayTooShort(expected=f"more than {terms.exit_delay_above}", found=delay)


class ChainGuard:
    """A gateway's look at the chain: at its start, and again until a node answers."""

    def __init__(self, rpc: ChainRpc, terms: ChainTerms, *, retry_seconds: float) -> None:
        """`retry_seconds` lie between tries while no node answers."""
        self._rpc = rpc
        self._terms = terms
        self._retry_seconds = retry_seconds
        self.checked = False
        self.refusal: ChainMismatch | None = None

    async def check(self) -> None:
        """Look once; says so and returns when no node answers.

        Raises:
            ChainMismatch: the settings are of another chain or other contracts; it stays in
                `refusal` for who starts the process.
        """
        try:
            async with asyncio.timeout(GUARD_SECONDS):
                await check_chain(self._rpc, self._terms)
        except TimeoutError:
            log.warning("the chain could not be checked", reason=f"over {GUARD_SECONDS} s")
        except RpcUnavailable as error:
            log.warning("the chain could not be checked", reason=str(error))
        except ChainMismatch as error:
            self.refusal = error
            raise
        else:
            self.checked = True

    async def check_at_start(self) -> None:
        """Do as `check`, and close the connections when it raises: nothing will use them."""
        try:
            await self.check()
        except ChainMismatch:
            await self._rpc.aclose()
            raise

    async def run(self) -> None:
        """Look until it is known, then rest; ends only by what `check` raises, or cancelled.

        Contracts do not change under their address, and each endpoint's chain id is looked at
        again whenever it has failed (`ChainRpc`).
        """
        while not self.checked:
            await asyncio.sleep(self._retry_seconds)
            await self.check()
        await asyncio.Event().wait()
