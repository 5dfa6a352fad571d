"""The client against a real gateway: what is sent again is never paid again."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import httpx
import pytest

from app.cli.demo import demo_client
from app.client.asking import Question, Turn
from app.client.client import Client
from app.client.errors import ProblemError
from app.client.transport import Transport
from app.client.wallet import Wallet
from app.embedded.stack import Stack
from ledger.encoding import uuid_from_bytes32

pytestmark = pytest.mark.engine

QUESTION = Question(
    model="smollm2-135m-instruct",
    turns=(Turn("user", "Say hello."),),
    max_output_tokens=8,
    temperature=0,
)


class LosesTheFirstAnswer(httpx.HTTPTransport):
    """Carries every request to the gateway; the first answer of an acceptance gets lost."""

    lost = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send it, and lose what comes back."""
        response = super().handle_request(request)
        if request.url.path == "/v1/requests" and self.lost == 0:
            self.lost += 1
            response.close()
            raise httpx.ReadError("connection lost")
        return response


@pytest.fixture
def client(stack: Stack) -> Iterator[Client]:
    with demo_client(stack) as made:
        yield made


def spent(before: Decimal, client: Client) -> Decimal:
    balance = client.balance()
    assert Decimal(balance.held) == 0
    return before - Decimal(balance.available)


def test_clients_that_send_again_never_pay_twice(client: Client) -> None:
    before = Decimal(client.balance().available)
    checked = client.quote(QUESTION)
    first = client.ask(checked)
    second = client.ask(checked)
    assert second == first
    assert first.charge is not None
    assert spent(before, client) == Decimal(first.charge)


def test_copies_sent_at_once_get_one_job(client: Client) -> None:
    before = Decimal(client.balance().available)
    checked = client.quote(QUESTION)
    with ThreadPoolExecutor(4) as pool:
        jobs = list(pool.map(lambda _: client.ask(checked), range(4)))
    assert len({job.id for job in jobs}) == 1
    assert jobs[0].charge is not None
    assert spent(before, client) == Decimal(jobs[0].charge)


def test_an_answer_lost_on_the_way_is_fetched_by_sending_the_same_again(
    stack: Stack, client: Client
) -> None:
    before = Decimal(client.balance().available)
    checked = client.quote(QUESTION)
    lossy = LosesTheFirstAnswer()
    transport = Transport(stack.url, http=httpx.Client(transport=lossy), pause=lambda _: None)
    with Client(transport, client.terms, wallet=Wallet(stack.wallet_key)) as unlucky:
        job = unlucky.ask(checked)
    assert lossy.lost == 1
    assert job.charge is not None
    assert spent(before, client) == Decimal(job.charge)
    client.verify(job, checked)


def test_not_waiting_leaves_the_job_to_be_fetched_later(client: Client) -> None:
    checked = client.quote(QUESTION)
    job = client.accept(checked, wait_seconds=0)
    done = client.result(job, wait_seconds=60)
    assert done.id == job.id
    assert done.answer is not None
    assert client.job(job.id) == done


def test_each_record_names_the_wallets_record_before_it(client: Client) -> None:
    records = []
    for _ in range(2):
        checked = client.quote(QUESTION)
        records.append(client.verify(client.ask(checked), checked))
    assert records[1].payer_seq == records[0].payer_seq + 1
    assert records[1].prev_payer_record == records[0].record_id
    assert uuid_from_bytes32(records[1].record_id).version == 7


def test_another_wallet_does_not_see_the_job(stack: Stack, client: Client) -> None:
    job = client.ask(client.quote(QUESTION))
    with Client(Transport(stack.url), client.terms, wallet=Wallet(b"\x07" * 32)) as stranger:
        with pytest.raises(ProblemError) as refused:
            stranger.job(job.id)
        assert (refused.value.status, refused.value.code) == (404, "job-not-found")
