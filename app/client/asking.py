"""What a buyer asks for: the inference request object, its canonical form and its digest."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ledger.commitment import request_digest
from ledger.encoding import Address, canonical_json
from ledger.money import Nano


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the conversation."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request to a model. Sampling fields left at None are not sent and not in the digest."""

    model: str
    turns: tuple[Turn, ...]
    max_output_tokens: int
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] | None = None
    schema_name: str = "answer"
    schema: Mapping[str, object] | None = None
    """JSON schema that the answer must satisfy."""

    def request(self) -> dict[str, object]:
        """The request object, exactly as it is sent and digested."""
        built: dict[str, object] = {
            "model": self.model,
            "messages": [{"role": turn.role, "content": turn.content} for turn in self.turns],
            "max_output_tokens": self.max_output_tokens,
        }
        for name in ("temperature", "top_p", "seed"):
            value = getattr(self, name)
            if value is not None:
                built[name] = value
        if self.stop is not None:
            built["stop"] = list(self.stop)
        if self.schema is not None:
            built["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": self.schema_name, "schema": dict(self.schema)},
            }
        return built


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question as its payer asks it, with the salt that hides it in its digest.

    `limit` is the most that the payer is ready to authorize, None for any maximum.
    """

    payer: Address
    question: Question
    salt: bytes = field(repr=False)
    region: str | None = None
    limit: Nano | None = None

    def digest(self) -> bytes:
        """The request digest as we compute it ourselves, 32 bytes.

        Raises:
            NotCanonical: the question's text has no UTF-8 form.
        """
        return request_digest(self.salt, canonical_json(self.question.request()))
