"""What nodes say to a transaction, told apart; every node software words it its own way."""

from collections.abc import Sequence
from typing import Final, Literal

SendOutcome = Literal[
    "accepted", "already-known", "nonce-too-low", "underpriced", "insufficient-funds", "refused"
]
"""None of them is proof of anything; a receipt is."""

_OUTCOMES: Final[Sequence[tuple[str, SendOutcome]]] = (
    ("already known", "already-known"),
    ("already imported", "already-known"),
    ("known transaction", "already-known"),
    ("nonce too low", "nonce-too-low"),
    ("underpriced", "underpriced"),
    ("fee too low", "underpriced"),
    ("less than block base fee", "underpriced"),
    ("insufficient funds", "insufficient-funds"),
)


def send_outcome(message: str) -> SendOutcome:
    """The outcome that a node's refusal means, `refused` for one that is not known here."""
    lower = message.lower()
    return next((outcome for text, outcome in _OUTCOMES if text in lower), "refused")
