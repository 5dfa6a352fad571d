// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {ReceiptAnchor} from "../src/ReceiptAnchor.sol";
import {MerkleLog} from "../src/MerkleLog.sol";
import {Tree} from "./support/Tree.sol";
import {Vectors} from "./support/Vectors.sol";

contract ReceiptAnchorTest is Vectors {
    bytes32 internal constant CHECKPOINT = keccak256("checkpoint");
    ReceiptAnchor internal anchor;
    address internal publisher = address(0xa0);
    bytes32[] internal all;
    bytes32[] internal none;

    function setUp() public {
        anchor = new ReceiptAnchor(address(this), 1 days);
        anchor.grantRole(anchor.ANCHOR_ROLE(), publisher);
        all = Tree.leaves(40);
    }

    function publish(uint64 size) internal {
        bytes32[] memory proof = anchor.size() == 0 ? none : Tree.growth(all, anchor.size(), 0, size, true);
        bytes32 root = Tree.root(all, 0, size);
        vm.prank(publisher);
        anchor.publish(size, root, proof);
    }

    function testFuzz_a_log_grows_by_any_steps(uint256 seed) public {
        uint64 size = 0;
        for (uint256 i = 0; i < 6 && size < 40; ++i) {
            uint64 before = size;
            size += uint64(within(uint256(keccak256(abi.encode(seed, i))), 1, 40 - size));
            vm.expectEmit(address(anchor));
            emit ReceiptAnchor.Published(size, Tree.root(all, 0, size), before);
            publish(size);
            vm.assertEq(anchor.size(), size);
            vm.assertEq(anchor.root(), Tree.root(all, 0, size));
            vm.assertEq(anchor.rootAt(size), anchor.root());
        }
    }

    function testFuzz_a_rewritten_log_is_refused(uint256 older, uint256 size, uint256 changed) public {
        size = within(size, 2, 40);
        older = within(older, 1, size - 1);
        changed = within(changed, 0, older - 1);
        publish(uint64(older));
        all[changed] = MerkleLog.leafHash("another entry");
        bytes32[] memory proof = Tree.growth(all, older, 0, size, true);
        bytes32 root = Tree.root(all, 0, size);
        vm.prank(publisher);
        vm.expectRevert(abi.encodeWithSelector(ReceiptAnchor.Inconsistent.selector, older, size));
        anchor.publish(uint64(size), root, proof);
    }

    function testFuzz_roots_only_grow(uint64 size) public {
        publish(30);
        size = uint64(within(size, 0, 30));
        vm.prank(publisher);
        vm.expectRevert(abi.encodeWithSelector(ReceiptAnchor.NotLarger.selector, size, 30));
        anchor.publish(size, "root", none);
    }

    function test_the_first_root_comes_without_a_proof() public {
        vm.startPrank(publisher);
        vm.expectRevert(abi.encodeWithSelector(ReceiptAnchor.Inconsistent.selector, 0, 3));
        anchor.publish(3, "root", new bytes32[](1));
        vm.expectPartialRevert(ReceiptAnchor.ZeroRoot.selector);
        anchor.publish(3, 0, none);
    }

    function testFuzz_only_the_anchor_role_publishes(address caller) public {
        vm.assume(caller != publisher);
        bytes32 role = anchor.ANCHOR_ROLE();
        vm.prank(caller);
        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, caller, role)
        );
        anchor.publish(3, "root", none);
    }

    // ------------------------------------------------------------------------------- inclusion

    function vectors() internal view returns (string memory) {
        return vm.readFile(string.concat(FOLDER, "receipts.json"));
    }

    function word(string memory json, string memory key) internal pure returns (bytes32) {
        return bytes32(vm.parseJsonUint(json, key));
    }

    /// @notice The log of `tests/vectors/receipts.json`, published in two steps.
    function publishVectors(string memory json) internal returns (bytes32[] memory leaves) {
        leaves = new bytes32[](6);
        for (uint256 i = 0; i < 6; ++i) {
            leaves[i] = word(json, string.concat(member(".log.entries", i), ".leaf_hash"));
        }
        vm.startPrank(publisher);
        anchor.publish(2, word(json, ".log.roots[2]"), none);
        anchor.publish(6, word(json, ".log.roots[6]"), Tree.growth(leaves, 2, 0, 6, true));
        vm.stopPrank();
    }

    function test_the_logs_entries_are_found_by_their_own_bytes() public {
        string memory json = vectors();
        bytes32[] memory leaves = publishVectors(json);
        for (uint64 i = 0; i < 6; ++i) {
            string memory key = member(".log.entries", i);
            string memory kind = vm.parseJsonString(json, string.concat(key, ".kind"));
            bytes memory entry = bytes(vm.parseJsonString(json, string.concat(key, ".entry")));
            bytes32[] memory proof = Tree.path(leaves, i, 0, 6);
            vm.assertTrue(anchor.verifyEntry(kind, entry, i, 6, proof), kind);
            vm.assertFalse(anchor.verifyEntry("other", entry, i, 6, proof));
            vm.assertFalse(anchor.verifyEntry(kind, bytes.concat(entry, " "), i, 6, proof));
            vm.assertFalse(anchor.verifyEntry(kind, entry, (i + 1) % 6, 6, proof));
            vm.assertFalse(anchor.verifyEntry(kind, entry, i, 5, proof));
            vm.assertFalse(anchor.verifyEntry(kind, abi.encodePacked(leaves[i]), i, 6, proof));
        }
    }

    function test_a_batchs_records_are_found_by_digest_and_signature() public view {
        string memory json = vectors();
        bytes32 root = word(json, ".batches[0].root");
        for (uint64 i = 0; i < 3; ++i) {
            string memory key = member(".batches[0].records", i);
            bytes32 digest = word(json, string.concat(key, ".digest"));
            bytes memory signature = vm.parseJsonBytes(json, string.concat(key, ".signature"));
            string memory list = member(".batches[0].proofs", i);
            bytes32[] memory proof = new bytes32[](has(json, member(list, 1)) ? 2 : 1);
            for (uint256 j = 0; j < proof.length; ++j) {
                proof[j] = word(json, member(list, j));
            }
            vm.assertTrue(anchor.verifyRecord(digest, signature, i, 3, root, proof));
            vm.assertFalse(anchor.verifyRecord(digest, bytes.concat(signature, "0"), i, 3, root, proof));
            vm.assertFalse(anchor.verifyRecord(~digest, signature, i, 3, root, proof));
            vm.assertFalse(anchor.verifyRecord(digest, signature, i, 2, root, proof));
        }
    }

    function test_a_kind_cannot_contain_what_ends_it() public {
        publish(1);
        string[5] memory wrong = ["", "a b", "usage-record@v1", "A", "123456789012345678901234567890123"];
        for (uint256 i = 0; i < wrong.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(ReceiptAnchor.BadKind.selector, wrong[i]));
            anchor.verifyEntry(wrong[i], "entry", 0, 1, none);
        }
    }

    // ------------------------------------------------------------------------------------ keys

    function test_a_key_counts_from_its_size_to_the_next_ones() public {
        publish(10);
        anchor.registerKey(CHECKPOINT, "first", 1);
        vm.expectEmit(address(anchor));
        emit ReceiptAnchor.KeyRegistered(CHECKPOINT, "second", 11);
        anchor.registerKey(CHECKPOINT, "second", 11);
        vm.assertEq(anchor.keyAt(CHECKPOINT, 0), bytes(""));
        vm.assertEq(anchor.keyAt(CHECKPOINT, 1), bytes("first"));
        vm.assertEq(anchor.keyAt(CHECKPOINT, 10), bytes("first"));
        vm.assertEq(anchor.keyAt(CHECKPOINT, 11), bytes("second"));
        vm.assertEq(anchor.keyAt(CHECKPOINT, type(uint64).max), bytes("second"));
        vm.assertEq(anchor.keyAt("record", 11), bytes(""));
    }

    function test_what_was_anchored_keeps_the_key_it_had() public {
        anchor.registerKey(CHECKPOINT, "first", 0);
        publish(10);
        vm.expectRevert(abi.encodeWithSelector(ReceiptAnchor.KeyNotAhead.selector, 10, 10));
        anchor.registerKey(CHECKPOINT, "second", 10);
        anchor.registerKey(CHECKPOINT, "second", 20);
        vm.expectRevert(abi.encodeWithSelector(ReceiptAnchor.KeyNotAhead.selector, 20, 20));
        anchor.registerKey(CHECKPOINT, "third", 20);
    }

    function test_only_the_admin_registers_keys_of_a_sensible_length() public {
        vm.prank(publisher);
        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, publisher, bytes32(0))
        );
        anchor.registerKey(CHECKPOINT, "key", 0);
        vm.expectRevert(abi.encodeWithSelector(ReceiptAnchor.BadKeyLength.selector, 0));
        anchor.registerKey(CHECKPOINT, "", 0);
        vm.expectRevert(abi.encodeWithSelector(ReceiptAnchor.BadKeyLength.selector, 257));
        anchor.registerKey(CHECKPOINT, new bytes(257), 0);
    }
}
