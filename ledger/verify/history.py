"""Several receipts together: each wallet's own sequence, its corrections, and totals.

A wallet's records are numbered and each names the one before, so a folder shows by itself what is
missing or contradicts. Two signed records in one place are evidence of a fork, and so are two
entries at one index of the log.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from ledger.encoding import Address, checksum_address
from ledger.usage import Outcome
from ledger.verify.documents import uuid_text
from ledger.verify.places import Places
from ledger.verify.problems import Kind, Problem
from ledger.verify.verdict import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Of one token, in nano. `paid` is what was charged less what corrections gave back."""

    asset: Address
    records: int
    charged: int
    refunded: int

    @property
    def paid(self) -> int:
        """What the wallets paid in the end."""
        return self.charged - self.refunded


class History:
    """The records of receipts that were not refused, each once."""

    def __init__(self) -> None:
        """Start with none."""
        self._by_id: dict[bytes, Facts] = {}
        self._twice: list[Problem] = []
        self._places = Places()

    def add(self, facts: Facts) -> None:
        """Take a record; the same one again changes nothing, if it stands where it stood."""
        self._places.entries(facts.payer, facts.entries)
        if facts.sealed is not None:
            self._places.record(facts.payer, facts.record_id, facts.sealed)
        known = self._by_id.setdefault(facts.record_id, facts)
        if known.digest != facts.digest:
            self._twice.append(
                Problem(
                    Kind.FORK, facts.payer, f"two signed records of id {uuid_text(facts.record_id)}"
                )
            )

    @property
    def outcomes(self) -> Mapping[Outcome, int]:
        """How many records of each outcome there are."""
        return Counter(each.outcome for each in self._by_id.values())

    @property
    def sequences(self) -> Mapping[Address, tuple[int, int]]:
        """The first and the last number of each wallet."""
        return {
            payer: (records[0].payer_seq, records[-1].payer_seq)
            for payer, records in sorted(self._wallets().items())
        }

    def problems(self) -> tuple[Problem, ...]:
        """All that does not fit, by wallet."""
        found = list(self._twice)
        for payer, records in sorted(self._wallets().items()):
            found += _sequence(payer, records)
        return (*found, *self._corrections(), *self._places.problems())

    def totals(self) -> tuple[Totals, ...]:
        """What the records add up to, by token."""
        by_asset: dict[Address, list[Facts]] = defaultdict(list)
        for each in self._by_id.values():
            by_asset[each.asset].append(each)
        return tuple(
            Totals(
                asset=asset,
                records=len(records),
                charged=sum(each.charge for each in records if not _corrects(each)),
                refunded=sum(each.released for each in records if _corrects(each)),
            )
            for asset, records in sorted(by_asset.items())
        )

    def _wallets(self) -> Mapping[Address, list[Facts]]:
        wallets: dict[Address, list[Facts]] = defaultdict(list)
        for each in self._by_id.values():
            wallets[each.payer].append(each)
        for records in wallets.values():
            records.sort(key=lambda each: each.payer_seq)
        return wallets

    def _corrections(self) -> Iterator[Problem]:
        corrected: set[bytes] = set()
        for each in self._by_id.values():
            if not _corrects(each):
                continue
            name, was = uuid_text(each.record_id), self._by_id.get(each.corrects_record)
            if each.corrects_record in corrected:
                yield Problem(Kind.CORRECTION, each.payer, f"{name} corrects a record again")
            corrected.add(each.corrects_record)
            if was is not None and _kept(was) != (*_kept(each)[:-1], each.held):
                detail = f"{name} does not fit {uuid_text(was.record_id)}, which it corrects"
                yield Problem(Kind.CORRECTION, each.payer, detail)


def _corrects(facts: Facts) -> bool:
    return facts.outcome is Outcome.CORRECTION


def _kept(facts: Facts) -> tuple[object, ...]:
    """What a correction keeps of the record it corrects; last the charge, which it holds."""
    return facts.payer, facts.asset, facts.quote_digest, facts.accept_digest, facts.charge


def _sequence(payer: Address, records: list[Facts]) -> Iterator[Problem]:
    """What does not follow in a wallet's records, which are in the order of their numbers."""
    for was, now in pairwise(records):
        if now.payer_seq == was.payer_seq:
            ids = f"{uuid_text(was.record_id)} and {uuid_text(now.record_id)}"
            yield Problem(Kind.FORK, payer, f"two records numbered {now.payer_seq}: {ids}")
        elif now.payer_seq > was.payer_seq + 1:
            first, last = was.payer_seq + 1, now.payer_seq - 1
            missing = f"{first}" if first == last else f"{first} to {last}"
            yield Problem(Kind.GAP, payer, f"{checksum_address(payer)}: {missing} missing")
        elif now.prev_payer_record != was.record_id:
            detail = f"record {now.payer_seq} does not follow the one numbered {was.payer_seq}"
            yield Problem(Kind.FORK, payer, detail)
