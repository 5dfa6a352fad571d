"""Our tree against merkly, and against brute force by the definitions, for n = 1 .. 70.

merkly hashes a leaf as `hash(leaf, b"")` and a node as `hash(left, right)`; given RFC 6962's two
hashes it builds the same trees, because it promotes an odd node too. It takes two leaves or more,
as text, and makes no consistency proofs. The brute force follows RFC 6962, sections 2.1.1 and
2.1.2, word by word, and knows nothing of levels, ranges or stored nodes.
"""

import pytest
from merkly.mtree import MerkleTree
from merkly.node import Side

from ledger.errors import BadProof
from ledger.hashing import sha256
from ledger.log_entry import record_leaf
from ledger.merkle import (
    EMPTY_ROOT,
    Node,
    Tree,
    TreeHead,
    consistency_ranges,
    inclusion_ranges,
    leaf_hash,
    node_hash,
    range_hash,
    verify_consistency,
    verify_inclusion,
)

SIZES = range(1, 71)
LEAVES = [record_leaf(sha256(b"%d" % n), b"%d" % n) for n in range(70)]
HASHES = [leaf_hash(leaf) for leaf in LEAVES]


def rfc6962(left: bytes, right: bytes) -> bytes:
    """What merkly calls for a leaf (`right` empty) and for a node."""
    return node_hash(left, right) if right else leaf_hash(left)


@pytest.mark.parametrize("size", SIZES[1:])
def test_merkly_finds_the_same_root(size: int) -> None:
    theirs = MerkleTree([leaf.decode() for leaf in LEAVES[:size]], rfc6962)
    assert theirs.root == Tree(HASHES[:size]).root


@pytest.mark.parametrize("size", SIZES[1:])
def test_merkly_makes_the_same_proofs_and_accepts_ours(size: int) -> None:
    texts = [leaf.decode() for leaf in LEAVES[:size]]
    theirs = MerkleTree(texts, rfc6962)
    ours = Tree(HASHES[:size])
    for index, text in enumerate(texts):
        nodes = theirs.proof(text)
        assert tuple(node.data for node in nodes) == ours.proof(index)
        assert theirs.verify(nodes, text)
        verify_inclusion(
            HASHES[index], index, size=size, proof=[node.data for node in nodes], root=theirs.root
        )
        # sides, which merkly sends along and we derive from index and size
        found = leaf_hash(LEAVES[index])
        for node in nodes:
            pair = (node.data, found) if node.side is Side.LEFT else (found, node.data)
            found = node_hash(*pair)
        assert found == ours.root


def test_merkly_by_itself_takes_an_inner_node_for_a_leaf() -> None:
    """Why it is no dependency: without two hashes, two trees share a root."""
    plain = MerkleTree(["a", "b", "c", "d"], lambda left, right: sha256(left + right))
    level = [sha256(plain.leaves[0] + plain.leaves[1]), sha256(plain.leaves[2] + plain.leaves[3])]
    assert plain.root == sha256(level[0] + level[1])
    tree = Tree(map(leaf_hash, (b"a", b"b", b"c", b"d")))
    assert Tree(map(leaf_hash, tree.level(1))).root != tree.root


def split(size: int) -> int:
    """The largest power of two smaller than `size`."""
    k = 1
    while 2 * k < size:
        k *= 2
    return k


def mth(leaves: list[bytes]) -> bytes:
    """MTH of section 2.1."""
    if not leaves:
        return sha256(b"")
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0])
    k = split(len(leaves))
    return sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:]))


def path(m: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of section 2.1.1."""
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if m < k:
        return [*path(m, leaves[:k]), mth(leaves[k:])]
    return [*path(m - k, leaves[k:]), mth(leaves[:k])]


def subproof(m: int, leaves: list[bytes], *, whole: bool) -> list[bytes]:
    """SUBPROOF of section 2.1.2; PROOF is `whole`."""
    if m == len(leaves):
        return [] if whole else [mth(leaves)]
    k = split(len(leaves))
    if m <= k:
        return [*subproof(m, leaves[:k], whole=whole), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], whole=False), mth(leaves[:k])]


def by_leaves(node: Node) -> bytes:
    level, index = node
    return mth(LEAVES[index << level : (index + 1) << level])


@pytest.mark.parametrize("size", [0, *SIZES])
def test_brute_force_finds_the_same_root(size: int) -> None:
    assert Tree(HASHES[:size]).root == mth(LEAVES[:size])


@pytest.mark.parametrize("size", SIZES)
def test_brute_force_makes_the_same_inclusion_proofs(size: int) -> None:
    tree, root = Tree(HASHES[:size]), mth(LEAVES[:size])
    for index in range(size):
        proof = path(index, LEAVES[:size])
        assert list(tree.proof(index)) == proof
        verify_inclusion(HASHES[index], index, size=size, proof=proof, root=root)
    ranges = inclusion_ranges(size // 2, size)
    assert [range_hash(each, by_leaves) for each in ranges] == path(size // 2, LEAVES[:size])


@pytest.mark.parametrize("size", SIZES)
def test_brute_force_makes_the_same_consistency_proofs(size: int) -> None:
    new = TreeHead(size, mth(LEAVES[:size]))
    verify_consistency(TreeHead(0, EMPTY_ROOT), new, [])
    for old_size in range(1, size + 1):
        old = TreeHead(old_size, mth(LEAVES[:old_size]))
        proof = subproof(old_size, LEAVES[:size], whole=True)
        assert [range_hash(each, by_leaves) for each in consistency_ranges(old_size, size)] == proof
        verify_consistency(old, new, proof)
        for place in range(len(proof)):
            wrong = [*proof[:place], bytes(32), *proof[place + 1 :]]
            with pytest.raises(BadProof):
                verify_consistency(old, new, wrong)
