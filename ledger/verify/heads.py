"""Tree heads that were seen before: the log must only ever have grown from one to the next."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from ledger.checkpoint import MAX_PROOF_HASHES
from ledger.errors import BadEntry, BadProof
from ledger.merkle import TreeHead, verify_consistency
from ledger.strict_json import bytes_of, integer_of, list_of, parse_object, require_members
from ledger.verify.errors import Refused, Unusable

CONSISTENCY_PATH: Final = "/v1/log/consistency?from={old}&to={new}"


@dataclass(frozen=True, slots=True)
class ConsistencyProof:
    """What the log's public endpoint gives for two sizes; it proves itself."""

    old: int
    new: int
    hashes: tuple[bytes, ...]

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The proof that a JSON file holds.

        Raises:
            Unusable: another form.
        """
        try:
            given = parse_object(data, what="proof")
            require_members(given, "from", "to", "proof", what="proof")
            listed = list_of(given["proof"], "proof.proof", limit=MAX_PROOF_HASHES + 1)
            return cls(
                integer_of(given["from"], "proof.from"),
                integer_of(given["to"], "proof.to"),
                tuple(bytes_of(each, f"proof.proof[{n}]") for n, each in enumerate(listed)),
            )
        except BadEntry as error:
            raise Unusable(f"not a consistency proof: {error}") from None


class KnownHeads:
    """The remembered head and those of the receipts checked so far.

    With a remembered head every other must be linked to it, directly or over heads seen before.
    Without, only one size with two roots is refused.
    """

    def __init__(self, remembered: TreeHead | None, proofs: Iterable[ConsistencyProof]) -> None:
        """Take what was remembered, and the proofs at hand."""
        self._remembered = remembered
        self._proofs = tuple(proofs)
        self._by_size = {} if remembered is None else {remembered.size: remembered}
        self._starts: list[int] = []

    @property
    def unlinked(self) -> tuple[int, ...]:
        """Sizes of which no two are linked by a proof; empty when all heads are."""
        return tuple(self._starts) if len(self._starts) > 1 else ()

    def see(self, head: TreeHead) -> str:
        """Check a head against those known, and know it from now on; returns what was compared.

        Raises:
            Refused: the log was forked: two roots of one size, or a proof that does not hold.
            Unusable: the proof that would tell is not at hand.
        """
        known = self._by_size.get(head.size)
        if known is not None and known.root != head.root:
            raise Refused(
                f"two roots for {head.size} entries: the log was forked; keep both checkpoints,"
                f" they are evidence ({known.root.hex()}, {head.root.hex()})"
            )
        if known is None:
            linked = self._link(head)
            self._by_size[head.size] = head
            return linked
        return f"the same log of {head.size} entries as seen before"

    def _link(self, head: TreeHead) -> str:
        for proof in self._proofs:
            other = self._by_size.get(proof.old if proof.new == head.size else proof.new)
            if other is None or head.size not in {proof.old, proof.new}:
                continue
            old, new = sorted((head, other), key=lambda each: each.size)
            try:
                verify_consistency(old, new, proof.hashes)
            except BadProof as error:
                raise Refused(
                    f"the proof from {old.size} to {new.size} does not hold: {error.reason}"
                ) from None
            return f"the log of {new.size} entries continues that of {old.size}"
        if self._remembered is None:
            self._starts.append(head.size)
            return ""
        smaller, larger = sorted((head.size, self._remembered.size))
        path = CONSISTENCY_PATH.format(old=smaller, new=larger)
        raise Unusable(
            f"the remembered log has {self._remembered.size} entries, this one {head.size}:"
            f" give --consistency with what the gateway answers at {path}"
        )
