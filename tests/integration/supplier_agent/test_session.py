"""The agent against a gateway and an engine that misbehaves on request."""

import asyncio
import dataclasses
import socket
from uuid import UUID

import aiohttp
import pytest
import structlog

from ledger.statement import SupplierStatement
from supplier_agent.engine.faults import Fault, Script
from supplier_agent.engine.outcome import Condition
from supplier_agent.identity import DeviceKey
from supplier_agent.protocol import (
    Accept,
    AnswerAssembler,
    Busy,
    Cancel,
    Cancelled,
    Done,
    Fail,
    Heartbeat,
    Reason,
    Refused,
    Settled,
    Welcome,
)
from supplier_agent.slots import LeaseState
from tests.integration.supplier_agent.conftest import KEY, Rig, Served
from tests.integration.supplier_agent.gateway import eventually
from tests.unit.supplier_agent.samples import JOB, Job, new_lease, run_message

ENDLESS = Script(fault=Fault.SLOW, reply=" word" * 200, delay_seconds=0.05)
LONG = 300


async def run(rig: Rig, job: Job | None = None) -> str:
    lease = new_lease()
    await rig.session.send(run_message(lease, job))
    return lease


async def until_free(rig: Rig, slots: int = 4) -> None:
    """Wait until the agent's own table has this many free slots."""
    await eventually(lambda: rig.table.free == slots)


async def test_a_job_runs_and_its_statement_can_be_checked(rig: Rig) -> None:
    lease = await run(rig)
    done = await rig.session.ending(lease)
    assert isinstance(done, Done)

    assembler = AnswerAssembler(max_output_tokens=16)
    stream = rig.session.stream(lease)
    assembler.feed(stream)
    answer = assembler.finish()
    assert answer.content == " one two three four five"
    assert (done.usage, done.finish_reason) == (answer.usage, answer.finish_reason)
    assert done.response_digest == answer.digest.hex()
    assert done.stream_bytes == len(stream)
    statement = SupplierStatement(
        lease=UUID(lease.removeprefix("lease_")),
        job=UUID(JOB.removeprefix("job_")),
        request_digest=bytes.fromhex(run_message(lease).request_digest),
        response_digest=answer.digest,
        input_tokens=answer.usage.input_tokens,
        cached_input_tokens=0,
        output_tokens=answer.usage.output_tokens,
        finish="stop",
        release_fingerprint=done.release_fingerprint,
    )
    assert statement.canonical().decode() == done.statement
    statement.verify(bytes.fromhex(done.statement_signature), public_key=KEY.public)
    kinds = [type(m).__name__ for m in rig.session.messages if getattr(m, "lease", "") == lease]
    assert kinds == ["Accept", "First", "Done"]


@pytest.mark.parametrize(
    ("fault", "kind", "retryable"),
    [
        (Fault.ERROR_EVENT, "engine-error", True),
        (Fault.ABORT, "malformed-stream", True),
        (Fault.NO_USAGE, "malformed-stream", True),
        (Fault.NO_DONE, "malformed-stream", True),
        (Fault.GARBAGE, "malformed-stream", True),
        (Fault.HUGE, "too-large", True),
        (Fault.DROP, "engine-lost", True),
        (Fault.SILENCE, "timed-out", True),
        (Fault.SILENT_PINGS, "timed-out", True),
        (Fault.BUSY, "engine-busy", True),
        (Fault.SERVER_ERROR, "engine-error", True),
        (Fault.REFUSE, "bad-request", False),
    ],
)
async def test_anything_but_a_success_is_a_failure(
    rig: Rig, *, fault: Fault, kind: str, retryable: bool
) -> None:
    lease = await run(rig, Job(text=f"[[fault:{fault}]]"))
    fail = await rig.session.ending(lease)

    assert isinstance(fail, Fail)
    assert (fail.kind, fail.retryable) == (kind, retryable)
    await until_free(rig)


@pytest.mark.parametrize("fault", [Fault.INFLATED_USAGE, Fault.WRONG_INPUT])
async def test_what_the_engine_claims_is_passed_on_for_the_gateway_to_judge(
    rig: Rig, fault: Fault
) -> None:
    lease = await run(rig, Job(text=f"[[fault:{fault}]]"))

    assert isinstance(await rig.session.ending(lease), Done)


async def test_all_slots_run_together_and_one_more_is_busy(rig: Rig, faults: Served) -> None:
    faults.engine.script = ENDLESS
    leases = [await run(rig, Job(max_output_tokens=LONG)) for _ in range(4)]
    for lease in leases:
        await rig.session.started(lease)
    extra = await run(rig)

    assert isinstance(await rig.session.ending(extra), Busy)
    assert faults.engine.busy == {0, 1, 2, 3}


def accepts(rig: Rig) -> int:
    return sum(isinstance(message, Accept) for message in rig.session.messages)


