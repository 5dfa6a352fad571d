// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MockUSDC} from "../src/MockUSDC.sol";
import {Checks} from "./support/Vm.sol";

contract MockUSDCTest is Checks {
    uint256 internal constant KEY = 0xA11CE; // a TEST key
    uint256 internal constant START = 1_790_000_000;
    MockUSDC internal token;
    address internal alice = vm.addr(KEY);
    address internal bob = address(0xb0);

    function setUp() public {
        vm.warp(START);
        token = new MockUSDC();
        token.mint(alice, 100);
    }

    function sign(bytes32 message) internal view returns (uint8 v, bytes32 r, bytes32 s) {
        return vm.sign(KEY, keccak256(abi.encodePacked(hex"1901", token.DOMAIN_SEPARATOR(), message)));
    }

    function transferMessage(uint256 amount, bytes32 nonce) internal view returns (bytes32) {
        bytes32 kind = token.TRANSFER_WITH_AUTHORIZATION_TYPEHASH();
        return keccak256(abi.encode(kind, alice, bob, amount, START - 1, START + 60, nonce));
    }

    function test_the_domain_and_the_types_are_those_of_usdc() public view {
        vm.assertEq(token.name(), "USD Coin");
        vm.assertEq(token.version(), "2");
        vm.assertEq(token.decimals(), 6);
        vm.assertEq(
            token.DOMAIN_SEPARATOR(),
            keccak256(
                abi.encode(
                    keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                    keccak256("USD Coin"),
                    keccak256("2"),
                    block.chainid,
                    address(token)
                )
            )
        );
        // As the token contracts on the public chains answer.
        vm.assertEq(token.PERMIT_TYPEHASH(), 0x6e71edae12b1b97f4d1f60370fef10105fa2faae0126114a169c64845d6126c9);
        vm.assertEq(
            token.TRANSFER_WITH_AUTHORIZATION_TYPEHASH(),
            0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267
        );
        vm.assertEq(
            token.RECEIVE_WITH_AUTHORIZATION_TYPEHASH(),
            0xd099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de8
        );
        vm.assertEq(
            token.CANCEL_AUTHORIZATION_TYPEHASH(), 0x158b0a9edf7a828aad02f63cd515c68ef2f50ba807396f6d12842833a1597429
        );
    }

    function test_a_permit_allows_once() public {
        bytes32 message = keccak256(abi.encode(token.PERMIT_TYPEHASH(), alice, bob, 70, 0, type(uint256).max));
        (uint8 v, bytes32 r, bytes32 s) = sign(message);
        token.permit(alice, bob, 70, type(uint256).max, v, r, s);
        vm.assertEq(token.allowance(alice, bob), 70);
        vm.expectPartialRevert(MockUSDC.InvalidSignature.selector);
        token.permit(alice, bob, 70, type(uint256).max, v, r, s);
        vm.expectRevert(abi.encodeWithSelector(MockUSDC.SignatureExpired.selector, START - 1));
        token.permit(alice, bob, 70, START - 1, v, r, s);
    }

    function test_an_authorization_moves_once_within_its_time() public {
        (uint8 v, bytes32 r, bytes32 s) = sign(transferMessage(30, "n"));
        vm.warp(START - 1);
        vm.expectRevert(abi.encodeWithSelector(MockUSDC.AuthorizationNotYetValid.selector, START - 1));
        token.transferWithAuthorization(alice, bob, 30, START - 1, START + 60, "n", v, r, s);
        vm.warp(START + 60);
        vm.expectRevert(abi.encodeWithSelector(MockUSDC.SignatureExpired.selector, START + 60));
        token.transferWithAuthorization(alice, bob, 30, START - 1, START + 60, "n", v, r, s);
        vm.warp(START);
        token.transferWithAuthorization(alice, bob, 30, START - 1, START + 60, "n", v, r, s);
        vm.assertTrue(token.authorizationState(alice, "n"));
        vm.expectRevert(
            abi.encodeWithSelector(MockUSDC.AuthorizationUsedOrCanceled.selector, alice, bytes32("n"))
        );
        token.transferWithAuthorization(alice, bob, 30, START - 1, START + 60, "n", v, r, s);
        vm.assertEq(token.balanceOf(bob), 30);
    }

    function test_a_cancelled_authorization_moves_nothing() public {
        (uint8 v, bytes32 r, bytes32 s) =
            sign(keccak256(abi.encode(token.CANCEL_AUTHORIZATION_TYPEHASH(), alice, bytes32("n"))));
        token.cancelAuthorization(alice, "n", v, r, s);
        (v, r, s) = sign(transferMessage(30, "n"));
        vm.expectPartialRevert(MockUSDC.AuthorizationUsedOrCanceled.selector);
        token.transferWithAuthorization(alice, bob, 30, START - 1, START + 60, "n", v, r, s);
    }

    function test_nobody_on_the_deny_list_sends_receives_or_allows() public {
        token.blacklist(bob, true);
        bytes memory refused = abi.encodeWithSelector(MockUSDC.AccountBlacklisted.selector, bob);
        vm.startPrank(alice);
        vm.expectRevert(refused);
        token.transfer(bob, 1);
        vm.expectRevert(refused);
        token.approve(bob, 1);
        vm.stopPrank();
        token.blacklist(bob, false);
        vm.prank(alice);
        token.approve(bob, 50);
        token.blacklist(bob, true);
        vm.prank(bob);
        vm.expectRevert(refused);
        token.transferFrom(alice, address(0xc0), 1);
    }
}
