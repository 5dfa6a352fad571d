"""Merkle trees over SHA-256 as RFC 6962 and RFC 9162, section 2.1, define them.

A leaf is hashed behind a byte 0x00, two children behind 0x01, so no inner node passes as a leaf.
A left subtree is the largest power of two below its parent's size; nothing is ever doubled.

* `Tree` holds all hashes of a tree of fixed size: a batch, proofs for each of its leaves;
  `RootBuilder` makes the root of leaves that nobody keeps.
* `inclusion_ranges`, `consistency_ranges` and `range_hash` make proofs for any size of a growing
  tree from its stored complete nodes, reading O(log n) of them.
* `verify_inclusion`, `verify_consistency` need nothing but their arguments.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256 as _sha256
from typing import Final, NewType

from ledger.errors import BadProof
from ledger.hashing import DIGEST_BYTES

LogIndex = NewType("LogIndex", int)
"""An entry's place in the log, from 0. A log of size n holds 0 .. n - 1."""

BatchIndex = NewType("BatchIndex", int)
"""A leaf's place in its receipt batch, from 0. Never a place in the log."""

EMPTY_ROOT: Final = _sha256(b"").digest()
MAX_TREE_SIZE: Final = 2**62
"""Sizes beyond are refused before any arithmetic; a proof has at most 62 hashes."""

Node = tuple[int, int]
"""(level, index): the complete subtree over leaves index << level .. (index + 1) << level."""


@dataclass(frozen=True, slots=True)
class Range:
    """Leaves `start` .. `end` - 1, a subtree of a tree of some size."""

    start: int
    end: int


def leaf_hash(data: bytes) -> bytes:
    """The hash of a leaf, 32 bytes."""
    return _sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node over its children, 32 bytes."""
    return _sha256(b"\1" + left + right).digest()


class Tree:
    """A tree of fixed size, level by level from the leaves up; an odd level's last is promoted."""

    def __init__(self, leaf_hashes: Iterable[bytes]) -> None:
        """Take the leaves' hashes in order, 32 bytes each."""
        level = list(leaf_hashes)
        self._levels = [level]
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=False)
            above = [_sha256(b"\1" + left + right).digest() for left, right in pairs]
            if len(level) % 2:
                above.append(level[-1])
            self._levels.append(above)
            level = above

    @property
    def size(self) -> int:
        """How many leaves it has."""
        return len(self._levels[0])

    @property
    def root(self) -> bytes:
        """The Merkle tree hash; of no leaves, the hash of nothing."""
        return self._levels[-1][0] if self.size else EMPTY_ROOT

    def level(self, number: int) -> list[bytes]:
        """The hashes of a level, 0 the leaves; above the root, the root alone."""
        return self._levels[min(number, len(self._levels) - 1)]

    def proof(self, index: int) -> tuple[bytes, ...]:
        """The inclusion proof of a leaf, from its sibling up to the root's child.

        Raises:
            BadProof: there is no such leaf.
        """
        if not 0 <= index < self.size:
            raise BadProof(f"no leaf {index} in a tree of {self.size}")
        return self._path(index)

    def proofs(self) -> Iterator[tuple[bytes, ...]]:
        """The proof of each leaf in turn; none is kept."""
        return map(self._path, range(self.size))

    def _path(self, index: int) -> tuple[bytes, ...]:
        path = []
        for level in self._levels[:-1]:
            sibling = index ^ 1
            if sibling < len(level):
                path.append(level[sibling])
            index >>= 1
        return tuple(path)


class RootBuilder:
    """The root of a tree from its leaves in order, keeping one hash a level."""

    def __init__(self) -> None:
        self._size = 0
        self._peaks: list[bytes] = []

    def add(self, leaf: bytes) -> None:
        """Take the next leaf's hash."""
        found, size = leaf, self._size
        while size % 2:
            found, size = node_hash(self._peaks.pop(), found), size >> 1
        self._peaks.append(found)
        self._size += 1

    def root(self) -> bytes:
        """The root over what was taken, at least one leaf."""
        found = self._peaks[-1]
        for peak in self._peaks[-2::-1]:
            found = node_hash(peak, found)
        return found


def inclusion_ranges(index: int, size: int) -> list[Range]:
    """The subtrees whose hashes are the inclusion proof of leaf `index` in a tree of `size`.

    Raises:
        BadProof: there is no such leaf.
    """
    if not 0 <= index < size <= MAX_TREE_SIZE:
        raise BadProof(f"no leaf {index} in a tree of {size}")
    found: list[Range] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            found.append(Range(middle, end))
            end = middle
        else:
            found.append(Range(start, middle))
            start = middle
    return found[::-1]


def consistency_ranges(old: int, new: int) -> list[Range]:
    """The subtrees whose hashes prove that a tree of `old` leaves is the start of one of `new`.

    None when the sizes are equal, or the old tree is empty: nothing needs proof then.

    Raises:
        BadProof: `old` is above `new`.
    """
    if not 0 <= old <= new <= MAX_TREE_SIZE:
        raise BadProof(f"no tree of {old} inside one of {new}")
    if old in {0, new}:
        return []
    found: list[Range] = []
    start, end = 0, new
    whole = True  # whether the verifier has the hash of start .. old already: the old root itself
    while old != end:
        middle = start + _split(end - start)
        if old <= middle:
            found.append(Range(middle, end))
            end = middle
        else:
            found.append(Range(start, middle))
            start, whole = middle, False
    if not whole:
        found.append(Range(start, end))
    return found[::-1]


