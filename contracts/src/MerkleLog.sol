// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Proofs about an append-only Merkle tree
/// @notice The verifying algorithms of RFC 9162, section 2.1, with SHA-256: a leaf is hashed behind
///         a byte 0x00 and two children behind 0x01, so no inner node passes as a leaf.
/// @dev Every function answers false for a proof that is wrong in any way, also for one that is too
///      long or too short; none reverts.
library MerkleLog {
    /// @notice The hash of a leaf.
    /// @param data The leaf's bytes.
    function leafHash(bytes memory data) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(bytes1(0x00), data));
    }

    /// @notice The hash of an inner node over its children.
    function nodeHash(bytes32 left, bytes32 right) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(bytes1(0x01), left, right));
    }

    /// @notice Whether `leaf` is number `index` of the tree with `size` leaves and root `root`.
    /// @dev RFC 9162, section 2.1.3.2. `leaf` is a leaf's hash: whoever takes a leaf from outside
    ///      must hash it himself.
    function included(bytes32 leaf, uint64 index, uint64 size, bytes32 root, bytes32[] memory proof)
        internal
        pure
        returns (bool)
    {
        if (index >= size) return false;
        uint64 place = index;
        uint64 last = size - 1;
        bytes32 found = leaf;
        for (uint256 i = 0; i < proof.length; ++i) {
            if (last == 0) return false;
            if (place & 1 == 1 || place == last) {
                found = nodeHash(proof[i], found);
                // A node that was promoted has no sibling on the levels it skipped.
                while (place & 1 == 0 && place != 0) {
                    place >>= 1;
                    last >>= 1;
                }
            } else {
                found = nodeHash(found, proof[i]);
            }
            place >>= 1;
            last >>= 1;
        }
        return last == 0 && found == root;
    }

    /// @notice Whether the tree with `newSize` leaves and root `newRoot` begins with all the leaves,
    ///         in order, of the tree with `oldSize` leaves and root `oldRoot`.
    /// @dev RFC 9162, section 2.1.4.2. `oldSize` is at least 1: nothing is proved about no leaves.
    function consistent(uint64 oldSize, bytes32 oldRoot, uint64 newSize, bytes32 newRoot, bytes32[] memory proof)
        internal
        pure
        returns (bool)
    {
        if (oldSize == 0 || oldSize > newSize) return false;
        if (oldSize == newSize) return proof.length == 0 && oldRoot == newRoot;
        uint64 place = oldSize - 1;
        uint64 last = newSize - 1;
        while (place & 1 == 1) {
            place >>= 1;
            last >>= 1;
        }
        if (proof.length == 0) return false;
        // A complete old tree is a node of the new one, and its root is left out of the proof.
        uint256 next = place == 0 ? 0 : 1;
        bytes32 oldFound = place == 0 ? oldRoot : proof[0];
        bytes32 newFound = oldFound;
        for (; next < proof.length; ++next) {
            if (last == 0) return false;
            if (place & 1 == 1 || place == last) {
                oldFound = nodeHash(proof[next], oldFound);
                newFound = nodeHash(proof[next], newFound);
                while (place & 1 == 0 && place != 0) {
                    place >>= 1;
                    last >>= 1;
                }
            } else {
                newFound = nodeHash(newFound, proof[next]);
            }
            place >>= 1;
            last >>= 1;
        }
        return last == 0 && oldFound == oldRoot && newFound == newRoot;
    }
}
