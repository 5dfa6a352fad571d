"""`offpeak finance ...` on a real database: what it prints and how it ends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import Result

from app.cli.exits import Exit
from tests.integration.books import ASSET, wallet
from tests.integration.cli.running import invoked
from tests.integration.receipts.conftest import Archive

BUYER = wallet(1)
Finance = Callable[..., Result]


@pytest.fixture
def finance(fresh_database_url: str, tmp_path: Path) -> Finance:
    def run(*arguments: str) -> Result:
        return invoked(
            tmp_path,
            "finance",
            *arguments,
            OFFPEAK_DATABASE_URL=fresh_database_url,
            OFFPEAK_TOKEN_ADDRESS=ASSET,
        )

    return run


def document(finance: Finance, *arguments: str) -> Any:
    done = finance(*arguments, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def month_of(archive: Archive) -> str:
    return str(archive.books.one("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM')")[0])


def test_a_statement_is_told_as_text_and_as_json(archive: Archive, finance: Finance) -> None:
    [job] = archive.end_jobs(BUYER, charge=7)
    month = month_of(archive)
    found = document(finance, "statement", "--wallet", BUYER, "--month", month)
    assert (found["opening"], found["closing"]) == ("0.000000000", "0.000000003")
    assert (found["held"], found["pending"]) == ("0.000000000", "0.000000000")
    deposit, charge = found["movements"]
    assert (deposit["kind"], deposit["amount"]) == ("deposit", "0.000000010")
    assert (charge["kind"], charge["amount"]) == ("charge", "-0.000000007")
    assert charge["reference"] == f"job_{job}"
    assert not found["final"]

    plain = finance("statement", "--wallet", BUYER, "--month", month)
    assert f"job_{job}" in plain.stdout
    assert plain.stdout.splitlines()[-4].split() == ["closing", "0.000000003"]
    assert "not final" in plain.stderr
    empty = document(finance, "statement", "--fees", "--from", "2020-01", "--to", "2020-02")
    assert (empty["movements"], empty["closing"]) == ([], "0.000000000")


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (("statement", "--month", "2026-01"), Exit.USAGE),
        (("statement", "--fees", "--wallet", BUYER, "--month", "2026-01"), Exit.USAGE),
        (("statement", "--fees"), Exit.USAGE),
        (("statement", "--fees", "--from", "2026-01"), Exit.USAGE),
        (("statement", "--fees", "--from", "2026-01", "--to", "2026-01"), Exit.USAGE),
        (("statement", "--fees", "--from", "2026-02-30", "--to", "2026-03"), Exit.USAGE),
        (("statement", "--fees", "--month", "2026-13"), Exit.USAGE),
        (("statement", "--wallet", "0x12", "--month", "2026-01"), Exit.USAGE),
        (("statement", "--supplier", "acme", "--month", "2026-01"), Exit.USAGE),
        (("statement", "--wallet", wallet(9), "--month", "2026-01"), Exit.REFUSED),
        (("correct", "job_1", "--charge", "0", "--because", "x"), Exit.USAGE),
        (("correct", f"job_{uuid4()}", "--charge", "-1", "--because", "x"), Exit.USAGE),
        (("correct", f"job_{uuid4()}", "--charge", "0", "--because", " "), Exit.USAGE),
        (("correct", f"job_{uuid4()}", "--charge", "0", "--because", "x"), Exit.REFUSED),
        (("period", "soft-close", "January"), Exit.USAGE),
        (("period", "soft-close", "0000-01"), Exit.USAGE),
        (("statement", "--fees", "--month", "9999-12"), Exit.USAGE),
        (("period", "soft-close", "2999-01"), Exit.REFUSED),
        (("period", "reopen", "2020-01"), Exit.REFUSED),
        (("period", "close", "2020-01"), Exit.REFUSED),
    ],
)
def test_what_cannot_be_done_says_why_in_one_line(
    archive: Archive, finance: Finance, arguments: tuple[str, ...], exit_code: Exit
) -> None:
    archive.end_jobs(BUYER)
    done = finance(*arguments)
    assert done.exit_code == exit_code, done.stderr
    assert done.stdout == ""
    assert [line for line in done.stderr.splitlines() if line.startswith("offpeak: ")]


def test_a_record_is_corrected_once_and_the_command_can_be_repeated(
    archive: Archive, finance: Finance
) -> None:
    [job] = archive.end_jobs(BUYER, charge=7)
    arguments = ("correct", f"job_{job}", "--charge", "0.000000002", "--because", "cut off")
    first = document(finance, *arguments)
    assert (first["refunded"], first["corrects"]) == ("0.000000005", f"job_{job}")
    assert archive.books.balance(BUYER) == (8, 0)
    assert document(finance, *arguments, "--id", first["record"]) == first
    assert finance(*arguments).exit_code == Exit.REFUSED
    assert archive.books.balance(BUYER) == (8, 0)
    assert archive.books.one("SELECT because FROM offpeak.correction").because == "cut off"


def test_a_month_is_reviewed_opened_again_and_closed(archive: Archive, finance: Finance) -> None:
    assert "every month is open" in finance("period", "list").stderr
    for act, state in (
        ("soft-close", "soft-closed"),
        ("reopen", "open"),
        ("soft-close", "soft-closed"),
        ("close", "closed"),
    ):
        assert document(finance, "period", act, "2020-01")["state"] == state
        [found] = document(finance, "period", "list")["periods"]
        assert (found["month"], found["state"]) == ("2020-01", state)
    [found] = document(finance, "period", "list")["periods"]
    assert (found["starts_at"], found["ends_at"], found["closed_leaf"]) == (
        "2020-01-01T00:00:00.000Z",
        "2020-02-01T00:00:00.000Z",
        "0",
    )
    assert "2020-01  closed" in finance("period", "list").stdout
    assert finance("period", "reopen", "2020-01").exit_code == Exit.REFUSED
