// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MockUSDC} from "../../src/MockUSDC.sol";
import {Treasury} from "../../src/Treasury.sol";
import {Checks} from "./Vm.sol";

/// @title A treasury with its roles granted, two wallets and a supplier
/// @dev Keys are numbers that everybody knows: TEST keys.
abstract contract TreasuryFixture is Checks {
    uint64 internal constant EXIT_DELAY = 2 days;
    uint128 internal constant DAY_LIMIT = 1_000e6;
    uint256 internal constant ALICE_KEY = 0xA11CE;
    uint256 internal constant BOB_KEY = 0xB0B;
    uint256 internal constant START = 1_790_000_000;

    MockUSDC internal token;
    Treasury internal treasury;
    address internal admin = address(0xAD);
    address internal operator = address(0x0b);
    address internal guardian = address(0x6a);
    address internal supplier = address(0x5e);
    address internal alice = vm.addr(ALICE_KEY);
    address internal bob = vm.addr(BOB_KEY);

    function setUp() public virtual {
        vm.warp(START);
        token = new MockUSDC();
        treasury = new Treasury(token, admin, 1 days, EXIT_DELAY, DAY_LIMIT);
        vm.startPrank(admin);
        treasury.grantRole(treasury.OPERATOR_ROLE(), operator);
        treasury.grantRole(treasury.GUARDIAN_ROLE(), guardian);
        vm.stopPrank();
    }

    /// @notice Pays coins in for a wallet by a deposit of its own.
    function fund(address wallet, uint256 amount) internal {
        token.mint(wallet, amount);
        vm.startPrank(wallet);
        token.approve(address(treasury), amount);
        treasury.deposit(wallet, amount, bytes32("fund"));
        vm.stopPrank();
    }

    /// @notice Commits one wallet's cumulative spend.
    function commit(address wallet, uint128 spent) internal {
        (address[] memory payers, uint128[] memory sums) = (new address[](1), new uint128[](1));
        (payers[0], sums[0]) = (wallet, spent);
        vm.prank(operator);
        treasury.commitSpend(1, payers, sums);
    }

    /// @notice Pays one supplier.
    function pay(bytes32 id, address recipient, uint128 amount) internal {
        (bytes32[] memory ids, address[] memory to, uint128[] memory sums) = one(id, recipient, amount);
        vm.prank(operator);
        treasury.payout(ids, to, sums);
    }

    function one(bytes32 id, address recipient, uint128 amount)
        internal
        pure
        returns (bytes32[] memory ids, address[] memory recipients, uint128[] memory amounts)
    {
        (ids, recipients, amounts) = (new bytes32[](1), new address[](1), new uint128[](1));
        (ids[0], recipients[0], amounts[0]) = (id, recipient, amount);
    }

    /// @notice A key's signature over a digest, 65 bytes.
    function signed(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }

    /// @notice A key's signature over a withdrawal without a fee, nonce 1, deadline in an hour.
    function signedWithdrawal(uint256 key, address payer, uint256 amount) internal view returns (bytes memory) {
        return signed(key, treasury.withdrawalId(payer, amount, 0, bytes32(uint256(1)), uint64(START + 1 hours)));
    }

    /// @notice Relays that withdrawal as the operator.
    function withdraw(address payer, uint256 amount, bytes memory signature) internal {
        vm.prank(operator);
        treasury.withdraw(payer, amount, 0, bytes32(uint256(1)), uint64(START + 1 hours), 0, signature);
    }

    /// @notice The digest of a message under the token's domain.
    function tokenDigest(bytes32 message) internal view returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", token.DOMAIN_SEPARATOR(), message));
    }

    function permitDigest(address owner, uint256 amount, uint256 deadline) internal view returns (bytes32) {
        bytes32 kind = token.PERMIT_TYPEHASH();
        return tokenDigest(
            keccak256(abi.encode(kind, owner, address(treasury), amount, token.nonces(owner), deadline))
        );
    }

    function authorizationDigest(address from, address beneficiary, uint256 amount, bytes32 ref)
        internal
        view
        returns (bytes32)
    {
        bytes32 kind = token.RECEIVE_WITH_AUTHORIZATION_TYPEHASH();
        bytes32 nonce = keccak256(abi.encode(beneficiary, ref));
        return tokenDigest(
            keccak256(abi.encode(kind, from, address(treasury), amount, START - 1, START + 1 hours, nonce))
        );
    }

    function requireSolvent() internal view {
        vm.assertGe(token.balanceOf(address(treasury)), treasury.totalLiability() + treasury.earned());
    }
}
