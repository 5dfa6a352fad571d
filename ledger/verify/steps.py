"""The check of one receipt: what is asked of it, in which order, and what each answer means.

Trust comes first: which keys count follows from the policy and from the log's own entries. Then
what the parties signed, then that the log holds it. The first step that does not hold ends the
check. A receipt that is not in the log yet is checked as far as it can be.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ledger.authorization import RequestAuthorization
from ledger.commitment import request_digest
from ledger.encoding import checksum_address
from ledger.errors import LedgerError
from ledger.log_entry import BatchHeader
from ledger.log_keys import KeyTable
from ledger.merkle import LogIndex
from ledger.onchain import ContractCheck
from ledger.quote import Quote
from ledger.receipt import Receipt
from ledger.signing import recover
from ledger.usage import UsageRecord
from ledger.verify import agreement, inclusion, onchain, trust
from ledger.verify.documents import read_message, read_record, read_statement, reason_of, uuid_text
from ledger.verify.errors import ChainTrouble, Refused, Unusable
from ledger.verify.exits import Exit
from ledger.verify.heads import KnownHeads
from ledger.verify.policy import NO_QUORUM, Policy
from ledger.verify.verdict import Facts, Finding, Result, Step, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the reader wants beyond the receipt itself.

    `request` is the RFC 8785 form of what the buyer sent; `fetched_at` the unix second at which
    the receipt was fetched, None when it may be old; `chain` the nodes of --rpc.
    """

    request: bytes | None = None
    request_salt: bytes | None = None
    fetched_at: int | None = None
    needs_anchor: bool = False
    chain: onchain.Chain | None = None


@dataclass(slots=True, kw_only=True)
class Case:
    """A receipt under check; each step leaves here what later ones need."""

    receipt: Receipt
    policy: Policy
    known: KnownHeads
    asked: Asked
    table: KeyTable | None = None
    trusted: trust.Trusted | None = None
    record: UsageRecord = field(init=False)
    digest: bytes = field(init=False)
    quote: Quote = field(init=False)
    acceptance: RequestAuthorization = field(init=False)
    header: BatchHeader | None = None
    is_accepted: bool = False
    is_anchored: bool = False

    @property
    def place(self) -> LogIndex | None:
        """Where the batch is, or could be next; None where nothing says which keys may sign."""
        if self.receipt.log_proof is not None:
            return self.receipt.log_proof.index
        if self.trusted is not None:
            return LogIndex(self.trusted.head.size)
        return LogIndex(0) if self.policy.record_keys else None


@dataclass(frozen=True, slots=True)
class Open:
    """A step that neither holds nor is refused, and why."""

    result: Result
    detail: str


Answer = str | Open


def verify_receipt(data: bytes, policy: Policy, known: KnownHeads, asked: Asked) -> Verdict:
    """What the bytes of a file are worth under a policy.

    Whatever the bytes are, the answer is a verdict. `known` learns the checkpoint's head.
    """
    try:
        receipt = Receipt.parse(data)
    except LedgerError as error:
        finding = Finding(Step.FORM, Result.REFUSED, reason_of(error))
        return Verdict(Exit.INVALID, (finding,), None, None)
    case = Case(receipt=receipt, policy=policy, known=known, asked=asked)
    findings = [Finding(Step.FORM, Result.OK, "a receipt, version 1")]
    for step, check in STEPS:
        findings.append(_finding(step, check, case))
        if findings[-1].result is Result.REFUSED:
            return Verdict(Exit.INVALID, tuple(findings), None, case.trusted)
        if findings[-1].result is Result.UNUSABLE:
            return Verdict(Exit.USAGE, tuple(findings), None, case.trusted)
    return Verdict(_exit(case), tuple(findings), _facts(case), case.trusted)


