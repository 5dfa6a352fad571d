"""The agent with the real engine: answers, cancels, crashes, and what a dead agent leaves."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from supplier_agent.engine.attached import Attached
from supplier_agent.engine.child import LlamaChild, LlamaChildOptions
from supplier_agent.engine.faults import Fault
from supplier_agent.engine.llamacpp import LlamaCpp
from supplier_agent.engine.outcome import CanaryFailed, Condition, Deadlines, EngineFailed
from supplier_agent.identity import load_or_create_key
from supplier_agent.protocol import AnswerAssembler, Cancel, Cancelled, Done, Fail, Settled
from supplier_agent.release import WrongWeights, load_release
from tests.integration.supplier_agent.conftest import (
    RELEASE,
    SHORT,
    MakeRig,
    Rig,
    RigOptions,
)
from tests.integration.supplier_agent.gateway import GatewaySession, TestGateway, eventually
from tests.unit.supplier_agent.samples import AGENT, Job, new_lease, run_message
from tests.waiting import has_ended

LONG = Job(text="Write a long story about a river.", max_output_tokens=900)


async def run(session: GatewaySession, job: Job | None = None) -> str:
    lease = new_lease()
    await session.send(run_message(lease, job))
    return lease


@pytest.mark.engine
class TestRealEngine:
    """llama.cpp as a child of the agent."""

    async def test_it_answers_and_both_sides_assemble_the_same(self, real_rig: Rig) -> None:
        session = real_rig.session
        canary = load_release(RELEASE).canary
        job = Job(text=canary.messages[0].content, extra=',"seed":0,"temperature":0')
        leases = [await run(session, job) for _ in range(2)]
        answers = []
        for lease in leases:
            done = await session.ending(lease)
            assert isinstance(done, Done)
            assembler = AnswerAssembler(max_output_tokens=16)
            assembler.feed(session.stream(lease))
            answer = assembler.finish()
            assert answer.digest.hex() == done.response_digest
            assert answer.usage == done.usage
            answers.append(answer)

        assert answers[0].content == canary.answer
        assert answers[0].content == answers[1].content
        # Lesson: a prompt that was served before is not served faster, so no timing leaks.
        assert answers[1].usage.cached_input_tokens == 0

    async def test_a_json_schema_binds_the_answer(self, real_rig: Rig) -> None:
        schema = (
            '{"type":"object","properties":{"label":{"enum":["refund","delivery"]}},'
            '"required":["label"],"additionalProperties":false}'
        )
        lease = await run(
            real_rig.session,
            Job(
                text="Where is my parcel? Classify.",
                max_output_tokens=40,
                extra=',"response_format":{"type":"json_schema","json_schema":'
                f'{{"name":"kind","schema":{schema}}}}}',
            ),
        )
        assert isinstance(await real_rig.session.ending(lease), Done)

        assert json.loads(real_rig.session.text(lease))["label"] in ("refund", "delivery")

    async def test_a_cancel_frees_the_slot_and_others_go_on(self, real_rig: Rig) -> None:
        session = real_rig.session
        stopped, kept = [await run(session, LONG) for _ in range(2)]
        await session.started(stopped)
        await session.started(kept)
        await session.send(Cancel(lease=stopped))

        assert isinstance(await session.ending(stopped), Cancelled)
        assert real_rig.table.free == 3
        assert len((await real_rig.engine.slots()).busy) == 1
        await session.send(Cancel(lease=kept))
        assert isinstance(await session.ending(kept), Cancelled)

    async def test_engine_dies_and_running_jobs_fail_at_once(self, real_rig: Rig) -> None:
        """Lesson: a crash is a typed failure, nothing is offered meanwhile, and it comes back."""
        session = real_rig.session
        lease = await run(session, LONG)
        await session.started(lease)
        assert real_rig.child is not None
        pid = real_rig.child.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        fail = await session.ending(lease)

        assert isinstance(fail, Fail)
        assert (fail.kind, fail.retryable) == ("engine-lost", True)
        await session.offers(0)
        await session.offers(4)
        assert real_rig.child.pid not in (None, pid)
        assert isinstance(await session.ending(await run(session)), Done)

    async def test_health_endpoint_fine_while_nothing_is_generated(
        self, weights: Path, make_rig: MakeRig
    ) -> None:
        """Lesson: a frozen engine is told by its silence, failed over and started again."""
        release = load_release(RELEASE)
        child = LlamaChild(LlamaChildOptions(weights, release.id, 4, release.context_tokens))
        deadlines = Deadlines(first_token=20.0, between_tokens=1.0, confirm=0.5)
        engine = LlamaCpp(child, release, weights=weights, deadlines=deadlines)
        rig = await make_rig(engine, release, RigOptions())
        await rig.session.offers(4)
        lease = await run(rig.session, LONG)
        await rig.session.started(lease)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGSTOP)
        fail = await rig.session.ending(lease)

        assert isinstance(fail, Fail)
        assert fail.kind == "timed-out"
        await rig.session.offers(0)
        await rig.session.offers(4)


@pytest.mark.engine
async def test_other_weights_are_not_served(weights: Path, tmp_path: Path) -> None:
    document = json.loads(RELEASE.read_text(encoding="utf-8"))
    document["files"] = [f for f in document["files"] if f["name"].endswith(".gguf")]
    document["files"][0]["sha256"] = "0" * 64
    path = tmp_path / "release.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    engine = LlamaCpp(
        Attached("http://127.0.0.1:1"), load_release(path), weights=weights, deadlines=SHORT
    )
    with pytest.raises(WrongWeights):
        await engine.prepare()


@pytest.mark.engine
async def test_a_start_that_fails_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"not a model")
    child = LlamaChild(LlamaChildOptions(bad, "bad", 1, 64))
    with pytest.raises(EngineFailed, match="no-such-model"):
        await child.start(within=30)

    assert child.pid is None


async def test_another_models_answer_fails_the_canary(small_release: Path) -> None:
    async with faults_process() as (url, _):
        release = load_release(small_release)
        engine = LlamaCpp(Attached(url), release, weights=None, deadlines=SHORT)
        await engine.start()
        with pytest.raises(CanaryFailed):
            await engine.probe()
        assert engine.state.condition is Condition.STARTING
        await engine.stop()


async def test_engine_dies_with_exit_code_0(small_release: Path, make_rig: MakeRig) -> None:
    """Lesson: an exit nobody asked for is a crash, whatever its code."""
    async with faults_process("--release", str(small_release)) as (url, process):
        release = load_release(small_release)
        engine = LlamaCpp(Attached(url), release, weights=None, deadlines=SHORT)
        rig = await make_rig(engine, release, RigOptions())
        await rig.session.offers(4)
        fail = await rig.session.ending(
            await run(rig.session, Job(text=f"[[fault:{Fault.CRASH}]]"))
        )

        assert await process.wait() == 0
        assert isinstance(fail, Fail)
        assert fail.kind == "engine-lost"


@asynccontextmanager
async def faults_process(*options: str) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """The fault engine as its own program."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "supplier_agent.engine.faults", *options),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    ready = (await process.stdout.readline()).decode().split()
    assert ready[0] == "READY"
    try:
        yield ready[1], process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.engine
