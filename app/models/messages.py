"""What a conversation may hold, so that every engine counts it as the gateway does.

Rules and why: roles other than these three, and a last message that is not the user's, are
counted differently by llama.cpp and vLLM; a control token spelled in text is obeyed by both.
An empty system message is allowed: it switches the template's own system prompt off, and
the engine's count of it agrees.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from app.models.errors import (
    EmptyMessage,
    LastMessageNotUser,
    LoneSurrogate,
    MalformedMessages,
    SpecialTokenInText,
    TooManyMessages,
    UnsupportedContent,
    UnsupportedRole,
)

Role = Literal["system", "user", "assistant"]
MAX_MESSAGES = 4096

_ROLES: dict[str, Role] = {role: role for role in get_args(Role)}


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; its content is text only."""

    role: Role
    content: str


def parse_messages(value: object, special_tokens: Sequence[str]) -> tuple[Message, ...]:
    """Return the conversation that a request's `messages` spell.

    Args:
        value: Parsed JSON from outside.
        special_tokens: The release's control tokens.

    Raises:
        MessagesError: one of its subclasses, for the first rule broken.
    """
    if not isinstance(value, list) or not value:
        raise MalformedMessages("a list of at least one message is needed", index=0)
    if len(value) > MAX_MESSAGES:
        raise TooManyMessages(f"at most {MAX_MESSAGES} messages", index=MAX_MESSAGES)
    messages = tuple(_parse_one(item, index) for index, item in enumerate(value))
    check_messages(messages, special_tokens)
    return messages


def check_messages(messages: Sequence[Message], special_tokens: Sequence[str]) -> None:
    """Check the rules that a conversation's types do not say by themselves.

    Raises:
        MessagesError: one of its subclasses, for the first rule broken.
    """
    if not messages:
        raise MalformedMessages("a list of at least one message is needed", index=0)
    if len(messages) > MAX_MESSAGES:
        raise TooManyMessages(f"at most {MAX_MESSAGES} messages", index=MAX_MESSAGES)
    for index, message in enumerate(messages):
        _check_content(message, special_tokens, index)
    if messages[-1].role != "user":
        raise LastMessageNotUser("the last message must be the user's", index=len(messages) - 1)


def _parse_one(item: object, index: int) -> Message:
    if not isinstance(item, dict) or item.keys() != {"role", "content"}:
        raise MalformedMessages("an object with exactly role and content is needed", index=index)
    role, content = item["role"], item["content"]
    known = _ROLES.get(role) if isinstance(role, str) else None
    if known is None:
        raise UnsupportedRole(f"the role must be one of {', '.join(_ROLES)}", index=index)
    if not isinstance(content, str):
        raise UnsupportedContent("the content must be a string", index=index)
    return Message(known, content)


def _check_content(message: Message, special_tokens: Sequence[str], index: int) -> None:
    if not message.content and message.role != "system":
        raise EmptyMessage(f"a message of the {message.role} must have text", index=index)
    if not message.content.isascii():
        try:
            message.content.encode()
        except UnicodeEncodeError as error:
            detail = f"half a surrogate pair at character {error.start}"
            raise LoneSurrogate(detail, index=index) from None
    for token in special_tokens:
        if token in message.content:
            raise SpecialTokenInText(token, index=index)
