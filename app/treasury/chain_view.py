"""What a gateway tells of the treasury's terms on chain, remembered for a moment."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from app.chain.contracts import TreasuryContract
from app.chain.errors import ChainError
from app.chain.rpc import ChainRpc
from app.treasury.errors import ChainNotConfigured, FeeUnknown
from app.treasury.fee import withdrawal_fee
from ledger.encoding import Address
from ledger.money import Nano

FEE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class TreasuryPlace:
    """Where money goes in and out."""

    chain_id: int
    treasury: Address
    receipt_anchor: Address
    deposit_safe_limit: Nano


@dataclass(slots=True)
class ChainView:
    """Answers from memory for a few seconds, so that callers cannot make us flood the nodes."""

    rpc: ChainRpc | None
    """None: no chain is configured."""
    gas_token_price: Nano
    """Tokens for one native coin, in nano; 0 gives gas away."""
    monotonic: Callable[[], float]
    _fee: tuple[float, int] | None = field(default=None, init=False)
    _exit_delay: int | None = field(default=None, init=False)
    """Fixed when the contract was made."""

    async def fee(self) -> int:
        """Return the fee of a withdrawal now, in base units.

        Raises:
            ChainNotConfigured: there is no chain. FeeUnknown: nobody says what gas costs.
        """
        if self.rpc is None:
            raise ChainNotConfigured
        if self.gas_token_price == 0:
            return 0
        now = self.monotonic()
        if self._fee is None or now - self._fee[0] > FEE_SECONDS:
            try:
                fees = await self.rpc.fees()
            except ChainError:
                raise FeeUnknown from None
            price = -(-fees.base * 9 // 8) + fees.priority  # one block's largest rise ahead
            fee = withdrawal_fee(gas_price=price, gas_token_price=self.gas_token_price)
            self._fee = (now, fee)
        return self._fee[1]

    async def exit_delay(self, treasury: Address) -> int | None:
        """Return how long an exit takes by the contract, in seconds; None without a chain.

        Raises:
            ChainError: it cannot be read now.
        """
        if self.rpc is None:
            return None
        if self._exit_delay is None:
            self._exit_delay = await TreasuryContract(self.rpc, treasury).exit_delay("latest")
        return self._exit_delay
