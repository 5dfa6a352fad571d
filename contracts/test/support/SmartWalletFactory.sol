// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SmartWallet} from "./SmartWallet.sol";

/// @title Makes contract wallets at addresses known beforehand, for tests
/// @notice A wallet's address follows from its owner and a salt (CREATE2), so a signature can be made
///         for a wallet that is not deployed yet (ERC-6492).
contract SmartWalletFactory {
    event Deployed(address indexed wallet, address indexed owner, bytes32 salt);

    /// @notice Deploys the wallet, or finds it deployed.
    function deploy(address owner, bytes32 salt) external returns (address wallet) {
        wallet = addressOf(owner, salt);
        if (wallet.code.length != 0) return wallet;
        wallet = address(new SmartWallet{salt: salt}(owner));
        emit Deployed(wallet, owner, salt);
    }

    /// @notice Where the wallet is or will be.
    function addressOf(address owner, bytes32 salt) public view returns (address) {
        bytes32 code = keccak256(abi.encodePacked(type(SmartWallet).creationCode, abi.encode(owner)));
        return address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), salt, code)))));
    }
}
