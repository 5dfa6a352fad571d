"""Values as JSON-RPC writes them: strict in, exact out.

Source: the execution API's rules for `QUANTITY` (no leading zeros) and `DATA` (whole bytes).
"""

import re
from typing import Final

from ledger.encoding import Address, parse_address
from ledger.errors import BadAddress

_QUANTITY: Final = re.compile(r"0x(0|[1-9a-fA-F][0-9a-fA-F]{0,63})")
_DATA: Final = re.compile(r"0x(?:[0-9a-fA-F]{2})*")


class MalformedValue(ValueError):
    """A member of a node's answer has another form than the execution API gives it."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is malformed")
        self.what = what


def quantity(what: str, given: object) -> int:
    """The integer, 0 .. 2^256 - 1, that `given` writes as a `QUANTITY`.

    Raises:
        MalformedValue: another form, leading zeros among them.
    """
    if not isinstance(given, str) or _QUANTITY.fullmatch(given) is None:
        raise MalformedValue(what)
    return int(given, 16)


def data(what: str, given: object) -> bytes:
    """The bytes that `given` writes as `DATA`.

    Raises:
        MalformedValue: another form.
    """
    if not isinstance(given, str) or _DATA.fullmatch(given) is None:
        raise MalformedValue(what)
    return bytes.fromhex(given[2:])


def word(what: str, given: object) -> bytes:
    """The 32 bytes that `given` writes.

    Raises:
        MalformedValue: another form or length.
    """
    found = data(what, given)
    if len(found) != 32:
        raise MalformedValue(what)
    return found


def address(what: str, given: object) -> Address:
    """The address that `given` writes, in lower case.

    Raises:
        MalformedValue: another form.
    """
    try:
        return parse_address(given)
    except BadAddress:
        raise MalformedValue(what) from None


def show_quantity(value: int) -> str:
    """The integer, not negative, as a `QUANTITY`."""
    assert value >= 0
    return hex(value)


def show_data(value: bytes) -> str:
    """The bytes as `DATA`."""
    return "0x" + value.hex()
