"""Our tree against RFC 6962 by the book, and against public vectors."""

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadProof
from ledger.hashing import sha256
from ledger.merkle import (
    EMPTY_ROOT,
    Node,
    Range,
    RootBuilder,
    Tree,
    TreeHead,
    consistency_ranges,
    grow,
    inclusion_ranges,
    leaf_hash,
    node_hash,
    range_hash,
    root_nodes,
    verify_consistency,
    verify_inclusion,
)

VECTORS = Path("tests/vectors/rfc6962")
SIZES = range(1, 71)
LEAVES = [b"leaf %d" % number for number in range(70)]
HASHES = [leaf_hash(leaf) for leaf in LEAVES]


def by_the_book(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, written down as it stands there."""
    if not leaves:
        return sha256(b"")
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0])
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return sha256(b"\1" + by_the_book(leaves[:k]) + by_the_book(leaves[k:]))


def stored_nodes(size: int) -> dict[Node, bytes]:
    """All complete nodes, as a log stores them while it grows."""
    stored: dict[Node, bytes] = {}
    for number, leaf in enumerate(HASHES[:size]):
        stored.update(grow([stored[node] for node in root_nodes(number)], number, leaf))
    return stored


NODES = stored_nodes(70)


@pytest.mark.parametrize("size", range(71))
def test_the_root_is_that_of_the_rfc(size: int) -> None:
    assert Tree(HASHES[:size]).root == by_the_book(LEAVES[:size])


@pytest.mark.parametrize("size", SIZES)
def test_a_root_is_built_from_leaves_one_by_one(size: int) -> None:
    builder = RootBuilder()
    for leaf in HASHES[:size]:
        builder.add(leaf)
    assert builder.root() == by_the_book(LEAVES[:size])


@pytest.mark.parametrize("size", SIZES)
def test_a_growing_tree_has_the_same_root_and_proofs(size: int) -> None:
    tree = Tree(HASHES[:size])
    assert range_hash(Range(0, size), NODES.__getitem__) == tree.root
    for index, proof in enumerate(tree.proofs()):
        ranges = inclusion_ranges(index, size)
        assert tuple(range_hash(each, NODES.__getitem__) for each in ranges) == proof
        assert tree.proof(index) == proof


@pytest.mark.parametrize("size", SIZES)
def test_every_leaf_is_proved_at_its_own_place_only(size: int) -> None:
    tree = Tree(HASHES[:size])
    for index, proof in enumerate(tree.proofs()):
        verify_inclusion(HASHES[index], index, size=size, proof=proof, root=tree.root)
        for other in {0, index ^ 1, size - 1, size} - {index}:
            with pytest.raises(BadProof):
                verify_inclusion(HASHES[index], other, size=size, proof=proof, root=tree.root)


@pytest.mark.parametrize("size", SIZES)
def test_every_smaller_tree_is_proved_to_be_its_start(size: int) -> None:
    new = TreeHead(size, Tree(HASHES[:size]).root)
    for old_size in range(size + 1):
        old = TreeHead(old_size, Tree(HASHES[:old_size]).root)
        ranges = consistency_ranges(old_size, size)
        proof = [range_hash(each, NODES.__getitem__) for each in ranges]
        verify_consistency(old, new, proof)
        if 0 < old_size < size:
            with pytest.raises(BadProof):
                verify_consistency(TreeHead(old_size, leaf_hash(b"other")), new, proof)
            with pytest.raises(BadProof):
                verify_consistency(old, new, [*proof, EMPTY_ROOT])
            with pytest.raises(BadProof):
                verify_consistency(old, new, proof[:-1])


def test_what_is_not_in_a_tree_has_no_proof() -> None:
    for index, size in ((-1, 3), (3, 3), (0, 0), (0, 2**62 + 1)):
        with pytest.raises(BadProof, match="no leaf"):
            inclusion_ranges(index, size)
        with pytest.raises(BadProof, match="no leaf"):
            Tree(HASHES[: min(size, 3)]).proof(3 if index == 0 else index)
    for old, new in ((4, 3), (-1, 3), (1, 2**62 + 1)):
        with pytest.raises(BadProof, match="no tree of"):
            consistency_ranges(old, new)


def test_an_empty_tree_has_one_root_and_proves_nothing() -> None:
    new = TreeHead(3, Tree(HASHES[:3]).root)
    verify_consistency(TreeHead(0, EMPTY_ROOT), new, [])
    with pytest.raises(BadProof, match="empty tree"):
        verify_consistency(TreeHead(0, bytes(32)), new, [])
    with pytest.raises(BadProof, match="need no proof"):
        verify_consistency(TreeHead(0, EMPTY_ROOT), new, [bytes(32)])


def test_an_inner_node_is_no_leaf() -> None:
    tree = Tree(HASHES[:4])
    inner = node_hash(HASHES[0], HASHES[1])
    with pytest.raises(BadProof):
        verify_inclusion(inner, 0, size=4, proof=[tree.level(1)[1]], root=tree.root)
    assert leaf_hash(HASHES[0] + HASHES[1]) != inner


def test_an_odd_leaf_is_not_doubled() -> None:
    assert Tree(HASHES[:3]).root != Tree([*HASHES[:3], HASHES[2]]).root


@given(st.integers(1, 2**40), st.data())
def test_a_proof_is_as_long_as_its_verifier_expects(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    zeros = [bytes(32)] * len(inclusion_ranges(index, size))
    for proof, reason in ((zeros, "another root"), ([*zeros, bytes(32)], "more hashes")):
        with pytest.raises(BadProof, match=reason):
            verify_inclusion(bytes(32), index, size=size, proof=proof, root=EMPTY_ROOT)


@given(st.binary(max_size=64), st.integers(-2, 2**63), st.integers(-2, 2**63))
def test_whatever_else_is_given_is_refused_as_no_proof(junk: bytes, one: int, two: int) -> None:
    with pytest.raises(BadProof):
        verify_inclusion(junk[:32], one, size=two, proof=[junk], root=bytes(32))
    with pytest.raises(BadProof):
        verify_consistency(TreeHead(one, bytes(32)), TreeHead(two, bytes(32)), [junk])


def vectors(name: str) -> list[dict[str, object]]:
    """Public vectors of transparency-dev/merkle (Apache-2.0)."""
    found: list[dict[str, object]] = json.loads((VECTORS / name).read_text())
    return found


def unpacked(value: object) -> bytes:
    return base64.b64decode(str(value)) if value else b""


def is_refused(name: str, vector: dict[str, object]) -> bool:
    proof = vector["proof"]
    assert proof is None or isinstance(proof, list)
    hashes = [unpacked(each) for each in proof or ()]
    try:
        if name == "inclusion.json":
            verify_inclusion(
                unpacked(vector["leafHash"]),
                int(str(vector["leafIdx"])),
                size=int(str(vector["treeSize"])),
                proof=hashes,
                root=unpacked(vector["root"]),
            )
        else:
            old = TreeHead(int(str(vector["size1"])), unpacked(vector["root1"]))
            verify_consistency(
                old, TreeHead(int(str(vector["size2"])), unpacked(vector["root2"])), hashes
            )
    except BadProof:
        return True
    return False


@pytest.mark.parametrize("name", ["inclusion.json", "consistency.json"])
def test_the_public_vectors_hold(name: str) -> None:
    told = {str(vector["name"]): bool(vector["wantErr"]) for vector in vectors(name)}
    found = {str(vector["name"]): is_refused(name, vector) for vector in vectors(name)}
    assert found == told
    assert len(told) == len(vectors(name)) > 80
