"""Taking the money out without us: the contract, a node and the wallet are enough."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from app.chain import calls
from app.chain.errors import RpcUnavailable
from app.client.chain import Step, WalletChain
from app.client.chain_errors import ExitMissing, ExitNotRipe, NothingToExit

_REQUEST: Final = "request the exit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitStatus:
    """A wallet's exit as the contract has it at one block; amounts in base units.

    `amount` is 0 without an exit. Times are Unix seconds by the chain's clock.
    """

    block: int
    now: int
    available: int
    amount: int
    ready_at: int
    delay: int
    window: int
    paused: bool

    @property
    def is_open(self) -> bool:
        """Whether there is one that has not lapsed."""
        return self.amount > 0 and self.now <= self.lapses_at

    @property
    def lapses_at(self) -> int:
        """The last second in which it may be finalized."""
        return self.ready_at + self.window

    @property
    def is_ripe(self) -> bool:
        """Whether it may be finalized."""
        return self.is_open and self.now >= self.ready_at

    def next_step(self) -> str:
        """Return what the wallet can do."""
        if self.amount > 0 and not self.is_open:
            return f"it lapsed at {when(self.lapses_at)}: `offpeak exit request` anew"
        if not self.is_open:
            if self.available == 0:
                return "nothing: the contract holds nothing for this wallet"
            return f"`offpeak exit request`: ready {self.delay} s later, without us"
        if self.is_ripe:
            return f"`offpeak exit finalize` until {when(self.lapses_at)}"
        return f"`offpeak exit finalize` from {when(self.ready_at)} to {when(self.lapses_at)}"


async def exit_status(chain: WalletChain) -> ExitStatus:
    """Return where the wallet's exit stands, all of one block.

    Raises:
        WrongChain, WrongContract, RpcUnavailable
    """
    await chain.check_contracts()
    block = await chain.rpc.block("latest")
    if block is None:
        raise RpcUnavailable("eth_getBlockByNumber", ["no node has a latest block"])
    treasury, pinned = chain.treasury, block.hash
    account = await treasury.account(chain.address, pinned)
    return ExitStatus(
        block=block.number,
        now=block.timestamp,
        available=await treasury.available(chain.address, pinned),
        amount=account.exit_amount,
        ready_at=account.exit_ready_at,
        delay=await treasury.exit_delay(pinned),
        window=await treasury.exit_window(pinned),
        paused=await treasury.paused(pinned),
    )


async def plan_request(chain: WalletChain, status: ExitStatus, amount: int | None) -> Step:
    """Return the request of an exit, of `amount` base units or of all there is.

    Raises:
        NothingToExit, GasMissing, ContractRefused, RpcUnavailable
    """
    wanted = status.available if amount is None else amount
    if wanted <= 0 or wanted > status.available:
        raise NothingToExit(wanted=wanted, available=status.available)
    return await _one(chain, _REQUEST, calls.request_exit(wanted))


async def plan_finalize(chain: WalletChain, status: ExitStatus) -> Step:
    """Return what takes the money out.

    Raises:
        ExitMissing, ExitNotRipe, GasMissing, ContractRefused, RpcUnavailable
    """
    if not status.is_open:
        raise ExitMissing(status.next_step())
    if not status.is_ripe:
        raise ExitNotRipe(ready_at=when(status.ready_at), now=when(status.now))
    return await _one(chain, "finalize the exit", calls.FINALIZE_EXIT.data())


async def plan_cancel(chain: WalletChain, status: ExitStatus) -> Step:
    """Return what ends the exit and leaves the money where it is.

    Raises:
        ExitMissing, GasMissing, ContractRefused, RpcUnavailable
    """
    if status.amount == 0:
        raise ExitMissing(status.next_step())
    return await _one(chain, "cancel the exit", calls.CANCEL_EXIT.data())


async def _one(chain: WalletChain, what: str, data: bytes) -> Step:
    step = await chain.plan(what, chain.terms.treasury, data)
    await chain.check_gas([step])
    return step


def when(seconds: int) -> str:
    """Return Unix seconds as people read them, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
