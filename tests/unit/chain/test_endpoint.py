"""What an endpoint's error means: a revert, too many logs, or only trouble."""

import pytest

from app.chain.endpoint import RpcFault
from app.chain.outcomes import SendOutcome, send_outcome


@pytest.mark.parametrize(
    ("code", "message", "reverted"),
    [
        (3, "execution reverted", True),
        (3, "", True),
        (-32000, "execution reverted: Paused", True),
        (-32015, "VM execution error: Reverted 0x1234", True),
        (-32000, "insufficient funds for transfer", True),
        (-32000, "header not found", False),
        (-32001, "Resource not found", False),
        (-32603, "internal error", False),
        (-32000, "missing trie node", False),
        (-32005, "daily request count exceeded", False),
    ],
)
def test_a_revert_is_told_from_trouble(code: int, message: str, reverted: bool) -> None:  # noqa: FBT001
    assert RpcFault(code, message, None).is_revert is reverted


@pytest.mark.parametrize(
    "message",
    [
        "query returned more than 10000 results",
        "block range is too wide",
        "exceed maximum block range: 5000",
        "eth_getLogs is limited to a 10,000 range",
        "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range",
        "range too large, max 1000 blocks",
        "response is too big",
        "query timeout exceeded",
    ],
)
def test_a_range_that_is_too_large_is_known_in_each_providers_words(message: str) -> None:
    assert RpcFault(-32000, message, None).is_too_large


@pytest.mark.parametrize("message", ["rate limit exceeded", "header not found", "unauthorized", ""])
def test_other_trouble_is_not_met_with_smaller_ranges(message: str) -> None:
    assert not RpcFault(-32005, message, None).is_too_large


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ("already known", "already-known"),
        ("ALREADY_EXISTS: already known", "already-known"),
        ("transaction already imported", "already-known"),
        ("nonce too low: next nonce 7, tx nonce 6", "nonce-too-low"),
        ("replacement transaction underpriced", "underpriced"),
        ("transaction underpriced: gas tip cap 0", "underpriced"),
        ("max fee per gas less than block base fee", "underpriced"),
        ("insufficient funds for gas * price + value", "insufficient-funds"),
        ("intrinsic gas too low", "refused"),
        ("", "refused"),
    ],
)
def test_what_nodes_say_to_a_transaction(message: str, outcome: SendOutcome) -> None:
    assert send_outcome(message) == outcome
