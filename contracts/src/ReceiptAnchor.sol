// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AccessControlDefaultAdminRules} from
    "@openzeppelin/contracts/access/extensions/AccessControlDefaultAdminRules.sol";
import {MerkleLog} from "./MerkleLog.sol";

/// @title The receipt log's roots on chain
/// @notice Takes a root of the receipt log only with a proof that the log it stands for begins with
///         everything the last root stood for. So what was anchored can be added to, never changed.
/// @dev docs/spec/receipt-anchor.md gives the bytes. The contract holds no money.
contract ReceiptAnchor is AccessControlDefaultAdminRules {
    /// @notice May publish roots.
    bytes32 public constant ANCHOR_ROLE = keccak256("ANCHOR_ROLE");

    /// @notice The longest name of an entry's kind, in bytes.
    uint256 public constant MAX_KIND_BYTES = 32;

    /// @notice Entries in the log that the last root stands for; 0 before the first.
    uint64 public size;

    /// @notice The root over `size` entries; zero before the first.
    bytes32 public root;

    /// @notice The root that was published for a size; zero when none was.
    mapping(uint64 size => bytes32 root) public rootAt;

    struct Key {
        uint64 fromSize;
        bytes key;
    }

    mapping(bytes32 role => Key[]) private _keys;

    /// @notice A root was published.
    /// @param size Entries in the log.
    /// @param root The root over them.
    /// @param previousSize Entries under the root before, 0 for the first.
    event Published(uint64 indexed size, bytes32 root, uint64 previousSize);

    /// @notice A key was registered.
    /// @param role Whose key: see `registerKey`.
    /// @param key The public key's bytes.
    /// @param fromSize The log size from which it counts.
    event KeyRegistered(bytes32 indexed role, bytes key, uint64 fromSize);

    /// @notice The log does not grow.
    error NotLarger(uint64 newSize, uint64 size);
    /// @notice A root of zero stands for no log.
    error ZeroRoot();
    /// @notice The proof does not show that the new log begins with the old one.
    error Inconsistent(uint64 size, uint64 newSize);
    /// @notice An entry's kind is 1 to 32 characters of a-z, 0-9 and -.
    error BadKind(string kind);
    /// @notice A key has 1 to 256 bytes.
    error BadKeyLength(uint256 length);
    /// @notice A later key counts from a size above the last root's and above the key before it.
    error KeyNotAhead(uint64 fromSize, uint64 above);

    /// @notice An anchor without roots.
    /// @param admin Grants roles and registers keys.
    /// @param adminDelay Seconds between the start of an admin transfer and its acceptance.
    constructor(address admin, uint48 adminDelay) AccessControlDefaultAdminRules(adminDelay, admin) {}

    /// @notice Publishes the root of a larger log.
    /// @param newSize Entries in the log, more than `size`.
    /// @param newRoot The root over them.
    /// @param proof The RFC 9162 consistency proof from `size` to `newSize`; empty for the first root.
    function publish(uint64 newSize, bytes32 newRoot, bytes32[] calldata proof) external onlyRole(ANCHOR_ROLE) {
        uint64 previous = size;
        if (newSize <= previous) revert NotLarger(newSize, previous);
        if (newRoot == 0) revert ZeroRoot();
        bool holds = previous == 0 ? proof.length == 0 : MerkleLog.consistent(previous, root, newSize, newRoot, proof);
        if (!holds) revert Inconsistent(previous, newSize);
        size = newSize;
        root = newRoot;
        rootAt[newSize] = newRoot;
        emit Published(newSize, newRoot, previous);
    }

    /// @notice Whether an entry stands in the log under a published root.
    /// @dev Takes the entry's own bytes and makes the leaf itself: `offpeak/<kind>@v1 <SHA-256 in hex>`
    ///      and a line feed. A bare hash could be an inner node.
    /// @param kind `batch-header`, `key-rotation` or `export-manifest`.
    /// @param entry The entry's bytes.
    /// @param index Its place in the log, from 0.
    /// @param atSize A size that was published; the answer is false for any other.
    /// @param proof The inclusion proof at that size.
    function verifyEntry(
        string calldata kind,
        bytes calldata entry,
        uint64 index,
        uint64 atSize,
        bytes32[] calldata proof
    ) external view returns (bool) {
        _requireKind(kind);
        bytes32 published = rootAt[atSize];
        if (published == 0) return false;
        bytes memory line = abi.encodePacked("offpeak/", kind, "@v1 ", _hex(sha256(entry)), "\n");
        return MerkleLog.included(MerkleLog.leafHash(line), index, atSize, published, proof);
    }

    /// @notice Whether a signed usage record stands in a batch with this records root.
    /// @dev The root comes from a batch header: show that one with `verifyEntry`. The signature is
    ///      bound to the record, not checked: whose it is depends on the key in force.
    /// @param digest The record's EIP-712 digest.
    /// @param signature The record key's signature, 65 bytes.
    /// @param index The record's place in its batch, from 0.
    /// @param count Records in the batch.
    /// @param recordsRoot The batch's root.
    /// @param proof The inclusion proof in the batch.
    function verifyRecord(
        bytes32 digest,
        bytes calldata signature,
        uint64 index,
        uint64 count,
        bytes32 recordsRoot,
        bytes32[] calldata proof
    ) external pure returns (bool) {
        bytes memory line =
            abi.encodePacked("offpeak/usage-record@v1 ", _hex(digest), " ", _hex(sha256(signature)), "\n");
        return MerkleLog.included(MerkleLog.leafHash(line), index, count, recordsRoot, proof);
    }

    /// @notice Registers the public key that counts for a role from a log size on.
    /// @dev The first key of a role may count from any size. A later one must count from a size above
    ///      the last root's: what was anchored keeps the key it had.
    /// @param role keccak256 of the role's name: `record` (20-byte address) or `checkpoint` (Ed25519).
    /// @param key The public key's bytes, 1 to 256.
    /// @param fromSize The first log size at which it counts.
    function registerKey(bytes32 role, bytes calldata key, uint64 fromSize) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (key.length == 0 || key.length > 256) revert BadKeyLength(key.length);
        Key[] storage keys = _keys[role];
        if (keys.length != 0) {
            uint64 last = keys[keys.length - 1].fromSize;
            uint64 above = last > size ? last : size;
            if (fromSize <= above) revert KeyNotAhead(fromSize, above);
        }
        keys.push(Key({fromSize: fromSize, key: key}));
        emit KeyRegistered(role, key, fromSize);
    }

    /// @notice The key that counts for a role at a log size; empty when none does.
    /// @param role keccak256 of the role's name.
    /// @param atSize The log size asked about.
    function keyAt(bytes32 role, uint64 atSize) external view returns (bytes memory) {
        Key[] storage keys = _keys[role];
        for (uint256 i = keys.length; i != 0; --i) {
            if (keys[i - 1].fromSize <= atSize) return keys[i - 1].key;
        }
        return "";
    }

    /// @dev A kind cannot contain what ends it in a leaf, so one leaf is never read as two kinds.
    function _requireKind(string calldata kind) private pure {
        bytes calldata name = bytes(kind);
        if (name.length == 0 || name.length > MAX_KIND_BYTES) revert BadKind(kind);
        for (uint256 i = 0; i < name.length; ++i) {
            bytes1 c = name[i];
            bool allowed = (c >= "a" && c <= "z") || (c >= "0" && c <= "9") || c == "-";
            if (!allowed) revert BadKind(kind);
        }
    }

    /// @dev 64 lower-case digits, without 0x.
    function _hex(bytes32 value) private pure returns (bytes memory text) {
        bytes16 digits = "0123456789abcdef";
        text = new bytes(64);
        for (uint256 i = 0; i < 32; ++i) {
            text[2 * i] = digits[uint8(value[i]) >> 4];
            text[2 * i + 1] = digits[uint8(value[i]) & 0x0f];
        }
    }
}
