"""Expected failures of receipts and their log.

* ReceiptError
  - RecordNotFound, EntryNotFound, CheckpointNotFound, BatchNotFound
  - CheckpointKeyRetired, RotationRefused, LogDamaged, AnchorContradicts
"""

from typing import ClassVar


class ReceiptError(Exception):
    """Base of every expected failure around receipts."""

    code: ClassVar[str]


class RecordNotFound(ReceiptError):
    """This wallet has no usage record with this id; an unfinished job has none yet."""

    code = "record-not-found"


class EntryNotFound(ReceiptError):
    """The log has no entry at this index."""

    code = "entry-not-found"

    def __init__(self, index: int, *, size: int) -> None:
        super().__init__(f"no entry {index} in a log of {size}")
        self.index = index
        self.size = size


class CheckpointNotFound(ReceiptError):
    """There is no checkpoint of this size."""

    code = "checkpoint-not-found"

    def __init__(self, size: int, *, latest: int) -> None:
        super().__init__(f"no checkpoint of size {size}; the latest is of size {latest}")
        self.size = size
        self.latest = latest


class BatchNotFound(ReceiptError):
    """There is no receipt batch with this number."""

    code = "batch-not-found"

    def __init__(self, number: int) -> None:
        super().__init__(f"no receipt batch {number}")
        self.number = number


class CheckpointKeyRetired(ReceiptError):
    """The checkpoint key that is set is not the one that signs this size of the log."""

    code = "checkpoint-key-retired"

    def __init__(self, *, size: int, given: str, expected: str | None) -> None:
        super().__init__(
            f"checkpoints of size {size} are signed by {expected or 'no key'}, but"
            f" OFFPEAK_CHECKPOINT_KEY is {given}: set the key that `offpeak log rotate` introduced"
        )
        self.size = size
        self.given = given
        self.expected = expected


class RotationRefused(ReceiptError):
    """A key cannot be introduced or retired like this; nothing was logged."""

    code = "rotation-refused"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LogDamaged(ReceiptError):
    """What is stored contradicts what was sealed or signed; nothing more is published."""

    code = "log-damaged"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; run `offpeak log check`")
        self.what = what


class AnchorContradicts(ReceiptError):
    """The receipt anchor on chain holds a root that no checkpoint of ours has; nothing is sent."""

    code = "anchor-contradicts"

    def __init__(self, *, size: int, root: bytes) -> None:
        super().__init__(
            f"the contract has root {root.hex()} for {size} entries, our log has not: another log"
            " writes there, or ours was restored from an old backup; run `offpeak log check`"
        )
        self.size = size
