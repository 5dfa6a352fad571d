// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";
import {Treasury} from "../src/Treasury.sol";
import {TreasuryFixture} from "./support/TreasuryFixture.sol";

contract SpendTest is TreasuryFixture {
    function test_committed_spend_moves_from_the_wallet_to_earned() public {
        fund(alice, 10e6);
        vm.expectEmit(address(treasury));
        emit Treasury.SpendCommitted(1, alice, 3e6, 3e6);
        commit(alice, 3e6);
        vm.assertEq(treasury.available(alice), 7e6);
        vm.assertEq(treasury.earned(), 3e6);
        vm.assertEq(treasury.totalLiability(), 7e6);
    }

    function test_the_same_sum_again_changes_nothing() public {
        fund(alice, 10e6);
        commit(alice, 3e6);
        commit(alice, 3e6);
        commit(alice, 1e6);
        vm.assertEq(treasury.earned(), 3e6);
        vm.assertEq(treasury.available(alice), 7e6);
    }

    function test_an_item_is_clamped_to_what_the_wallet_has() public {
        fund(alice, 10e6);
        vm.expectEmit(address(treasury));
        emit Treasury.SpendCommitted(1, alice, 10e6, 15e6);
        commit(alice, 15e6);
        vm.assertEq(treasury.available(alice), 0);
        fund(alice, 2e6);
        vm.expectEmit(address(treasury));
        emit Treasury.SpendCommitted(1, alice, 12e6, 15e6);
        commit(alice, 15e6);
    }

    function testFuzz_no_item_makes_a_commitment_revert(
        address[5] calldata wallets,
        uint128[5] calldata sums,
        uint128[5] calldata funds,
        uint64 wait
    ) public {
        (address[] memory payers, uint128[] memory spent) = (new address[](6), new uint128[](6));
        uint256 total = 0;
        for (uint256 i = 0; i < 5; ++i) {
            (payers[i], spent[i]) = (wallets[i], sums[i]);
            uint256 amount = within(funds[i], 0, 1e30);
            if (amount == 0 || wallets[i] == address(0) || wallets[i] == address(treasury)) continue;
            token.mint(address(this), amount);
            token.approve(address(treasury), amount);
            treasury.deposit(wallets[i], amount, 0);
            total += amount;
            if (i % 2 == 0) {
                vm.prank(wallets[i]);
                treasury.requestExit(uint128(amount));
            }
        }
        (payers[5], spent[5]) = (wallets[0], sums[1]);
        vm.warp(START + within(wait, 0, 10 days));
        vm.prank(operator);
        treasury.commitSpend(7, payers, spent);
        vm.assertEq(treasury.totalLiability() + treasury.earned(), total);
        requireSolvent();
    }

    function test_lists_of_different_lengths_are_refused() public {
        vm.startPrank(operator);
        vm.expectPartialRevert(Treasury.LengthMismatch.selector);
        treasury.commitSpend(1, new address[](2), new uint128[](1));
        vm.expectPartialRevert(Treasury.LengthMismatch.selector);
        treasury.payout(new bytes32[](1), new address[](1), new uint128[](2));
        vm.expectPartialRevert(Treasury.LengthMismatch.selector);
        treasury.payout(new bytes32[](1), new address[](2), new uint128[](1));
    }

    function test_a_refund_comes_out_of_earned_once() public {
        fund(alice, 10e6);
        commit(alice, 6e6);
        vm.startPrank(operator);
        vm.expectEmit(address(treasury));
        emit Treasury.Refunded("r", alice, 2e6);
        treasury.refund(alice, 2e6, "r");
        vm.expectRevert(abi.encodeWithSelector(Treasury.IdUsed.selector, bytes32("r")));
        treasury.refund(alice, 2e6, "r");
        vm.stopPrank();
        vm.assertEq(treasury.available(alice), 6e6);
        vm.assertEq(treasury.earned(), 4e6);
        vm.assertEq(treasury.refundable(alice), 4e6);
        // Spend is cumulative: what was refunded counts on both sides.
        commit(alice, 7e6);
        vm.assertEq(treasury.available(alice), 5e6);
    }

    function testFuzz_no_wallet_is_refunded_what_another_spent(uint128 own, uint128 others, uint128 asked) public {
        own = uint128(within(own, 0, 1e15));
        others = uint128(within(others, 1, 1e15));
        asked = uint128(within(asked, uint256(own) + 1, type(uint128).max));
        fund(alice, 1e15);
        fund(bob, others);
        commit(alice, own);
        commit(bob, others);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(Treasury.ExceedsRefundable.selector, alice, asked, own));
        treasury.refund(alice, asked, "r");
    }

    function test_what_was_paid_out_cannot_be_refunded() public {
        fund(alice, 10e6);
        commit(alice, 6e6);
        pay("p", supplier, 5e6);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(Treasury.ExceedsEarned.selector, 2e6, 1e6));
        treasury.refund(alice, 2e6, "r");
    }

    function test_nothing_of_the_operators_works_while_paused() public {
        fund(alice, 10e6);
        commit(alice, 5e6);
        vm.prank(guardian);
        treasury.pause();
        vm.startPrank(operator);
        vm.expectPartialRevert(Pausable.EnforcedPause.selector);
        treasury.commitSpend(1, new address[](0), new uint128[](0));
        vm.expectPartialRevert(Pausable.EnforcedPause.selector);
        treasury.refund(alice, 1, "r");
        vm.expectPartialRevert(Pausable.EnforcedPause.selector);
        treasury.creditUnaccounted(alice, 1, "c");
        vm.expectPartialRevert(Pausable.EnforcedPause.selector);
        treasury.payout(new bytes32[](0), new address[](0), new uint128[](0));
    }

    function test_nothing_is_no_refund_and_no_credit() public {
        vm.startPrank(operator);
        vm.expectPartialRevert(Treasury.ZeroAmount.selector);
        treasury.refund(alice, 0, "r");
        vm.expectPartialRevert(Treasury.ZeroAmount.selector);
        treasury.creditUnaccounted(alice, 0, "c");
        vm.expectRevert(abi.encodeWithSelector(Treasury.BadBeneficiary.selector, address(0)));
        treasury.creditUnaccounted(address(0), 1, "c");
    }
}
