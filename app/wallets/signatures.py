"""Whether a wallet signed a digest: its own key first, without a network, then its contract."""

import re

from app.wallets.contract_wallets import ContractWallets
from app.wallets.errors import ContractWalletUnsupported, NotConfirmed, WrongSigner
from app.wallets.probe import Question
from ledger.encoding import Address
from ledger.errors import BadSignature
from ledger.onchain import MAX_CONTRACT_SIGNATURE, ContractCheck
from ledger.signing import SIGNATURE_BYTES, recover

HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*")
MAX_SIGNATURE_CHARACTERS = 2 + 2 * MAX_CONTRACT_SIGNATURE


def parse_signature(text: str) -> bytes:
    """Return the bytes of a `0x` signature.

    Raises:
        BadSignature: not 0x and an even number of hex digits, or far too long.
    """
    if len(text) > MAX_SIGNATURE_CHARACTERS or not HEX.fullmatch(text):
        raise BadSignature("not 0x and hex digits")
    return bytes.fromhex(text[2:])


def is_plain(digest: bytes, signature: bytes, *, signer: Address) -> bool:
    """Return whether `signer`'s own key signed `digest`, by the one form that we accept.

    True for an account with EIP-7702 code too, as long as its key signs. About 50 us.
    """
    try:
        return recover(digest, signature) == signer
    except BadSignature:
        return False


def plain_refusal(digest: bytes, signature: bytes, *, signer: Address) -> Exception:
    """Return why a signature is not `signer`'s own key's.

    A contract wallet's signature looks like any other when it has 65 bytes; then it recovers to
    some other address and is refused as such.
    """
    if len(signature) > SIGNATURE_BYTES:
        return ContractWalletUnsupported(signature_bytes=len(signature))
    try:
        return WrongSigner(expected=signer, recovered=recover(digest, signature))
    except BadSignature as error:
        return error


class WalletSignatures:
    """Checks signatures of plain wallets and, where there is a chain, of contract wallets."""

    def __init__(self, contracts: ContractWallets | None = None) -> None:
        """Take what asks contracts; without it only keys count."""
        self._contracts = contracts

    async def check(self, digest: bytes, signature: bytes, *, signer: Address) -> None:
        """Return if `signer` signed `digest`. For what is read and not kept as evidence.

        Where every microsecond counts, ask `is_plain` first and this only when it says no.

        Raises:
            BadSignature: breaks a rule of form (length, v, high s).
            WrongSigner, NotConfirmed: another key signed, or other data.
            ContractWalletUnsupported: a contract wallet's, and no chain to ask.
            SignatureNotCheckable: the chain does not answer. TooManySignatureChecks
        """
        if not is_plain(digest, signature, signer=signer):
            await self._confirmed(Question(signer, digest, signature))

    async def check_kept(self, digest: bytes, signature: bytes, *, signer: Address) -> None:
        """Return if `signer` signed `digest`, which is stored as evidence; raises as `check`.

        Of a contract wallet it is recorded at which block its contract said yes.
        """
        if is_plain(digest, signature, signer=signer):
            return
        question = Question(signer, digest, signature)
        check = await self._confirmed(question)
        assert self._contracts is not None
        await self._contracts.keep(question, check)

    async def _confirmed(self, question: Question) -> ContractCheck:
        digest, signature, signer = question.digest, question.signature, question.signer
        if self._contracts is None:
            raise plain_refusal(digest, signature, signer=signer)
        if len(signature) > MAX_CONTRACT_SIGNATURE:
            raise BadSignature(f"more than {MAX_CONTRACT_SIGNATURE} bytes")
        check = await self._contracts.confirmed(question)
        if check is None and len(signature) == SIGNATURE_BYTES:
            raise plain_refusal(digest, signature, signer=signer)
        if check is None:
            raise NotConfirmed(signer=signer)
        return check
