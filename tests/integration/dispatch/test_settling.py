"""From RUN to a signed record, and what an agent may not get paid for."""

import asyncio
import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
import structlog

from app.dispatch.attempt import AttemptLimits
from app.jobs.content import open_answer
from ledger.signing import address_of, recover
from supplier_agent.protocol import Accept, Cancel, Fail, Refused, Run, Settled, Usage
from tests.integration.dispatch.conftest import AgentAt, connect
from tests.integration.dispatch.gateways import SIGNING_KEY, Gateway, World, gateway
from tests.integration.dispatch.scripted_agent import ScriptedAgent, sse
from tests.integration.seed import ASK, RATES, Placed, Wallet

FUNDS = 10**12


async def run_of(agent: ScriptedAgent, gateway: Gateway, placed: Placed) -> Run:
    """Start an accepted request and return the RUN that the agent gets."""
    gateway.start(placed)
    await agent.until(lambda: bool(agent.of_lease(Run, f"lease_{placed.lease_id}")))
    return agent.of_lease(Run, f"lease_{placed.lease_id}")[0]


async def balance(world: World, wallet: Wallet) -> tuple[Any, Any]:
    row = await world.row(
        "SELECT available, held FROM offpeak.wallet_balance WHERE account_id = :id",
        id=wallet.account_id,
    )
    return row["available"], row["held"]


async def faults(world: World, agent: ScriptedAgent) -> Any:
    row = await world.row(
        "SELECT faults FROM offpeak.agent WHERE id = :id", id=agent.seeded.agent_id
    )
    return row["faults"]


async def blamed(world: World, agent: ScriptedAgent) -> None:
    """Return once a wrong has been counted against the agent."""
    await world.until(
        "SELECT faults > 0 FROM offpeak.agent WHERE id = :id", id=agent.seeded.agent_id
    )


