import re
from collections.abc import Iterator

from ledger.errors import HoldError, LedgerError


def walk(base: type[LedgerError]) -> Iterator[type[LedgerError]]:
    for each in base.__subclasses__():
        yield each
        yield from walk(each)


def test_every_expected_failure_has_a_stable_code_of_its_own() -> None:
    leaves = [each for each in walk(LedgerError) if each is not HoldError]
    codes = [each.code for each in leaves]
    assert len(set(codes)) == len(codes)
    for each in leaves:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", each.code)
        assert each.__doc__
