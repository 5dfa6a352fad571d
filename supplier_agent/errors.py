"""The base of what the agent's own parts may refuse; each class stands beside what raises it."""

from typing import ClassVar


class AgentError(Exception):
    """Base of every expected failure of the agent."""

    code: ClassVar[str]
    """Stable identifier for this failure."""
