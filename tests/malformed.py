"""Wrong bodies, made from a right one: for every route that takes JSON from outside.

`mutations` walks a valid body and breaks it at every place in every way that its place allows;
`not_documents` are bodies that are no JSON object at all. Each case must meet a typed 4xx and
change nothing.
"""

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Case:
    """One wrong body and what is wrong with it."""

    name: str
    body: bytes


WRONG_VALUES: tuple[object, ...] = (
    None,
    True,
    -1,
    0.5,
    2**64,
    "",
    "x" * 5_000,
    "\u0000",
    [],
    [[]],
    {},
    {"$where": "1"},
)


def mutations(
    body: dict[str, object], *, free_text: Sequence[str] = (), free: Sequence[str] = ()
) -> Iterator[Case]:
    """Yield broken copies of a valid body.

    Args:
        body: A valid document.
        free_text: Names of fields that hold any string.
        free: Names of fields whose inside is the sender's business; they are only replaced.
    """
    for path in paths(body, free):
        name = ".".join(map(str, path))
        right = at(body, path)
        for wrong in WRONG_VALUES:
            if acceptable(wrong, right, anything=path[-1] in free_text):
                continue
            yield Case(f"{name} = {shown(wrong)}", encoded(replaced(body, path, wrong)))
        if isinstance(path[-1], str):
            yield Case(f"{name} missing", encoded(removed(body, path)))
        if isinstance(right, dict) and path[-1] not in free:
            extra = {**right, "unknown_field": 1}
            yield Case(f"{name} with an unknown field", encoded(replaced(body, path, extra)))
    yield Case("an unknown field", encoded({**body, "unknown_field": 1}))


def not_documents(valid: bytes) -> Iterator[Case]:
    """Yield bodies that are not a JSON object."""
    for name, raw in {
        "empty": b"",
        "space": b"  ",
        "null": b"null",
        "number": b"1",
        "string": b'"x"',
        "array": b"[]",
        "object": b"{}",
        "cut short": valid[:-1],
        "cut in half": valid[: len(valid) // 2],
        "trailing": valid + b"x",
        "twice": valid + valid,
        "not UTF-8": b'{"a":"\xff\xfe"}',
        "UTF-16": valid.decode().encode("utf-16"),
        "byte order mark": b"\xef\xbb\xbf" + valid,
        "NaN": b'{"a":NaN}',
        "infinity": b'{"a":1e999}',
        "comment": b"{/* */}",
        "single quotes": b"{'a':1}",
        "control character": b'{"a":"\x01"}',
        "lone surrogate": b'{"a":"\\ud800"}',
        "deep arrays": b"[" * 5_000 + b"]" * 5_000,
        "deep objects": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
        "form": b"payer=0x&salt=0x",
        "XML": b"<quote/>",
        "zeros": bytes(500),
    }.items():
        yield Case(f"body: {name}", raw)


def acceptable(wrong: object, right: object, *, anything: bool) -> bool:
    """Return whether a value may be right after all in this place."""
    if anything and isinstance(wrong, str):
        return True
    if isinstance(right, float) and isinstance(wrong, float):
        return True
    return wrong == right


def paths(node: object, free: Sequence[str], here: Path = ()) -> Iterator[Path]:
    """Yield the way to every value of a document, but not into free parts."""
    if here:
        yield here
    if here and here[-1] in free:
        return
    if isinstance(node, dict):
        for name, value in node.items():
            yield from paths(value, free, (*here, name))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from paths(value, free, (*here, index))


def at(body: object, path: Path) -> object:
    """Return the value at a path."""
    for step in path:
        assert isinstance(body, dict | list)
        body = body[step]  # type: ignore[index]  # the path was made from this body
    return body


def replaced(body: dict[str, object], path: Path, value: object) -> dict[str, object]:
    """Return a copy with another value at a path."""
    changed = copy.deepcopy(body)
    parent = at(changed, path[:-1])
    parent[path[-1]] = value  # type: ignore[index]  # a container, as its path goes on
    return changed


def removed(body: dict[str, object], path: Path) -> dict[str, object]:
    """Return a copy without the member at a path."""
    changed = copy.deepcopy(body)
    parent = at(changed, path[:-1])
    del parent[path[-1]]  # type: ignore[attr-defined]  # a container, as its path goes on
    return changed


def encoded(body: object) -> bytes:
    """Return JSON bytes."""
    return json.dumps(body).encode()


def shown(value: object) -> str:
    """Return a value short enough for a test's name."""
    text = repr(value)
    return text if len(text) < 20 else f"{type(value).__name__} of {len(text)}"