async def test_a_repeated_run_is_accepted_again_and_runs_once(rig: Rig, faults: Served) -> None:
    asked = len(faults.engine.bodies)
    lease = new_lease()
    for _ in range(3):
        await rig.session.send(run_message(lease))
    await rig.session.ending(lease)
    before = accepts(rig)
    await rig.session.send(run_message(lease))
    await rig.session.until(lambda: accepts(rig) == before + 1)

    assert len(faults.engine.bodies) == asked + 1


async def test_client_disconnect_leaves_generation_running(rig: Rig, faults: Served) -> None:
    """Lesson: a cancel reaches the engine, and the slot counts until the engine confirms."""
    faults.engine.script = ENDLESS
    lease = await run(rig, Job(max_output_tokens=LONG))
    await rig.session.started(lease)
    await rig.session.send(Cancel(lease=lease))
    cancelled = await rig.session.ending(lease)

    assert isinstance(cancelled, Cancelled)
    assert cancelled.stream_bytes == len(rig.session.stream(lease))
    assert faults.engine.busy == set()
    assert rig.table.free == 4


async def test_a_slot_the_engine_never_frees_ends_the_engine(rig: Rig, faults: Served) -> None:
    lease = await run(rig, Job(text=f"[[fault:{Fault.STUCK_SLOT}]]"))
    fail = await rig.session.ending(lease)
    assert isinstance(fail, Fail)
    assert rig.table.state(lease) is LeaseState.STOPPING
    await rig.session.offers(0)
    faults.engine.busy.clear()

    await rig.session.offers(4)
    assert rig.table.free == 4


async def test_the_agent_stops_serving_when_the_lease_ends(rig: Rig, faults: Served) -> None:
    faults.engine.script = ENDLESS
    lease = await run(rig, Job(max_output_tokens=LONG, remaining_seconds=0.4))
    fail = await rig.session.ending(lease)

    assert isinstance(fail, Fail)
    assert fail.kind == "lease-ended"
    assert not fail.retryable
    await until_free(rig)
    assert faults.engine.busy == set()


async def test_a_result_is_kept_until_settled_over_a_reconnect(rig: Rig) -> None:
    lease = await run(rig)
    done = await rig.session.ending(lease)
    stream = rig.session.stream(lease)
    await rig.session.drop()
    again = await rig.gateway.session()

    assert again.hello.held_leases == (lease,)
    assert again.hello.boot_id == rig.session.hello.boot_id
    assert again.hello.session != rig.session.hello.session
    assert await again.ending(lease) == done
    assert again.stream(lease) == stream
    await again.send(Settled(lease=lease))
    await until_forgotten(rig, lease)
    await again.drop()
    assert (await rig.gateway.session()).hello.held_leases == ()


async def until_forgotten(rig: Rig, lease: str) -> None:
    await eventually(lambda: rig.table.state(lease) is None)


async def test_a_running_stream_is_sent_again_from_its_start(rig: Rig, faults: Served) -> None:
    faults.engine.script = Script(
        fault=Fault.SLOW, reply="".join(f" {i}" for i in range(40)), delay_seconds=0.02
    )
    lease = await run(rig, Job(max_output_tokens=LONG))
    await rig.session.started(lease)
    await rig.session.drop()
    again = await rig.gateway.session()
    done = await again.ending(lease)

    assert again.hello.held_leases == (lease,)
    assert isinstance(done, Done)
    assert again.text(lease) == "".join(f" {i}" for i in range(40))


async def test_a_late_result_from_a_worker_thought_dead_is_dropped_when_told(
    rig: Rig, faults: Served
) -> None:
    """Lesson: the fence is the gateway's; the agent stops at once and says nothing more."""
    faults.engine.script = ENDLESS
    lease = await run(rig, Job(max_output_tokens=LONG))
    await rig.session.started(lease)
    await rig.session.send(Settled(lease=lease, outcome="refused"))
    await until_free(rig)

    assert rig.table.state(lease) is None
    assert faults.engine.busy == set()
    await rig.session.drop()
    assert (await rig.gateway.session()).hello.held_leases == ()


@pytest.mark.parametrize(
    ("job", "kind"),
    [
        (Job(release="another-model"), "wrong-release"),
        (Job(deployment="another"), "wrong-release"),
        (Job(extra=',"tools":[]'), "bad-request"),
    ],
)
async def test_work_for_something_else_is_not_started(
    rig: Rig, faults: Served, job: Job, kind: str
) -> None:
    asked = len(faults.engine.bodies)
    fail = await rig.session.ending(await run(rig, job))

    assert isinstance(fail, Fail)
    assert fail.kind == kind
    assert len(faults.engine.bodies) == asked


async def test_a_request_that_is_not_its_digests_is_not_started(rig: Rig, faults: Served) -> None:
    asked = len(faults.engine.bodies)
    lease = new_lease()
    genuine, other = run_message(lease), run_message(lease, Job(text="Say goodbye."))
    bent = type(genuine)(
        **{f: getattr(genuine, f) for f in genuine.__struct_fields__ if f != "request"},
        request=other.request,
    )
    await rig.session.send(bent)
    fail = await rig.session.ending(lease)

    assert isinstance(fail, Fail)
    assert (fail.kind, fail.retryable) == ("bad-request", False)
    assert len(faults.engine.bodies) == asked


