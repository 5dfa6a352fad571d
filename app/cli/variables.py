"""Environment variables of ours that nothing reads: usually a slip of the pen."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

PREFIX = "OFFPEAK_"
OTHERS = (PREFIX + "AGENT_", PREFIX + "TEST_")
"""Read by `offpeak-agent`, and by the tests."""
OF_THE_CLIENT = frozenset(
    {
        "OFFPEAK_ANVIL",
        "OFFPEAK_HOME",
        "OFFPEAK_URL",
        "OFFPEAK_RPC_URL",
        "OFFPEAK_MODEL",
        "OFFPEAK_QUOTE_SIGNER",
    }
)


def unknown_variables(environ: Iterable[str], settings: Iterable[str]) -> Iterator[str]:
    """Yield a line for each variable that is neither a setting nor another one of ours."""
    known = OF_THE_CLIENT | {PREFIX + name.upper() for name in settings}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known and not name.startswith(OTHERS):
            near = get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            yield f"{name} is no setting and is ignored{meant}"