def complete_nodes(subtree: Range) -> list[Node]:
    """The complete nodes that make up a subtree, left to right, each smaller than the one before.

    `subtree` starts at a multiple of the largest power of two within its length.
    """
    nodes = []
    start = subtree.start
    while start < subtree.end:
        level = (subtree.end - start).bit_length() - 1
        nodes.append((level, start >> level))
        start += 1 << level
    return nodes


def range_hash(subtree: Range, node: Callable[[Node], bytes]) -> bytes:
    """The hash of a subtree from its complete nodes."""
    hashes = [node(each) for each in complete_nodes(subtree)]
    found = hashes.pop()
    while hashes:
        found = node_hash(hashes.pop(), found)
    return found


def root_nodes(size: int) -> list[Node]:
    """The complete nodes of a tree of `size` leaves: all that its growth needs to remember."""
    return complete_nodes(Range(0, size))


def grow(peaks: Sequence[bytes], size: int, leaf: bytes) -> list[tuple[Node, bytes]]:
    """The complete nodes that a leaf's hash adds to a tree of `size` leaves, from the leaf up.

    Args:
        peaks: The hashes of `root_nodes(size)`.
        size: How many leaves there are before it.
        leaf: Its hash.
    """
    added = [((0, size), leaf)]
    remaining = list(peaks)
    level, index, found = 0, size, leaf
    while index % 2:
        found = node_hash(remaining.pop(), found)
        level, index = level + 1, index >> 1
        added.append(((level, index), found))
    return added


def verify_inclusion(
    leaf: bytes, index: int, *, size: int, proof: Sequence[bytes], root: bytes
) -> None:
    """Check that a leaf's hash stands at `index` in the tree of `size` with this root.

    RFC 9162, section 2.1.3.2.

    Raises:
        BadProof: it does not, or the proof has another length than this place needs.
    """
    _require_hashes(leaf, root, *proof)
    if not 0 <= index < size <= MAX_TREE_SIZE:
        raise BadProof(f"no leaf {index} in a tree of {size}")
    found, place, last = leaf, index, size - 1
    for sibling in proof:
        if last == 0:
            raise BadProof(f"more hashes than leaf {index} of {size} needs")
        if place % 2 or place == last:
            found = node_hash(sibling, found)
            while place % 2 == 0 and place:
                place, last = place >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        place, last = place >> 1, last >> 1
    if last:
        raise BadProof(f"fewer hashes than leaf {index} of {size} needs")
    if found != root:
        raise BadProof("the proof leads to another root")


@dataclass(frozen=True, slots=True)
class TreeHead:
    """A tree at one size: its root of 32 bytes."""

    size: int
    root: bytes


def verify_consistency(old: TreeHead, new: TreeHead, proof: Sequence[bytes]) -> None:
    """Check that the old tree is the start of the new one.

    RFC 9162, section 2.1.4.2. From an empty tree everything follows, without proof.

    Raises:
        BadProof: it is not, or the proof has another length than these sizes need.
    """
    _require_hashes(old.root, new.root, *proof)
    if not 0 <= old.size <= new.size <= MAX_TREE_SIZE:
        raise BadProof(f"no tree of {old.size} inside one of {new.size}")
    if old.size == 0 and old.root != EMPTY_ROOT:
        raise BadProof("the empty tree has another root")
    if old.size not in {0, new.size}:
        _fold_consistency(old, new, proof)
    elif proof:
        raise BadProof("these sizes need no proof")
    elif old.size and old.root != new.root:
        raise BadProof("one size with two roots")


def _fold_consistency(old: TreeHead, new: TreeHead, proof: Sequence[bytes]) -> None:
    """Both roots from one proof, for 0 < old size < new size."""
    is_power_of_two = old.size & (old.size - 1) == 0
    hashes = [old.root, *proof] if is_power_of_two else list(proof)
    if not hashes:
        raise BadProof(f"a proof from {old.size} to {new.size} is missing")
    place, last = old.size - 1, new.size - 1
    while place % 2:
        place, last = place >> 1, last >> 1
    was = now = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            raise BadProof(f"more hashes than {old.size} to {new.size} needs")
        if place % 2 or place == last:
            was, now = node_hash(sibling, was), node_hash(sibling, now)
            while place % 2 == 0 and place:
                place, last = place >> 1, last >> 1
        else:
            now = node_hash(now, sibling)
        place, last = place >> 1, last >> 1
    if last:
        raise BadProof(f"fewer hashes than {old.size} to {new.size} needs")
    if was != old.root:
        raise BadProof("the proof leads to another old root")
    if now != new.root:
        raise BadProof("the proof leads to another new root")


def _split(size: int) -> int:
    """The largest power of two below `size`, which is at least 2."""
    return 1 << ((size - 1).bit_length() - 1)


def _require_hashes(*hashes: bytes) -> None:
    for each in hashes:
        if len(each) != DIGEST_BYTES:
            raise BadProof(f"a hash of {len(each)} bytes instead of {DIGEST_BYTES}")
