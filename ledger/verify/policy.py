"""A policy: whom the reader trusts. Text, one statement a line, as C2SP tlog-policy and more.

Nothing in a receipt can widen it. `docs/spec/policy.md` has the rules with an example.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ledger.authorization import authorization_domain
from ledger.encoding import MAX_CHAIN_ID, Address, Domain, parse_address
from ledger.errors import BadAddress, BadNote
from ledger.merkle import MAX_TREE_SIZE
from ledger.note import ED25519, VerifierKey
from ledger.usage import usage_record_domain
from ledger.verify.errors import BadPolicy

MAX_POLICY_BYTES: Final = 100_000
MAX_MEMBERS: Final = 64
MAX_NAMES: Final = 256
NO_QUORUM: Final = "none"


@dataclass(frozen=True, slots=True)
class Group:
    """Witnesses and groups of which `threshold` must have cosigned."""

    threshold: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a policy says. `retired` names keys, by text, and the place from which they are nothing.

    `record_keys` are the pinned ones; when empty, the log's own key table names them.
    """

    origin: str
    log_keys: tuple[VerifierKey, ...]
    log_url: str | None
    records: Domain
    authorizations: Domain
    record_keys: frozenset[Address]
    retired: Mapping[str, int]
    witnesses: Mapping[str, VerifierKey]
    groups: Mapping[str, Group]
    quorum: str
    contract: Address | None

    @property
    def anchor(self) -> Address:
        """The receipt anchor contract: the one named apart, else the records' domain."""
        return self.contract or self.records.verifying_contract

    def counts_at(self, key: str, place: int) -> bool:
        """Whether a key, as text, is not retired at a log size or index."""
        return place < self.retired.get(key, MAX_TREE_SIZE + 1)

    def has_quorum(self, signers: Collection[VerifierKey]) -> bool:
        """Whether enough witnesses are among those who signed."""

        def holds(name: str) -> bool:
            if name in self.witnesses:
                return self.witnesses[name] in signers
            group = self.groups[name]
            return sum(map(holds, group.members)) >= group.threshold

        return self.quorum == NO_QUORUM or holds(self.quorum)


def parse_policy(data: bytes) -> Policy:
    """The policy that a file holds.

    Raises:
        BadPolicy: with the line that breaks a rule.
    """
    if len(data) > MAX_POLICY_BYTES:
        raise BadPolicy(0, f"larger than {MAX_POLICY_BYTES} bytes")
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        raise BadPolicy(0, "not UTF-8") from None
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        words = line.split()
        if words and not words[0].startswith("#"):
            reader.read(number, words)
    return reader.policy()


