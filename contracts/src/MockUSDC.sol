// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Nonces} from "@openzeppelin/contracts/utils/Nonces.sol";

/// @title A stand-in for USDC, for tests and development only
/// @notice It has USDC's EIP-712 domain ("USD Coin", "2"), permit (ERC-2612), authorizations (ERC-3009)
///         and deny-list, six decimals, and coins for everybody who asks: it is worth nothing.
/// @dev What USDC has and this has not: a global pause, minter allowances, upgrades, and the
///      overloads that take a signature as bytes.
contract MockUSDC is ERC20, EIP712, Nonces {
    /// @notice ERC-2612's struct type.
    bytes32 public constant PERMIT_TYPEHASH =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
    /// @notice ERC-3009's struct type for a transfer that anybody may submit.
    bytes32 public constant TRANSFER_WITH_AUTHORIZATION_TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    /// @notice ERC-3009's struct type for a transfer that only its recipient may submit.
    bytes32 public constant RECEIVE_WITH_AUTHORIZATION_TYPEHASH = keccak256(
        "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    /// @notice ERC-3009's struct type for making an authorization useless.
    bytes32 public constant CANCEL_AUTHORIZATION_TYPEHASH =
        keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");

    /// @notice Whether an authorization of a holder was used or cancelled.
    mapping(address authorizer => mapping(bytes32 nonce => bool)) public authorizationState;
    /// @notice Whether an address is on the deny-list.
    mapping(address account => bool) public isBlacklisted;

    /// @notice An authorization was used.
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
    /// @notice An authorization was cancelled.
    event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);
    /// @notice An address was put on the deny-list.
    event Blacklisted(address indexed account);
    /// @notice An address was taken off the deny-list.
    event UnBlacklisted(address indexed account);

    /// @notice The address is on the deny-list.
    error AccountBlacklisted(address account);
    /// @notice The signature is not the holder's over this message.
    error InvalidSignature();
    /// @notice The deadline or `validBefore` has come.
    error SignatureExpired(uint256 end);
    /// @notice `validAfter` has not passed.
    error AuthorizationNotYetValid(uint256 validAfter);
    /// @notice The authorization was used or cancelled.
    error AuthorizationUsedOrCanceled(address authorizer, bytes32 nonce);
    /// @notice Only the recipient may submit this authorization.
    error CallerMustBePayee(address to);

    /// @notice A token without coins.
    constructor() ERC20("USD Coin", "USDC") EIP712("USD Coin", "2") {}

    /// @notice 6: a coin is 10^6 base units.
    function decimals() public pure override returns (uint8) {
        return 6;
    }

    /// @notice The EIP-712 domain's version, "2".
    function version() external view returns (string memory) {
        return _EIP712Version();
    }

    /// @notice The EIP-712 domain's separator on this chain.
    // solhint-disable-next-line func-name-mixedcase
    function DOMAIN_SEPARATOR() external view returns (bytes32) {
        return _domainSeparatorV4();
    }

    /// @notice Makes `amount` base units for `to`, for everybody who asks.
    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    /// @notice Puts an address on the deny-list or takes it off, for everybody who asks.
    function blacklist(address account, bool denied) external {
        isBlacklisted[account] = denied;
        if (denied) emit Blacklisted(account);
        else emit UnBlacklisted(account);
    }

    /// @notice ERC-2612: allows `spender` to take `value` by the owner's signature.
    /// @dev As in USDC the largest uint256 as deadline never ends.
    function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
    {
        if (block.timestamp > deadline) revert SignatureExpired(deadline);
        bytes32 message = keccak256(abi.encode(PERMIT_TYPEHASH, owner, spender, value, _useNonce(owner), deadline));
        _requireSigned(owner, message, v, r, s);
        _approve(owner, spender, value);
    }

    /// @notice ERC-3009: moves coins by the holder's signature. Anybody may submit it.
    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        _requireTime(validAfter, validBefore);
        bytes32 message = keccak256(
            abi.encode(TRANSFER_WITH_AUTHORIZATION_TYPEHASH, from, to, value, validAfter, validBefore, nonce)
        );
        _useAuthorization(from, nonce, message, v, r, s);
        _transfer(from, to, value);
    }

    /// @notice ERC-3009: moves coins by the holder's signature. Only the recipient may submit it.
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
    ) external {
        if (to != msg.sender) revert CallerMustBePayee(to);
        _requireTime(validAfter, validBefore);
        bytes32 message = keccak256(
            abi.encode(RECEIVE_WITH_AUTHORIZATION_TYPEHASH, from, to, value, validAfter, validBefore, nonce)
        );
        _useAuthorization(from, nonce, message, v, r, s);
        _transfer(from, to, value);
    }

    /// @notice ERC-3009: makes an authorization useless by the holder's signature.
    function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external {
        _requireUnused(authorizer, nonce);
        _requireSigned(authorizer, keccak256(abi.encode(CANCEL_AUTHORIZATION_TYPEHASH, authorizer, nonce)), v, r, s);
        authorizationState[authorizer][nonce] = true;
        emit AuthorizationCanceled(authorizer, nonce);
    }

    function _useAuthorization(address from, bytes32 nonce, bytes32 message, uint8 v, bytes32 r, bytes32 s) private {
        _requireUnused(from, nonce);
        _requireSigned(from, message, v, r, s);
        authorizationState[from][nonce] = true;
        emit AuthorizationUsed(from, nonce);
    }

    function _requireTime(uint256 validAfter, uint256 validBefore) private view {
        if (block.timestamp <= validAfter) revert AuthorizationNotYetValid(validAfter);
        if (block.timestamp >= validBefore) revert SignatureExpired(validBefore);
    }

    function _requireUnused(address authorizer, bytes32 nonce) private view {
        if (authorizationState[authorizer][nonce]) revert AuthorizationUsedOrCanceled(authorizer, nonce);
    }

    function _requireSigned(address signer, bytes32 message, uint8 v, bytes32 r, bytes32 s) private view {
        (address found, ECDSA.RecoverError failure,) = ECDSA.tryRecover(_hashTypedDataV4(message), v, r, s);
        if (failure != ECDSA.RecoverError.NoError || found != signer) revert InvalidSignature();
    }

    function _requireAllowed(address account) private view {
        if (isBlacklisted[account]) revert AccountBlacklisted(account);
    }

    /// @dev As USDC: neither side of a transfer, nor whoever submits it, may be on the deny-list.
    function _update(address from, address to, uint256 value) internal override {
        _requireAllowed(msg.sender);
        _requireAllowed(from);
        _requireAllowed(to);
        super._update(from, to, value);
    }

    /// @dev As USDC: neither side of an allowance may be on the deny-list.
    function _approve(address owner, address spender, uint256 value, bool emitEvent) internal override {
        _requireAllowed(owner);
        _requireAllowed(spender);
        super._approve(owner, spender, value, emitEvent);
    }
}
