"""A batch's proofs are made of one chunk and the chunks' roots, and are those of the whole tree."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.receipts.batch import CHUNK, batch_proof, chunk_roots
from ledger.merkle import BatchIndex, Tree, leaf_hash

LEAVES = [leaf_hash(b"leaf %d" % number) for number in range(3 * CHUNK + 2)]


def proof(index: int, size: int) -> tuple[bytes, ...]:
    start = index // CHUNK * CHUNK
    chunk = LEAVES[start : min(start + CHUNK, size)]
    return batch_proof(BatchIndex(index), chunk=chunk, roots=b"".join(chunk_roots(LEAVES[:size])))


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 511, 512, 513, 768, 770])
def test_roots_and_proofs_at_the_edges_of_chunks_are_those_of_the_tree(size: int) -> None:
    tree = Tree(LEAVES[:size])
    assert Tree(chunk_roots(LEAVES[:size])).root == tree.root
    for index in {0, size // 2, size - 2, size - 1, 254, 255, 256, 257} & set(range(size)):
        assert proof(index, size) == tree.proof(index)


@settings(max_examples=50)
@given(st.data())
def test_every_proof_is_that_of_the_tree(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, len(LEAVES)))
    index = data.draw(st.integers(0, size - 1))
    assert proof(index, size) == Tree(LEAVES[:size]).proof(index)
