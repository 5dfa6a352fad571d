"""After the signature nothing gets lost: the job's id, what may be charged, a cut answer."""

import json
from collections.abc import Callable

import httpx
import pytest

from app.cli.answering import answered, require_json
from app.cli.errors import AnswerIncomplete
from app.cli.exits import Exit
from app.cli.failures import describe
from app.cli.output import Output
from app.cli.shown import job_line, job_rows
from app.client.client import Client
from app.client.documents import Answer, JobDocument, JobLine, Usage
from app.client.errors import JobUnfinished, ProblemError, Unanswered
from app.client.transport import Transport
from app.client.wallet import Wallet
from tests.unit.client.gateway import TERMS, WALLET_KEY, checked, job_with, record_for

JOB = "job_00000000-0000-0000-0000-000000000009"
Handler = Callable[[httpx.Request], httpx.Response]


def ask(handler: Handler) -> JobDocument:
    http = httpx.Client(transport=httpx.MockTransport(handler))
    transport = Transport("http://gateway", http=http, pause=lambda _: None)
    client = Client(transport, TERMS, wallet=Wallet(WALLET_KEY))
    return answered(client, checked(), Output(as_json=False), wait_seconds=7)


def running() -> httpx.Response:
    job = job_with(record_for(checked())).model_dump(mode="json")
    return httpx.Response(202, json={**job, "state": "running", "answer": None, "record": None})


def completed(content: str, finish: str) -> JobDocument:
    usage = Usage(input_tokens=1, cached_input_tokens=0, output_tokens=64)
    changed = {"answer": Answer(content=content, finish_reason=finish), "usage": usage}
    return job_with(record_for(checked())).model_copy(update=changed)


def waits(request: httpx.Request) -> bool:
    return request.headers["Prefer"] != "wait=0"


def test_the_jobs_id_is_told_before_anything_is_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if not waits(request):
            return running()
        told.append(capsys.readouterr().err)
        return httpx.Response(200, json=job_with(record_for(checked())).model_dump(mode="json"))

    assert ask(answer).state == "completed"
    assert told == [f"job {JOB}\n"]


def test_stopping_while_the_job_runs_names_the_job_and_its_maximum() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if waits(request):
            raise KeyboardInterrupt
        return running()

    with pytest.raises(Unanswered) as stopped:
        ask(answer)
    failure = describe(stopped.value)
    assert failure.exit is Exit.INTERRUPTED
    assert f"{JOB} goes on and is charged up to 0.000008440" in failure.detail
    assert failure.next_step == f"look: offpeak job show {JOB}"


@pytest.mark.parametrize(
    ("response", "code", "code_of_exit"),
    [
        (httpx.ConnectError("connection refused"), "gateway-unreachable", Exit.UNREACHABLE),
        (KeyboardInterrupt(), "interrupted", Exit.INTERRUPTED),
        (httpx.Response(502, text="<html>"), "answer-malformed", Exit.UNREACHABLE),
        (
            httpx.Response(503, json={"code": "database-unavailable"}),
            "database-unavailable",
            Exit.TRY_LATER,
        ),
    ],
)
def test_a_lost_answer_to_a_signed_request_says_where_to_look(
    response: httpx.Response | BaseException, code: str, code_of_exit: Exit
) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        if isinstance(response, BaseException):
            raise response
        return httpx.Response(response.status_code, content=response.content)

    with pytest.raises(Unanswered) as lost:
        ask(answer)
    failure = describe(lost.value)
    assert (failure.code, failure.exit) == (code, code_of_exit)
    assert "may have been accepted, and is then charged up to 0.000008440" in failure.detail
    assert failure.next_step == "look: offpeak job list"


def test_a_plain_refusal_stays_one() -> None:
    with pytest.raises(ProblemError, match="why"):
        ask(lambda _: httpx.Response(402, json={"code": "insufficient-funds", "detail": "why"}))


def test_a_job_that_outlasts_the_wait_is_named_with_the_seconds_waited() -> None:
    with pytest.raises(JobUnfinished, match=f"{JOB} is still running after 7 s"):
        ask(lambda _: running())


def test_an_answer_that_was_cut_says_so() -> None:
    rows = dict(job_rows(completed("and then", "length")))
    assert rows["finish"] == "length: cut at --max-tokens 64"
    assert "finish" not in dict(job_rows(completed("done", "stop")))


@pytest.mark.parametrize(
    ("content", "finish", "reason"),
    [('{"a": 1', "length", "cut at --max-tokens 64"), ('{"a": 1', "stop", "not JSON")],
)
def test_a_schemas_answer_that_is_cut_or_no_json_is_a_failure(
    content: str, finish: str, reason: str
) -> None:
    with pytest.raises(AnswerIncomplete, match=reason) as incomplete:
        require_json(completed(content, finish))
    failure = describe(incomplete.value)
    assert failure.exit is Exit.INCOMPLETE
    assert "it was charged" in failure.next_step
    require_json(completed(json.dumps({"a": 1}), "stop"))


def test_a_list_shows_what_each_job_costs() -> None:
    line = JobLine(
        id=JOB, state="running", model="m", region="r", created_at="2026-11-30T00:00:00Z", held="2"
    )
    assert job_line(line).endswith("running    held   2")
    ended = line.model_copy(update={"state": "completed", "charge": "1"})
    assert job_line(ended).endswith("completed  charge 1")
