// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";

/// @title Asks whether a contract wallet accepts a signature
/// @notice Never deployed: a node runs its constructor in an `eth_call` without a recipient, and the
///         answer is one byte, 1 for yes and 0 for no. Nothing it does outlives the call.
/// @dev ERC-1271, and ERC-6492 for a wallet that is not deployed yet: there the signature is
///      abi.encode(factory, call, signature) and 32 bytes of mark. A wrapping that cannot be read
///      reverts.
contract SignatureProbe {
    bytes32 private constant MARK = 0x6492649264926492649264926492649264926492649264926492649264926492;

    /// @param signer The wallet.
    /// @param digest What was signed.
    /// @param signature A key's, an ERC-1271 wallet's, or one wrapped as ERC-6492 says.
    constructor(address signer, bytes32 digest, bytes memory signature) {
        bool valid = _isValid(signer, digest, signature);
        // The constructor's answer takes the place of the code that a deployment would return.
        assembly ("memory-safe") {
            mstore(0, valid)
            return(31, 1)
        }
    }

    function _isValid(address signer, bytes32 digest, bytes memory signature) private returns (bool) {
        if (!_isWrapped(signature)) return _accepts(signer, digest, signature);
        uint256 length = signature.length - 32;
        assembly ("memory-safe") {
            mstore(signature, length)
        }
        (address factory, bytes memory made, bytes memory inner) = abi.decode(signature, (address, bytes, bytes));
        if (signer.code.length != 0 && _accepts(signer, digest, inner)) return true;
        // Whether the call worked is seen by the wallet's answer.
        (bool done,) = factory.call(made);
        return done && _accepts(signer, digest, inner);
    }

    function _accepts(address signer, bytes32 digest, bytes memory signature) private view returns (bool) {
        (address found, ECDSA.RecoverError failure,) = ECDSA.tryRecover(digest, signature);
        if (failure == ECDSA.RecoverError.NoError && found == signer) return true;
        return signer.code.length != 0 && SignatureChecker.isValidERC1271SignatureNow(signer, digest, signature);
    }

    function _isWrapped(bytes memory signature) private pure returns (bool) {
        if (signature.length < 32) return false;
        bytes32 end;
        assembly ("memory-safe") {
            end := mload(add(signature, mload(signature)))
        }
        return end == MARK;
    }
}
