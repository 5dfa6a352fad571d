// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MerkleLog} from "../src/MerkleLog.sol";
import {Tree} from "./support/Tree.sol";
import {Vectors} from "./support/Vectors.sol";

contract MerkleLogTest is Vectors {
    uint256 internal constant MOST = 70;

    /// @dev The vectors are transparency-dev/merkle's (Apache-2.0); see tests/vectors.
    function test_the_public_consistency_vectors_hold() public view {
        string memory json = vm.readFile(string.concat(FOLDER, "rfc6962/consistency.json"));
        uint256 count = 0;
        for (string memory key = "[0]"; has(json, key); key = member("", ++count)) {
            bool holds = MerkleLog.consistent(
                uint64(vm.parseJsonUint(json, string.concat(key, ".size1"))),
                hash(json, string.concat(key, ".root1")),
                uint64(vm.parseJsonUint(json, string.concat(key, ".size2"))),
                hash(json, string.concat(key, ".root2")),
                hashes(json, string.concat(key, ".proof"))
            );
            check(holds, json, key);
        }
        vm.assertEq(count, 84);
    }

    function test_the_public_inclusion_vectors_hold() public view {
        string memory json = vm.readFile(string.concat(FOLDER, "rfc6962/inclusion.json"));
        uint256 count = 0;
        for (string memory key = "[0]"; has(json, key); key = member("", ++count)) {
            bool holds = MerkleLog.included(
                hash(json, string.concat(key, ".leafHash")),
                uint64(vm.parseJsonUint(json, string.concat(key, ".leafIdx"))),
                uint64(vm.parseJsonUint(json, string.concat(key, ".treeSize"))),
                hash(json, string.concat(key, ".root")),
                hashes(json, string.concat(key, ".proof"))
            );
            check(holds, json, key);
        }
        vm.assertEq(count, 82);
    }

    function check(bool holds, string memory json, string memory key) internal pure {
        bool refused = vm.parseJsonBool(json, string.concat(key, ".wantErr"));
        vm.assertEq(holds, !refused, vm.parseJsonString(json, string.concat(key, ".name")));
    }

    function testFuzz_every_leaf_of_every_tree_is_shown(uint256 size, uint256 index) public pure {
        size = within(size, 1, MOST);
        index = within(index, 0, size - 1);
        bytes32[] memory all = Tree.leaves(size);
        bytes32[] memory proof = Tree.path(all, index, 0, size);
        bytes32 root = Tree.root(all, 0, size);
        vm.assertTrue(MerkleLog.included(all[index], uint64(index), uint64(size), root, proof));
        vm.assertFalse(MerkleLog.included(all[index], uint64(index), uint64(size), root, Tree.append(proof, root)));
        if (size == 1) return;
        uint64 other = uint64((index + 1) % size);
        vm.assertFalse(MerkleLog.included(all[index], other, uint64(size), root, proof));
        proof[index % proof.length] ^= bytes32(uint256(1) << (size * 3));
        vm.assertFalse(MerkleLog.included(all[index], uint64(index), uint64(size), root, proof));
    }

    function testFuzz_every_growth_is_shown(uint256 older, uint256 size, uint256 bit) public pure {
        size = within(size, 2, MOST);
        older = within(older, 1, size - 1);
        bytes32[] memory all = Tree.leaves(size);
        bytes32[] memory proof = Tree.growth(all, older, 0, size, true);
        bytes32 before = Tree.root(all, 0, older);
        bytes32 root = Tree.root(all, 0, size);
        (uint64 m, uint64 n) = (uint64(older), uint64(size));
        vm.assertTrue(MerkleLog.consistent(m, before, n, root, proof));
        vm.assertFalse(MerkleLog.consistent(m, before ^ bytes32(uint256(1)), n, root, proof));
        vm.assertFalse(MerkleLog.consistent(m, before, n, root ^ bytes32(uint256(1)), proof));
        vm.assertFalse(MerkleLog.consistent(m, before, n, root, Tree.append(proof, root)));
        bit = within(bit, 0, proof.length * 256 - 1);
        proof[bit / 256] ^= bytes32(uint256(1) << (bit % 256));
        vm.assertFalse(MerkleLog.consistent(m, before, n, root, proof));
    }

    function testFuzz_no_proof_makes_it_revert(
        uint64 older,
        uint64 size,
        bytes32 before,
        bytes32 root,
        bytes32[] calldata proof
    ) public pure {
        MerkleLog.consistent(older, before, size, root, proof);
        MerkleLog.included(before, older, size, root, proof);
    }
}
