// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SignatureProbe} from "../src/SignatureProbe.sol";
import {SmartWallet} from "./support/SmartWallet.sol";
import {SmartWalletFactory} from "./support/SmartWalletFactory.sol";
import {Checks} from "./support/Vm.sol";

contract SignatureProbeTest is Checks {
    uint256 internal constant KEY = 0xA11CE; // a TEST key
    bytes32 internal constant DIGEST = keccak256("what is signed");
    bytes32 internal constant MARK = 0x6492649264926492649264926492649264926492649264926492649264926492;
    address internal owner = vm.addr(KEY);
    SmartWalletFactory internal factory;

    function setUp() public {
        factory = new SmartWalletFactory();
    }

    /// @notice What an `eth_call` without a recipient would answer.
    function ask(address signer, bytes memory signature) internal returns (bytes memory answer) {
        bytes memory code = abi.encodePacked(type(SignatureProbe).creationCode, abi.encode(signer, DIGEST, signature));
        address made;
        assembly {
            made := create(0, add(code, 32), mload(code))
        }
        return made.code;
    }

    function own() internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(KEY, DIGEST);
        return abi.encodePacked(r, s, v);
    }

    function wrapped(bytes memory call, bytes memory signature) internal view returns (bytes memory) {
        return bytes.concat(abi.encode(address(factory), call, signature), MARK);
    }

    function test_a_key_and_a_deployed_wallet_are_asked() public {
        SmartWallet wallet = new SmartWallet(owner);
        vm.assertEq(ask(owner, own()), hex"01");
        vm.assertEq(ask(address(wallet), own()), hex"01");
        vm.assertEq(ask(address(0xb0), own()), hex"00");
        wallet.setMode(SmartWallet.Mode.Reverting);
        vm.assertEq(ask(address(wallet), own()), hex"00");
        wallet.setMode(SmartWallet.Mode.Short);
        vm.assertEq(ask(address(wallet), own()), hex"00");
        wallet.setMode(SmartWallet.Mode.Long);
        vm.assertEq(ask(address(wallet), own()), hex"01");
    }

    function test_a_wallet_that_is_not_deployed_yet_is_made_and_asked() public {
        address wallet = factory.addressOf(owner, "salt");
        bytes memory call = abi.encodeCall(factory.deploy, (owner, "salt"));
        vm.assertEq(ask(wallet, own()), hex"00");
        vm.assertEq(ask(wallet, wrapped(call, own())), hex"01");
    }

    function test_a_wrapping_that_makes_another_wallet_or_fails_is_no() public {
        address wallet = factory.addressOf(owner, "salt");
        vm.assertEq(ask(wallet, wrapped(abi.encodeCall(factory.deploy, (owner, "other")), own())), hex"00");
        vm.assertEq(ask(wallet, wrapped(hex"12345678", own())), hex"00");
        bytes memory call = abi.encodeCall(factory.deploy, (owner, "salt"));
        vm.assertEq(ask(wallet, wrapped(call, abi.encodePacked(own(), hex"00"))), hex"00");
    }

    function test_a_deployed_wallet_takes_a_wrapped_signature_too() public {
        address wallet = factory.deploy(owner, "salt");
        bytes memory call = abi.encodeCall(factory.deploy, (owner, "salt"));
        vm.assertEq(ask(wallet, wrapped(call, own())), hex"01");
    }

    function test_a_wrapping_that_cannot_be_read_gets_no_answer() public {
        vm.assertEq(ask(owner, bytes.concat("short", MARK)), hex"");
    }
}