@dataclass(slots=True)
class _Reader:
    """Takes statements in order; names must be there before they are used."""

    line: int = 0
    log_keys: list[VerifierKey] = field(default_factory=list)
    log_url: str | None = None
    domain: tuple[int, Address, Address] | None = None
    record_keys: set[Address] = field(default_factory=set)
    retired: dict[str, int] = field(default_factory=dict)
    witnesses: dict[str, VerifierKey] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    grouped: set[str] = field(default_factory=set)
    quorum: str | None = None
    contract: Address | None = None

    def read(self, line: int, words: list[str]) -> None:
        self.line = line
        kind, *rest = words
        statements: dict[str, tuple[Callable[..., None], int, int]] = {
            "log": (self._log, 1, 2),
            "witness": (self._witness, 2, 3),
            "group": (self._group, 3, 2 + MAX_MEMBERS),
            "quorum": (self._quorum, 1, 1),
            "domain": (self._domain, 3, 3),
            "record-key": (self._record_key, 1, 1),
            "retired": (self._retired, 2, 2),
            "contract": (self._contract, 1, 1),
        }
        if kind not in statements:
            raise self._bad(f"unknown statement {ascii(kind)[:60]}")
        statement, least, most = statements[kind]
        if not least <= len(rest) <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            raise self._bad(f"{kind} takes {wanted} words, not {len(rest)}")
        statement(*rest)

    def policy(self) -> Policy:
        if not self.log_keys:
            raise BadPolicy(0, "no log line: whose checkpoints count?")
        if self.domain is None:
            raise BadPolicy(0, "no domain line: for which chain and contracts do signatures count?")
        if self.quorum is None and self.witnesses:
            raise BadPolicy(0, "witnesses without a quorum line would count for nothing")
        chain_id, anchor, treasury = self.domain
        return Policy(
            origin=self.log_keys[0].name,
            log_keys=tuple(self.log_keys),
            log_url=self.log_url,
            records=usage_record_domain(chain_id=chain_id, receipt_anchor=anchor),
            authorizations=authorization_domain(chain_id=chain_id, treasury=treasury),
            record_keys=frozenset(self.record_keys),
            retired=dict(self.retired),
            witnesses=dict(self.witnesses),
            groups=dict(self.groups),
            quorum=self.quorum or NO_QUORUM,
            contract=self.contract,
        )

    def _bad(self, reason: str) -> BadPolicy:
        return BadPolicy(self.line, reason)

    def _log(self, key: str, url: str | None = None) -> None:
        parsed = self._key(key)
        if parsed.kind != ED25519:
            raise self._bad("a log's key signs notes; this one cosigns")
        if parsed in self.log_keys:
            raise self._bad("this log key stands there twice")
        if self.log_keys and parsed.name != self.log_keys[0].name:
            raise self._bad(f"another log than {self.log_keys[0].name}; a policy is for one")
        self._require_apart(parsed, self.witnesses.values())
        self.log_keys.append(parsed)
        self.log_url = self.log_url or url

    def _witness(self, name: str, key: str, _url: str | None = None) -> None:
        self._require_new(name)
        parsed = self._key(key)
        if parsed.public_key in {each.public_key for each in self.witnesses.values()}:
            raise self._bad("this witness key stands there twice; it would count twice")
        self._require_apart(parsed, self.log_keys)
        self.witnesses[name] = parsed

    def _group(self, name: str, threshold: str, *members: str) -> None:
        self._require_new(name)
        if len(set(members)) != len(members):
            raise self._bad("a member stands there twice")
        for each in members:
            self._require_known(each)
            if each in self.grouped:
                raise self._bad(f"{each} is in another group already")
        named = {"all": len(members), "any": 1}
        number = named[threshold] if threshold in named else self._number(threshold)
        if not 1 <= number <= len(members):
            raise self._bad(f"a threshold of {threshold[:20]} of {len(members)}")
        self.grouped.update(members)
        self.groups[name] = Group(number, members)

    def _quorum(self, name: str) -> None:
        if self.quorum is not None:
            raise self._bad("a second quorum line")
        if name != NO_QUORUM:
            self._require_known(name)
        self.quorum = name

    def _domain(self, chain_id: str, anchor: str, treasury: str) -> None:
        if self.domain is not None:
            raise self._bad("a second domain line")
        number = self._number(chain_id)
        if not 1 <= number <= MAX_CHAIN_ID:
            raise self._bad(f"a chain id is in 1..{MAX_CHAIN_ID}")
        self.domain = (number, self._address(anchor), self._address(treasury))

    def _record_key(self, address: str) -> None:
        self.record_keys.add(self._address(address))

    def _retired(self, key: str, place: str) -> None:
        name = str(self._address(key)) if key.startswith("0x") else str(self._key(key))
        if name in self.retired:
            raise self._bad("this key is retired twice")
        self.retired[name] = self._number(place)

    def _contract(self, address: str) -> None:
        if self.contract is not None:
            raise self._bad("a second contract line")
        self.contract = self._address(address)

    def _require_new(self, name: str) -> None:
        if not name.isascii() or not name.isprintable():
            raise self._bad("a name is printable ASCII")
        if len(self.witnesses) + len(self.groups) >= MAX_NAMES:
            raise self._bad(f"more than {MAX_NAMES} witnesses and groups")
        if name == NO_QUORUM or name in self.witnesses or name in self.groups:
            raise self._bad(f"the name {name[:60]} is taken")

    def _require_apart(self, key: VerifierKey, others: Iterable[VerifierKey]) -> None:
        if key.public_key in {each.public_key for each in others}:
            raise self._bad("one key for the log and a witness: it would witness itself")

    def _require_known(self, name: str) -> None:
        if name not in self.witnesses and name not in self.groups:
            raise self._bad(f"no witness or group {ascii(name)[:60]} before this line")

    def _key(self, text: str) -> VerifierKey:
        try:
            return VerifierKey.parse(text)
        except BadNote as error:
            raise self._bad(error.reason) from None

    def _address(self, text: str) -> Address:
        try:
            return parse_address(text)
        except BadAddress as error:
            raise self._bad(str(error)) from None

    def _number(self, text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 19:
            raise self._bad(f"{ascii(text)[:30]} is no number")
        return int(text)