def _finding(step: Step, check: Callable[[Case], Answer], case: Case) -> Finding:
    try:
        answer = check(case)
    except Refused as refused:
        return Finding(step, Result.REFUSED, str(refused))
    except LedgerError as error:
        return Finding(step, Result.REFUSED, reason_of(error))
    except Unusable as unusable:
        return Finding(step, Result.UNUSABLE, str(unusable))
    if isinstance(answer, str):
        return Finding(step, Result.OK, answer)
    return Finding(step, answer.result, answer.detail)


def _exit(case: Case) -> Exit:
    if case.receipt.batch is None:
        fetched_at = case.asked.fetched_at
        is_late = fetched_at is not None and fetched_at > case.record.include_by
        return Exit.OVERDUE if is_late and case.place is not None else Exit.PENDING
    if not case.is_accepted:
        return Exit.UNCHECKED
    needed = case.asked.needs_anchor and not case.is_anchored
    return Exit.NOT_ANCHORED if needed else Exit.VERIFIED


# Whom to believe


def _keys(case: Case) -> Answer:
    case.table = trust.follow_keys(case.receipt.keys, case.policy)
    if case.table is None:
        return Open(Result.ABSENT, "no key entries: only keys that the policy names count")
    return f"{len(case.table.keys)} keys of the log, followed from the policy's"


def _checkpoint(case: Case) -> Answer:
    note = trust.checkpoint_note(case.receipt)
    if note is None:
        return Open(Result.WAITING, "none yet")
    case.trusted = trust.open_trusted(note, case.table, case.policy)
    head = case.trusted.head
    return f"{case.policy.origin}, {head.size} entries, root {head.root.hex()}"


def _witnesses(case: Case) -> Answer:
    quorum = case.policy.quorum
    if quorum == NO_QUORUM:
        return Open(Result.ABSENT, "the policy asks for none")
    if case.trusted is None:
        return Open(Result.WAITING, "no checkpoint yet")
    if not case.policy.has_quorum(case.trusted.signers):
        raise Refused(f"too few cosignatures for the quorum {quorum}")
    return f"the quorum {quorum} has cosigned"


def _key_entries(case: Case) -> Answer:
    if not case.receipt.keys or case.trusted is None:
        return Open(Result.ABSENT, "none")
    trust.require_keys_logged(case.receipt.keys, case.trusted.head)
    return f"{len(case.receipt.keys)} in the log"


# What was signed


def _record(case: Case) -> Answer:
    case.record = read_record(case.receipt.record.message)
    case.digest = case.record.digest(case.policy.records)
    return f"{uuid_text(case.record.record_id)}, digest {case.digest.hex()}"


def _record_signature(case: Case) -> Answer:
    signer = recover(case.digest, case.receipt.record.signature)
    place, shown = case.place, checksum_address(signer)
    if place is None:
        return Open(Result.WAITING, f"by {shown}; nothing here says whether that key counts")
    trust.require_record_key(signer, case.table, case.policy, place)
    return f"by {shown}, a record key at log index {place}"


def _arithmetic(case: Case) -> Answer:
    record = case.record
    agreement.check_record(record)
    return (
        f"{record.outcome.name.lower()}, nano: held {record.held_nano}"
        f" = charge {record.charge_nano} + released {record.released_nano}"
    )


def _quote(case: Case) -> Answer:
    case.quote = read_message(Quote, case.receipt.quote.message)
    agreement.check_quote(case.record, case.quote, case.policy.authorizations)
    return f"at most {case.quote.max_charge_nano} nano for {ascii(case.quote.model)[1:-1]}"


def _quote_signature(case: Case) -> Answer:
    digest = case.quote.digest(case.policy.authorizations)
    signer = recover(digest, case.receipt.quote.signature)
    place, shown = case.place, checksum_address(signer)
    if place is None:
        return Open(Result.WAITING, f"by {shown}; nothing here says whether that key counts")
    trust.require_quote_key(signer, case.table, case.policy, place)
    return f"by {shown}"


