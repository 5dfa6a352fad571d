// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MerkleLog} from "../../src/MerkleLog.sol";

/// @title Roots and proofs by RFC 9162's recursive definitions, for tests
/// @dev It shares with the contracts only the hash of a leaf and of a node.
library Tree {
    /// @notice Leaf hashes of a log whose entries are the numbers from 0.
    function leaves(uint256 size) internal pure returns (bytes32[] memory found) {
        found = new bytes32[](size);
        for (uint256 i = 0; i < size; ++i) {
            found[i] = MerkleLog.leafHash(abi.encode(i));
        }
    }

    /// @notice Section 2.1.1, over leaves `start` .. `end` - 1.
    function root(bytes32[] memory all, uint256 start, uint256 end) internal pure returns (bytes32) {
        if (end - start == 1) return all[start];
        uint256 middle = start + split(end - start);
        return MerkleLog.nodeHash(root(all, start, middle), root(all, middle, end));
    }

    /// @notice Section 2.1.3.1.
    function path(bytes32[] memory all, uint256 index, uint256 start, uint256 end)
        internal
        pure
        returns (bytes32[] memory)
    {
        if (end - start == 1) return new bytes32[](0);
        uint256 middle = start + split(end - start);
        return index < middle
            ? append(path(all, index, start, middle), root(all, middle, end))
            : append(path(all, index, middle, end), root(all, start, middle));
    }

    /// @notice Section 2.1.4.1: SUBPROOF(old, leaves start .. end - 1, known).
    function growth(bytes32[] memory all, uint256 old, uint256 start, uint256 end, bool known)
        internal
        pure
        returns (bytes32[] memory)
    {
        if (old == end - start) {
            return known ? new bytes32[](0) : append(new bytes32[](0), root(all, start, end));
        }
        uint256 left = split(end - start);
        return old <= left
            ? append(growth(all, old, start, start + left, known), root(all, start + left, end))
            : append(growth(all, old - left, start + left, end, false), root(all, start, start + left));
    }

    function split(uint256 size) private pure returns (uint256 left) {
        left = 1;
        while (left * 2 < size) left *= 2;
    }

    function append(bytes32[] memory list, bytes32 last) internal pure returns (bytes32[] memory longer) {
        longer = new bytes32[](list.length + 1);
        for (uint256 i = 0; i < list.length; ++i) {
            longer[i] = list[i];
        }
        longer[list.length] = last;
    }
}
