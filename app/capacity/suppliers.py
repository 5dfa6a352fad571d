"""Who may serve: registering suppliers with their device keys, authorizing, suspending."""

import secrets
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import insert, select, text, update
from sqlalchemy.exc import IntegrityError

from app.capacity.errors import BadDeviceKey, SupplierExists, SupplierNotFound
from app.db.engine import Database
from app.db.tables import agent, agent_session, supplier
from app.kit.clock import unix_ms
from app.kit.ids import IdSource
from ledger.accounts import AccountKind
from ledger.encoding import Address

OPEN_ACCOUNT = text("SELECT offpeak.open_account(:kind, :owner, :asset)")
CLOSE_SESSION = text("SELECT offpeak.close_session(:agent, :epoch)")
KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class RegisteredSupplier:
    """A supplier and its agent; both begin as pending."""

    supplier_id: UUID
    agent_id: UUID


class SupplierService:
    """The operator's side of supply."""

    def __init__(self, database: Database, *, asset: Address) -> None:
        self._database = database
        self._asset = asset
        self._ids = IdSource(now_ms=unix_ms, random_bytes=secrets.token_bytes)

    async def register(self, name: str, device_key: bytes) -> RegisteredSupplier:
        """Register a supplier with one agent's public key. It serves nothing until authorized.

        Raises:
            BadDeviceKey: not 32 bytes. SupplierExists: name or key is taken.
        """
        if len(device_key) != KEY_BYTES:
            raise BadDeviceKey(f"{len(device_key)} bytes")
        made = RegisteredSupplier(self._ids.new(), self._ids.new())
        try:
            async with self._database.transaction() as tx:
                await tx.execute(
                    insert(supplier).values(id=made.supplier_id, name=name, state="pending")
                )
                await tx.execute(
                    insert(agent).values(
                        id=made.agent_id,
                        supplier_id=made.supplier_id,
                        device_key=device_key,
                        state="pending",
                    )
                )
                await tx.execute(
                    OPEN_ACCOUNT,
                    {
                        "kind": AccountKind.SUPPLIER,
                        "owner": str(made.supplier_id),
                        "asset": self._asset,
                    },
                )
        except IntegrityError as error:
            raise SupplierExists(f"{name!r}, or its device key, is registered already") from error
        return made

    async def authorize(self, supplier_id: UUID) -> None:
        """Let a supplier and its agents serve from their next session on.

        Raises:
            SupplierNotFound: there is none with this id.
        """
        await self._set_state(supplier_id, "authorized")

    async def suspend(self, supplier_id: UUID) -> None:
        """Stop routing to a supplier at once; its running jobs may finish.

        Raises:
            SupplierNotFound: there is none with this id.
        """
        await self._set_state(supplier_id, "suspended")
        live = (
            select(agent_session.c.agent_id, agent_session.c.epoch)
            .join(agent, agent.c.id == agent_session.c.agent_id)
            .where(agent.c.supplier_id == supplier_id)
        )
        async with self._database.transaction() as tx:
            for session in (await tx.execute(live)).all():
                await tx.execute(CLOSE_SESSION, {"agent": session.agent_id, "epoch": session.epoch})

    async def _set_state(self, supplier_id: UUID, state: str) -> None:
        async with self._database.transaction() as tx:
            changed = await tx.execute(
                update(supplier).where(supplier.c.id == supplier_id).values(state=state)
            )
            if changed.rowcount == 0:
                raise SupplierNotFound(str(supplier_id))
            await tx.execute(
                update(agent)
                .where(agent.c.supplier_id == supplier_id, agent.c.state != "revoked")
                .values(state=state)
            )
