"""Every expected error has a status: a new one cannot reach a client as a bare 500."""

import importlib
import pkgutil
import re
from datetime import UTC, datetime
from types import ModuleType

import orjson
import pytest

import app
import ledger
import pricing
from app.capacity.errors import NoFreshOffer
from app.models.errors import ContextExceeded
from app.problems import NEVER_RETRY, STATUS, problem_response
from app.wallets.errors import ReadAccessMissing
from ledger.errors import FundsOnHold, HoldResolved, InsufficientFunds

NOT_SERVED = (
    "app.embedded",
    "app.cli",
    "app.config_rules",
    "app.db.migrate",
    "app.client",
    "app.finance",
    "ledger.verify",
)
"""Failures of commands and of starting; no request meets them."""


def error_modules() -> list[str]:
    found = []
    for package in (app, ledger, pricing):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            served = not module.name.startswith(NOT_SERVED)
            if served and module.name.rpartition(".")[2] == "errors":
                found.append(module.name)
    return found


def concrete_errors() -> list[type[Exception]]:
    found = set()
    for module in map(importlib.import_module, error_modules()):
        found.update(errors_of(module))
    return sorted(found, key=lambda kind: (kind.__module__, kind.__name__))


def errors_of(module: ModuleType) -> list[type[Exception]]:
    return [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, Exception)
        and kind.__module__ == module.__name__
        and "code" in vars(kind)
    ]


def test_the_walk_finds_every_package() -> None:
    assert {"ledger.errors", "pricing.errors", "app.kit.errors", "app.quotes.errors"} <= set(
        error_modules()
    )


@pytest.mark.parametrize("error", concrete_errors(), ids=lambda kind: kind.__name__)
def test_an_error_has_a_status_a_code_and_a_sentence(error: type[Exception]) -> None:
    assert error in STATUS, f"give {error.__name__} a row in app.problems.STATUS"
    assert 400 <= STATUS[error] < 600
    assert re.fullmatch("[a-z][a-z0-9]*(-[a-z0-9]+)*", vars(error)["code"])
    assert error.__doc__
    assert error.__doc__.splitlines()[0].endswith(".")


def test_the_same_code_always_has_the_same_status() -> None:
    statuses: dict[str, set[int]] = {}
    for error in concrete_errors():
        statuses.setdefault(vars(error)["code"], set()).add(STATUS[error])
    assert {code: found for code, found in statuses.items() if len(found) > 1} == {}


def test_clients_do_not_retry_what_a_retry_cannot_mend() -> None:
    assert {402, 409, 410} == NEVER_RETRY
    for error in (
        InsufficientFunds(available=1, required=2),
        FundsOnHold(available=0, held=5, required=2),
    ):
        assert problem_response(error, instance="/").headers["X-Should-Retry"] == "false"


def test_out_of_credits_when_funds_are_only_held_has_a_code_of_its_own_and_a_retry_after() -> None:
    response = problem_response(
        FundsOnHold(available=1, held=14_250, required=2_000_000_000), instance="/v1/requests"
    )
    body = orjson.loads(response.body)
    assert response.status_code == 402
    assert response.headers["Retry-After"] == "5"
    assert body == {
        "type": "https://offpeak.example/problems/funds-on-hold",
        "title": "The money is there, but held by other jobs; it may come back when they end",
        "status": 402,
        "detail": body["detail"],
        "instance": "/v1/requests",
        "code": "funds-on-hold",
        "available": "0.000000001",
        "held": "0.000014250",
        "required": "2.000000000",
    }


def test_figures_travel_as_numbers_where_they_are_no_money() -> None:
    error = ContextExceeded(input_tokens=2_000, max_output_tokens=100, context_tokens=2_048)
    body = orjson.loads(problem_response(error, instance="/").body)
    assert (body["input_tokens"], body["max_output_tokens"]) == (2_000, 100)


def test_no_capacity_says_when_to_come_back_and_401_says_how_to_sign() -> None:
    no_capacity = problem_response(NoFreshOffer(release="m", region=None), instance="/")
    assert (no_capacity.status_code, no_capacity.headers["Retry-After"]) == (503, "5")
    missing = problem_response(ReadAccessMissing(), instance="/")
    assert missing.headers["WWW-Authenticate"] == "OffpeakRead"
    assert missing.media_type == "application/problem+json"


def test_rfc_members_win_over_figures_of_the_same_name() -> None:
    class Odd(HoldResolved):
        def __init__(self) -> None:
            self.status = 200
            self.type = "x"
            self.at = datetime(2026, 1, 2, tzinfo=UTC)

    STATUS[Odd] = 409
    try:
        body = orjson.loads(problem_response(Odd(), instance="/").body)
    finally:
        del STATUS[Odd]
    assert body["status"] == 409
    assert body["type"].startswith("https://")
    assert body["at"] == "2026-01-02T00:00:00.000Z"