async def test_a_result_is_charged_released_recorded_and_signed_once(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    run = await run_of(agent, replica, placed)
    assert bytes(run.request) == placed.request
    done = await agent.serve(run)
    assert await replica.waiters.wait(placed.job_id, 20)
    await agent.until(lambda: bool(agent.of_lease(Settled, run.lease)))

    job = await world.job(placed.job_id)
    assert job["state"] == "completed"
    assert isinstance(job["result"], bytes)
    assert open_answer(world.cipher, placed.job_id, job["result"]).content == "Hello there!"
    signed = await replica.records.signed(placed.job_id)
    assert signed is not None
    expected = RATES.per_request + (12 * RATES.input_rate + 4 * RATES.output_rate) // 10**6
    assert signed.record.charge_nano == expected
    assert signed.record.held_nano == placed.max_charge
    assert recover(signed.digest, signed.signature) == address_of(SIGNING_KEY)
    assert agent.of_lease(Settled, run.lease)[0].outcome == "settled"
    await replica.records.drain()
    stored = await world.row(
        "SELECT * FROM offpeak.usage_record WHERE record_id = :id", id=placed.job_id
    )
    assert stored["signature"] == signed.signature
    assert await balance(world, wallet) == (FUNDS - expected, 0)
    assert (await world.lease(placed.lease_id))["statement"] == done.statement.encode()


@dataclass(frozen=True, slots=True)
class Lie:
    """What an agent says instead of the truth, and the reason the lease ends with."""

    reason: str
    told: dict[str, Any]


WRONG_INPUT = Usage(input_tokens=1_012, cached_input_tokens=0, output_tokens=4)
OVER_CEILING = Usage(input_tokens=12, cached_input_tokens=0, output_tokens=65)
LIES = [
    Lie("input-count", {"input_tokens": 1_012}),
    Lie("over-ceiling", {"output_tokens": 65}),
    Lie("usage", {"usage": Usage(input_tokens=12, cached_input_tokens=0, output_tokens=40)}),
    Lie("fingerprint", {"release_fingerprint": "ab" * 32}),
    Lie("response-digest", {"response_digest": "cd" * 32}),
    Lie("finish", {"finish_reason": "length"}),
    Lie("frames-lost", {"stream_bytes": 5}),
    Lie("statement", {"statement": "{}"}),
    Lie("statement-signature", {"statement_signature": "00" * 64}),
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.reason)
async def test_a_lie_costs_the_buyer_nothing_and_is_counted(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt, lie: Lie
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    run = await run_of(agent, replica, placed)
    done = await agent.serve(run, **lie.told)
    await agent.until(lambda: bool(agent.of_lease(Settled, run.lease)))
    assert agent.of_lease(Settled, run.lease)[0].outcome == "refused"
    await blamed(world, agent)
    lease = await world.lease(placed.lease_id)
    assert (lease["state"], lease["reason"]) == ("lost", lie.reason)
    assert lease["statement"] == done.statement.encode()
    assert await balance(world, wallet) == (FUNDS - placed.max_charge, placed.max_charge)
    assert (await world.job(placed.job_id))["state"] == "queued"


async def test_a_wrong_counts_against_the_device_whatever_session_it_has(
    world: World, wallet: Wallet, agent_at: AgentAt
) -> None:
    limits = AttemptLimits(queue_seconds=0.3)
    async with gateway(dataclasses.replace(world, limits=limits), f"one-{world.region}") as replica:
        agent = await agent_at(replica)
        for wrongs in (1, 2):
            placed = await world.accept(wallet)
            await agent.serve(await run_of(agent, replica, placed), stream_bytes=5)
            await world.until(
                "SELECT faults = :n FROM offpeak.agent WHERE id = :id",
                id=agent.seeded.agent_id,
                n=wrongs,
            )
            assert await replica.waiters.wait(placed.job_id, 20)
            await agent.hang_up()
            await connect(agent, replica)  # which does not dodge it


async def test_a_streamed_call_without_usage_is_unmetered_unbilled_and_alarmed(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    run = await run_of(agent, replica, placed)
    usage = Usage(input_tokens=12, cached_input_tokens=0, output_tokens=4)
    whole = sse(["Hello"], usage=usage)
    without = [event for event in whole if b"prompt_tokens" not in event]
    size = await agent.stream(run.lease, without)
    await agent.say(agent.done(run, whole, stream_bytes=size))
    await blamed(world, agent)
    assert (await world.lease(placed.lease_id))["reason"] == "unmetered"
    assert replica.metrics.unmetered._value.get() == 1
    assert await balance(world, wallet) == (FUNDS - placed.max_charge, placed.max_charge)


async def test_an_inflated_output_is_charged_by_our_own_count_and_flagged(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    run = await run_of(agent, replica, placed)
    await agent.serve(run, output_tokens=40)
    assert await replica.waiters.wait(placed.job_id, 20)
    await blamed(world, agent)
    signed = await replica.records.signed(placed.job_id)
    assert signed is not None
    assert signed.record.output_tokens == 4 + 3
    stored = await world.row(
        "SELECT flags FROM offpeak.usage_record WHERE record_id = :id", id=placed.job_id
    )
    assert stored["flags"] == ["output-recount"]


async def test_a_second_done_changes_nothing_and_is_answered(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    run = await run_of(agent, replica, placed)
    done = await agent.serve(run)
    await agent.until(lambda: len(agent.of_lease(Settled, run.lease)) == 1)
    before = await balance(world, wallet)
    await agent.say(done)
    await agent.until(lambda: len(agent.of_lease(Settled, run.lease)) == 2)
    assert [m.outcome for m in agent.of_lease(Settled, run.lease)] == ["settled", "settled"]
    assert await balance(world, wallet) == before


async def test_a_replayed_done_of_another_agents_lease_is_refused_and_counted(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    honest = await agent_at(replica)
    placed = await world.accept(wallet)
    run = await run_of(honest, replica, placed)
    thief = await agent_at(replica)
    usage = Usage(input_tokens=12, cached_input_tokens=0, output_tokens=2)
    pieces = sse(["Mine"], usage=usage)
    size = await thief.stream(run.lease, pieces)
    await thief.say(thief.done(run, pieces, stream_bytes=size))
    await thief.until(lambda: bool(thief.of_lease(Settled, run.lease)))
    assert thief.of_lease(Settled, run.lease)[0].outcome == "refused"
    await blamed(world, thief)
    await honest.serve(run)
    assert await replica.waiters.wait(placed.job_id, 20)
    assert await faults(world, honest) == 0
    assert (await world.job(placed.job_id))["state"] == "completed"


async def test_a_late_result_of_a_worker_thought_dead_counts_for_nothing(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    slow = await agent_at(replica)
    placed = await world.accept(wallet)
    run = await run_of(slow, replica, placed)
    quick = await agent_at(replica)
    await slow.hang_up()
    again = await quick.next_run()
    assert again.job == run.job
    assert again.lease != run.lease
    await quick.serve(again)
    assert await replica.waiters.wait(placed.job_id, 20)
    after = await balance(world, wallet)

    await slow.dial(replica.url, held=(run.lease,))
    await slow.serve(run, accept=False)
    await slow.until(lambda: bool(slow.of_lease(Settled, run.lease)))
    assert slow.of_lease(Settled, run.lease)[0].outcome == "refused"
    assert await balance(world, wallet) == after
    row = await world.row(
        "SELECT count(*) AS n FROM offpeak.usage_record WHERE record_id = :id", id=placed.job_id
    )
    assert row["n"] == 1


@pytest.mark.parametrize("frame", ["{", b"\x07nonsense", '{"type":"hello"}', b"", "\ud7ff"])
async def test_a_garbage_frame_ends_that_session_only(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt, frame: str | bytes
) -> None:
    other = await agent_at(replica)
    agent = await agent_at(replica)
    await agent.say_raw(frame)
    await agent.until(agent.closed.is_set)
    assert agent.all_of(Refused)[0].code == "bad-frame"
    await world.until(
        "SELECT state = 'offline' FROM offpeak.agent_session WHERE agent_id = :id",
        id=agent.seeded.agent_id,
    )
    placed = await world.accept(wallet)
    await other.serve(await run_of(other, replica, placed))
    assert await replica.waiters.wait(placed.job_id, 20)


async def test_an_answer_far_over_the_ceiling_is_cut_off_and_unbilled(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    placed = await world.accept(wallet)
    run = await run_of(agent, replica, placed)
    piece = b'data: {"choices":[{"index":0,"delta":{"content":"' + b"x" * 60_000 + b'"}}]}\n\n'
    await agent.stream(run.lease, [piece] * 4)
    await agent.until(lambda: bool(agent.of_lease(Cancel, run.lease)))
    await blamed(world, agent)
    assert (await world.lease(placed.lease_id))["reason"] == "too-large"
    assert (await world.lease(placed.lease_id))["state"] == "ending"
    assert await balance(world, wallet) == (FUNDS - placed.max_charge, placed.max_charge)


async def test_many_results_at_once_settle_each_exactly_once(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agents = [await agent_at(replica) for _ in range(4)]
    placed = [await world.accept(wallet) for _ in range(16)]
    for one in placed:
        replica.start(one)

    async def serve(agent: ScriptedAgent) -> None:
        for place in range(4):
            await agent.serve(await agent.next_run(after=place))

    await asyncio.gather(*(serve(agent) for agent in agents))
    ended = await asyncio.gather(*(replica.waiters.wait(one.job_id, 20) for one in placed))
    assert all(ended)
    row = await world.row(
        "SELECT count(*) AS n, sum(charge) AS charged FROM offpeak.usage_record"
        " WHERE account_id = :id",
        id=wallet.account_id,
    )
    assert row["n"] == 16
    assert await balance(world, wallet) == (FUNDS - int(str(row["charged"])), 0)


async def test_a_slow_liar_is_paid_by_the_authorized_speed_however_long_it_dribbles(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    await agent.offer(prefill_tokens_per_second=20.0, decode_tokens_per_second=1.0)
    await world.until(
        "SELECT decode_tokens_per_second = 5 FROM offpeak.deployment WHERE agent_id = :agent",
        agent=agent.seeded.agent_id,
    )
    placed = await world.accept(wallet)
    run = await run_of(agent, replica, placed)
    await world.as_owner(
        "UPDATE offpeak.lease SET started_at = started_at - interval '50 s' WHERE id = %s",
        placed.lease_id,
    )
    await agent.serve(run)
    assert await replica.waiters.wait(placed.job_id, 20)
    booked = await world.row(
        "SELECT slot_ms, amount FROM offpeak.cost_entry WHERE lease_id = :id", id=placed.lease_id
    )
    # 1.5 x (12 / 300 + 4 / 20) s, less where other tests' work was faster than the prior
    assert 0 < int(str(booked["slot_ms"])) <= 360
    assert booked["amount"] == ASK * int(str(booked["slot_ms"])) // 1_000


async def test_no_log_carries_what_an_engine_says_of_prompt_or_answer(
    world: World, replica: Gateway, wallet: Wallet, agent_at: AgentAt
) -> None:
    agent = await agent_at(replica)
    usage = Usage(input_tokens=12, cached_input_tokens=0, output_tokens=4)
    stream = [*sse(("the answer",), usage=usage), b"data: the secret answer\n\n"]
    with structlog.testing.capture_logs() as logs:
        first = await run_of(agent, replica, await world.accept(wallet))
        await agent.say(Accept(lease=first.lease))
        await agent.stream(first.lease, stream)
        second = await run_of(agent, replica, await world.accept(wallet))
        said = "no grammar for: the secret prompt"
        await agent.say(Fail(lease=second.lease, kind="bad-request", retryable=False, detail=said))
        await agent.until(lambda: bool(agent.of_lease(Settled, second.lease)))
        await agent.until(lambda: bool(agent.of_lease(Cancel, first.lease)))

    failed = [entry["reason"] for entry in logs if entry["event"] == "attempt failed"]
    assert sorted(failed) == ["bad-request", "event-after-done"]
    assert "secret" not in repr(logs)