async def test_streams_take_turns_on_the_socket(rig: Rig, faults: Served) -> None:
    faults.engine.script = ENDLESS
    leases = [await run(rig, Job(max_output_tokens=LONG)) for _ in range(2)]
    for lease in leases:
        await rig.session.started(lease)
    await rig.session.until(lambda: len(rig.session.order) > 12)

    assert len(set(rig.session.order[-6:])) == 2


async def test_another_key_is_refused_and_dialled_again(rig: Rig) -> None:
    rig.gateway.public_key = DeviceKey(b"o" * 32).public
    await rig.session.drop()
    assert await rig.gateway.refusals.get() == "bad-signature"
    rig.gateway.public_key = KEY.public

    assert (await rig.gateway.session()).hello.agent_id == rig.session.hello.agent_id
    assert len(set(rig.gateway.nonces)) == len(rig.gateway.nonces)


async def test_a_superseded_session_is_dialled_again(rig: Rig) -> None:
    await rig.session.send(Refused(code="superseded"))
    await rig.session.until(lambda: rig.session.closed)

    assert (await (await rig.gateway.session()).offers(4)).offered == 4


async def test_connected_and_no_requests(rig: Rig) -> None:
    """Lesson: the owner reads the gateway's own reason for sending no work."""
    with structlog.testing.capture_logs() as logs:
        await rig.session.send(Reason(text="your price is above every quote"))
        lease = await run(rig)
        await rig.session.ending(lease)

    assert "your price is above every quote" in [entry.get("reason") for entry in logs]


async def test_the_fault_engine_can_be_set_for_all_requests(rig: Rig, faults: Served) -> None:
    async with aiohttp.ClientSession() as http:
        url = f"{faults.url}/control"
        async with http.put(url, json={"reply": " yes", "prompt_tokens": 77}) as response:
            assert response.status == 200
        async with http.put(url, json={"fault": "unknown"}) as response:
            assert response.status == 400
    lease = await run(rig)
    done = await rig.session.ending(lease)

    assert isinstance(done, Done)
    assert done.usage.input_tokens == 77
    assert rig.session.text(lease) == " yes"


async def test_a_silent_gateway_is_left(rig: Rig) -> None:
    rig.gateway.welcome = Welcome(epoch=2, heartbeat_seconds=0.05, dead_seconds=0.3)
    await rig.session.drop()
    silent = await rig.gateway.session()
    await silent.expect(Heartbeat, lambda m: m.seq >= 2)
    await silent.until(lambda: silent.closed)

    assert (await (await rig.gateway.session()).offers(4)).offered == 4


async def test_bytes_that_are_no_message_end_the_session_not_the_agent(rig: Rig) -> None:
    await rig.session.connection.send('{"type":"run"}')
    await rig.session.until(lambda: rig.session.closed)

    assert (await (await rig.gateway.session()).offers(4)).offered == 4


async def test_stop_offers_nothing_finishes_what_runs_and_ends(rig: Rig, faults: Served) -> None:
    faults.engine.script = Script(fault=Fault.SLOW, reply=" word" * 10, delay_seconds=0.05)
    lease = await run(rig, Job(max_output_tokens=LONG))
    await rig.session.started(lease)
    rig.agent.stop()
    await rig.session.offers(0)
    late = await run(rig)

    assert isinstance(await rig.session.ending(late), Busy)
    assert isinstance(await rig.session.ending(lease), Done)
    assert not rig.running.done()  # the result is not settled yet
    await rig.session.send(Settled(lease=lease))
    await asyncio.wait_for(rig.running, 20)
    assert rig.session.closed
    assert rig.engine.state.condition is Condition.DEAD


async def test_token_frames_do_not_wait_for_acknowledgements(rig: Rig) -> None:
    """A test for the 40 ms that Nagle's algorithm and delayed acknowledgements cost together."""
    session = rig.agent._session
    assert session is not None
    assert session._connection is not None
    raw = session._connection.transport.get_extra_info("socket")
    assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


async def test_drain_notifies_but_does_not_act(rig: Rig, faults: Served) -> None:
    """Lesson: a drain ends by its deadline, and says how each stream ended."""
    faults.engine.script = ENDLESS
    rig.agent._terms = dataclasses.replace(rig.agent._terms, drain_seconds=0.1)
    lease = await run(rig, Job(max_output_tokens=LONG))
    await rig.session.started(lease)
    rig.agent.stop()
    fail = await rig.session.ending(lease)

    assert isinstance(fail, Fail)
    assert (fail.kind, fail.retryable) == ("stopping", True)
    await asyncio.wait_for(rig.running, 20)
