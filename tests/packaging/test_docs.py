"""The documentation says what the code says, and its links lead somewhere."""

import re
import tomllib
from pathlib import Path

import pytest

from app import problems
from app.cli.exits import BY_CODE, Exit
from app.cli.variables import unknown_variables
from app.client.errors import NEXT_STEPS
from app.config import Settings
from tests.packaging.reference import DOCS, pages

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
README_LINES = 150


@pytest.mark.parametrize("name", sorted(pages()))
def test_the_reference_is_what_the_code_says(name: str) -> None:
    written = (DOCS / name).read_text("utf-8")
    assert written == pages()[name], "run `python -m tests.packaging.reference`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), f"{target} in {page.name}"


def test_the_readme_is_at_most_150_lines() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= README_LINES


def test_every_dependency_has_its_licence_and_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    groups = [project["project"]["dependencies"], *extras, project["dependency-groups"]["dev"]]
    named = {re.split(r"[\[>=<~!; ]", line)[0] for group in groups for line in group}
    named.discard("offpeak-inference")
    told = (ROOT / "docs" / "stack.md").read_text("utf-8")
    words = set(re.findall(r"[A-Za-z0-9_.-]+", told))
    assert named - words == set()


def test_every_variable_that_a_page_names_exists() -> None:
    for page in PAGES:
        named = set(re.findall(r"\bOFFPEAK_[A-Z_]*[A-Z]\b", page.read_text("utf-8")))
        assert list(unknown_variables(named, Settings.model_fields)) == [], page.name


def test_every_next_step_is_for_a_refusal_that_exists() -> None:
    codes = {getattr(kind, "code", "") for kind in problems.STATUS}
    assert set(NEXT_STEPS) - codes == set()


def test_every_refusal_that_passes_by_itself_says_try_later() -> None:
    for kind, status in problems.STATUS.items():
        if status in (429, 503):
            assert BY_CODE[getattr(kind, "code", "")] is Exit.TRY_LATER


def test_every_decision_names_what_enforces_it() -> None:
    found = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [page.name[:4] for page in found] == [f"{n:04d}" for n in range(1, len(found) + 1)]
    for page in found:
        text = page.read_text("utf-8")
        for part in ("**Decision.**", "**Why.**", "**Cost.**", "**Enforced by.**"):
            assert part in text, f"{part} in {page.name}"


def test_every_word_of_the_glossary_has_one_meaning() -> None:
    lines = (ROOT / "docs" / "glossary.md").read_text("utf-8").splitlines()
    words = [line.split("|")[1].strip() for line in lines if line.startswith("| ")][1:]
    assert len(words) == len(set(words))
