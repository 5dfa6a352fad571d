// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title A token that does what a token should not, for tests
/// @notice It keeps a part of each transfer, answers false, or calls whoever receives or pays before it
///         returns.
contract HostileToken is ERC20("Hostile", "BAD") {
    /// @notice Per mille of a transfer that the token keeps.
    uint256 public kept;
    /// @notice Whether it answers false and moves nothing.
    bool public refusing;
    /// @notice What it calls during a transfer, and with what.
    address public target;
    bytes public call;
    /// @notice What that call came to.
    bool public done;
    bytes public answer;

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function keep(uint256 perMille) external {
        kept = perMille;
    }

    function refuse(bool refusing_) external {
        refusing = refusing_;
    }

    function arm(address target_, bytes calldata call_) external {
        (target, call) = (target_, call_);
    }

    function transfer(address to, uint256 amount) public override returns (bool) {
        return refusing ? false : super.transfer(to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) public override returns (bool) {
        return refusing ? false : super.transferFrom(from, to, amount);
    }

    function _update(address from, address to, uint256 amount) internal override {
        super._update(from, to, amount);
        if (from == address(0) || to == address(0)) return;
        if (kept != 0) _burn(to, amount * kept / 1000);
        if (target != address(0)) {
            address once = target;
            target = address(0);
            (done, answer) = once.call(call);
        }
    }
}
