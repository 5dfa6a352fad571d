// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";
import {MockUSDC} from "../src/MockUSDC.sol";
import {Treasury} from "../src/Treasury.sol";
import {TreasuryFixture} from "./support/TreasuryFixture.sol";

contract DepositsTest is TreasuryFixture {
    bytes32 internal constant REF = bytes32("ref");
    address internal anybody = address(0xa9);

    function test_a_deposit_is_credited_to_its_beneficiary_and_logged() public {
        token.mint(alice, 5e6);
        vm.startPrank(alice);
        token.approve(address(treasury), 5e6);
        vm.expectEmit(address(treasury));
        emit Treasury.Deposited(alice, bob, 5e6, REF);
        treasury.deposit(bob, 5e6, REF);
        vm.assertEq(treasury.available(bob), 5e6);
        vm.assertEq(treasury.available(alice), 0);
        vm.assertEq(treasury.totalLiability(), 5e6);
    }

    function testFuzz_the_liability_is_what_came_in(uint128 first, uint128 second) public {
        first = uint128(within(first, 1, type(uint128).max / 2));
        second = uint128(within(second, 1, type(uint128).max / 2));
        fund(alice, first);
        fund(bob, second);
        vm.assertEq(treasury.totalLiability(), uint256(first) + second);
        vm.assertEq(treasury.available(alice), first);
        vm.assertEq(treasury.unaccounted(), 0);
        requireSolvent();
    }

    function test_a_balance_beyond_128_bits_is_refused() public {
        fund(alice, type(uint128).max);
        token.mint(alice, 1);
        vm.startPrank(alice);
        token.approve(address(treasury), 1);
        vm.expectRevert();
        treasury.deposit(alice, 1, REF);
    }

    function test_nothing_is_no_deposit() public {
        vm.prank(alice);
        vm.expectPartialRevert(Treasury.ZeroAmount.selector);
        treasury.deposit(alice, 0, REF);
    }

    function test_nobody_deposits_for_an_address_that_cannot_use_it() public {
        token.mint(alice, 2);
        vm.startPrank(alice);
        token.approve(address(treasury), 2);
        vm.expectRevert(abi.encodeWithSelector(Treasury.BadBeneficiary.selector, address(0)));
        treasury.deposit(address(0), 1, REF);
        vm.expectRevert(abi.encodeWithSelector(Treasury.BadBeneficiary.selector, address(treasury)));
        treasury.deposit(address(treasury), 1, REF);
    }

    function test_deposits_of_all_kinds_stop_while_paused() public {
        vm.prank(guardian);
        treasury.pause();
        vm.expectPartialRevert(Pausable.EnforcedPause.selector);
        treasury.deposit(alice, 1, REF);
        vm.expectPartialRevert(Pausable.EnforcedPause.selector);
        treasury.depositWithPermit(alice, 1, REF, START, 27, 0, 0);
        vm.expectPartialRevert(Pausable.EnforcedPause.selector);
        treasury.depositWithAuthorization(alice, alice, 1, REF, 0, START, 27, 0, 0);
    }

    // ------------------------------------------------------------------------------- permit

    function test_anybody_submits_a_permit_and_its_signer_is_credited() public {
        token.mint(alice, 7e6);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(ALICE_KEY, permitDigest(alice, 7e6, START + 60));
        vm.prank(anybody);
        treasury.depositWithPermit(alice, 7e6, REF, START + 60, v, r, s);
        vm.assertEq(treasury.available(alice), 7e6);
        vm.assertEq(treasury.available(anybody), 0);
    }

    function test_a_payer_whose_permit_was_submitted_by_another_first_goes_on() public {
        token.mint(alice, 7e6);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(ALICE_KEY, permitDigest(alice, 7e6, START + 60));
        vm.prank(anybody);
        token.permit(alice, address(treasury), 7e6, START + 60, v, r, s);
        vm.prank(alice);
        treasury.depositWithPermit(alice, 7e6, REF, START + 60, v, r, s);
        vm.assertEq(treasury.available(alice), 7e6);
    }

    function test_nobody_deposits_the_allowance_of_another_behind_a_false_permit() public {
        token.mint(alice, 7e6);
        vm.prank(alice);
        token.approve(address(treasury), 7e6);
        vm.prank(anybody);
        vm.expectRevert(abi.encodeWithSelector(Treasury.PermitRefused.selector, alice));
        treasury.depositWithPermit(alice, 7e6, REF, START + 60, 27, bytes32(uint256(1)), bytes32(uint256(1)));
        vm.assertEq(token.balanceOf(alice), 7e6);
    }

    // ------------------------------------------------------------------------ authorization

    function test_an_authorization_names_its_beneficiary_by_its_nonce() public {
        token.mint(alice, 3e6);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(ALICE_KEY, authorizationDigest(alice, bob, 3e6, REF));
        vm.startPrank(anybody);
        vm.expectPartialRevert(MockUSDC.InvalidSignature.selector);
        treasury.depositWithAuthorization(alice, anybody, 3e6, REF, START - 1, START + 1 hours, v, r, s);
        vm.expectPartialRevert(MockUSDC.InvalidSignature.selector);
        treasury.depositWithAuthorization(alice, bob, 3e6, "other", START - 1, START + 1 hours, v, r, s);
        treasury.depositWithAuthorization(alice, bob, 3e6, REF, START - 1, START + 1 hours, v, r, s);
        vm.assertEq(treasury.available(bob), 3e6);
        vm.assertEq(treasury.available(anybody), 0);
    }

    function test_an_authorization_pays_once() public {
        token.mint(alice, 6e6);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(ALICE_KEY, authorizationDigest(alice, alice, 3e6, REF));
        treasury.depositWithAuthorization(alice, alice, 3e6, REF, START - 1, START + 1 hours, v, r, s);
        vm.expectPartialRevert(MockUSDC.AuthorizationUsedOrCanceled.selector);
        treasury.depositWithAuthorization(alice, alice, 3e6, REF, START - 1, START + 1 hours, v, r, s);
        vm.assertEq(treasury.available(alice), 3e6);
    }

    function test_nobody_takes_an_authorization_past_the_treasury() public {
        token.mint(alice, 3e6);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(ALICE_KEY, authorizationDigest(alice, alice, 3e6, REF));
        bytes32 nonce = keccak256(abi.encode(alice, REF));
        vm.startPrank(anybody);
        vm.expectPartialRevert(MockUSDC.CallerMustBePayee.selector);
        token.receiveWithAuthorization(alice, address(treasury), 3e6, START - 1, START + 1 hours, nonce, v, r, s);
        vm.expectPartialRevert(MockUSDC.InvalidSignature.selector);
        token.transferWithAuthorization(alice, address(treasury), 3e6, START - 1, START + 1 hours, nonce, v, r, s);
    }

    // ------------------------------------------------------------------------ plain transfers

    function test_a_plain_transfer_is_unaccounted_until_it_is_credited_once() public {
        token.mint(address(treasury), 9e6);
        vm.assertEq(treasury.unaccounted(), 9e6);
        vm.assertEq(treasury.totalLiability(), 0);
        vm.startPrank(operator);
        vm.expectEmit(address(treasury));
        emit Treasury.UnaccountedCredited("claim", alice, 4e6);
        treasury.creditUnaccounted(alice, 4e6, "claim");
        vm.expectRevert(abi.encodeWithSelector(Treasury.IdUsed.selector, bytes32("claim")));
        treasury.creditUnaccounted(alice, 1, "claim");
        vm.assertEq(treasury.available(alice), 4e6);
        vm.assertEq(treasury.unaccounted(), 5e6);
    }

    function testFuzz_no_more_is_credited_than_came_unaccounted(uint128 came, uint128 owed, uint128 asked) public {
        came = uint128(within(came, 0, 1e15));
        owed = uint128(within(owed, 1, 1e15));
        asked = uint128(within(asked, uint256(came) + 1, type(uint128).max));
        fund(bob, owed);
        commit(bob, owed / 2);
        token.mint(address(treasury), came);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(Treasury.ExceedsUnaccounted.selector, asked, came));
        treasury.creditUnaccounted(alice, asked, "claim");
    }
}
