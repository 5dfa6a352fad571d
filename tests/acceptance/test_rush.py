"""Money is reserved, not checked: concurrency never overspends a wallet."""

from tests.acceptance.endstate import assert_money
from tests.acceptance.rush import exactly, rush
from tests.acceptance.town import Town


def test_a_wallet_good_for_k_of_64_concurrent_requests_gets_exactly_k_over_two_gateways(
    town: Town,
) -> None:
    for k in (1, 7, 16):
        assert rush(town, k) == exactly(k)
    assert_money(town.site)