class TestProgram:
    """`offpeak-agent run` as an owner starts it."""

    @pytest.fixture
    async def gateway(self, tmp_path: Path) -> AsyncIterator[TestGateway]:
        key = load_or_create_key(tmp_path / "device.key")
        async with TestGateway(key.public) as gateway:
            yield gateway

    @pytest.fixture
    async def program(
        self, gateway: TestGateway, tmp_path: Path, weights: Path
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        toml = tmp_path / "agent.toml"
        toml.write_text(
            f'agent_id = "{AGENT}"\nkey_file = "{tmp_path}/device.key"\n'
            f'release = "{RELEASE}"\nweights = "{weights}"\n'
            'deployment = "demo"\nask = "0.000001000"\n',
            encoding="utf-8",
        )
        code = "from supplier_agent.cli import main; main()"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", code, "run", "--json"),
            *("--config", str(toml), "--gateway", gateway.url),
            stderr=asyncio.subprocess.DEVNULL,
        )
        yield process
        if process.returncode is None:
            process.kill()
        await process.wait()

    async def test_a_killed_agent_leaves_no_engine(
        self, gateway: TestGateway, program: asyncio.subprocess.Process
    ) -> None:
        """Lesson: leftover child processes hold the GPU; not even SIGKILL may leave one."""
        session = await gateway.session()
        await session.offers(4)
        engine = psutil.Process(program.pid).children()
        assert len(engine) == 1
        program.kill()
        await program.wait()

        await eventually(lambda: has_ended(engine[0].pid))

    async def test_sigterm_drains_and_exits_0(
        self, gateway: TestGateway, program: asyncio.subprocess.Process
    ) -> None:
        session = await gateway.session()
        await session.offers(4)
        engine = psutil.Process(program.pid).children()
        lease = await run(session)
        await session.accepted(lease)
        program.terminate()

        assert isinstance(await session.ending(lease), Done)
        await session.send(Settled(lease=lease))
        assert await program.wait() == 0
        assert all(has_ended(child.pid) for child in engine)
