"""The good receipt with signatures and checkpoint notes of other forms."""

import base64
import json
from collections.abc import Iterator

from ledger.signing import CURVE_ORDER
from tests.js.receipt_cases import GOOD, POLICY, Case

ED25519_ORDER = 2**252 + 27742317777372353535851937790883648493


def _forms(raw: bytes) -> Iterator[tuple[str, bytes]]:
    """Other forms of a wallet's signature that other software takes, or that prove nothing."""
    r, s, v = raw[:32], int.from_bytes(raw[32:64]), raw[64]
    yield "high s", r + (CURVE_ORDER - s).to_bytes(32) + bytes((55 - v,))
    yield "the other v", raw[:64] + bytes((55 - v,))
    for other in (0, 1, 26, 29, 31, 255):
        yield f"v of {other}", raw[:64] + bytes((other,))
    yield "zeros", bytes(64) + b"\x1b"
    yield "r of 0", bytes(32) + raw[32:]
    yield "s of 0", r + bytes(32) + raw[64:]
    yield "r of the order", CURVE_ORDER.to_bytes(32) + raw[32:]
    yield "r above the order", (CURVE_ORDER + 1).to_bytes(32) + raw[32:]
    yield "r of ones", b"\xff" * 32 + raw[32:]
    yield "r of no point", (5).to_bytes(32) + raw[32:]


def _malleable(raw: bytes) -> bytes:
    """An Ed25519 signature whose s is the group's order more: the same to careless software."""
    scalar = int.from_bytes(raw[32:], "little") + ED25519_ORDER
    return raw[:32] + scalar.to_bytes(32, "little")


def signatures() -> Iterator[Case]:
    """Signatures and agents' keys that must not pass."""
    document = json.loads(GOOD)
    for part in ("record", "quote", "acceptance"):
        shown = document[part]["signature"]
        for name, raw in _forms(bytes.fromhex(shown[2:])):
            changed = GOOD.replace(shown, "0x" + raw.hex())
            yield f"{part}: {name}", changed.encode(), POLICY
    shown = document["supplier"]["signature"]
    malleable = _malleable(bytes.fromhex(shown[2:]))
    yield "statement: s above", GOOD.replace(shown, "0x" + malleable.hex()).encode(), POLICY
    key = document["supplier"]["public_key"]
    for name, other in (("0", bytes(32)), ("ones", b"\xff" * 32), ("1", b"\1" + bytes(31))):
        yield f"agent's key of {name}", GOOD.replace(key, "0x" + other.hex()).encode(), POLICY


def _line(name: str, raw: bytes) -> str:
    return f"\u2014 {name} {base64.b64encode(raw).decode()}\n"


def notes() -> Iterator[Case]:
    """Another checkpoint note, the same in all proofs of the receipt."""
    note = json.loads(GOOD)["log_proof"].partition("\n\n")[2]
    text, _, line = note.partition("\n\n")
    text += "\n\n"
    name, encoded = line.split(" ")[1], line.split(" ")[2].strip()
    raw = base64.b64decode(encoded)
    unknown, false = _line(name, b"none" + raw[4:]), _line(name, raw[:-1] + b"x")
    others = {
        "no signature": text,
        "an unknown line": text + unknown,
        "an unknown line before": text + unknown + line,
        "the line twice": text + line + line,
        "a false line after": text + line + false,
        "a false line before": text + false + line,
        "s above": text + _line(name, raw[:4] + _malleable(raw[4:])),
        "unpadded": text + line.replace(encoded, encoded.rstrip("=")),
        "no last line feed": note[:-1],
        "more behind": note + "more\n",
        "a carriage return": note.replace("\n", "\r\n"),
        "an extension line": text[:-1] + "more\n\n" + line,
        "an empty line in the text": text + "\n" + line,
        "a size with a zero": note.replace("\n6\n", "\n06\n"),
        "another size": note.replace("\n6\n", "\n7\n"),
        "an en dash": note.replace("\u2014", "\u2013"),
        "a wide space": note.replace("\u2014 ", "\u2014\u2003"),
        "65 lines": text + line + unknown * 64,
        "64 lines": text + line + unknown * 63,
        "a name with a separator": text + line + unknown.replace(name, "a\u2028b"),
        "a name of no width": text + line + unknown.replace(name, "a\u200bb"),
        "a name beyond ASCII": text + line + unknown.replace(name, "\u00e4\U0001f600"),
    }
    shown = json.dumps(note, ensure_ascii=False)[1:-1]
    for called, other in others.items():
        changed = GOOD.replace(shown, json.dumps(other, ensure_ascii=False)[1:-1])
        assert changed != GOOD, called
        yield called, changed.encode(), POLICY
