"""What to ask, from options and files."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from app.cli.errors import BadInput
from app.client.asking import Question, Turn

MAX_INPUT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """The prompt and the sampling options, as given."""

    prompt: str
    model: str
    max_tokens: int
    system: str | None = None
    temperature: float | None = None
    seed: int | None = None
    schema: Path | None = None


def read_question(options: QuestionOptions) -> Question:
    """Return the question; `-` as prompt reads standard input, at most 1 MiB.

    Raises:
        BadInput: empty or too long, or the schema file holds no JSON object.
    """
    prompt = _standard_input() if options.prompt == "-" else options.prompt
    if not prompt.strip():
        raise BadInput("the prompt is empty")
    turns = [Turn("system", options.system)] if options.system else []
    turns.append(Turn("user", prompt))
    return Question(
        model=options.model,
        turns=tuple(turns),
        max_output_tokens=options.max_tokens,
        temperature=options.temperature,
        seed=options.seed,
        schema=_schema(options.schema) if options.schema else None,
    )


def _standard_input() -> str:
    raw = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    if len(raw) > MAX_INPUT_BYTES:
        raise BadInput(f"standard input is over {MAX_INPUT_BYTES} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise BadInput("standard input is not UTF-8") from None


def _schema(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            schema = json.loads(file.read(MAX_INPUT_BYTES))
    except (OSError, ValueError) as error:
        raise BadInput(f"schema {path}: {error}") from None
    if not isinstance(schema, dict):
        raise BadInput(f"schema {path}: not a JSON object")
    return schema
