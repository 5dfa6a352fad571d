"""The text of a verifier's policy, from what a gateway says of its log and what we sign for."""

from app.client.errors import AnswerMalformed
from app.client.terms import Terms
from app.receipts.schemas import LogKeysOut
from ledger.encoding import checksum_address
from ledger.errors import BadNote
from ledger.note import VerifierKey


def policy_text(keys: LogKeysOut, terms: Terms) -> str:
    """Return a policy that trusts the log's first checkpoint key; see docs/spec/policy.md.

    Later keys are introduced by the log itself, in entries that the first one begins.

    Raises:
        AnswerMalformed: the gateway names no key, or one of another log.
    """
    first = next((each.key for each in keys.keys if each.role == "checkpoint"), "")
    try:
        key = VerifierKey.parse(first)
    except BadNote as error:
        raise AnswerMalformed("/v1/log/keys", reason=error.reason) from None
    if key.name != keys.origin:
        raise AnswerMalformed("/v1/log/keys", reason="a key of another log")
    anchor, treasury = checksum_address(terms.receipt_anchor), checksum_address(terms.treasury)
    return f"log {key}\ndomain {terms.chain_id} {anchor} {treasury}\nquorum none\n"
