"""What must hold in the books: one file each, a claim and its counter-examples.

`rules/` are the ledger check's, `matches/` and `waiting/` the reconciliation's.
"""

from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Rule:
    """A claim about the stored rows.

    `query` returns (subject, expected, found) for every row that breaks it; in `matches/` with the
    time of it, in `waiting/` (subject, since, due).
    """

    name: str
    claim: str
    query: str


def rules(kind: str = "rules") -> tuple[Rule, ...]:
    """Return all rules of a folder, by name. A file's first line is its claim."""
    folder = files("app.finance") / kind
    found = []
    for path in sorted(folder.iterdir(), key=lambda entry: entry.name):
        first, _, query = path.read_text("utf-8").partition("\n")
        found.append(Rule(path.name.removesuffix(".sql"), first.removeprefix("-- "), query))
    return tuple(found)
