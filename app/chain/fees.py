"""What a transaction offers per unit of gas: first, and when it takes another one's place.

Pure. Source: EIP-1559; the replacement rule is geth's default price bump of 10 % with a margin:
other nodes ask for 12.5 %.
"""

from dataclasses import dataclass

from app.chain.blocks import GasPrices


@dataclass(frozen=True, slots=True)
class Fees:
    """What a transaction offers per unit of gas (EIP-1559), in wei."""

    max_fee: int
    priority_fee: int

    def __post_init__(self) -> None:
        assert 0 <= self.priority_fee <= self.max_fee

    def bumped(self) -> "Fees":
        """The least fees that may replace these: both 12.5 % higher, rounded up."""
        return Fees(_bumped(self.max_fee), _bumped(self.priority_fee))


def _bumped(fee: int) -> int:
    return fee + -(-fee // 8)


def first_fees(prices: GasPrices) -> Fees:
    """The fees of a first attempt: two base fees and the usual priority fee.

    The base fee grows by at most 12.5 % a block, so twice of it lasts five full blocks.
    """
    return Fees(2 * prices.base + prices.priority, prices.priority)


def capped(fees: Fees, *, cap: int) -> Fees:
    """The fees, each at most `cap` (wei per gas)."""
    return Fees(min(fees.max_fee, cap), min(fees.priority_fee, cap))


def replacement(last: Fees, now: Fees, *, cap: int) -> Fees | None:
    """The fees of a replacement, None when the cap leaves no room for one.

    Both fees are at least 12.5 % above the last attempt's and at least what the chain asks now.

    Args:
        last: Of the latest attempt.
        now: What a new transaction would offer.
        cap: The most that is ever offered per unit of gas, in wei.
    """
    least = last.bumped()
    if least.max_fee > cap:
        return None
    max_fee = min(max(least.max_fee, now.max_fee), cap)
    priority = max(least.priority_fee, now.priority_fee)
    return Fees(max_fee, priority) if priority <= max_fee else None
