// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @title A contract wallet for tests (ERC-1271)
/// @notice Its owner is a key, or another such wallet that is asked in turn. It can be told to misbehave.
contract SmartWallet is IERC1271 {
    enum Mode {
        Honest, // 0: what the owner signed is accepted
        Refusing, // 1: answers with another value
        Reverting, // 2: reverts
        Expensive, // 3: uses all the gas it is given
        Short, // 4: answers with 4 bytes in place of a word
        Long, // 5: answers yes in front of 64 kB of nothing
        Trusting // 6: accepts everything
    }

    /// @notice The key or wallet whose signature counts.
    address public immutable owner;
    /// @notice How it behaves when it is asked.
    Mode public mode;

    error NotOwner(address caller);
    error Refused();

    constructor(address owner_) {
        owner = owner_;
    }

    /// @notice Sets how it behaves, for everybody who asks.
    function setMode(Mode mode_) external {
        mode = mode_;
    }

    /// @notice Calls another contract as this wallet. The owner's key alone may.
    function execute(address to, uint256 value, bytes calldata data) external payable returns (bytes memory) {
        if (msg.sender != owner) revert NotOwner(msg.sender);
        (bool done, bytes memory answer) = to.call{value: value}(data);
        if (!done) {
            assembly ("memory-safe") {
                revert(add(answer, 32), mload(answer))
            }
        }
        return answer;
    }

    /// @inheritdoc IERC1271
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (mode == Mode.Refusing) return 0xffffffff;
        if (mode == Mode.Reverting) revert Refused();
        if (mode == Mode.Expensive) _burn();
        if (mode == Mode.Short) _answer(4);
        if (mode == Mode.Long) _answer(65536);
        if (mode == Mode.Trusting || _signed(hash, signature)) return IERC1271.isValidSignature.selector;
        return 0xffffffff;
    }

    function _signed(bytes32 hash, bytes calldata signature) private view returns (bool) {
        if (owner.code.length != 0) {
            return IERC1271(owner).isValidSignature(hash, signature) == IERC1271.isValidSignature.selector;
        }
        (address found, ECDSA.RecoverError failure,) = ECDSA.tryRecoverCalldata(hash, signature);
        return failure == ECDSA.RecoverError.NoError && found == owner;
    }

    function _burn() private view {
        while (gasleft() > 0) {}
    }

    function _answer(uint256 length) private pure {
        bytes4 yes = IERC1271.isValidSignature.selector;
        assembly {
            mstore(0, yes)
            return(0, length)
        }
    }
}
