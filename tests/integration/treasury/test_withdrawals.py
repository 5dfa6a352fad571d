"""A withdrawal from the wallet's signature to the tokens in its hands."""

from tests.integration.treasury.house import House, house

__all__ = ["house"]


async def test_a_signed_withdrawal_is_paid_once_and_the_books_agree(house: House) -> None:
    wallet = await house.new_wallet()
    asked = await house.ask(wallet, 20_000_000)
    assert house.available(wallet) == 30_000_000_000
    await house.settle(4)
    assert house.withdrawal(asked.id).state == "paid"
    assert await house.tokens(wallet.address) == 20_000_000
    assert await house.payments(wallet.address) == [20_000_000]
    [sent] = house.transactions()
    assert (sent.state, sent.purpose) == ("done", "withdrawal")
    await house.check_books()