def _acceptance(case: Case) -> Answer:
    case.acceptance = read_message(RequestAuthorization, case.receipt.acceptance.message)
    agreement.check_acceptance(case.record, case.quote, case.acceptance, case.policy.authorizations)
    return f"charge {case.record.charge_nano} of at most {case.acceptance.max_charge_nano} nano"


def _acceptance_signature(case: Case) -> Answer:
    digest = case.acceptance.digest(case.policy.authorizations)
    if case.receipt.acceptance.contract_check is not None:
        return _contract_signature(case, digest, case.receipt.acceptance.contract_check)
    signer = recover(digest, case.receipt.acceptance.signature)
    if signer != case.record.payer:
        raise Refused(f"signed by {signer}, not by the payer {case.record.payer}")
    case.is_accepted = True
    return f"by the payer {checksum_address(signer)}"


def _contract_signature(case: Case, digest: bytes, check: ContractCheck) -> Answer:
    payer, seen = case.record.payer, f"{check.method} at block {check.block_number}"
    if case.asked.chain is None:
        detail = f"a contract wallet's ({seen}, as claimed): not checkable offline"
        return Open(Result.UNCHECKED, detail)
    signature = case.receipt.acceptance.signature
    try:
        said, block = onchain.contract_says(case.asked.chain, payer, digest, signature, check)
    except ChainTrouble as trouble:
        return Open(Result.UNCHECKED, f"a contract wallet's, not checked: {trouble}")
    if said is onchain.Said.NO_THEN:
        raise Refused(f"the payer's contract does not confirm it, nor did it at {seen}")
    if said is onchain.Said.UNKNOWN:
        return Open(Result.UNCHECKED, f"the payer's contract does not confirm it at {block}")
    case.is_accepted = True
    when = f"{block}" if said is onchain.Said.YES else f"block {check.block_number}, not any more"
    return f"the payer's contract {checksum_address(payer)} confirms it at {when}"


def _statement(case: Case) -> Answer:
    supplier = case.receipt.supplier
    statement = None if supplier is None else read_statement(supplier.statement)
    agreement.check_statement(case.record, case.quote, statement)
    if statement is None:
        return Open(Result.ABSENT, "no agent's statement was settled")
    return f"{statement.output_tokens} output tokens by the agent's count"


def _statement_signature(case: Case) -> Answer:
    supplier = case.receipt.supplier
    if supplier is None:
        return Open(Result.ABSENT, "no agent's statement was settled")
    statement = read_statement(supplier.statement)
    statement.verify(supplier.signature, public_key=supplier.public_key)
    return f"by the agent's key {supplier.public_key.hex()}; nothing here says whose that is"


def _opening(case: Case) -> Answer:
    opening = case.receipt.opening
    if opening is None:
        return Open(Result.ABSENT, "the texts are not in this receipt")
    agreement.check_opening(opening, case.record, case.quote)
    return "the request" if opening.content is None else "the request and the answer"


def _request(case: Case) -> Answer:
    asked, opening = case.asked, case.receipt.opening
    if asked.request is None:
        return Open(Result.ABSENT, "not compared: no --request")
    salt = asked.request_salt
    if salt is None and opening is not None:
        salt = opening.request_salt
    if salt is None:
        raise Unusable("neither the receipt nor the request holds the salt: give --salt")
    if request_digest(salt, asked.request) != case.quote.request_digest:
        raise Refused("the quote, and so the job, was for another request or salt")
    return "the one that was sent"


# Where it is


def _batch(case: Case) -> Answer:
    part = case.receipt.batch
    if part is None:
        return Open(Result.WAITING, "in no batch yet")
    case.header = inclusion.check_in_batch(part, case.digest, case.receipt.record.signature)
    return f"record {part.index} of {case.header.count} in batch {case.header.number}"


