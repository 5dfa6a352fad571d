"""Opening a session: the agent proves its key, then says which leases it still holds."""

import time
from dataclasses import dataclass
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from app.dispatch.attempt import NOT_HELD
from app.dispatch.errors import SessionRefused
from app.dispatch.lease_repository import HeldLease, KnownAgent, LeaseRepository
from app.dispatch.outcomes import Outcomes
from app.dispatch.session import AgentSession, Send, SessionIdentity
from app.dispatch.session_repository import SessionRepository
from app.kit.ids import IdPrefix, parse_id
from supplier_agent.protocol import (
    DEAD_SECONDS,
    HEARTBEAT_SECONDS,
    PROTOCOL_VERSION,
    BadHello,
    Hello,
    Welcome,
    check_hello,
)


@dataclass(frozen=True, slots=True)
class Opened:
    """A live session and the leases its agent occupied just before it became live."""

    session: AgentSession
    occupying: list[HeldLease]


class Handshake:
    """Opens sessions on one replica."""

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._dispatcher = outcomes.dispatcher

    async def open(self, hello: Hello, *, nonce: bytes, send: Send) -> AgentSession:
        """Return the session, live and welcomed, with the leases that its agent holds.

        Raises:
            SessionRefused: version, key or standing of the agent do not allow it.
        """
        opened = await self._open(hello, nonce=nonce, send=send)
        session = opened.session
        older = self._dispatcher.sessions.get(session.agent_id)
        if older is not None and older.epoch > session.epoch:
            raise SessionRefused("superseded", "a newer session of this agent is live")
        if older is not None:
            self._supersede(older)
        self._dispatcher.sessions[session.agent_id] = session
        session.send(
            Welcome(
                epoch=session.epoch,
                heartbeat_seconds=HEARTBEAT_SECONDS,
                dead_seconds=DEAD_SECONDS,
            )
        )
        held = {parse_id(IdPrefix.LEASE, lease) for lease in hello.held_leases}
        try:
            await self._take_over(opened, held)
        except BaseException:
            self._dispatcher.drop_session(session)
            raise
        return session

    async def _open(self, hello: Hello, *, nonce: bytes, send: Send) -> Opened:
        if hello.version != PROTOCOL_VERSION:
            raise SessionRefused("unsupported-version", f"this gateway speaks {PROTOCOL_VERSION}")
        agent_id = parse_id(IdPrefix.AGENT, hello.agent_id)
        async with self._dispatcher.parts.database.transaction() as tx:
            agent = await LeaseRepository(tx).agent(agent_id)
        check_agent(agent, hello, nonce=nonce)
        assert agent is not None
        async with self._dispatcher.parts.database.transaction() as tx:
            # Read first: what is accepted after the session is open belongs to this session.
            occupying = await LeaseRepository(tx).occupying([agent_id])
        async with self._dispatcher.parts.database.transaction() as tx:
            epoch = await SessionRepository(tx).open(
                agent_id, replica=self._dispatcher.replica, boot_id=hello.boot_id
            )
        if epoch is None:
            raise SessionRefused("suspended", "the agent or its supplier may not serve")
        key = Ed25519PublicKey.from_public_bytes(agent.device_key)
        identity = SessionIdentity(agent_id, epoch, key)
        return Opened(AgentSession(identity, send, now=time.monotonic()), occupying)

    def _supersede(self, older: AgentSession) -> None:
        """End an earlier session of the same agent here; its attempts start anew or are lost."""
        older.abandoned = True
        self._dispatcher.drop_session(older)
        older.refuse("superseded", "a newer session of this agent is live")

    async def _take_over(self, opened: Opened, held: set[UUID]) -> None:
        session = opened.session
        occupying = {lease.lease_id: lease for lease in opened.occupying}
        await self._dispatcher.resume(lease_id for lease_id in held if lease_id in occupying)
        for lease_id, lease in occupying.items():
            if lease_id not in held:
                await self._outcomes.lose(lease, NOT_HELD)
            elif lease.state == "ending":
                self._outcomes.stop(session, lease_id)
        over = held - occupying.keys()
        if over:
            await self._answer_over(session, over)

    async def _answer_over(self, session: AgentSession, over: set[UUID]) -> None:
        """Have the agent forget leases that ended without it."""
        async with self._dispatcher.parts.database.transaction() as tx:
            states = await LeaseRepository(tx).states(over)
        for lease_id in over:
            lease = states.get(lease_id)
            settled = lease is not None and lease.state == "done"
            self._outcomes.answer(session, lease_id, settled=settled)


def check_agent(agent: KnownAgent | None, hello: Hello, *, nonce: bytes) -> None:
    """Return if this hello is a registered agent's that may serve.

    Raises:
        SessionRefused: with the code that the agent is told.
    """
    if agent is None:
        raise SessionRefused("unknown-agent")
    try:
        check_hello(hello, nonce=nonce, public_key=agent.device_key)
    except BadHello as error:
        raise SessionRefused("bad-signature", str(error)) from None
    standing = standing_refusal(agent.state, agent.supplier_state)
    if standing is not None:
        raise standing


def standing_refusal(state: str, supplier_state: str) -> SessionRefused | None:
    """Return why an agent in this standing may not serve, or None when it may."""
    if "revoked" in {state, supplier_state}:
        return SessionRefused("revoked", "the agent or its supplier is revoked")
    if {state, supplier_state} != {"authorized"}:
        return SessionRefused("suspended", f"agent is {state}, supplier is {supplier_state}")
    return None
