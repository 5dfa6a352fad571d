// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";
import {MockUSDC} from "../src/MockUSDC.sol";
import {Treasury} from "../src/Treasury.sol";
import {SmartWallet} from "./support/SmartWallet.sol";
import {TreasuryFixture} from "./support/TreasuryFixture.sol";

contract WithdrawalsTest is TreasuryFixture {
    bytes32 internal constant NONCE = bytes32(uint256(1));
    uint64 internal constant DEADLINE = uint64(START + 1 hours);

    function setUp() public override {
        super.setUp();
        fund(alice, 100e6);
        fund(bob, 100e6);
    }

    function testFuzz_the_payer_gets_the_amount_less_the_fee(uint256 amount, uint256 maxFee, uint256 fee) public {
        amount = within(amount, 1, 100e6);
        maxFee = within(maxFee, 0, amount);
        fee = within(fee, 0, maxFee);
        bytes32 id = treasury.withdrawalId(alice, amount, maxFee, NONCE, DEADLINE);
        vm.expectEmit(address(treasury));
        emit Treasury.Withdrawn(id, alice, amount, fee);
        vm.prank(operator);
        treasury.withdraw(alice, amount, maxFee, NONCE, DEADLINE, fee, signed(ALICE_KEY, id));
        vm.assertEq(token.balanceOf(alice), amount - fee);
        vm.assertEq(treasury.earned(), fee);
        vm.assertEq(treasury.available(alice), 100e6 - amount);
        vm.assertTrue(treasury.usedId(id));
        requireSolvent();
    }

    function testFuzz_no_wallet_takes_more_than_its_own(uint256 amount) public {
        amount = within(amount, 100e6 + 1, type(uint256).max);
        bytes memory signature = signedWithdrawal(ALICE_KEY, alice, amount);
        vm.expectRevert(abi.encodeWithSelector(Treasury.ExceedsAvailable.selector, alice, amount, 100e6));
        withdraw(alice, amount, signature);
    }

    function testFuzz_another_keys_signature_moves_nothing(uint256 key) public {
        key = within(key, 1, 2 ** 128);
        vm.assume(key != ALICE_KEY);
        bytes memory signature = signedWithdrawal(key, alice, 1e6);
        vm.expectPartialRevert(Treasury.BadSignature.selector);
        withdraw(alice, 1e6, signature);
    }

    function testFuzz_a_signature_counts_for_what_it_signed_alone(uint8 which, uint64 other) public {
        bytes memory signature = signedWithdrawal(ALICE_KEY, alice, 1e6);
        which = uint8(within(which, 0, 3));
        other = uint64(within(other, 1, 98e6));
        vm.expectPartialRevert(Treasury.BadSignature.selector);
        vm.prank(operator);
        treasury.withdraw(
            alice,
            which == 0 ? 1e6 + other : 1e6,
            which == 1 ? other : 0,
            which == 2 ? bytes32(uint256(1) + other) : NONCE,
            which == 3 ? DEADLINE + other : DEADLINE,
            0,
            signature
        );
    }

    function test_a_withdrawal_is_paid_once() public {
        bytes memory signature = signedWithdrawal(ALICE_KEY, alice, 1e6);
        withdraw(alice, 1e6, signature);
        vm.expectPartialRevert(Treasury.IdUsed.selector);
        withdraw(alice, 1e6, signature);
        vm.assertEq(token.balanceOf(alice), 1e6);
    }

    function test_the_mirrored_signature_with_a_high_s_is_refused() public {
        bytes32 id = treasury.withdrawalId(alice, 1e6, 0, NONCE, DEADLINE);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(ALICE_KEY, id);
        uint256 order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141;
        bytes memory mirrored = abi.encodePacked(r, bytes32(order - uint256(s)), v == 27 ? uint8(28) : uint8(27));
        vm.expectPartialRevert(Treasury.BadSignature.selector);
        withdraw(alice, 1e6, mirrored);
    }

    function test_the_deadlines_own_second_is_the_last_one() public {
        bytes memory signature = signedWithdrawal(ALICE_KEY, alice, 1e6);
        vm.warp(DEADLINE + 1);
        vm.expectRevert(abi.encodeWithSelector(Treasury.WithdrawalExpired.selector, DEADLINE));
        withdraw(alice, 1e6, signature);
        vm.warp(DEADLINE);
        withdraw(alice, 1e6, signature);
    }

    function test_no_fee_is_above_what_the_wallet_agreed_to_or_the_amount() public {
        bytes memory low = signed(ALICE_KEY, treasury.withdrawalId(alice, 1e6, 5, NONCE, DEADLINE));
        bytes memory high = signed(ALICE_KEY, treasury.withdrawalId(alice, 10, 1e6, NONCE, DEADLINE));
        vm.startPrank(operator);
        vm.expectRevert(abi.encodeWithSelector(Treasury.FeeTooHigh.selector, 6, 5));
        treasury.withdraw(alice, 1e6, 5, NONCE, DEADLINE, 6, low);
        vm.expectRevert(abi.encodeWithSelector(Treasury.FeeTooHigh.selector, 11, 10));
        treasury.withdraw(alice, 10, 1e6, NONCE, DEADLINE, 11, high);
        vm.expectPartialRevert(Treasury.ZeroAmount.selector);
        treasury.withdraw(alice, 0, 1e6, NONCE, DEADLINE, 0, high);
    }

    function test_replay_on_another_chain_fails() public {
        bytes memory signature = signedWithdrawal(ALICE_KEY, alice, 1e6);
        vm.chainId(block.chainid + 1);
        vm.expectPartialRevert(Treasury.BadSignature.selector);
        withdraw(alice, 1e6, signature);
    }

    function test_replay_on_another_contract_fails() public {
        bytes memory signature = signedWithdrawal(ALICE_KEY, alice, 1e6);
        treasury = new Treasury(token, admin, 1 days, EXIT_DELAY, DAY_LIMIT);
        bytes32 role = treasury.OPERATOR_ROLE();
        vm.prank(admin);
        treasury.grantRole(role, operator);
        fund(alice, 10e6);
        vm.expectPartialRevert(Treasury.BadSignature.selector);
        withdraw(alice, 1e6, signature);
    }

    function test_only_the_operator_relays() public {
        bytes memory signature = signedWithdrawal(ALICE_KEY, alice, 1e6);
        bytes32 role = treasury.OPERATOR_ROLE();
        vm.prank(alice);
        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, alice, role)
        );
        treasury.withdraw(alice, 1e6, 0, NONCE, DEADLINE, 0, signature);
    }

    function test_withdrawals_stop_while_paused() public {
        bytes memory signature = signedWithdrawal(ALICE_KEY, alice, 1e6);
        vm.prank(guardian);
        treasury.pause();
        vm.expectPartialRevert(Pausable.EnforcedPause.selector);
        withdraw(alice, 1e6, signature);
    }

    function test_a_deny_listed_recipient_leaves_the_liability() public {
        bytes memory signature = signedWithdrawal(ALICE_KEY, alice, 1e6);
        token.blacklist(alice, true);
        vm.expectRevert(abi.encodeWithSelector(MockUSDC.AccountBlacklisted.selector, alice));
        withdraw(alice, 1e6, signature);
        vm.assertEq(treasury.available(alice), 100e6);
        vm.assertEq(treasury.totalLiability(), 200e6);
        vm.assertFalse(treasury.usedId(treasury.withdrawalId(alice, 1e6, 0, NONCE, DEADLINE)));
        token.blacklist(alice, false);
        withdraw(alice, 1e6, signature);
        vm.assertEq(token.balanceOf(alice), 1e6);
    }

    function test_a_withdrawal_uses_its_id_for_no_other_kind() public {
        bytes32 id = treasury.withdrawalId(alice, 1e6, 0, NONCE, DEADLINE);
        commit(alice, 5e6);
        vm.prank(operator);
        treasury.refund(alice, 1e6, id);
        vm.assertTrue(treasury.isUsed(Treasury.IdKind.Refund, id));
        vm.assertFalse(treasury.isUsed(Treasury.IdKind.Withdrawal, id));
        withdraw(alice, 1e6, signed(ALICE_KEY, id));
        vm.assertEq(token.balanceOf(alice), 1e6);
    }

    // ------------------------------------------------------------------------ contract wallets

    function test_a_contract_wallet_withdraws_by_its_owners_signature() public {
        SmartWallet wallet = new SmartWallet(alice);
        fund(address(wallet), 10e6);
        bytes memory signature = signedWithdrawal(ALICE_KEY, address(wallet), 4e6);
        withdraw(address(wallet), 4e6, signature);
        vm.assertEq(token.balanceOf(address(wallet)), 4e6);
    }

    function test_a_contract_wallet_owned_by_another_is_asked_through_it() public {
        SmartWallet wallet = new SmartWallet(address(new SmartWallet(alice)));
        fund(address(wallet), 10e6);
        withdraw(address(wallet), 4e6, signedWithdrawal(ALICE_KEY, address(wallet), 4e6));
        vm.assertEq(token.balanceOf(address(wallet)), 4e6);
    }

    function test_a_contract_wallet_that_refuses_or_breaks_pays_nothing() public {
        SmartWallet wallet = new SmartWallet(alice);
        fund(address(wallet), 10e6);
        bytes memory signature = signedWithdrawal(ALICE_KEY, address(wallet), 4e6);
        SmartWallet.Mode[4] memory modes =
            [SmartWallet.Mode.Refusing, SmartWallet.Mode.Reverting, SmartWallet.Mode.Short, SmartWallet.Mode.Expensive];
        for (uint256 i = 0; i < modes.length; ++i) {
            wallet.setMode(modes[i]);
            vm.prank(operator);
            vm.expectPartialRevert(Treasury.BadSignature.selector);
            treasury.withdraw{gas: 2_000_000}(address(wallet), 4e6, 0, NONCE, DEADLINE, 0, signature);
        }
        wallet.setMode(SmartWallet.Mode.Honest);
        bytes memory other = signedWithdrawal(BOB_KEY, address(wallet), 4e6);
        vm.expectPartialRevert(Treasury.BadSignature.selector);
        withdraw(address(wallet), 4e6, other);
    }

    function test_a_wallet_with_delegated_code_still_signs_with_its_key() public {
        SmartWallet refusing = new SmartWallet(bob);
        vm.etch(alice, abi.encodePacked(hex"ef0100", address(refusing)));
        withdraw(alice, 1e6, signedWithdrawal(ALICE_KEY, alice, 1e6));
        vm.assertEq(token.balanceOf(alice), 1e6);
    }
}
