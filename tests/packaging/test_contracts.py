"""The committed contracts are what their sources compile to, and they pass their own tests."""

from pathlib import Path

import pytest

from tests import npm
from tests.packaging import contracts

# One worker builds once.
pytestmark = [
    pytest.mark.node,
    pytest.mark.long,
    npm.needs_npm,
    pytest.mark.xdist_group("contracts"),
    pytest.mark.timeout(contracts.FORGE_SECONDS + npm.INSTALL_SECONDS),
]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("contracts")


@pytest.fixture(scope="module")
def built(work: Path) -> dict[str, str]:
    return contracts.build(work)


@pytest.mark.parametrize("name", sorted(contracts.PLACES))
def test_the_artifact_is_what_a_fresh_build_makes(built: dict[str, str], name: str) -> None:
    written = contracts.path(name).read_text("utf-8")
    assert written == built[name], "run `make contracts`"


def test_the_foundry_tests_pass(built: dict[str, str], work: Path) -> None:
    run = contracts.forge(["test"], work=work)
    assert run.returncode == 0, run.stdout + run.stderr
