"""A wallet's own transactions: planned, shown, signed for the right chain, watched.

Needs a node and the wallet; no gateway. Amounts are base units of the token, gas money wei. What
a node says decides nothing but what is shown: the chain id is asked again right before a
signature, and a transaction counts when its receipt is there.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from app.chain.blocks import TransactionReceipt
from app.chain.contracts import TokenContract, TreasuryContract
from app.chain.errors import MalformedAnswer, RpcRefused, TransactionReverted
from app.chain.rpc import ChainRpc
from app.chain.sending import Outgoing, prepare, send_and_wait
from app.chain.transaction import SignedTransaction, Transaction
from app.client.chain_errors import ContractRefused, GasMissing, WrongContract
from app.client.errors import WrongChain
from app.client.terms import Terms
from app.client.wallet import Wallet
from ledger.encoding import Address

TOKEN_DECIMALS: Final = 6


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction to be sent: what it does, in words, and what it can cost."""

    what: str
    transaction: Transaction

    @property
    def most_wei(self) -> int:
        """The most gas money that it takes."""
        return self.transaction.most_wei()


@dataclass(frozen=True, slots=True)
class Done:
    """A transaction that was mined and did what it was for."""

    what: str
    receipt: TransactionReceipt


class WalletChain:
    """The chain as one wallet uses it."""

    def __init__(self, rpc: ChainRpc, terms: Terms, wallet: Wallet | Address) -> None:
        """Take where to ask, what the wallet's signatures count for, and the wallet.

        Its address alone is enough to look.
        """
        self.rpc = rpc
        self.terms = terms
        self._wallet = wallet if isinstance(wallet, Wallet) else None
        self.address: Address = wallet.address if isinstance(wallet, Wallet) else wallet
        self.treasury = TreasuryContract(rpc, terms.treasury)
        self.token = TokenContract(rpc, terms.token)

    @property
    def wallet(self) -> Wallet:
        """The wallet with its key."""
        assert self._wallet is not None, "this was made to look only"
        return self._wallet

    async def check_chain(self) -> None:
        """Return if the node is of the chain that this wallet signs for.

        Raises:
            WrongChain: it is not; nothing was signed.
        """
        found = await self.rpc.chain_id()
        if found != self.terms.chain_id:
            raise WrongChain(expected=self.terms.chain_id, found=found, of="node")

    async def check_contracts(self) -> None:
        """Return if treasury and token are what this wallet thinks they are.

        Raises:
            WrongChain, WrongContract: they are not; nothing was signed.
        """
        await self.check_chain()
        try:
            domain = await self.treasury.domain("latest")
            token = await self.treasury.token("latest")
            decimals = await self.token.decimals("latest")
        except (MalformedAnswer, RpcRefused) as error:
            raise WrongContract(self.terms.treasury, reason=str(error)) from None
        if domain != self.terms.domain:
            raise WrongContract(self.terms.treasury, reason=f"its domain is {domain}")
        if token != self.terms.token:
            raise WrongContract(self.terms.treasury, reason=f"it holds the token {token}")
        if decimals != TOKEN_DECIMALS:
            raise WrongContract(self.terms.token, reason=f"it has {decimals} decimals")

    async def plan(self, what: str, to: Address, data: bytes) -> Step:
        """Return a transaction as it would be sent now.

        Raises:
            ContractRefused: it would revert. RpcUnavailable: nobody says.
        """
        try:
            found = await prepare(self.rpc, self.address, Outgoing(to=to, data=data))
        except RpcRefused as refused:
            raise ContractRefused(what, name=refused.name, message=str(refused)) from None
        return Step(what, replace(found, chain_id=self.terms.chain_id))

    async def check_gas(self, steps: list[Step]) -> int:
        """Return the wallet's native balance, which pays for the steps.

        Raises:
            GasMissing: it does not.
        """
        have = await self.rpc.balance(self.address)
        need = sum(step.most_wei for step in steps)
        if have < need:
            raise GasMissing(self.address, need_wei=need, have_wei=have)
        return have

    async def send(self, step: Step, *, wait_seconds: float, say: Callable[[str], None]) -> Done:
        """Sign and send a step, and return it once it is mined and did not revert.

        Raises:
            WrongChain: the node is of another chain by now; nothing was signed.
            TransactionRefused: no node takes it. TransactionPending: not mined in time.
            ContractRefused: it was mined and reverted.
        """
        await self.check_chain()
        key = _Key(self.wallet)
        signed = await key.sign(step.transaction)
        say(f"sending 0x{signed.hash.hex()}: {step.what}")
        try:
            receipt = await send_and_wait(
                self.rpc, key, step.transaction, wait_seconds=wait_seconds
            )
        except TransactionReverted as reverted:
            raise ContractRefused(step.what, name="", message=str(reverted)) from None
        say(f"mined in block {receipt.block_number}")
        return Done(step.what, receipt)


@dataclass(frozen=True, slots=True)
class _Key:
    """The wallet as a key that sends; the same transaction gets the same bytes."""

    wallet: Wallet

    @property
    def address(self) -> Address:
        return self.wallet.address

    async def sign(self, transaction: Transaction) -> SignedTransaction:
        return transaction.signed(self.wallet.sign_digest(transaction.digest()))
