// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AccessControlDefaultAdminRules} from
    "@openzeppelin/contracts/access/extensions/AccessControlDefaultAdminRules.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

/// @notice The part of ERC-3009 that a deposit uses.
interface IERC3009Receiver {
    /// @notice Moves coins to the caller by the holder's signature.
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external;
}

/// @title Prepaid balances of wallets in one token
/// @notice A wallet pays in, the operator commits what the wallet spent, the rest goes back to the
///         wallet: by a withdrawal that it signs and the operator relays, or by an exit that it makes
///         alone, after a delay, also while the contract is paused and when there is no operator.
/// @dev docs/spec/treasury-contract.md describes every call. Amounts are the token's base units.
///      At all times: token balance >= totalLiability + earned, and totalLiability is the sum of
///      `available` over all wallets. What is above is `unaccounted`: plain transfers to this address.
contract Treasury is AccessControlDefaultAdminRules, EIP712, Pausable, ReentrancyGuard {
    using SafeERC20 for IERC20;
    using SafeCast for uint256;

    /// @notice What an id stands for: the same id of two kinds is two ids.
    enum IdKind {
        Withdrawal,
        Refund,
        Credit,
        Payout
    }

    struct Account {
        uint128 deposited;
        uint128 withdrawn;
        uint128 spent;
        uint128 refunded;
        uint128 exitAmount;
        uint64 exitReadyAt;
    }

    /// @notice May relay withdrawals, commit spend, refund, credit plain transfers and pay suppliers.
    bytes32 public constant OPERATOR_ROLE = keccak256("OPERATOR_ROLE");
    /// @notice May pause.
    bytes32 public constant GUARDIAN_ROLE = keccak256("GUARDIAN_ROLE");
    /// @notice The EIP-712 type of a withdrawal. Its recipient is always the payer.
    bytes32 public constant WITHDRAWAL_TYPEHASH = keccak256(
        "Withdrawal(address payer,address token,uint256 amount,uint256 maxFee,bytes32 nonce,uint64 deadline)"
    );
    /// @notice Seconds for which a ripe exit may be finalized.
    uint64 public constant EXIT_WINDOW = 72 hours;
    /// @notice The longest exit delay a deployment may choose, in seconds.
    uint64 public constant MAX_EXIT_DELAY = 30 days;

    /// @notice The token of all balances.
    IERC20 public immutable token;
    /// @notice Seconds from the request of an exit until it is ripe.
    uint64 public immutable exitDelay;

    /// @notice What the contract owes to all wallets together.
    uint256 public totalLiability;
    /// @notice Committed spend and withdrawal fees that were neither paid out nor refunded.
    uint256 public earned;
    /// @notice How many of the twelve money and exit events were ever emitted.
    /// @dev A reader who counts the logs it was given can tell that none was kept from it.
    uint256 public eventCount;
    /// @notice The most that may be paid out on one UTC day.
    uint128 public payoutDayLimit;

    uint128 private _paidOnDay;
    uint64 private _payoutDay;
    mapping(address wallet => Account) private _accounts;
    /// @dev One bit for each kind.
    mapping(bytes32 id => uint8) private _uses;

    /// @notice Tokens came in for a wallet.
    event Deposited(address indexed payer, address indexed beneficiary, uint256 amount, bytes32 indexed ref);
    /// @notice A withdrawal was paid: `amount` left the wallet's balance, `amount - fee` went to it.
    event Withdrawn(bytes32 indexed id, address indexed payer, uint256 amount, uint256 fee);
    /// @notice A wallet's cumulative spend is now `spent`; the operator had asked for `wanted`.
    event SpendCommitted(uint256 indexed batch, address indexed payer, uint256 spent, uint256 wanted);
    /// @notice Spend was given back to a wallet's balance.
    event Refunded(bytes32 indexed id, address indexed payer, uint256 amount);
    /// @notice A plain transfer was credited to a wallet.
    event UnaccountedCredited(bytes32 indexed id, address indexed beneficiary, uint256 amount);
    /// @notice A supplier was paid.
    event PaidOut(bytes32 indexed id, address indexed recipient, uint256 amount);
    /// @notice The token refused a payout; its id may be tried again.
    event PayoutFailed(bytes32 indexed id, address indexed recipient, uint256 amount);
    /// @notice A wallet asked to leave; any exit it had before is replaced.
    event ExitRequested(address indexed payer, uint256 amount, uint64 readyAt);
    /// @notice An open exit was cut to what is left; at 0 it has ended.
    event ExitReduced(address indexed payer, uint256 amount);
    /// @notice A wallet took its request back.
    event ExitCancelled(address indexed payer);
    /// @notice An exit was paid.
    event ExitFinalized(address indexed payer, uint256 amount);
    /// @notice The daily payout limit is now `limit`. Not among the twelve of `eventCount`.
    event PayoutDayLimitSet(uint128 limit);

    /// @notice The token's address has no code.
    error BadToken(address token);
    /// @notice The exit delay is not 1 second to 30 days.
    error BadExitDelay(uint64 exitDelay);
    /// @notice An amount must be above zero.
    error ZeroAmount();
    /// @notice Nobody could ever use a balance at this address.
    error BadBeneficiary(address beneficiary);
    /// @notice Lists that belong together have different lengths.
    error LengthMismatch();
    /// @notice The permit failed, and its payer is not the one who calls.
    error PermitRefused(address payer);
    /// @notice The withdrawal's deadline has passed.
    error WithdrawalExpired(uint64 deadline);
    /// @notice The fee is above what the wallet agreed to, or above the amount.
    error FeeTooHigh(uint256 fee, uint256 limit);
    /// @notice The signature is not the payer's over this withdrawal.
    error BadSignature(address payer, bytes32 id);
    /// @notice The id was used before.
    error IdUsed(bytes32 id);
    /// @notice The wallet has less.
    error ExceedsAvailable(address payer, uint256 amount, uint256 available);
    /// @notice The wallet has spent less, or had it refunded.
    error ExceedsRefundable(address payer, uint256 amount, uint256 refundable);
    /// @notice Less is earned.
    error ExceedsEarned(uint256 amount, uint256 earned);
    /// @notice Less came by plain transfers.
    error ExceedsUnaccounted(uint256 amount, uint256 unaccounted);
    /// @notice The day's limit leaves less.
    error ExceedsPayoutRoom(uint256 amount, uint256 room);
    /// @notice The wallet has no open exit.
    error NoExit(address payer);
    /// @notice The exit is not ripe.
    error ExitNotReady(uint64 readyAt);
    /// @notice The exit's window has passed; ask again.
    error ExitLapsed(uint64 lapsedAt);

    /// @notice A treasury without balances, operator or guardian: the admin grants the roles.
    /// @param token_ The token of all balances.
    /// @param admin Grants and revokes roles, ends a pause, sets the payout limit.
    /// @param adminDelay Seconds between the start of an admin transfer and its acceptance.
    /// @param exitDelay_ Seconds from the request of an exit until it is ripe, 1 to 30 days; fixed.
    /// @param payoutDayLimit_ The most that may be paid out on one UTC day.
    constructor(IERC20 token_, address admin, uint48 adminDelay, uint64 exitDelay_, uint128 payoutDayLimit_)
        AccessControlDefaultAdminRules(adminDelay, admin)
        EIP712("OFFPEAK", "1")
    {
        if (address(token_).code.length == 0) revert BadToken(address(token_));
        if (exitDelay_ == 0 || exitDelay_ > MAX_EXIT_DELAY) revert BadExitDelay(exitDelay_);
        token = token_;
        exitDelay = exitDelay_;
        payoutDayLimit = payoutDayLimit_;
        emit PayoutDayLimitSet(payoutDayLimit_);
    }

    // ------------------------------------------------------------------------------ deposits

    /// @notice Pays the caller's tokens in for a wallet. Needs an allowance.
    /// @param beneficiary The wallet whose balance grows.
    /// @param amount Base units. What arrives is credited, should the token keep a part.
    /// @param ref The payer's own reference; only logged.
    function deposit(address beneficiary, uint256 amount, bytes32 ref) external nonReentrant whenNotPaused {
        uint256 before = _balance();
        token.safeTransferFrom(msg.sender, address(this), amount);
        _credit(msg.sender, beneficiary, before, ref);
    }

    /// @notice Pays a wallet's tokens in for that wallet by its ERC-2612 permit. Anybody may submit it.
    /// @dev Anybody may also submit the permit to the token first. Then the permit fails here, and only
    ///      the payer himself goes on with the allowance it left: nobody deposits another's allowance.
    /// @param payer Who signed the permit, and whose balance grows.
    /// @param amount Base units, the permit's value.
    /// @param ref The payer's own reference; only logged.
    /// @param deadline The permit's deadline.
    function depositWithPermit(
        address payer,
        uint256 amount,
        bytes32 ref,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external nonReentrant whenNotPaused {
        try IERC20Permit(address(token)).permit(payer, address(this), amount, deadline, v, r, s) {}
        catch {
            if (msg.sender != payer) revert PermitRefused(payer);
        }
        uint256 before = _balance();
        // slither-disable-next-line arbitrary-send-erc20-permit
        token.safeTransferFrom(payer, address(this), amount);
        _credit(payer, payer, before, ref);
    }

    /// @notice Pays a wallet's tokens in by its ERC-3009 authorization. Anybody may submit it.
    /// @dev The authorization's nonce is keccak256(abi.encode(beneficiary, ref)), so the one signature
    ///      says whose balance grows; `receiveWithAuthorization` works for this contract only.
    /// @param payer Who signed the authorization.
    /// @param beneficiary The wallet whose balance grows.
    /// @param amount Base units, the authorization's value.
    /// @param ref The payer's own reference; used once for each payer and beneficiary.
    /// @param validAfter The authorization counts after this time, unix seconds.
    /// @param validBefore And before this one.
    function depositWithAuthorization(
        address payer,
        address beneficiary,
        uint256 amount,
        bytes32 ref,
        uint256 validAfter,
        uint256 validBefore,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external nonReentrant whenNotPaused {
        uint256 before = _balance();
        bytes32 nonce = keccak256(abi.encode(beneficiary, ref));
        IERC3009Receiver(address(token)).receiveWithAuthorization(
            payer, address(this), amount, validAfter, validBefore, nonce, v, r, s
        );
        _credit(payer, beneficiary, before, ref);
    }

    // --------------------------------------------------------------------------- withdrawals

    /// @notice Pays a withdrawal that the wallet signed. The operator relays it and takes a fee.
    /// @dev The signature is a key's (65 bytes, low s) or, where the payer has code, what its ERC-1271
    ///      accepts; a wallet with code set by EIP-7702 may use either. The id is the EIP-712 digest and
    ///      is used once. A token that refuses the payer makes the call revert: the balance stays.
    /// @param payer Who signed, and who receives `amount - fee`.
    /// @param amount What leaves the balance, base units.
    /// @param maxFee The highest fee the wallet agreed to.
    /// @param nonce The wallet's own; makes two withdrawals of one amount different.
    /// @param deadline The last second at which it may be paid, unix.
    /// @param fee What the operator takes.
    /// @param signature The payer's, over `withdrawalId`.
    function withdraw(
        address payer,
        uint256 amount,
        uint256 maxFee,
        bytes32 nonce,
        uint64 deadline,
        uint256 fee,
        bytes calldata signature
    ) external nonReentrant whenNotPaused onlyRole(OPERATOR_ROLE) {
        if (amount == 0) revert ZeroAmount();
        if (block.timestamp > deadline) revert WithdrawalExpired(deadline);
        if (fee > maxFee) revert FeeTooHigh(fee, maxFee);
        if (fee > amount) revert FeeTooHigh(fee, amount);
        bytes32 id = withdrawalId(payer, amount, maxFee, nonce, deadline);
        _use(IdKind.Withdrawal, id);
        if (!_isSignedBy(payer, id, signature)) revert BadSignature(payer, id);
        _takeOut(payer, amount);
        earned += fee;
        ++eventCount;
        emit Withdrawn(id, payer, amount, fee);
        _clampExit(payer);
        token.safeTransfer(payer, amount - fee);
    }

    // ------------------------------------------------------------------- the operator's books

    /// @notice Moves what wallets have spent from their balances to `earned`.
    /// @dev `spent` is cumulative, so a repeated call changes nothing. An item above what the wallet has
    ///      is clamped, one below what was committed leaves it: no item makes the call revert.
    /// @param batch The operator's number; only logged.
    /// @param payers The wallets.
    /// @param spent For each, everything it ever spent, base units.
    function commitSpend(uint256 batch, address[] calldata payers, uint128[] calldata spent)
        external
        nonReentrant
        whenNotPaused
        onlyRole(OPERATOR_ROLE)
    {
        if (payers.length != spent.length) revert LengthMismatch();
        uint256 moved = 0;
        for (uint256 i = 0; i < payers.length; ++i) {
            moved += _commit(batch, payers[i], spent[i]);
        }
        totalLiability -= moved;
        earned += moved;
    }

    /// @notice Gives spend back to a wallet's balance, out of `earned`.
    /// @dev At most what the wallet's own spend leaves: committed spend of one wallet never becomes the
    ///      balance of another.
    /// @param payer The wallet.
    /// @param amount Base units.
    /// @param id The operator's; once.
    function refund(address payer, uint128 amount, bytes32 id)
        external
        nonReentrant
        whenNotPaused
        onlyRole(OPERATOR_ROLE)
    {
        if (amount == 0) revert ZeroAmount();
        _use(IdKind.Refund, id);
        uint256 left = refundable(payer);
        if (amount > left) revert ExceedsRefundable(payer, amount, left);
        if (amount > earned) revert ExceedsEarned(amount, earned);
        earned -= amount;
        totalLiability += amount;
        Account storage account = _accounts[payer];
        account.refunded += amount;
        account.deposited += amount;
        ++eventCount;
        emit Refunded(id, payer, amount);
    }

    /// @notice Credits tokens that came by a plain transfer.
    /// @dev The contract cannot know whose they were. The operator says so, for at most `unaccounted`.
    /// @param beneficiary The wallet whose balance grows.
    /// @param amount Base units.
    /// @param id The operator's; once.
    function creditUnaccounted(address beneficiary, uint128 amount, bytes32 id)
        external
        nonReentrant
        whenNotPaused
        onlyRole(OPERATOR_ROLE)
    {
        if (amount == 0) revert ZeroAmount();
        _requireBeneficiary(beneficiary);
        _use(IdKind.Credit, id);
        uint256 left = unaccounted();
        if (amount > left) revert ExceedsUnaccounted(amount, left);
        totalLiability += amount;
        _accounts[beneficiary].deposited += amount;
        ++eventCount;
        emit UnaccountedCredited(id, beneficiary, amount);
    }

    /// @notice Pays suppliers out of `earned`, up to the day's limit.
    /// @dev A transfer that the token refuses is skipped with `PayoutFailed`: its id stays unused and
    ///      nothing counts against the limit. Every other fault reverts the whole call.
    /// @param ids The operator's; each once.
    /// @param recipients Whom to pay.
    /// @param amounts Base units for each.
    function payout(bytes32[] calldata ids, address[] calldata recipients, uint128[] calldata amounts)
        external
        nonReentrant
        whenNotPaused
        onlyRole(OPERATOR_ROLE)
    {
        if (ids.length != recipients.length || ids.length != amounts.length) revert LengthMismatch();
        for (uint256 i = 0; i < ids.length; ++i) {
            _payOne(ids[i], recipients[i], amounts[i]);
        }
    }

    // ------------------------------------------------------------------------------- the exit

    /// @notice Starts the caller's exit: `amount` may be taken after `exitDelay`, for `EXIT_WINDOW`.
    /// @dev Works while paused. The amount stays in the balance and can still be spent or withdrawn: then
    ///      the exit shrinks with it. A new request replaces the old one and waits anew.
    /// @param amount Base units, at most the caller's available balance.
    function requestExit(uint128 amount) external nonReentrant {
        if (amount == 0) revert ZeroAmount();
        uint256 left = available(msg.sender);
        if (amount > left) revert ExceedsAvailable(msg.sender, amount, left);
        uint64 readyAt = block.timestamp.toUint64() + exitDelay;
        Account storage account = _accounts[msg.sender];
        account.exitAmount = amount;
        account.exitReadyAt = readyAt;
        ++eventCount;
        emit ExitRequested(msg.sender, amount, readyAt);
    }

    /// @notice Takes the caller's request back. Works while paused.
    function cancelExit() external nonReentrant {
        Account storage account = _accounts[msg.sender];
        if (account.exitAmount == 0) revert NoExit(msg.sender);
        account.exitAmount = 0;
        account.exitReadyAt = 0;
        ++eventCount;
        emit ExitCancelled(msg.sender);
    }

    /// @notice Pays the caller's ripe exit to the caller. Works while paused.
    /// @dev From `exitReadyAt` to `exitReadyAt + EXIT_WINDOW`, both included.
    function finalizeExit() external nonReentrant {
        Account storage account = _accounts[msg.sender];
        uint128 amount = account.exitAmount;
        uint64 readyAt = account.exitReadyAt;
        if (amount == 0) revert NoExit(msg.sender);
        if (block.timestamp < readyAt) revert ExitNotReady(readyAt);
        if (block.timestamp > readyAt + EXIT_WINDOW) revert ExitLapsed(readyAt + EXIT_WINDOW);
        account.exitAmount = 0;
        account.exitReadyAt = 0;
        _takeOut(msg.sender, amount);
        ++eventCount;
        emit ExitFinalized(msg.sender, amount);
        token.safeTransfer(msg.sender, amount);
    }

    // --------------------------------------------------------------------- guardian and admin

    /// @notice Stops everything but exits.
    function pause() external onlyRole(GUARDIAN_ROLE) {
        _pause();
    }

    /// @notice Ends a pause. Not the guardian's: who took a guardian's key can stop, not start.
    function unpause() external onlyRole(DEFAULT_ADMIN_ROLE) {
        _unpause();
    }

    /// @notice Sets the most that may be paid out on one UTC day, at once.
    function setPayoutDayLimit(uint128 limit) external onlyRole(DEFAULT_ADMIN_ROLE) {
        payoutDayLimit = limit;
        emit PayoutDayLimitSet(limit);
    }

    // ---------------------------------------------------------------------------------- views

    /// @notice A wallet's sums since ever, and its open exit (0 and 0 without one).
    /// @return deposited Deposits, credits and refunds.
    /// @return withdrawn Withdrawals with their fees, and exits.
    /// @return spent Committed spend.
    /// @return exitAmount What an open exit would pay.
    /// @return exitReadyAt When it is ripe, unix seconds.
    function accounts(address wallet)
        external
        view
        returns (uint128 deposited, uint128 withdrawn, uint128 spent, uint128 exitAmount, uint64 exitReadyAt)
    {
        Account storage account = _accounts[wallet];
        return (account.deposited, account.withdrawn, account.spent, account.exitAmount, account.exitReadyAt);
    }

    /// @notice What a wallet has here: it may spend, withdraw or exit with it.
    function available(address wallet) public view returns (uint256) {
        Account storage account = _accounts[wallet];
        return account.deposited - account.withdrawn - account.spent;
    }

    /// @notice The spend of a wallet that was not refunded.
    function refundable(address wallet) public view returns (uint256) {
        Account storage account = _accounts[wallet];
        return account.spent - account.refunded;
    }

    /// @notice Whether an id was used, of any kind. False proves that no withdrawal with it was paid.
    function usedId(bytes32 id) external view returns (bool) {
        return _uses[id] != 0;
    }

    /// @notice Whether an id was used as one kind.
    function isUsed(IdKind kind, bytes32 id) public view returns (bool) {
        return _uses[id] & _bit(kind) != 0;
    }

    /// @notice Tokens here that belong to no wallet and were not earned.
    function unaccounted() public view returns (uint256) {
        uint256 owed = totalLiability + earned;
        uint256 held = _balance();
        return held > owed ? held - owed : 0;
    }

    /// @notice What the limit leaves for payouts today; `earned` may leave less.
    function payoutRoom() public view returns (uint256) {
        uint256 paid = _payoutDay == _today() ? _paidOnDay : 0;
        return payoutDayLimit > paid ? payoutDayLimit - paid : 0;
    }

    /// @notice A withdrawal's id: the EIP-712 digest that its payer signs.
    function withdrawalId(address payer, uint256 amount, uint256 maxFee, bytes32 nonce, uint64 deadline)
        public
        view
        returns (bytes32)
    {
        return _hashTypedDataV4(
            keccak256(abi.encode(WITHDRAWAL_TYPEHASH, payer, address(token), amount, maxFee, nonce, deadline))
        );
    }

    // --------------------------------------------------------------------------------- inside

    /// @dev Credits what arrived since the balance was `before`, whatever the token was told to move.
    function _credit(address payer, address beneficiary, uint256 before, bytes32 ref) private {
        _requireBeneficiary(beneficiary);
        uint256 amount = _balance() - before;
        if (amount == 0) revert ZeroAmount();
        _accounts[beneficiary].deposited += amount.toUint128();
        totalLiability += amount;
        ++eventCount;
        emit Deposited(payer, beneficiary, amount, ref);
    }

    /// @dev Takes an amount off a wallet's balance and off what is owed.
    function _takeOut(address payer, uint256 amount) private {
        uint256 left = available(payer);
        if (amount > left) revert ExceedsAvailable(payer, amount, left);
        _accounts[payer].withdrawn += amount.toUint128();
        totalLiability -= amount;
    }

    /// @dev Commits one item and returns what it moved to `earned`.
    function _commit(uint256 batch, address payer, uint128 wanted) private returns (uint256 moved) {
        Account storage account = _accounts[payer];
        uint128 before = account.spent;
        uint128 most = account.deposited - account.withdrawn;
        uint128 spent = wanted > most ? most : wanted;
        if (spent < before) spent = before;
        account.spent = spent;
        ++eventCount;
        emit SpendCommitted(batch, payer, spent, wanted);
        _clampExit(payer);
        return spent - before;
    }

    /// @dev An exit never stands for more than the wallet has.
    function _clampExit(address payer) private {
        Account storage account = _accounts[payer];
        uint256 left = available(payer);
        if (account.exitAmount <= left) return;
        account.exitAmount = left.toUint128();
        if (left == 0) account.exitReadyAt = 0;
        ++eventCount;
        emit ExitReduced(payer, left);
    }

    /// @dev Pays one supplier, or leaves everything as it was when the token refuses.
    function _payOne(bytes32 id, address recipient, uint128 amount) private {
        if (amount == 0) revert ZeroAmount();
        _requireBeneficiary(recipient);
        uint256 room = payoutRoom();
        if (amount > room) revert ExceedsPayoutRoom(amount, room);
        if (amount > earned) revert ExceedsEarned(amount, earned);
        _use(IdKind.Payout, id);
        uint64 today = _today();
        _paidOnDay = _payoutDay == today ? _paidOnDay + amount : amount;
        _payoutDay = today;
        earned -= amount;
        ++eventCount;
        if (token.trySafeTransfer(recipient, amount)) {
            emit PaidOut(id, recipient, amount);
            return;
        }
        _uses[id] &= ~_bit(IdKind.Payout);
        _paidOnDay -= amount;
        earned += amount;
        emit PayoutFailed(id, recipient, amount);
    }

    function _use(IdKind kind, bytes32 id) private {
        if (isUsed(kind, id)) revert IdUsed(id);
        _uses[id] |= _bit(kind);
    }

    function _requireBeneficiary(address beneficiary) private view {
        if (beneficiary == address(0) || beneficiary == address(this)) revert BadBeneficiary(beneficiary);
    }

    /// @dev A key first: a wallet with EIP-7702 code signs with its key as before.
    function _isSignedBy(address payer, bytes32 digest, bytes calldata signature) private view returns (bool) {
        (address found, ECDSA.RecoverError failure,) = ECDSA.tryRecoverCalldata(digest, signature);
        if (failure == ECDSA.RecoverError.NoError && found == payer) return true;
        return payer.code.length != 0
            && SignatureChecker.isValidERC1271SignatureNowCalldata(payer, digest, signature);
    }

    function _balance() private view returns (uint256) {
        return token.balanceOf(address(this));
    }

    function _today() private view returns (uint64) {
        return (block.timestamp / 1 days).toUint64();
    }

    function _bit(IdKind kind) private pure returns (uint8) {
        return uint8(1) << uint8(kind);
    }
}
