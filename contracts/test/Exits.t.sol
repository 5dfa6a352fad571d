// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MockUSDC} from "../src/MockUSDC.sol";
import {Treasury} from "../src/Treasury.sol";
import {TreasuryFixture} from "./support/TreasuryFixture.sol";

contract ExitsTest is TreasuryFixture {
    uint64 internal constant READY = uint64(START) + EXIT_DELAY;

    function setUp() public override {
        super.setUp();
        fund(alice, 100e6);
        fund(bob, 100e6);
    }

    function request(address wallet, uint128 amount) internal {
        vm.prank(wallet);
        treasury.requestExit(amount);
    }

    function finalize(address wallet) internal {
        vm.prank(wallet);
        treasury.finalizeExit();
    }

    function exitOf(address wallet) internal view returns (uint128 amount, uint64 readyAt) {
        (,,, amount, readyAt) = treasury.accounts(wallet);
    }

    function test_a_wallet_leaves_alone_while_paused_and_with_no_operator() public {
        bytes32 role = treasury.OPERATOR_ROLE();
        vm.prank(guardian);
        treasury.pause();
        vm.prank(admin);
        treasury.revokeRole(role, operator);
        vm.expectEmit(address(treasury));
        emit Treasury.ExitRequested(alice, 100e6, READY);
        request(alice, 100e6);
        vm.warp(READY);
        vm.expectEmit(address(treasury));
        emit Treasury.ExitFinalized(alice, 100e6);
        finalize(alice);
        vm.assertEq(token.balanceOf(alice), 100e6);
        vm.assertEq(treasury.available(alice), 0);
        vm.assertEq(treasury.totalLiability(), 100e6);
    }

    function test_an_exit_is_taken_from_its_time_to_the_end_of_its_window() public {
        uint64 end = READY + treasury.EXIT_WINDOW();
        request(alice, 50e6);
        request(bob, 50e6);
        vm.warp(READY - 1);
        vm.expectRevert(abi.encodeWithSelector(Treasury.ExitNotReady.selector, READY));
        finalize(alice);
        vm.warp(READY);
        finalize(alice);
        vm.warp(end + 1);
        vm.expectRevert(abi.encodeWithSelector(Treasury.ExitLapsed.selector, end));
        finalize(bob);
        vm.warp(end);
        finalize(bob);
        vm.assertEq(token.balanceOf(bob), 50e6);
    }

    function test_after_its_window_an_exit_is_asked_for_anew() public {
        request(alice, 50e6);
        vm.warp(READY + 72 hours + 1);
        request(alice, 60e6);
        vm.expectPartialRevert(Treasury.ExitNotReady.selector);
        finalize(alice);
        vm.warp(block.timestamp + EXIT_DELAY);
        finalize(alice);
        vm.assertEq(token.balanceOf(alice), 60e6);
    }

    function test_an_exit_is_paid_once() public {
        request(alice, 50e6);
        vm.warp(READY);
        finalize(alice);
        vm.expectRevert(abi.encodeWithSelector(Treasury.NoExit.selector, alice));
        finalize(alice);
        vm.assertEq(token.balanceOf(alice), 50e6);
    }

    function test_a_new_request_takes_the_place_of_the_old_and_waits_anew() public {
        request(alice, 50e6);
        vm.warp(READY - 1);
        request(alice, 10e6);
        vm.warp(READY);
        vm.expectPartialRevert(Treasury.ExitNotReady.selector);
        finalize(alice);
        vm.warp(READY - 1 + EXIT_DELAY);
        finalize(alice);
        vm.assertEq(token.balanceOf(alice), 10e6);
    }

    function test_a_cancelled_exit_pays_nothing() public {
        request(alice, 50e6);
        vm.expectEmit(address(treasury));
        emit Treasury.ExitCancelled(alice);
        vm.prank(alice);
        treasury.cancelExit();
        vm.warp(READY);
        vm.expectRevert(abi.encodeWithSelector(Treasury.NoExit.selector, alice));
        finalize(alice);
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(Treasury.NoExit.selector, alice));
        treasury.cancelExit();
    }

    function testFuzz_no_exit_is_asked_for_above_the_balance(uint128 amount) public {
        amount = uint128(within(amount, 100e6 + 1, type(uint128).max));
        vm.expectRevert(abi.encodeWithSelector(Treasury.ExceedsAvailable.selector, alice, amount, 100e6));
        request(alice, amount);
        vm.expectPartialRevert(Treasury.ZeroAmount.selector);
        request(alice, 0);
    }

    function testFuzz_spend_and_withdrawals_cut_an_open_exit(uint128 asked, uint128 spent, uint128 taken) public {
        asked = uint128(within(asked, 1, 100e6));
        spent = uint128(within(spent, 0, 99e6));
        taken = uint128(within(taken, 1, 100e6 - spent));
        request(alice, asked);
        commit(alice, spent);
        withdraw(alice, taken, signedWithdrawal(ALICE_KEY, alice, taken));
        uint128 left = 100e6 - spent - taken;
        (uint128 open, uint64 readyAt) = exitOf(alice);
        vm.assertEq(open, asked < left ? asked : left);
        vm.assertEq(readyAt, left == 0 ? 0 : READY);
        vm.warp(READY);
        if (open == 0) vm.expectRevert(abi.encodeWithSelector(Treasury.NoExit.selector, alice));
        finalize(alice);
        vm.assertLe(token.balanceOf(alice), 100e6 - spent);
        requireSolvent();
    }

    function test_an_exit_that_is_cut_says_what_is_left() public {
        request(alice, 80e6);
        vm.expectEmit(address(treasury));
        emit Treasury.ExitReduced(alice, 30e6);
        commit(alice, 70e6);
        vm.expectEmit(address(treasury));
        emit Treasury.ExitReduced(alice, 0);
        commit(alice, 100e6);
    }

    function test_a_deposit_or_refund_does_not_raise_an_open_exit() public {
        request(alice, 80e6);
        commit(alice, 70e6);
        fund(alice, 500e6);
        vm.prank(operator);
        treasury.refund(alice, 70e6, "r");
        (uint128 open,) = exitOf(alice);
        vm.assertEq(open, 30e6);
    }

    function test_a_deny_listed_wallet_keeps_its_balance_through_a_failed_exit() public {
        request(alice, 100e6);
        token.blacklist(alice, true);
        vm.warp(READY);
        vm.expectRevert(abi.encodeWithSelector(MockUSDC.AccountBlacklisted.selector, alice));
        finalize(alice);
        vm.assertEq(treasury.available(alice), 100e6);
        vm.assertEq(treasury.totalLiability(), 200e6);
        token.blacklist(alice, false);
        finalize(alice);
        vm.assertEq(token.balanceOf(alice), 100e6);
    }

    function test_nobody_ends_or_takes_the_exit_of_another() public {
        request(alice, 100e6);
        vm.warp(READY);
        vm.expectRevert(abi.encodeWithSelector(Treasury.NoExit.selector, bob));
        finalize(bob);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(Treasury.NoExit.selector, operator));
        treasury.cancelExit();
        finalize(alice);
        vm.assertEq(token.balanceOf(alice), 100e6);
    }
}
