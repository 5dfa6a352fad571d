// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Treasury} from "../src/Treasury.sol";
import {HostileToken} from "./support/HostileToken.sol";
import {Checks} from "./support/Vm.sol";

/// @notice This contract holds every role and is the wallet, so a call from inside the token has all
///         rights; only the guard against a second entry stands in its way.
contract HostileTokenTest is Checks {
    HostileToken internal token;
    Treasury internal treasury;

    function setUp() public {
        vm.warp(1_790_000_000);
        token = new HostileToken();
        treasury = new Treasury(token, address(this), 0, 1 days, type(uint128).max);
        treasury.grantRole(treasury.OPERATOR_ROLE(), address(token));
        treasury.grantRole(treasury.OPERATOR_ROLE(), address(this));
        token.mint(address(this), 1_000);
        token.approve(address(treasury), 1_000);
    }

    function calls() internal view returns (bytes[] memory found) {
        found = new bytes[](9);
        found[0] = abi.encodeCall(treasury.deposit, (address(this), 1, 0));
        found[1] = abi.encodeCall(treasury.depositWithPermit, (address(this), 1, 0, 0, 0, 0, 0));
        found[2] = abi.encodeCall(treasury.depositWithAuthorization, (address(this), address(this), 1, 0, 0, 0, 0, 0, 0));
        found[3] = abi.encodeCall(treasury.refund, (address(this), 1, 0));
        found[4] = abi.encodeCall(treasury.creditUnaccounted, (address(this), 1, 0));
        found[5] = abi.encodeCall(treasury.payout, (new bytes32[](0), new address[](0), new uint128[](0)));
        found[6] = abi.encodeCall(treasury.commitSpend, (1, new address[](0), new uint128[](0)));
        found[7] = abi.encodeCall(treasury.finalizeExit, ());
        found[8] = abi.encodeCall(treasury.requestExit, (1));
    }

    function requireStopped(uint256 which) internal view {
        vm.assertFalse(token.done());
        bytes4 found = bytes4(token.answer());
        vm.assertTrue(found == ReentrancyGuard.ReentrancyGuardReentrantCall.selector, vm.toString(which));
    }

    function test_a_deposit_is_not_entered_twice() public {
        bytes[] memory inside = calls();
        for (uint256 i = 0; i < inside.length; ++i) {
            token.arm(address(treasury), inside[i]);
            treasury.deposit(address(this), 10, 0);
            requireStopped(i);
        }
        vm.assertEq(treasury.available(address(this)), 10 * inside.length);
    }

    function test_an_exit_is_not_entered_twice() public {
        treasury.deposit(address(this), 500, 0);
        bytes[] memory inside = calls();
        for (uint256 i = 0; i < inside.length; ++i) {
            treasury.requestExit(10);
            vm.warp(block.timestamp + 1 days);
            token.arm(address(treasury), inside[i]);
            treasury.finalizeExit();
            requireStopped(i);
        }
        vm.assertEq(token.balanceOf(address(treasury)), treasury.totalLiability());
    }

    function test_a_payout_is_not_entered_twice() public {
        treasury.deposit(address(this), 500, 0);
        (address[] memory to, uint128[] memory sums) = (new address[](1), new uint128[](1));
        (to[0], sums[0]) = (address(this), 500);
        treasury.commitSpend(1, to, sums);
        sums[0] = 10;
        bytes[] memory inside = calls();
        for (uint256 i = 0; i < inside.length; ++i) {
            bytes32[] memory ids = new bytes32[](1);
            ids[0] = bytes32(i + 1);
            token.arm(address(treasury), inside[i]);
            treasury.payout(ids, to, sums);
            requireStopped(i);
        }
        vm.assertEq(treasury.earned(), 500 - 10 * inside.length);
    }

    function testFuzz_what_arrives_is_credited_and_no_more(uint128 amount, uint256 perMille) public {
        amount = uint128(within(amount, 1000, 1e30));
        perMille = within(perMille, 0, 999);
        token.mint(address(this), amount);
        token.approve(address(treasury), amount);
        token.keep(perMille);
        treasury.deposit(address(this), amount, 0);
        vm.assertEq(treasury.available(address(this)), amount - uint256(amount) * perMille / 1000);
        vm.assertEq(token.balanceOf(address(treasury)), treasury.totalLiability());
    }

    function test_a_token_that_keeps_everything_or_answers_false_makes_no_deposit() public {
        token.keep(1000);
        vm.expectPartialRevert(Treasury.ZeroAmount.selector);
        treasury.deposit(address(this), 10, 0);
        token.refuse(true);
        vm.expectRevert(abi.encodeWithSelector(SafeERC20.SafeERC20FailedOperation.selector, address(token)));
        treasury.deposit(address(this), 10, 0);
    }

    function test_a_payout_that_the_token_answers_with_false_has_failed() public {
        treasury.deposit(address(this), 500, 0);
        (bytes32[] memory ids, address[] memory to, uint128[] memory sums) =
            (new bytes32[](1), new address[](1), new uint128[](1));
        (ids[0], to[0], sums[0]) = ("p", address(this), 500);
        treasury.commitSpend(1, to, sums);
        token.refuse(true);
        vm.expectEmit(address(treasury));
        emit Treasury.PayoutFailed("p", address(this), 500);
        treasury.payout(ids, to, sums);
        vm.assertEq(treasury.earned(), 500);
        vm.assertFalse(treasury.usedId("p"));
    }
}
