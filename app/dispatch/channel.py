"""From an agent's frames to attempts and offers. One instance serves every session of a replica."""

import dataclasses
import time
from typing import assert_never
from uuid import UUID

from app.dispatch.attempt import (
    BUSY,
    UNASKED_CANCEL,
    UNDELIVERED,
    UNKNOWN,
    Attempt,
    Stage,
    failed,
    give_back,
)
from app.dispatch.errors import AttemptFault, SessionRefused
from app.dispatch.lease_repository import HeldLease, LeaseRepository
from app.dispatch.metering import Evidence, evidence_of, meter
from app.dispatch.offers import OfferRules, offer_of, refusal
from app.dispatch.outcomes import Outcomes
from app.dispatch.session import AgentSession
from app.dispatch.session_repository import Offer, SessionRepository
from app.kit.clock import utc_now
from app.kit.ids import IdPrefix, IdSource, parse_id
from supplier_agent.protocol import (
    Accept,
    AgentMessage,
    Busy,
    Cancelled,
    Capacity,
    Done,
    Fail,
    First,
    Heartbeat,
    Hello,
    decode_data,
)

Ending = Done | Fail | Cancelled | Busy


class Channel:
    """What each message of an agent means."""

    def __init__(self, outcomes: Outcomes, ids: IdSource) -> None:
        self._outcomes = outcomes
        self._dispatcher = outcomes.dispatcher
        self._ids = ids

    def on_frame(self, session: AgentSession, frame: bytes) -> None:
        """Take a binary frame. One for a lease that is over is ignored: it came late.

        Raises:
            BadFrame: not a DATA frame.
        """
        now = time.monotonic()
        session.heard_at = now
        if session.ended.is_set():
            return
        data = decode_data(frame)
        attempt = session.streams.get(data.stream)
        if attempt is None or attempt.stage is Stage.DECIDED:
            return
        try:
            attempt.on_data(data, now=now)
        except AttemptFault as fault:
            self._outcomes.give_back(session, attempt, give_back(fault, slot_free=False))

    async def on_message(self, session: AgentSession, message: AgentMessage) -> None:
        """Take a control frame.

        Raises:
            SessionRefused: the agent may not say that here.
        """
        session.heard_at = time.monotonic()
        if session.ended.is_set():
            return  # what an ended session still says belongs to the one that follows it
        match message:
            case Heartbeat():
                pass
            case Accept():
                self._on_accept(session, message)
            case First():
                attempt = self._attempt(session, message.lease)
                if attempt is not None:
                    attempt.on_first(now=session.heard_at)
            case Done() | Fail() | Cancelled() | Busy():
                await self._on_ending(session, message)
            case Capacity():
                await self._on_capacity(session, message)
            case Hello():
                raise SessionRefused("bad-frame", "a second hello")
            case _:
                assert_never(message)

    def _attempt(self, session: AgentSession, lease: str) -> Attempt | None:
        """Return this agent's own attempt under a lease."""
        attempt = self._dispatcher.attempts.get(lease_id_of(lease))
        if attempt is None or attempt.work.accepted.agent_id != session.agent_id:
            return None
        return attempt

    def _on_accept(self, session: AgentSession, message: Accept) -> None:
        attempt = self._attempt(session, message.lease)
        if attempt is None:
            self._outcomes.stop(session, lease_id_of(message.lease))  # it came too late
        elif attempt.on_accept(now=session.heard_at):
            self._dispatcher.accepted.add(attempt.work.accepted.lease_id)

    async def _on_ending(self, session: AgentSession, message: Ending) -> None:
        attempt = self._attempt(session, message.lease)
        if attempt is None:
            await self._on_late(session, message)
            return
        if attempt.stage is Stage.DECIDED:
            # Said twice, or crossed our own decision, which answers it.
            if not isinstance(message, Fail) or message.slot_free:
                attempt.freed_by = message
            return
        match message:
            case Done():
                self._on_done(session, attempt, message)
            case Fail():
                self._outcomes.give_back(session, attempt, failed(message, attempt.work))
            case Cancelled():
                self._outcomes.give_back(session, attempt, UNASKED_CANCEL)
            case Busy():
                self._outcomes.give_back(session, attempt, BUSY)

    def _on_done(self, session: AgentSession, attempt: Attempt, done: Done) -> None:
        release = self._dispatcher.parts.releases[attempt.work.accepted.release]
        try:
            answer = attempt.answer(done)
            metered = meter(attempt.work, done, answer, release=release, key=session.key)
        except AttemptFault as fault:
            step = give_back(fault, slot_free=True)
            self._outcomes.give_back(session, attempt, step, evidence_of(done))
        else:
            self._outcomes.settle(session, attempt, metered)

    async def _on_late(self, session: AgentSession, message: Ending) -> None:
        """Answer an ending of a lease that this replica does not run; it changes no money."""
        lease_id = lease_id_of(message.lease)
        async with self._dispatcher.parts.database.transaction() as tx:
            held = (await LeaseRepository(tx).states([lease_id])).get(lease_id)
        if held is None or held.agent_id != session.agent_id:
            await self._on_foreign(session, message, held)
        elif held.state == "done":
            self._outcomes.answer(session, lease_id, settled=True)
        elif isinstance(message, Fail) and not message.slot_free and held.state == "ending":
            pass  # another follows when the slot is free
        else:
            is_result = isinstance(message, Done)
            if held.state == "active":  # given up here, and not yet ended by anybody
                await self._outcomes.move(lease_id, UNDELIVERED if is_result else UNKNOWN)
            await self._outcomes.release(session, lease_id, is_result=is_result)

    async def _on_foreign(
        self, session: AgentSession, message: Ending, held: HeldLease | None
    ) -> None:
        """Refuse a result under a lease that was never this agent's; a signed one is evidence."""
        evidence: Evidence | None = evidence_of(message) if isinstance(message, Done) else None
        if evidence is not None and held is not None:
            await self._outcomes.blame(session.agent_id, None, evidence)
        self._outcomes.answer(session, lease_id_of(message.lease), settled=False)

    async def _on_capacity(self, session: AgentSession, message: Capacity) -> None:
        names = {offer.name for offer in session.offers.values()}
        rules = OfferRules(self._dispatcher.parts.releases, self._dispatcher.parts.speed_limits)
        why_not = refusal(
            message,
            rules,
            known=message.deployment in names,
            deployments=len(names),
        )
        if why_not:
            await self._withdraw(session, message.deployment)
        else:
            await self._offer(session, offer_of(message, rules.speeds, now=utc_now()))
        session.explain(message.deployment, why_not)

    async def _withdraw(self, session: AgentSession, name: str) -> None:
        for offer in list(session.offers.values()):
            if offer.name == name and offer.offered:
                await self._offer(session, dataclasses.replace(offer, offered=0))

    async def _offer(self, session: AgentSession, offer: Offer) -> None:
        async with self._dispatcher.parts.database.transaction() as tx:
            deployment_id = await SessionRepository(tx).offer(
                self._ids.new(), session.agent_id, session.epoch, offer
            )
        if deployment_id is None:
            session.abandoned = True
            raise SessionRefused("superseded", "a newer session of this agent is live")
        session.offers[deployment_id] = offer
        self._outcomes.jobs_queued.set()


def lease_id_of(lease: str) -> UUID:
    """Return the lease's UUID; the protocol has checked its form."""
    return parse_id(IdPrefix.LEASE, lease)
