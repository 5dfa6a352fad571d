"""Probes on the wire."""

from typing import Literal

from pydantic import BaseModel, ConfigDict


class HealthOut(BaseModel):
    """The process answers."""

    model_config = ConfigDict(frozen=True)

    status: Literal["alive"] = "alive"


class ReadyOut(BaseModel):
    """Whether the gateway can serve, part by part."""

    model_config = ConfigDict(frozen=True)

    status: Literal["ready", "degraded", "not-ready"]
    checks: dict[str, str]
