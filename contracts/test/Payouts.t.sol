// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Treasury} from "../src/Treasury.sol";
import {TreasuryFixture} from "./support/TreasuryFixture.sol";

contract PayoutsTest is TreasuryFixture {
    address internal denied = address(0xde);

    function setUp() public override {
        super.setUp();
        fund(alice, 5_000e6);
        commit(alice, 3_000e6);
    }

    function test_a_supplier_is_paid_once_an_id() public {
        vm.expectEmit(address(treasury));
        emit Treasury.PaidOut("p", supplier, 10e6);
        pay("p", supplier, 10e6);
        vm.assertEq(token.balanceOf(supplier), 10e6);
        vm.assertEq(treasury.earned(), 2_990e6);
        (bytes32[] memory ids, address[] memory to, uint128[] memory sums) = one("p", supplier, 10e6);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(Treasury.IdUsed.selector, bytes32("p")));
        treasury.payout(ids, to, sums);
    }

    function testFuzz_payouts_never_touch_user_funds(uint128 spent, uint128 asked) public {
        fund(bob, 900e6);
        spent = uint128(within(spent, 0, 900e6));
        vm.prank(admin);
        treasury.setPayoutDayLimit(type(uint128).max);
        pay("all so far", supplier, 3_000e6);
        commit(bob, spent);
        asked = uint128(within(asked, uint256(spent) + 1, type(uint128).max - 3_000e6));
        token.mint(address(treasury), 500e6); // a plain transfer is not earned either
        (bytes32[] memory ids, address[] memory to, uint128[] memory sums) = one("p", supplier, asked);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(Treasury.ExceedsEarned.selector, asked, spent));
        treasury.payout(ids, to, sums);
        vm.assertEq(treasury.totalLiability(), 2_000e6 + 900e6 - spent);
        requireSolvent();
    }

    function test_the_days_limit_holds_and_begins_anew_at_midnight_utc() public {
        uint256 midnight = (START / 1 days + 1) * 1 days;
        pay("a", supplier, 400e6);
        vm.assertEq(treasury.payoutRoom(), 600e6);
        vm.warp(midnight - 1);
        (bytes32[] memory ids, address[] memory to, uint128[] memory sums) = one("b", supplier, 600e6 + 1);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(Treasury.ExceedsPayoutRoom.selector, 600e6 + 1, 600e6));
        treasury.payout(ids, to, sums);
        pay("b", supplier, 600e6);
        vm.assertEq(treasury.payoutRoom(), 0);
        vm.warp(midnight);
        vm.assertEq(treasury.payoutRoom(), 1_000e6);
        pay("c", supplier, 300e6);
        vm.assertEq(treasury.payoutRoom(), 700e6);
        pay("d", supplier, 700e6);
        vm.assertEq(treasury.payoutRoom(), 0);
        vm.warp(midnight + 30 days);
        vm.assertEq(treasury.payoutRoom(), 1_000e6);
    }

    function test_a_lower_limit_counts_at_once_and_never_below_zero() public {
        pay("a", supplier, 400e6);
        vm.prank(admin);
        vm.expectEmit(address(treasury));
        emit Treasury.PayoutDayLimitSet(300e6);
        treasury.setPayoutDayLimit(300e6);
        vm.assertEq(treasury.payoutRoom(), 0);
    }

    function test_a_deny_listed_supplier_is_skipped_and_may_be_paid_later() public {
        token.blacklist(denied, true);
        (bytes32[] memory ids, address[] memory to, uint128[] memory sums) =
            (new bytes32[](3), new address[](3), new uint128[](3));
        (ids[0], to[0], sums[0]) = ("1", supplier, 10e6);
        (ids[1], to[1], sums[1]) = ("2", denied, 20e6);
        (ids[2], to[2], sums[2]) = ("3", supplier, 30e6);
        vm.expectEmit(address(treasury));
        emit Treasury.PayoutFailed("2", denied, 20e6);
        vm.prank(operator);
        treasury.payout(ids, to, sums);
        vm.assertEq(token.balanceOf(supplier), 40e6);
        vm.assertEq(treasury.earned(), 2_960e6);
        vm.assertEq(treasury.payoutRoom(), 960e6);
        vm.assertFalse(treasury.usedId("2"));
        token.blacklist(denied, false);
        pay("2", denied, 20e6);
        vm.assertEq(token.balanceOf(denied), 20e6);
    }

    function test_one_id_twice_in_a_call_is_refused() public {
        (bytes32[] memory ids, address[] memory to, uint128[] memory sums) =
            (new bytes32[](2), new address[](2), new uint128[](2));
        (ids[0], to[0], sums[0]) = ("1", supplier, 10e6);
        (ids[1], to[1], sums[1]) = ("1", supplier, 10e6);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(Treasury.IdUsed.selector, bytes32("1")));
        treasury.payout(ids, to, sums);
        vm.assertEq(token.balanceOf(supplier), 0);
    }

    function test_nobody_is_paid_nothing_and_the_treasury_pays_not_itself() public {
        (bytes32[] memory ids, address[] memory to, uint128[] memory sums) = one("p", supplier, 0);
        vm.startPrank(operator);
        vm.expectPartialRevert(Treasury.ZeroAmount.selector);
        treasury.payout(ids, to, sums);
        (to[0], sums[0]) = (address(treasury), 1);
        vm.expectRevert(abi.encodeWithSelector(Treasury.BadBeneficiary.selector, address(treasury)));
        treasury.payout(ids, to, sums);
    }
}
