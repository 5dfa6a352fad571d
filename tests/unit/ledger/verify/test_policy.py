"""A policy says exactly what it says: unknown, doubled or senseless lines are refused by line."""

import pytest

from ledger.note import COSIGNATURE, ED25519, NoteSigner, VerifierKey
from ledger.verify.errors import BadPolicy
from ledger.verify.policy import MAX_POLICY_BYTES, parse_policy
from tests.receipt_world import AUTHORIZATIONS, RECEIPT_ANCHOR, RECORDS, TREASURY, secret
from tests.unit.ledger.verify.checking import policy, world

LOG = f"log {world().signer(0).verifier}"
DOMAIN = f"domain 31337 {RECEIPT_ANCHOR} {TREASURY}"


def key(number: int) -> VerifierKey:
    public = NoteSigner("w", secret(f"witness {number}")).verifier.public_key
    return VerifierKey(f"w.example/{number}", public, COSIGNATURE)


def text(*lines: str) -> bytes:
    return "\n".join(lines).encode()


def test_the_least_policy_names_a_log_and_a_domain() -> None:
    found = parse_policy(text(LOG, DOMAIN))
    assert found.origin == world().origin
    assert (found.records, found.authorizations) == (RECORDS, AUTHORIZATIONS)
    assert found.has_quorum([])


def test_comments_blank_lines_and_spaces_mean_nothing() -> None:
    spaced = text("# mine", "", f"  {LOG}\thttps://log.example", "   # more", DOMAIN, "")
    found = parse_policy(spaced)
    assert found.log_url == "https://log.example"
    assert found.log_keys == policy().log_keys


WITNESSES = [f"witness W{number} {key(number)}" for number in range(4)]
NESTED = ["group A 2 W0 W1 W2", "group B all A W3", "quorum B"]


@pytest.mark.parametrize(
    ("signed", "enough"),
    [((0, 1, 3), True), ((1, 2, 3), True), ((0, 1, 2), False), ((0, 3), False), ((), False)],
)
def test_groups_nest(signed: tuple[int, ...], *, enough: bool) -> None:
    found = parse_policy(text(LOG, DOMAIN, *WITNESSES, *NESTED))
    assert found.has_quorum([key(number) for number in signed]) is enough


BAD = {
    "no log": ([DOMAIN], 0),
    "no domain": ([LOG], 0),
    "unknown statement": ([LOG, DOMAIN, "trust everyone"], 3),
    "a word too many": ([LOG + " https://log.example x", DOMAIN], 1),
    "a word too few": (["log", DOMAIN], 1),
    "a broken key": ([LOG[:-3], DOMAIN], 1),
    "a key with another id": ([LOG.replace("+", "+00", 1), DOMAIN], 1),
    "a log key twice": ([LOG, LOG, DOMAIN], 2),
    "two logs": ([LOG, f"log {NoteSigner('other', secret('x')).verifier}", DOMAIN], 2),
    "a cosigning key as a log": ([f"log {key(0)}", DOMAIN], 1),
    "two domains": ([LOG, DOMAIN, DOMAIN], 3),
    "chain 0": ([LOG, DOMAIN.replace("31337", "0")], 2),
    "a chain id that is no number": ([LOG, DOMAIN.replace("31337", "1e3")], 2),
    "a chain id beyond all": ([LOG, DOMAIN.replace("31337", "9" * 19)], 2),
    "a wrong checksum": ([LOG, DOMAIN.replace("0xe7", "0xE7")], 2),
    "a witness twice": ([LOG, DOMAIN, WITNESSES[0], WITNESSES[0]], 4),
    "a witness key of two names": ([LOG, DOMAIN, f"witness A {key(0)}", f"witness B {key(0)}"], 4),
    "witnesses without a quorum": ([LOG, DOMAIN, *WITNESSES], 0),
    "a group of nobody": ([LOG, DOMAIN, "group A all"], 3),
    "a group of strangers": ([LOG, DOMAIN, "group A all X"], 3),
    "a group of itself": ([LOG, DOMAIN, "group A all A"], 3),
    "a member twice": ([LOG, DOMAIN, *WITNESSES, "group A 2 W0 W0"], 7),
    "a member of two groups": ([LOG, DOMAIN, *WITNESSES, "group A 1 W0", "group B 1 W0"], 8),
    "a threshold of 0": ([LOG, DOMAIN, *WITNESSES, "group A 0 W0"], 7),
    "a threshold beyond": ([LOG, DOMAIN, *WITNESSES, "group A 2 W0"], 7),
    "a threshold of words": ([LOG, DOMAIN, *WITNESSES, "group A most W0"], 7),
    "the name none": ([LOG, DOMAIN, f"witness none {key(0)}"], 3),
    "two quorums": ([LOG, DOMAIN, *WITNESSES, "quorum W0", "quorum none"], 8),
    "a quorum of strangers": ([LOG, DOMAIN, "quorum X"], 3),
    "a pin that is no address": ([LOG, DOMAIN, "record-key 0x12"], 3),
    "retired without a place": ([LOG, DOMAIN, f"retired {TREASURY}"], 3),
    "retired at no number": ([LOG, DOMAIN, f"retired {TREASURY} soon"], 3),
    "retired twice": ([LOG, DOMAIN, f"retired {TREASURY} 3", f"retired {TREASURY} 4"], 4),
    "two contracts": ([LOG, DOMAIN, f"contract {TREASURY}", f"contract {TREASURY}"], 4),
    "a tree of groups": ([LOG, DOMAIN, *(f"witness V{n} {key(n)}" for n in range(257))], 259),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_policy_is_refused_with_its_line(name: str) -> None:
    lines, number = BAD[name]
    with pytest.raises(BadPolicy) as caught:
        parse_policy(text(*lines))
    assert caught.value.line == number


@pytest.mark.parametrize("data", [b"\xff", b" " * (MAX_POLICY_BYTES + 1), b""])
def test_bytes_that_are_no_policy_are_refused(data: bytes) -> None:
    with pytest.raises(BadPolicy):
        parse_policy(data)


@pytest.mark.parametrize("kind", [ED25519, COSIGNATURE])
def test_a_log_cannot_be_its_own_witness(kind: int) -> None:
    same = VerifierKey("w.example/own", world().signer(0).verifier.public_key, kind)
    witness = ("witness W " + str(same), "quorum W")
    for lines in ((LOG, DOMAIN, *witness), (*witness, LOG, DOMAIN)):
        with pytest.raises(BadPolicy, match="witness itself"):
            parse_policy(text(*lines))