def _header(case: Case) -> Answer:
    if case.header is None or case.receipt.log_proof is None:
        return Open(Result.WAITING, "in no batch yet")
    index = case.receipt.log_proof.index
    inclusion.check_header(case.header, case.record, index, case.table)
    return "its sums and times leave room for the record"


def _log(case: Case) -> Answer:
    if case.header is None or case.trusted is None:
        return Open(Result.WAITING, "not in the log yet")
    index = inclusion.check_in_log(case.receipt, case.trusted.head)
    return f"the batch is entry {index} of {case.trusted.head.size}"


def _consistency(case: Case) -> Answer:
    if case.trusted is None:
        return Open(Result.WAITING, "no checkpoint yet")
    compared = case.known.see(case.trusted.head)
    return compared or Open(Result.ABSENT, "no checkpoint of this log was remembered")


def _anchor(case: Case) -> Answer:
    if case.header is None or case.trusted is None:
        return Open(Result.WAITING, "not in the log yet")
    claim, head, contract = case.receipt.anchor, case.trusted.head, case.policy.anchor
    if claim is not None:
        chain_id = case.policy.records.chain_id
        onchain.check_claim(claim, head, chain_id=chain_id, contract=contract)
    if case.asked.chain is None:
        if claim is None:
            result = Result.WAITING if case.asked.needs_anchor else Result.ABSENT
            return Open(result, "no anchor in this receipt")
        detail = f"claimed in block {claim.block_number}, not checked: no --rpc"
        return Open(Result.UNCHECKED, detail)
    try:
        block = onchain.anchored_at(case.asked.chain, head, contract=contract)
    except ChainTrouble as trouble:
        return Open(Result.UNCHECKED, f"not checked: {trouble}")
    if block is None:
        result = Result.WAITING if claim is None else Result.UNCHECKED
        return Open(result, f"nothing is anchored for {head.size} entries at a finalized block")
    case.is_anchored = True
    said = "" if claim is None else f"; published in block {claim.block_number}, as claimed"
    return f"{head.size} entries with this root in {checksum_address(contract)} at {block}{said}"


STEPS: Final = (
    (Step.KEYS, _keys),
    (Step.CHECKPOINT, _checkpoint),
    (Step.WITNESSES, _witnesses),
    (Step.KEY_ENTRIES, _key_entries),
    (Step.RECORD, _record),
    (Step.RECORD_SIGNATURE, _record_signature),
    (Step.ARITHMETIC, _arithmetic),
    (Step.QUOTE, _quote),
    (Step.QUOTE_SIGNATURE, _quote_signature),
    (Step.ACCEPTANCE, _acceptance),
    (Step.ACCEPTANCE_SIGNATURE, _acceptance_signature),
    (Step.STATEMENT, _statement),
    (Step.STATEMENT_SIGNATURE, _statement_signature),
    (Step.OPENING, _opening),
    (Step.REQUEST, _request),
    (Step.BATCH, _batch),
    (Step.HEADER, _header),
    (Step.LOG, _log),
    (Step.CONSISTENCY, _consistency),
    (Step.ANCHOR, _anchor),
)
"""After the form."""


def _facts(case: Case) -> Facts:
    record = case.record
    return Facts(
        record_id=record.record_id,
        digest=case.digest,
        payer=record.payer,
        payer_seq=record.payer_seq,
        prev_payer_record=record.prev_payer_record,
        outcome=record.outcome,
        corrects_record=record.corrects_record,
        quote_digest=record.quote_digest,
        accept_digest=record.accept_digest,
        asset=record.asset,
        held=record.held_nano,
        charge=record.charge_nano,
        released=record.released_nano,
        input_tokens=record.input_tokens,
        output_tokens=record.output_tokens,
        model=case.quote.model,
        completed_at=record.completed_at,
        include_by=record.include_by,
        sealed=inclusion.sealed_at(case.receipt, case.header),
        log_size=None if case.trusted is None else case.trusted.head.size,
        entries=inclusion.entries_of(case.receipt),
    )
