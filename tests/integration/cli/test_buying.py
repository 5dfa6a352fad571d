"""A buyer's commands against a real gateway with a real model behind it."""

import json
from decimal import Decimal
from typing import Any

import pytest

from app.cli.exits import Exit
from app.embedded.stack import Stack
from tests.integration.cli.running import invoked

pytestmark = pytest.mark.engine


def document(stack: Stack, *arguments: str) -> Any:
    done = invoked(stack.home.path, *arguments, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_models_and_capacity_show_what_can_be_bought(stack: Stack) -> None:
    models = document(stack, "models")["models"]
    assert models[0]["regions"][0]["available"]
    slots = document(stack, "capacity")["capacity"][0]
    assert (slots["offered"], slots["region"]) == (4, "local")
    plain = invoked(stack.home.path, "capacity").stdout
    assert "smollm2-135m-instruct in local" in plain
    assert "4 offered" in plain


def test_a_quote_reserves_nothing(stack: Stack) -> None:
    before = document(stack, "wallet", "balance")
    quote = document(stack, "quote", "Say hello.", "--max-tokens", "16")
    assert quote["quote"]["maxOutputTokens"] == "16"
    after = document(stack, "wallet", "balance")
    assert (after["available"], after["held"]) == (before["available"], before["held"])


def test_ask_prints_the_answer_alone_on_standard_output(stack: Stack) -> None:
    done = invoked(
        stack.home.path,
        "ask",
        "Count from 1 to 10.",
        "--temperature",
        "0",
        "--max-tokens",
        "16",
        "-y",
    )
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("1")
    assert "maximum" in done.stderr
    assert "verified" in done.stderr
    assert "maximum" not in done.stdout


def test_ask_is_charged_for_measured_use_and_the_rest_comes_back(stack: Stack) -> None:
    before = document(stack, "wallet", "balance")
    asked = document(stack, "ask", "Say hello.", "--max-tokens", "32", "--yes")
    job = asked["job"]
    after = document(stack, "wallet", "balance")
    assert asked["record_verified"]
    assert Decimal(job["held"]) == Decimal(job["charge"]) + Decimal(job["released"])
    paid = Decimal(before["available"]) - Decimal(after["available"])
    assert paid == Decimal(job["charge"]) > 0
    shown = document(stack, "job", "show", job["id"])
    assert shown == job
    plain = invoked(stack.home.path, "job", "show", job["id"]).stdout
    assert "the pinned quote key" in plain
    assert "verified" in plain
    kept = json.loads(invoked(stack.home.path, "job", "record", job["id"]).stdout)
    assert (kept["digest"], kept["message"]) == (job["record"]["digest"], job["record"]["message"])
    assert kept["domain"]["name"] == "OFFPEAK UsageRecord"
    [newest] = document(stack, "job", "list", "--limit", "1")["jobs"]
    assert (newest["id"], newest["charge"]) == (job["id"], job["charge"])
    assert job["id"] in invoked(stack.home.path, "job", "list").stdout


def test_a_schema_constrains_the_answer(stack: Stack) -> None:
    schema = {
        "type": "object",
        "properties": {"mood": {"enum": ["good", "bad"]}},
        "required": ["mood"],
        "additionalProperties": False,
    }
    path = stack.home.path / "schema.json"
    path.write_text(json.dumps(schema))
    asked = document(
        stack, "ask", "What a lovely day!", "--schema", str(path), "--max-tokens", "32", "-y"
    )
    assert json.loads(asked["job"]["answer"]["content"])["mood"] in {"good", "bad"}


def test_a_schema_that_the_gateway_refuses_is_named_with_its_file(stack: Stack) -> None:
    path = stack.home.path / "elsewhere.json"
    path.write_text(json.dumps({"$ref": "https://schemas.example/other"}))
    done = invoked(stack.home.path, "quote", "Hello.", "--schema", str(path))
    assert done.exit_code == Exit.USAGE
    assert f"schema {path}: " in done.stderr
    assert "bad-schema" in done.stderr


def test_an_unknown_region_names_the_ones_there_are(stack: Stack) -> None:
    done = invoked(stack.home.path, "quote", "Hello.", "--region", "moon")
    assert done.exit_code == Exit.TRY_LATER
    assert "on fresh offer in moon" in done.stderr
    assert "regions that offer slots now: local" in done.stderr


def test_a_schemas_answer_that_is_cut_fails_and_still_is_printed(stack: Stack) -> None:
    path = stack.home.path / "schema.json"
    path.write_text(
        json.dumps(
            {"type": "object", "properties": {"story": {"type": "string", "minLength": 200}}}
        )
    )
    done = invoked(
        stack.home.path, "ask", "A story.", "--schema", str(path), "--max-tokens", "8", "-y"
    )
    assert done.exit_code == Exit.INCOMPLETE, done.stderr
    assert "cut at --max-tokens 8" in done.stderr
    assert done.stdout.strip()


def test_without_a_yes_nothing_is_signed(stack: Stack) -> None:
    before = document(stack, "wallet", "balance")
    done = invoked(stack.home.path, "ask", "Say hello.")
    assert done.exit_code == Exit.NOT_SIGNED
    assert "declined" in done.stderr
    after = document(stack, "wallet", "balance")
    assert (after["available"], after["held"]) == (before["available"], before["held"])


def test_a_quote_above_the_buyers_maximum_is_not_signed(stack: Stack) -> None:
    done = invoked(stack.home.path, "ask", "Say hello.", "--max", "0.000000001", "--yes")
    assert done.exit_code == Exit.NOT_SIGNED
    assert "maximum-exceeded" in done.stderr


def test_the_wrong_chain_is_noticed_before_signing(stack: Stack) -> None:
    done = invoked(stack.home.path, "ask", "Say hello.", "--yes", OFFPEAK_CHAIN_ID="8453")
    assert done.exit_code == Exit.NOT_SIGNED
    assert "chain 31337, this wallet is set to chain 8453" in done.stderr


@pytest.mark.parametrize("command", [("wallet", "balance"), ("job", "list")])
def test_reading_on_the_wrong_chain_says_so_too(stack: Stack, command: tuple[str, ...]) -> None:
    done = invoked(stack.home.path, *command, OFFPEAK_CHAIN_ID="8453")
    assert done.exit_code == Exit.NOT_SIGNED
    assert "chain 31337, this wallet is set to chain 8453 (wrong-chain)" in done.stderr


def test_a_prompt_that_does_not_fit_names_both_numbers(stack: Stack) -> None:
    done = invoked(stack.home.path, "quote", "Say hello.", "--max-tokens", "2048")
    assert done.exit_code == Exit.REFUSED
    assert "context-exceeded" in done.stderr
    assert "2048" in done.stderr


def test_an_empty_wallet_is_refused_with_the_next_step(stack: Stack) -> None:
    password = stack.home.path / "other.password"
    password.write_text("secret\n")
    keystore = stack.home.path / "other.json"
    environ = {"ETH_KEYSTORE": str(keystore), "ETH_PASSWORD": str(password)}
    made = invoked(stack.home.path, "wallet", "new", str(keystore), **environ)
    assert made.exit_code == 0, made.stderr
    done = invoked(stack.home.path, "ask", "Say hello.", "--yes", **environ)
    assert done.exit_code == Exit.FUNDS
    assert "insufficient-funds" in done.stderr
    address = json.loads(invoked(stack.home.path, "wallet", "show", "--json", **environ).stdout)
    assert f"dev fund {address['address']}" in done.stderr
    funded = invoked(stack.home.path, "dev", "fund", address["address"], "--amount", "0.5")
    assert funded.exit_code == 0, funded.stderr
    done = invoked(stack.home.path, "ask", "Say hello.", "--max-tokens", "8", "--yes", **environ)
    assert done.exit_code == 0, done.stderr


def test_another_wallets_job_is_not_found(stack: Stack) -> None:
    done = invoked(stack.home.path, "job", "show", "job_01990000-0000-7000-8000-000000000000")
    assert done.exit_code == Exit.REFUSED
    assert "job-not-found" in done.stderr


def test_the_books_add_up_after_all_this(stack: Stack) -> None:
    report = document(stack, "ledger", "check")
    assert report["clean"]
    assert {rule["differences"] for rule in report["rules"]} == {0}
    last = invoked(stack.home.path, "ledger", "check").stdout.splitlines()[-1]
    assert last == f"the books add up: {len(report['rules'])} rules ok"


def test_suppliers_are_registered_authorized_and_suspended(stack: Stack) -> None:
    made = document(stack, "supplier", "register", "acme", "--device-key", "ab" * 32)
    assert made["state"] == "pending"
    assert made["agent"].startswith("agent_")
    assert document(stack, "supplier", "authorize", made["supplier"])["state"] == "authorized"
    listed = {line["name"]: line for line in document(stack, "supplier", "list")["suppliers"]}
    assert listed["this-machine"]["session"] == "online"
    assert listed["acme"] == {**made, "name": "acme", "state": "authorized", "session": "never"}
    assert made["supplier"] in invoked(stack.home.path, "supplier", "list").stdout
    assert document(stack, "supplier", "suspend", made["supplier"])["state"] == "suspended"
    again = invoked(stack.home.path, "supplier", "register", "acme", "--device-key", "ab" * 32)
    assert "supplier-exists" in again.stderr
    assert "next: see `offpeak supplier list`" in again.stderr


def test_check_and_migrate_work_on_the_homes_settings(stack: Stack) -> None:
    assert document(stack, "check")["environment"] == "development"
    assert document(stack, "migrate")["functions"]
