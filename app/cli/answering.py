"""From a confirmed quote to an answer: what is told when, and what is told when we must stop."""

import json

from app.cli.errors import AnswerIncomplete
from app.cli.output import Output
from app.cli.shown import cut_text
from app.client.checks import CheckedQuote
from app.client.client import Client
from app.client.documents import JobDocument
from app.client.errors import AnswerMalformed, GatewayUnreachable, ProblemError, Unanswered
from ledger.money import format_amount

UNKNOWN_OUTCOMES = frozenset({"database-unavailable", "internal-error"})
"""Refusals after which the request may have been accepted all the same."""


def answered(
    client: Client, checked: CheckedQuote, output: Output, *, wait_seconds: int
) -> JobDocument:
    """Sign, and return the completed job; its id is told as soon as there is one.

    Raises:
        Unanswered: we stopped listening after signing; what may be charged and where to look.
        ClientError: see `Client.ask`.
    """
    known: list[str] = []

    def accepted(job: JobDocument) -> None:
        known.append(job.id)
        output.note(f"job {job.id}")

    def unanswered(code: str, reason: str) -> Unanswered:
        maximum = format_amount(checked.quote.max_charge_nano)
        return Unanswered(code, reason=reason, maximum=maximum, job=known[0] if known else None)

    try:
        return client.ask(checked, wait_seconds=wait_seconds, on_accepted=accepted)
    except KeyboardInterrupt:
        raise unanswered("interrupted", "stopped") from None
    except (GatewayUnreachable, AnswerMalformed) as error:
        raise unanswered(error.code, str(error)) from error
    except ProblemError as problem:
        if problem.code not in UNKNOWN_OUTCOMES:
            raise
        raise unanswered(problem.code, str(problem)) from problem


def require_json(job: JobDocument) -> None:
    """Return if the answer is whole and JSON; AnswerIncomplete otherwise."""
    assert job.answer is not None
    if job.answer.finish_reason == "length":
        raise AnswerIncomplete(job.id, reason=cut_text(job))
    try:
        json.loads(job.answer.content)
    except ValueError as error:
        raise AnswerIncomplete(job.id, reason=f"not JSON: {error}") from None
