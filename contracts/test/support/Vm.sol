// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The part of Foundry's test machine that our tests use
/// @notice The functions are Foundry's; its documentation describes them.
interface Vm {
    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    function addr(uint256 key) external pure returns (address);
    function assume(bool condition) external pure;
    function assertEq(uint256 left, uint256 right) external pure;
    function assertEq(uint256 left, uint256 right, string calldata reason) external pure;
    function assertEq(bytes32 left, bytes32 right) external pure;
    function assertEq(address left, address right) external pure;
    function assertEq(bytes calldata left, bytes calldata right) external pure;
    function assertEq(bool left, bool right, string calldata reason) external pure;
    function assertEq(string calldata left, string calldata right) external pure;
    function assertGe(uint256 left, uint256 right) external pure;
    function assertLe(uint256 left, uint256 right) external pure;
    function assertTrue(bool condition) external pure;
    function assertTrue(bool condition, string calldata reason) external pure;
    function assertFalse(bool condition) external pure;
    function chainId(uint256 id) external;
    function etch(address target, bytes calldata code) external;
    function expectEmit(address emitter) external;
    function expectPartialRevert(bytes4 selector) external;
    function expectRevert() external;
    function expectRevert(bytes calldata data) external;
    function getRecordedLogs() external returns (Log[] memory);
    function keyExistsJson(string calldata json, string calldata key) external view returns (bool);
    function parseJsonBool(string calldata json, string calldata key) external pure returns (bool);
    function parseJsonBytes(string calldata json, string calldata key) external pure returns (bytes memory);
    function parseJsonString(string calldata json, string calldata key) external pure returns (string memory);
    function parseJsonUint(string calldata json, string calldata key) external pure returns (uint256);
    function prank(address sender) external;
    function readFile(string calldata path) external view returns (string memory);
    function recordLogs() external;
    function sign(uint256 key, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function startPrank(address sender) external;
    function stopPrank() external;
    function toString(uint256 value) external pure returns (string memory);
    function warp(uint256 time) external;
}

/// @notice What every test contract begins with.
abstract contract Checks {
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    /// @notice A value of `low` .. `high` for any value.
    function within(uint256 value, uint256 low, uint256 high) internal pure returns (uint256) {
        if (value >= low && value <= high) return value;
        if (low == 0 && high == type(uint256).max) return value;
        return low + value % (high - low + 1);
    }
}
