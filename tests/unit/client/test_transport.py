"""The client's own handling of lost connections, refusals and answers that are none."""

import json
from collections.abc import Callable

import httpx
import pytest

from app.client.client import Client, Clock
from app.client.errors import AnswerMalformed, GatewayUnreachable, ProblemError
from app.client.transport import ATTEMPTS, MAX_ANSWER_BYTES, Call, Transport
from app.client.wallet import Wallet
from tests.unit.client.gateway import TERMS, WALLET_KEY, checked, job_with, record_for

Handler = Callable[[httpx.Request], httpx.Response]
LOOK = Call(method="GET", path="/v1/models", headers={})


def transport(handler: Handler, pauses: list[float] | None = None) -> Transport:
    http = httpx.Client(transport=httpx.MockTransport(handler))
    return Transport("http://gateway", http=http, pause=([] if pauses is None else pauses).append)


def test_retrying_after_a_lost_answer_sends_the_same_bytes_and_cannot_pay_twice() -> None:
    accepted = checked()
    bodies: list[bytes] = []

    def lose_the_first_answer(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        if len(bodies) == 1:
            raise httpx.ReadError("connection lost")
        return httpx.Response(200, json=job_with(record_for(accepted)).model_dump(mode="json"))

    client = Client(transport(lose_the_first_answer), TERMS, wallet=Wallet(WALLET_KEY))
    job = client.accept(accepted)
    assert job.state == "completed"
    assert len(bodies) == 2
    assert bodies[0] == bodies[1]
    assert json.loads(bodies[0])["authorization"] == accepted.authorization.message()


def test_accepting_an_offer_again_signs_the_same_authorization() -> None:
    accepted = checked()
    bodies: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return httpx.Response(200, json=job_with(record_for(accepted)).model_dump(mode="json"))

    client = Client(transport(answer), TERMS, wallet=Wallet(WALLET_KEY))
    client.accept(accepted)
    client.accept(accepted)
    assert bodies[0] == bodies[1]


def test_a_gateway_that_never_answers_is_told_with_the_next_step() -> None:
    calls: list[str] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        calls.append(request.url.path)
        raise httpx.ConnectError("connection refused")

    with pytest.raises(GatewayUnreachable, match="connection refused") as failed:
        transport(refuse).send(LOOK)
    assert "offpeak up" in failed.value.next_step
    assert len(calls) == ATTEMPTS


def test_busy_is_sent_again_after_the_time_the_gateway_names() -> None:
    pauses: list[float] = []
    answers = [
        httpx.Response(503, json={"code": "busy", "title": "Busy"}, headers={"Retry-After": "2"}),
        httpx.Response(200, json={"models": []}),
    ]
    reply = transport(lambda _: answers.pop(0), pauses).send(LOOK)
    assert reply.document == {"models": []}
    assert pauses == [2.0]


@pytest.mark.parametrize("code", ["insufficient-funds", "no-slot", "quote-expired", "job-failed"])
def test_a_refusal_is_not_sent_again(code: str) -> None:
    calls: list[str] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        calls.append(request.url.path)
        body = {"code": code, "title": "Refused", "detail": "why", "available": "0.1", "status": 4}
        return httpx.Response(402, json=body)

    with pytest.raises(ProblemError) as refused:
        transport(refuse).send(LOOK)
    assert (refused.value.code, refused.value.status) == (code, 402)
    assert refused.value.figures == {"available": "0.1"}
    assert len(calls) == 1


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, text="<html>hello</html>"),
        httpx.Response(200, json=[1]),
        httpx.Response(200, content=b" " * (MAX_ANSWER_BYTES + 1)),
    ],
)
def test_an_answer_that_is_no_json_object_of_bounded_size_is_refused(
    response: httpx.Response,
) -> None:
    with pytest.raises(AnswerMalformed):
        transport(lambda _: response).send(LOOK)


def test_a_document_with_a_missing_member_names_it() -> None:
    client = Client(transport(lambda _: httpx.Response(200, json={})), TERMS)
    with pytest.raises(AnswerMalformed, match="models"):
        client.models()


def test_a_document_with_an_unknown_member_is_still_read() -> None:
    answer = httpx.Response(200, json={"models": [], "later": 1})
    assert Client(transport(lambda _: answer), TERMS).models().models == []


def test_a_read_access_is_signed_once_and_its_header_stays_under_4_kb() -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["Authorization"])
        accepted = checked()
        return httpx.Response(200, json=job_with(record_for(accepted)).model_dump(mode="json"))

    now = [1_790_000_000.0]
    clock = Clock(now=lambda: now[0])
    client = Client(transport(answer), TERMS, wallet=Wallet(WALLET_KEY), clock=clock)
    client.job("job_1")
    client.job("job_1")
    now[0] += 10_000
    client.job("job_1")
    assert seen[0] == seen[1] != seen[2]
    assert len(seen[0]) < 4_000


def test_a_wallets_text_form_shows_no_key() -> None:
    assert WALLET_KEY.hex() not in repr(Wallet(WALLET_KEY))
