// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MockUSDC} from "../../src/MockUSDC.sol";
import {Treasury} from "../../src/Treasury.sol";
import {Checks, Vm} from "./Vm.sol";

/// @title Everybody who uses a treasury, in any order
/// @notice Foundry calls these functions with any arguments; each does one call, which may be refused,
///         and books for itself what must have moved.
contract TreasuryUsers is Checks {
    MockUSDC internal immutable token;
    Treasury internal immutable treasury;
    address internal immutable operator;
    address internal immutable guardian;
    address internal immutable admin;

    uint256[3] internal keys = [uint256(0xA11CE), 0xB0B, 0xCA401];
    address internal constant SUPPLIER = address(0x5e);

    /// @notice What came in for a wallet by deposits and credits, never by refunds.
    mapping(address => uint256) public cameIn;
    /// @notice Tokens that a wallet received, and the fees that it paid for that.
    mapping(address => uint256) public tookOut;
    mapping(uint256 day => uint256) public paidOn;
    uint256 public paidOut;
    uint256 public fees;
    uint256 public events;
    uint256 public done;
    uint256 private _next;

    constructor(Treasury treasury_, MockUSDC token_, address operator_, address guardian_, address admin_) {
        (treasury, token, operator, guardian, admin) = (treasury_, token_, operator_, guardian_, admin_);
    }

    function wallet(uint256 which) public view returns (address) {
        return vm.addr(keys[which % keys.length]);
    }

    /// @dev Counts the treasury's events of one call that was not refused: the recorder keeps those of
    ///      refused ones too.
    modifier counted() {
        uint256 before = done;
        vm.recordLogs();
        _;
        Vm.Log[] memory logs = vm.getRecordedLogs();
        if (done == before) return;
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].emitter == address(treasury)) ++events;
        }
    }

    function deposit(uint256 from, uint256 to, uint256 amount) external counted {
        if (token.isBlacklisted(wallet(from))) return;
        amount = within(amount, 1, 1e12);
        token.mint(wallet(from), amount);
        vm.startPrank(wallet(from));
        token.approve(address(treasury), amount);
        try treasury.deposit(wallet(to), amount, 0) {
            cameIn[wallet(to)] += amount;
            ++done;
        } catch {}
        vm.stopPrank();
    }

    function transferPlainly(uint256 amount) external {
        token.mint(address(treasury), within(amount, 1, 1e12));
    }

    function withdraw(uint256 who, uint256 amount, uint256 fee) external counted {
        address payer = wallet(who);
        amount = within(amount, 1, treasury.available(payer) + 10);
        fee = within(fee, 0, amount / 10);
        uint64 deadline = uint64(block.timestamp + 1);
        bytes32 id = treasury.withdrawalId(payer, amount, fee, bytes32(++_next), deadline);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(keys[who % keys.length], id);
        uint256 before = token.balanceOf(payer);
        vm.prank(operator);
        try treasury.withdraw(payer, amount, fee, bytes32(_next), deadline, fee, abi.encodePacked(r, s, v)) {
            tookOut[payer] += token.balanceOf(payer) - before + fee;
            fees += fee;
            ++done;
        } catch {}
    }

    function commitSpend(uint256 who, uint256 first, uint256 second) external counted {
        (address[] memory payers, uint128[] memory spent) = (new address[](2), new uint128[](2));
        (payers[0], payers[1]) = (wallet(who), wallet(who / 3));
        (spent[0], spent[1]) = (uint128(within(first, 0, 2e12)), uint128(within(second, 0, 2e12)));
        bool paused = treasury.paused();
        vm.prank(operator);
        try treasury.commitSpend(++_next, payers, spent) {
            ++done;
        } catch {
            vm.assertTrue(paused, "a commitment was refused");
        }
    }

    function refund(uint256 who, uint256 amount) external counted {
        address payer = wallet(who);
        vm.prank(operator);
        try treasury.refund(payer, uint128(within(amount, 1, treasury.refundable(payer) + 10)), bytes32(++_next)) {
            ++done;
        } catch {}
    }

    function creditUnaccounted(uint256 who, uint256 amount) external counted {
        amount = within(amount, 1, treasury.unaccounted() + 10);
        vm.prank(operator);
        try treasury.creditUnaccounted(wallet(who), uint128(amount), bytes32(++_next)) {
            cameIn[wallet(who)] += amount;
            ++done;
        } catch {}
    }

    function payout(uint256 amount) external counted {
        (bytes32[] memory ids, address[] memory to, uint128[] memory sums) =
            (new bytes32[](2), new address[](2), new uint128[](2));
        (ids[0], ids[1]) = (bytes32(++_next), bytes32(++_next));
        (to[0], to[1]) = (SUPPLIER, address(0xde));
        sums[0] = sums[1] = uint128(within(amount, 1, treasury.earned() + 10));
        uint256 before = token.balanceOf(SUPPLIER) + token.balanceOf(address(0xde));
        vm.prank(operator);
        try treasury.payout(ids, to, sums) {
            uint256 moved = token.balanceOf(SUPPLIER) + token.balanceOf(address(0xde)) - before;
            paidOut += moved;
            paidOn[block.timestamp / 1 days] += moved;
            ++done;
        } catch {}
    }

    function requestExit(uint256 who, uint256 amount) external counted {
        address payer = wallet(who);
        amount = within(amount, 1, treasury.available(payer) + 10);
        vm.prank(payer);
        try treasury.requestExit(uint128(amount)) {
            ++done;
        } catch {}
    }

    function cancelExit(uint256 who) external counted {
        vm.prank(wallet(who));
        try treasury.cancelExit() {
            ++done;
        } catch {}
    }

    function finalizeExit(uint256 who) external counted {
        address payer = wallet(who);
        uint256 before = token.balanceOf(payer);
        vm.prank(payer);
        try treasury.finalizeExit() {
            tookOut[payer] += token.balanceOf(payer) - before;
            ++done;
        } catch {}
    }

    function wait(uint256 time) external {
        vm.warp(block.timestamp + within(time, 1, 40 hours));
    }

    function pauseOrNot(uint256 choice) external {
        bool stop = choice % 4 == 0;
        if (stop == treasury.paused()) return;
        vm.prank(stop ? guardian : admin);
        if (stop) treasury.pause();
        else treasury.unpause();
    }

    function denyOrNot(uint256 who, bool denied) external {
        token.blacklist(who % 4 == 3 ? address(0xde) : wallet(who), denied);
    }
}
