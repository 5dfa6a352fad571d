// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IAccessControlDefaultAdminRules} from
    "@openzeppelin/contracts/access/extensions/IAccessControlDefaultAdminRules.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Treasury} from "../src/Treasury.sol";
import {TreasuryFixture} from "./support/TreasuryFixture.sol";

contract RolesTest is TreasuryFixture {
    function refused(address caller, bytes32 role) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, caller, role);
    }

    function test_a_new_treasury_has_an_admin_and_no_other_role() public {
        Treasury fresh = new Treasury(token, admin, 1 days, EXIT_DELAY, DAY_LIMIT);
        vm.assertFalse(fresh.hasRole(fresh.OPERATOR_ROLE(), admin));
        vm.assertFalse(fresh.hasRole(fresh.GUARDIAN_ROLE(), admin));
        vm.assertEq(fresh.defaultAdmin(), admin);
        vm.assertEq(address(fresh.token()), address(token));
        vm.assertEq(uint256(fresh.exitDelay()), EXIT_DELAY);
    }

    function testFuzz_nobody_but_the_operator_moves_money(address caller) public {
        vm.assume(caller != operator);
        bytes32 role = treasury.OPERATOR_ROLE();
        vm.startPrank(caller);
        vm.expectRevert(refused(caller, role));
        treasury.withdraw(alice, 1, 0, 0, 0, 0, "");
        vm.expectRevert(refused(caller, role));
        treasury.commitSpend(1, new address[](0), new uint128[](0));
        vm.expectRevert(refused(caller, role));
        treasury.refund(alice, 1, 0);
        vm.expectRevert(refused(caller, role));
        treasury.creditUnaccounted(alice, 1, 0);
        vm.expectRevert(refused(caller, role));
        treasury.payout(new bytes32[](0), new address[](0), new uint128[](0));
    }

    function test_the_guardian_stops_and_the_admin_starts() public {
        bytes32 guards = treasury.GUARDIAN_ROLE();
        vm.prank(operator);
        vm.expectRevert(refused(operator, guards));
        treasury.pause();
        vm.prank(guardian);
        treasury.pause();
        vm.assertTrue(treasury.paused());
        vm.prank(guardian);
        vm.expectRevert(refused(guardian, 0));
        treasury.unpause();
        vm.prank(admin);
        treasury.unpause();
        vm.assertFalse(treasury.paused());
    }

    function test_only_the_admin_sets_the_limit() public {
        vm.prank(operator);
        vm.expectRevert(refused(operator, 0));
        treasury.setPayoutDayLimit(1);
    }

    function test_the_admin_changes_hands_after_the_delay_alone() public {
        vm.prank(admin);
        treasury.beginDefaultAdminTransfer(bob);
        vm.prank(bob);
        vm.expectPartialRevert(IAccessControlDefaultAdminRules.AccessControlEnforcedDefaultAdminDelay.selector);
        treasury.acceptDefaultAdminTransfer();
        vm.warp(START + 1 days + 1);
        vm.prank(bob);
        treasury.acceptDefaultAdminTransfer();
        vm.assertEq(treasury.defaultAdmin(), bob);
        vm.assertFalse(treasury.hasRole(0x00, admin));
    }

    function test_a_token_without_code_and_a_senseless_exit_delay_are_refused() public {
        vm.expectRevert(abi.encodeWithSelector(Treasury.BadToken.selector, alice));
        new Treasury(IERC20(alice), admin, 1 days, EXIT_DELAY, DAY_LIMIT);
        vm.expectRevert(abi.encodeWithSelector(Treasury.BadExitDelay.selector, uint64(0)));
        new Treasury(token, admin, 1 days, 0, DAY_LIMIT);
        vm.expectRevert(abi.encodeWithSelector(Treasury.BadExitDelay.selector, uint64(30 days + 1)));
        new Treasury(token, admin, 1 days, 30 days + 1, DAY_LIMIT);
    }

    function test_the_treasury_takes_no_native_coins() public {
        (bool taken,) = address(treasury).call{value: 1}("");
        vm.assertFalse(taken);
    }

    function test_the_withdrawal_id_is_the_digest_that_wallets_compute() public view {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("OFFPEAK"),
                keccak256("1"),
                block.chainid,
                address(treasury)
            )
        );
        bytes32 message = keccak256(
            abi.encode(
                keccak256(
                    "Withdrawal(address payer,address token,uint256 amount,uint256 maxFee,bytes32 nonce,uint64 deadline)"
                ),
                alice,
                address(token),
                uint256(5e6),
                uint256(10),
                bytes32("n"),
                uint64(START)
            )
        );
        vm.assertEq(
            treasury.withdrawalId(alice, 5e6, 10, "n", uint64(START)),
            keccak256(abi.encodePacked(hex"1901", domain, message))
        );
    }
}
