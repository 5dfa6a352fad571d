"""What to ask, from options and files."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from app.cli.errors import BadInput, BadSchemaFile
from app.client.asking import Question, Turn
from app.client.checks import CheckedQuote
from app.client.client import Client
from app.client.errors import ProblemError
from ledger.money import Nano

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
    region: str | None = None


def read_question(options: QuestionOptions) -> Question:
    """Return the question; `-` as prompt reads standard input, at most 1 MiB.

    Raises:
        BadInput: empty or too long, or the schema file holds no JSON object.
    """
    prompt = _standard_input() if options.prompt == "-" else options.prompt
    if not prompt.strip():
        raise BadInput("the prompt is empty")
    for name, text in (("prompt", prompt), ("system message", options.system or "")):
        if not _is_unicode(text):
            raise BadInput(f"the {name} is not UTF-8")
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


def quoted(
    client: Client, question: Question, options: QuestionOptions, *, limit: Nano | None = None
) -> CheckedQuote:
    """Return a checked quote; a refusal is told in terms of the options that it is about.

    Raises:
        BadSchemaFile: the gateway refuses the schema file.
        ClientError: see `Client.quote`.
    """
    try:
        return client.quote(question, region=options.region, limit=limit)
    except ProblemError as problem:
        if problem.code == "bad-schema" and options.schema:
            raise BadSchemaFile(f"schema {options.schema}: {problem}") from problem
        if problem.code == "no-capacity" and options.region:
            regions = sorted({each.region for each in client.capacity().capacity})
            offered = ", ".join(regions) or "none"
            problem.next_step = f"regions that offer slots now: {offered}; or leave --region out"
        raise


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes of the command line that are not UTF-8
        return False
    return True


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
