"""The how-to for one's own Postgres holds: an owner who migrates, a login that can only use."""

import secrets
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from app.cli.exits import Exit
from app.db.engine import open_database
from app.db.migrate import head_revision, schema_problem
from tests.engines import Cluster
from tests.integration.cli.running import invoked


def as_login(url: str, user: str, password: str, database: str) -> str:
    """Return the URL of another login and database on the same server."""
    parts = urlsplit(url)
    address = f"{user}:{password}@{parts.hostname}:{parts.port}"
    return urlunsplit(parts._replace(netloc=address, path=f"/{database}"))


async def test_an_owner_without_superuser_migrates_and_a_gateway_login_only_uses(
    cluster: Cluster,
) -> None:
    suffix = secrets.token_hex(4)
    owner, gateway, admin, name = (
        f"{kind}_{suffix}" for kind in ("owner", "gateway", "admin", "db")
    )
    password = secrets.token_hex(16)
    with psycopg.connect(cluster.server_url, autocommit=True) as superuser:

        def execute(statement: str, **names: str) -> None:
            parts = {key: sql.Identifier(value) for key, value in names.items()}
            superuser.execute(sql.SQL(statement).format(p=sql.Literal(password), **parts))

        execute("CREATE ROLE {owner} LOGIN CREATEROLE PASSWORD {p}", owner=owner)
        execute(
            "CREATE DATABASE {name} OWNER {owner} ENCODING 'UTF8' TEMPLATE template0",
            name=name,
            owner=owner,
        )
        owned = as_login(cluster.server_url, owner, password, name)
        done = invoked(Path("nowhere"), "migrate", OFFPEAK_MIGRATION_DATABASE_URL=owned)
        assert done.exit_code == 0, done.stderr
        execute("CREATE ROLE {gateway} LOGIN PASSWORD {p} IN ROLE offpeak_app", gateway=gateway)
        url = as_login(cluster.server_url, gateway, password, name)
        refused = invoked(Path("nowhere"), "migrate", OFFPEAK_DATABASE_URL=url)
        assert refused.exit_code == Exit.SETTINGS
        assert "OFFPEAK_MIGRATION_DATABASE_URL" in refused.stderr
        database = open_database(url, pool_size=1)
        try:
            async with database.transaction() as tx:
                assert await schema_problem(tx, head=head_revision()) is None
        finally:
            await database.dispose()
        with (
            psycopg.connect(url) as login,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            login.execute("UPDATE offpeak.wallet_balance SET available = 1")
        with (
            psycopg.connect(url) as login,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            login.execute("SELECT offpeak.clear_halt('taken over')")
        execute("CREATE ROLE {admin} LOGIN PASSWORD {p} IN ROLE offpeak_operator", admin=admin)
        with psycopg.connect(as_login(cluster.server_url, admin, password, name)) as login:
            login.execute("SELECT offpeak.clear_halt('looked')")
        execute("DROP DATABASE {name} WITH (FORCE)", name=name)
        execute("DROP ROLE {admin}", admin=admin)
        execute("DROP ROLE {gateway}", gateway=gateway)
        execute("DROP ROLE {owner}", owner=owner)
