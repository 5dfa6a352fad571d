// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Treasury} from "../src/Treasury.sol";
import {TreasuryFixture} from "../test/support/TreasuryFixture.sol";

/// @title What holds for every argument, not only for those that a fuzzer tries
/// @notice halmos runs each `check_` function with symbols in place of its arguments (`make
///         contracts-audit`); forge leaves them alone.
contract TreasuryRules is TreasuryFixture {
    uint128 internal constant ALICES = 100e6;
    uint128 internal constant BOBS = 70e6;

    struct Books {
        uint256 alice;
        uint256 bob;
        uint256 liability;
        uint256 earned;
        uint256 held;
        uint256 events;
    }

    function setUp() public override {
        super.setUp();
        fund(alice, ALICES);
        fund(bob, BOBS);
        commit(bob, 20e6);
        token.mint(address(treasury), 5e6);
    }

    function books() internal view returns (Books memory found) {
        found.alice = treasury.available(alice);
        found.bob = treasury.available(bob);
        found.liability = treasury.totalLiability();
        found.earned = treasury.earned();
        found.held = token.balanceOf(address(treasury));
        found.events = treasury.eventCount();
    }

    /// @dev Both wallets are all the wallets there are, as long as nobody pays in for another.
    function requireBalanced(Books memory now_) internal pure {
        assert(now_.liability == now_.alice + now_.bob);
        assert(now_.held >= now_.liability + now_.earned);
    }

    function check_a_commitment_never_fails_and_moves_only_to_earned(uint128 wanted) public {
        Books memory before = books();
        (address[] memory payers, uint128[] memory sums) = (new address[](1), new uint128[](1));
        (payers[0], sums[0]) = (alice, wanted);
        vm.prank(operator);
        (bool done,) = address(treasury).call(abi.encodeCall(treasury.commitSpend, (1, payers, sums)));
        assert(done);
        Books memory now_ = books();
        uint256 moved = wanted < ALICES ? wanted : ALICES;
        assert(now_.alice == ALICES - moved);
        assert(now_.earned == before.earned + moved);
        assert(now_.liability == before.liability - moved);
        assert(now_.bob == before.bob && now_.held == before.held);
        assert(now_.events == before.events + 1);
    }

    function check_a_refund_is_bounded_by_the_wallets_own_spend(uint128 amount, bytes32 id, bool alices) public {
        Books memory before = books();
        vm.prank(operator);
        (bool done,) =
            address(treasury).call(abi.encodeCall(treasury.refund, (alices ? alice : bob, amount, id)));
        Books memory now_ = books();
        requireBalanced(now_);
        assert(!done || (!alices && amount <= 20e6));
        assert(now_.alice == before.alice);
        assert(now_.bob == before.bob + (done ? amount : 0));
    }

    function check_a_credit_is_bounded_by_what_came_unaccounted(uint128 amount, bytes32 id) public {
        Books memory before = books();
        vm.prank(operator);
        (bool done,) = address(treasury).call(abi.encodeCall(treasury.creditUnaccounted, (alice, amount, id)));
        Books memory now_ = books();
        assert(!done || amount <= 5e6);
        if (done) assert(now_.alice == before.alice + amount);
        else assert(now_.alice == before.alice);
        assert(now_.bob == before.bob && now_.held == before.held && now_.earned == before.earned);
    }

    function check_a_payout_leaves_every_balance(uint128 amount, address recipient, bytes32 id) public {
        Books memory before = books();
        (bytes32[] memory ids, address[] memory to, uint128[] memory sums) = one(id, recipient, amount);
        vm.prank(operator);
        (bool done,) = address(treasury).call(abi.encodeCall(treasury.payout, (ids, to, sums)));
        Books memory now_ = books();
        requireBalanced(now_);
        assert(now_.alice == before.alice && now_.bob == before.bob);
        assert(now_.liability == before.liability);
        assert(!done || amount <= before.earned);
        assert(before.held - now_.held == before.earned - now_.earned);
    }

    function check_an_exit_is_paid_within_its_time_alone(uint32 waited) public {
        vm.prank(alice);
        treasury.requestExit(ALICES);
        vm.warp(START + waited);
        vm.prank(alice);
        (bool done,) = address(treasury).call(abi.encodeCall(treasury.finalizeExit, ()));
        assert(done == (waited >= EXIT_DELAY && waited <= EXIT_DELAY + 72 hours));
        assert(token.balanceOf(alice) == (done ? ALICES : 0));
    }

    function check_an_exit_pays_its_wallet_what_it_has_at_most(uint128 asked) public {
        Books memory before = books();
        vm.prank(alice);
        (bool opened,) = address(treasury).call(abi.encodeCall(treasury.requestExit, (asked)));
        assert(opened == (asked != 0 && asked <= ALICES));
        vm.warp(START + EXIT_DELAY);
        vm.prank(alice);
        (bool done,) = address(treasury).call(abi.encodeCall(treasury.finalizeExit, ()));
        Books memory now_ = books();
        assert(done == opened);
        assert(token.balanceOf(alice) == (done ? asked : 0));
        assert(now_.alice == ALICES - (done ? asked : 0));
        assert(now_.bob == before.bob && now_.earned == before.earned);
    }

    function check_a_commitment_cuts_an_exit_to_what_is_left(uint128 spent) public {
        vm.prank(alice);
        treasury.requestExit(60e6);
        commit(alice, spent);
        (,,, uint128 open,) = treasury.accounts(alice);
        uint256 left = treasury.available(alice);
        assert(open == (left < 60e6 ? left : 60e6));
    }

    function check_a_withdrawal_pays_the_payer_and_a_fee_it_agreed_to(
        uint256 amount,
        uint256 maxFee,
        bytes32 nonce,
        uint64 deadline,
        uint256 fee,
        bytes32 r,
        bytes32 s,
        uint8 v
    ) public {
        Books memory before = books();
        vm.prank(operator);
        (bool done,) = address(treasury).call(
            abi.encodeCall(
                treasury.withdraw, (alice, amount, maxFee, nonce, deadline, fee, abi.encodePacked(r, s, v))
            )
        );
        Books memory now_ = books();
        requireBalanced(now_);
        assert(now_.bob == before.bob);
        assert(token.balanceOf(alice) == (done ? amount - fee : 0));
        assert(now_.alice == before.alice - (done ? amount : 0));
        assert(now_.earned == before.earned + (done ? fee : 0));
        assert(!done || (amount <= ALICES && fee <= maxFee && fee <= amount && deadline >= START));
    }

    function check_the_operators_calls_are_the_operators_alone(
        address caller,
        address payer,
        uint128 amount,
        bytes32 id,
        uint64 deadline
    ) public {
        vm.assume(caller != operator);
        address[] memory wallets = new address[](1);
        uint128[] memory amounts = new uint128[](1);
        bytes32[] memory ids = new bytes32[](1);
        (wallets[0], amounts[0], ids[0]) = (payer, amount, id);
        assert(refuses(caller, abi.encodeCall(treasury.withdraw, (payer, amount, amount, id, deadline, 0, ""))));
        assert(refuses(caller, abi.encodeCall(treasury.commitSpend, (amount, wallets, amounts))));
        assert(refuses(caller, abi.encodeCall(treasury.refund, (payer, amount, id))));
        assert(refuses(caller, abi.encodeCall(treasury.creditUnaccounted, (payer, amount, id))));
        assert(refuses(caller, abi.encodeCall(treasury.payout, (ids, wallets, amounts))));
    }

    function check_roles_limit_and_pause_are_the_admins_and_the_guardians(
        address caller,
        address other,
        bytes32 role,
        uint128 limit
    ) public {
        vm.assume(caller != admin && caller != guardian);
        assert(refuses(caller, abi.encodeCall(treasury.grantRole, (role, other))));
        assert(refuses(caller, abi.encodeCall(treasury.revokeRole, (role, other))));
        assert(refuses(caller, abi.encodeCall(treasury.beginDefaultAdminTransfer, (other))));
        assert(refuses(caller, abi.encodeCall(treasury.acceptDefaultAdminTransfer, ())));
        assert(refuses(caller, abi.encodeCall(treasury.setPayoutDayLimit, (limit))));
        assert(refuses(caller, abi.encodeCall(treasury.pause, ())));
        assert(refuses(caller, abi.encodeCall(treasury.unpause, ())));
    }

    function check_a_wallets_exit_is_that_wallets_alone(address caller, uint128 amount) public {
        vm.assume(caller != alice && caller != bob);
        vm.prank(alice);
        treasury.requestExit(ALICES);
        vm.warp(START + EXIT_DELAY);
        assert(refuses(caller, abi.encodeCall(treasury.finalizeExit, ())));
        assert(refuses(caller, abi.encodeCall(treasury.cancelExit, ())));
        assert(refuses(caller, abi.encodeCall(treasury.requestExit, (amount))));
    }

    function refuses(address caller, bytes memory data) internal returns (bool) {
        vm.prank(caller);
        (bool done,) = address(treasury).call(data);
        return !done;
    }
}
