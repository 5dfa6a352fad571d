// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TreasuryFixture} from "./support/TreasuryFixture.sol";
import {TreasuryUsers} from "./support/TreasuryUsers.sol";

/// @notice What holds after any calls of anybody in any order.
contract TreasuryInvariants is TreasuryFixture {
    TreasuryUsers internal users;

    function setUp() public override {
        super.setUp();
        users = new TreasuryUsers(treasury, token, operator, guardian, admin);
    }

    function targetContracts() public view returns (address[] memory found) {
        found = new address[](1);
        found[0] = address(users);
    }

    /// @dev One run of calls checks every claim: each of its own would take as many runs.
    function invariant_the_books_hold_whatever_anybody_calls() public view {
        the_tokens_cover_the_liability_and_what_is_earned();
        the_liability_is_the_sum_of_the_balances();
        earned_is_net_spend_and_fees_less_payouts();
        no_wallet_takes_more_than_its_own();
        no_exit_stands_for_more_than_the_wallet_has();
        no_day_pays_out_more_than_its_limit();
        every_event_is_counted();
    }

    function the_tokens_cover_the_liability_and_what_is_earned() internal view {
        uint256 owed = treasury.totalLiability() + treasury.earned();
        vm.assertEq(token.balanceOf(address(treasury)), owed + treasury.unaccounted());
    }

    function the_liability_is_the_sum_of_the_balances() internal view {
        uint256 sum = 0;
        for (uint256 i = 0; i < 3; ++i) {
            sum += treasury.available(users.wallet(i));
        }
        vm.assertEq(treasury.totalLiability(), sum);
    }

    function earned_is_net_spend_and_fees_less_payouts() internal view {
        uint256 sum = users.fees();
        for (uint256 i = 0; i < 3; ++i) {
            sum += treasury.refundable(users.wallet(i));
        }
        vm.assertEq(treasury.earned(), sum - users.paidOut());
    }

    function no_wallet_takes_more_than_its_own() internal view {
        for (uint256 i = 0; i < 3; ++i) {
            address wallet = users.wallet(i);
            uint256 used = users.tookOut(wallet) + treasury.refundable(wallet);
            vm.assertEq(users.cameIn(wallet), used + treasury.available(wallet));
        }
    }

    function no_exit_stands_for_more_than_the_wallet_has() internal view {
        for (uint256 i = 0; i < 3; ++i) {
            (,,, uint128 amount, uint64 readyAt) = treasury.accounts(users.wallet(i));
            vm.assertLe(amount, treasury.available(users.wallet(i)));
            vm.assertTrue((amount == 0) == (readyAt == 0));
        }
    }

    function no_day_pays_out_more_than_its_limit() internal view {
        vm.assertLe(users.paidOn(block.timestamp / 1 days), DAY_LIMIT);
    }

    function every_event_is_counted() internal view {
        vm.assertEq(treasury.eventCount(), users.events());
    }
}
