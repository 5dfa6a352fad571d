// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Checks} from "./Vm.sol";

/// @title Reads the test vectors that the Python tests read too
abstract contract Vectors is Checks {
    string internal constant FOLDER = "../tests/vectors/";

    function has(string memory json, string memory key) internal view returns (bool) {
        return vm.keyExistsJson(json, key);
    }

    /// @notice The key of a list's member: `list[3]`.
    function member(string memory list, uint256 index) internal pure returns (string memory) {
        return string.concat(list, "[", vm.toString(index), "]");
    }

    /// @notice The hashes of a list of base64 texts; none for null.
    function hashes(string memory json, string memory list) internal view returns (bytes32[] memory found) {
        uint256 count = 0;
        while (has(json, member(list, count))) ++count;
        found = new bytes32[](count);
        for (uint256 i = 0; i < count; ++i) {
            found[i] = hash(json, member(list, i));
        }
    }

    /// @notice A hash in base64. Vectors that are to fail also hold ones of another length: zero then.
    function hash(string memory json, string memory key) internal pure returns (bytes32) {
        bytes memory raw = decode(bytes(vm.parseJsonString(json, key)));
        return raw.length == 32 ? bytes32(raw) : bytes32(0);
    }

    /// @notice The bytes of a text in base64 (RFC 4648, section 4).
    function decode(bytes memory text) internal pure returns (bytes memory raw) {
        uint256 length = text.length / 4 * 3;
        if (length != 0 && text[text.length - 1] == "=") --length;
        if (length != 0 && text[text.length - 2] == "=") --length;
        raw = new bytes(length);
        uint256 place = 0;
        for (uint256 i = 0; i < text.length; i += 4) {
            uint256 bits = 0;
            for (uint256 j = 0; j < 4; ++j) {
                bits = bits << 6 | sextet(uint8(text[i + j]));
            }
            for (uint256 j = 0; j < 3 && place < length; ++j) {
                raw[place++] = bytes1(uint8(bits >> (16 - 8 * j)));
            }
        }
    }

    function sextet(uint8 letter) private pure returns (uint256) {
        if (letter >= 0x61) return letter - 0x61 + 26;
        if (letter >= 0x41) return letter - 0x41;
        if (letter == 0x2b) return 62;
        if (letter == 0x2f) return 63;
        return letter == 0x3d ? 0 : letter - 0x30 + 52;
    }
}
