from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.models.errors import (
    EmptyMessage,
    LastMessageNotUser,
    LoneSurrogate,
    MalformedMessages,
    MessagesError,
    SpecialTokenInText,
    TooManyMessages,
    UnsupportedContent,
    UnsupportedRole,
)
from app.models.messages import MAX_MESSAGES, Message, check_messages, parse_messages

SPECIAL = ("<|im_start|>", "<|im_end|>")
HELLO = {"role": "user", "content": "hello"}


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def test_a_conversation_becomes_messages_in_order() -> None:
    said = [{"role": "system", "content": "be brief"}, HELLO]
    assert parse_messages(said, SPECIAL) == (
        Message("system", "be brief"),
        Message("user", "hello"),
    )


def test_only_a_system_message_may_be_empty() -> None:
    parse_messages([{"role": "system", "content": ""}, HELLO], SPECIAL)
    for role in ("user", "assistant"):
        with pytest.raises(EmptyMessage):
            parse_messages([{"role": role, "content": ""}, HELLO], SPECIAL)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, MalformedMessages),
        ({}, MalformedMessages),
        ("hello", MalformedMessages),
        ([], MalformedMessages),
        (["hello"], MalformedMessages),
        ([{"role": "user"}], MalformedMessages),
        ([{"content": "hello"}], MalformedMessages),
        ([HELLO | {"name": "x"}], MalformedMessages),
        ([HELLO] * (MAX_MESSAGES + 1), TooManyMessages),
        ([{"role": "developer", "content": "hello"}, HELLO], UnsupportedRole),
        ([{"role": "tool", "content": "hello"}, HELLO], UnsupportedRole),
        ([{"role": "User", "content": "hello"}], UnsupportedRole),
        ([{"role": None, "content": "hello"}], UnsupportedRole),
        ([{"role": ["user"], "content": "hello"}], UnsupportedRole),
        ([user(None)], UnsupportedContent),
        ([user(7)], UnsupportedContent),
        ([user([{"type": "text", "text": "hello"}])], UnsupportedContent),
        ([user("")], EmptyMessage),
        ([HELLO, {"role": "assistant", "content": "hi"}], LastMessageNotUser),
        ([{"role": "system", "content": "hi"}], LastMessageNotUser),
        ([user("half a pair \ud83d here")], LoneSurrogate),
        ([user("\udc00")], LoneSurrogate),
        ([user("x<|im_end|>y")], SpecialTokenInText),
        ([{"role": "system", "content": "<|im_start|>"}, HELLO], SpecialTokenInText),
    ],
)
def test_what_engines_would_count_differently_is_refused(
    value: object, expected: type[MessagesError]
) -> None:
    with pytest.raises(expected):
        parse_messages(value, SPECIAL)


def test_every_refusal_has_a_code_of_its_own() -> None:
    codes = [refusal.code for refusal in MessagesError.__subclasses__()]
    assert len(set(codes)) == len(codes) == 8


def test_a_refusal_says_which_message_and_token() -> None:
    with pytest.raises(SpecialTokenInText, match=r"messages\[1\].*<\|im_end\|>") as refused:
        parse_messages([HELLO, user("<|im_end|>")], SPECIAL)
    assert (refused.value.index, refused.value.token) == (1, "<|im_end|>")


@pytest.mark.parametrize("messages", [[], [Message("user", "x")] * (MAX_MESSAGES + 1)])
def test_a_conversation_made_in_code_is_held_to_the_same_limits(
    messages: Sequence[Message],
) -> None:
    with pytest.raises(MessagesError):
        check_messages(messages, SPECIAL)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["user", "system"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["role", "content", "name"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_input_raises_anything_but_a_typed_refusal(value: object) -> None:
    with suppress(MessagesError):
        assert parse_messages(value, SPECIAL)[-1].role == "user"
