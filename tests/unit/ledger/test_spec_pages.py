"""The examples of `docs/spec/` are the vectors, the types are the code's, the codes exist."""

import json
import re
from pathlib import Path

import pytest

from ledger.authorization import (
    BudgetDelegation,
    CancelJob,
    ReadAccess,
    RequestAuthorization,
    RevokeDelegation,
    SuspenseClaim,
    Withdrawal,
)
from ledger.commitment import answer_digest, request_commit, request_digest, response_commit
from ledger.errors import LedgerError
from ledger.quote import Quote
from ledger.typed_data import MAX_TEXT_BYTES, TypedMessage
from ledger.usage import UsageRecord
from tests.vectors.make_eip712 import PATH

SPEC = Path(__file__).parents[3] / "docs" / "spec"
VECTORS = json.loads(PATH.read_text(encoding="utf-8"))["vectors"]
FAMILY = (ReadAccess, CancelJob, BudgetDelegation, RevokeDelegation, Withdrawal)
PAGES: dict[str, tuple[type[TypedMessage], ...]] = {
    "request-authorization.md": (RequestAuthorization, *FAMILY),
    "quote.md": (Quote,),
    "usage-record.md": (UsageRecord,),
    "suspense-claim.md": (SuspenseClaim,),
}

every_page = pytest.mark.parametrize("page", PAGES)


def text(page: str) -> str:
    return (SPEC / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text(page), re.DOTALL | re.MULTILINE)


def unhex(shown: str) -> bytes:
    return bytes.fromhex(shown.removeprefix("0x"))


@every_page
def test_the_first_example_is_the_vector(page: str) -> None:
    kind = PAGES[page][0].TYPE.name
    vector = next(each for each in VECTORS if (each["type"], each["name"]) == (kind, "plain"))
    example = json.loads(blocks(page, "json")[0])
    assert example == {key: vector[key] for key in vector if key not in {"type", "name"}}


@every_page
def test_the_types_are_those_of_the_code(page: str) -> None:
    shown = [block.strip() for block in blocks(page, "text")]
    assert [block for block in shown if re.match(r"\w+\(\w+ \w+,", block)] == [
        kind.TYPE.type_string for kind in PAGES[page]
    ]


@every_page
def test_every_member_is_explained(page: str) -> None:
    table = {
        name
        for line in text(page).splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert PAGES[page][0].TYPE.members <= table


@every_page
def test_every_error_code_exists(page: str) -> None:
    known = {each.code for each in LedgerError.__subclasses__() if hasattr(each, "code")}
    listed = re.findall(r"^\| `([a-z-]+)` \|", text(page).split("## Errors")[1], re.MULTILINE)
    assert listed
    assert set(listed) <= known


@every_page
def test_the_text_limit_is_the_codes(page: str) -> None:
    assert f"at most {MAX_TEXT_BYTES:,} bytes" in text(page)


def test_the_request_digest_example_holds() -> None:
    example = json.loads(blocks("request-authorization.md", "json")[1])
    digest = request_digest(unhex(example["salt"]), example["canonical"].encode())
    assert digest == unhex(example["request_digest"])


def test_the_commitment_example_holds() -> None:
    example = json.loads(blocks("usage-record.md", "json")[1])
    salt = unhex(example["salt"])
    request = request_commit(salt, unhex(example["request_digest"]))
    assert request == unhex(example["request_commit"])
    response = response_commit(salt, answer_digest(**example["answer"]))
    assert response == unhex(example["response_commit"])
