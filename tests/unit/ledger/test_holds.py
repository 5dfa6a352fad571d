"""The reference model keeps its own rules whatever is played on it."""

from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ledger.errors import (
    BadAmount,
    ChargeExceedsHold,
    DuplicateHold,
    FundsOnHold,
    HoldError,
    HoldResolved,
    InsufficientFunds,
    UnknownHold,
)
from ledger.holds import Resolution, ResolutionKind, Wallet
from ledger.money import MAX_NANO, ZERO, Nano

ONE, TWO = UUID(int=1), UUID(int=2)
HUNDRED = Wallet(available=Nano(100))
HOLDING = HUNDRED.place_hold(ONE, Nano(60))

ids = st.integers(0, 5).map(lambda number: UUID(int=number))
amounts = st.integers(-2, 200).map(Nano)


def test_a_hold_moves_money_from_available_to_held() -> None:
    assert (HOLDING.available, HOLDING.held) == (40, 60)
    assert (HUNDRED.available, HUNDRED.held) == (100, 0)


def test_settling_takes_the_charge_and_gives_the_rest_back() -> None:
    settled = HOLDING.settle(ONE, Nano(25))
    assert (settled.available, settled.held, settled.charged) == (75, 0, 25)
    assert settled.resolutions[ONE] == Resolution(ResolutionKind.SETTLED, Nano(25), Nano(35))


def test_a_zero_charge_is_a_release() -> None:
    assert HOLDING.settle(ONE, ZERO) == HOLDING.release(ONE)
    assert HOLDING.release(ONE).resolutions[ONE].kind is ResolutionKind.RELEASED


def test_an_expired_hold_gives_everything_back() -> None:
    expired = HOLDING.expire(ONE)
    assert (expired.available, expired.held) == (100, 0)
    assert expired.resolutions[ONE].kind is ResolutionKind.EXPIRED


@pytest.mark.parametrize("charge", [61, 10**18])
def test_a_charge_above_the_hold_is_refused(charge: int) -> None:
    with pytest.raises(ChargeExceedsHold):
        HOLDING.settle(ONE, Nano(charge))


def test_a_negative_charge_never_mints_money() -> None:
    with pytest.raises(BadAmount):
        HOLDING.settle(ONE, Nano(-1))


@pytest.mark.parametrize("ended", [HOLDING.settle(ONE, Nano(5)), HOLDING.expire(ONE)])
def test_one_terminal_resolution_per_hold(ended: Wallet) -> None:
    with pytest.raises(HoldResolved):
        ended.settle(ONE, Nano(1))
    with pytest.raises(HoldResolved):
        ended.release(ONE)
    with pytest.raises(HoldResolved):
        ended.expire(ONE)


def test_a_release_names_its_hold() -> None:
    with pytest.raises(UnknownHold):
        HOLDING.release(TWO)


@pytest.mark.parametrize("wallet", [HOLDING, HOLDING.release(ONE)])
def test_an_id_is_used_once(wallet: Wallet) -> None:
    with pytest.raises(DuplicateHold):
        wallet.place_hold(ONE, Nano(1))


def test_held_funds_are_told_apart_from_missing_funds() -> None:
    with pytest.raises(FundsOnHold) as on_hold:
        HOLDING.place_hold(TWO, Nano(41))
    assert (on_hold.value.available, on_hold.value.held, on_hold.value.required) == (40, 60, 41)
    with pytest.raises(InsufficientFunds) as missing:
        HOLDING.place_hold(TWO, Nano(101))
    assert (missing.value.code, on_hold.value.code) == ("insufficient-funds", "funds-on-hold")


@pytest.mark.parametrize("amount", [0, -1])
def test_amounts_are_positive(amount: int) -> None:
    with pytest.raises(BadAmount):
        HUNDRED.place_hold(ONE, Nano(amount))
    with pytest.raises(BadAmount):
        HUNDRED.credit(Nano(amount))


def test_a_balance_fits_the_books() -> None:
    with pytest.raises(BadAmount):
        HOLDING.credit(Nano(MAX_NANO - 99))
    assert HOLDING.credit(Nano(MAX_NANO - 100)).available == MAX_NANO - 60


class Books(RuleBasedStateMachine):
    """Anything may be tried in any order; money is neither made nor lost."""

    def __init__(self) -> None:
        super().__init__()
        self.wallet = Wallet()
        self.credited = 0

    @rule(amount=amounts)
    def credit(self, amount: Nano) -> None:
        try:
            self.wallet = self.wallet.credit(amount)
        except BadAmount:
            assert amount <= 0
        else:
            self.credited += amount

    @rule(hold=ids, amount=amounts)
    def place(self, hold: UUID, amount: Nano) -> None:
        try:
            self.wallet = self.wallet.place_hold(hold, amount)
        except (HoldError, BadAmount):
            seen = hold in self.wallet.open_holds or hold in self.wallet.resolutions
            assert amount <= 0 or seen or amount > self.wallet.available

    @rule(hold=ids, charge=amounts)
    def settle(self, hold: UUID, charge: Nano) -> None:
        try:
            self.wallet = self.wallet.settle(hold, charge)
        except (HoldError, BadAmount):
            assert not 0 <= charge <= self.wallet.open_holds.get(hold, -1)

    @rule(hold=ids, expired=st.booleans())
    def give_back(self, hold: UUID, *, expired: bool) -> None:
        try:
            self.wallet = self.wallet.expire(hold) if expired else self.wallet.release(hold)
        except HoldError:
            assert hold not in self.wallet.open_holds

    @invariant()
    def money_is_conserved(self) -> None:
        wallet = self.wallet
        assert wallet.available + wallet.held + wallet.charged == self.credited
        assert wallet.available >= 0


TestBooks = Books.TestCase
