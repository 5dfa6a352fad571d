"""Who may serve: registering suppliers with their device keys, authorizing, suspending."""

import secrets
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import TextClause, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from app.capacity.errors import BadDeviceKey, SupplierExists, SupplierNotFound
from app.db.engine import Database
from app.db.tables import agent, supplier
from app.kit.clock import unix_ms
from app.kit.ids import IdSource
from ledger.accounts import AccountKind
from ledger.encoding import Address

OPEN_ACCOUNT = text("SELECT offpeak.open_account(:kind, :owner, :asset)")
DRAIN = text("SELECT offpeak.drain_sessions(CAST(:agents AS uuid[]))")
RESUME = text("SELECT offpeak.resume_sessions(CAST(:agents AS uuid[]))")
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
        """Let a supplier and its agents serve: at once where connected, else from then on.

        Raises:
            SupplierNotFound: there is none with this id.
        """
        await self._set_state(supplier_id, "authorized", sessions=RESUME)

    async def suspend(self, supplier_id: UUID) -> None:
        """Stop routing to a supplier at once.

        What its agents run may finish, each job within its deadline; then their sessions end.

        Raises:
            SupplierNotFound: there is none with this id.
        """
        await self._set_state(supplier_id, "suspended", sessions=DRAIN)

    async def set_payout_address(self, supplier_id: UUID, address: Address) -> None:
        """Say where a supplier is paid from now on; payouts under way keep their address.

        Raises:
            SupplierNotFound: there is none with this id.
        """
        async with self._database.transaction() as tx:
            changed = await tx.execute(
                update(supplier).where(supplier.c.id == supplier_id).values(payout_address=address)
            )
        if changed.rowcount == 0:
            raise SupplierNotFound(str(supplier_id))

    async def _set_state(self, supplier_id: UUID, state: str, *, sessions: TextClause) -> None:
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
            agents = await tx.scalars(
                select(agent.c.id).where(agent.c.supplier_id == supplier_id, agent.c.state == state)
            )
            await tx.execute(sessions, {"agents": list(agents)})
