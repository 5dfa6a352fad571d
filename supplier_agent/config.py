"""The agent's settings: a TOML file, `OFFPEAK_AGENT_*` variables and options, the last winning."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from ledger.errors import BadAmount
from ledger.money import parse_amount
from supplier_agent.errors import AgentError

_NAME = r"^[a-z0-9][a-z0-9._-]{0,127}$"
_AGENT_ID = r"^agent_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_CONNECT_PATH = "/v1/agents/connect"


class BadConfig(AgentError):
    """A setting is missing or wrong; the message names each one."""

    code = "bad-config"


class AgentSettings(BaseSettings):
    """Everything the agent is told. Paths may be relative to the working directory."""

    model_config = SettingsConfigDict(env_prefix="OFFPEAK_AGENT_", extra="forbid", frozen=True)
    toml: ClassVar[Path | None] = None

    gateway: Annotated[str, Field(description="gateway's URL; the agent adds the path")]
    agent_id: Annotated[str, Field(pattern=_AGENT_ID, description="given at registration")]
    key_file: Annotated[Path, Field(description="device key, mode 0600; made if missing")]
    release: Annotated[Path, Field(description="release.json of the model to serve")]
    weights: Annotated[Path | None, Field(description="GGUF file to serve")] = None
    engine_url: Annotated[str | None, Field(description="attach to this server instead")] = None
    deployment: Annotated[str, Field(pattern=_NAME, description="this deployment's name")]
    region: Annotated[str, Field(pattern=_NAME)] = "local"
    capacity_class: Literal["flexible", "reclaimable"] = "flexible"
    ask: Annotated[str, Field(description="price per slot-second, tokens as a decimal")]
    slots: Annotated[int, Field(ge=1, le=256)] = 4
    threads: Annotated[int, Field(ge=1, le=256, description="CPU threads of the engine")] = 1
    drain_seconds: Annotated[float, Field(ge=0, le=3600)] = 30.0

    @field_validator("ask")
    @classmethod
    def _ask_is_an_amount(cls, ask: str) -> str:
        try:
            parse_amount(ask)
        except BadAmount as error:
            raise ValueError(str(error)) from error
        return ask

    @field_validator("gateway")
    @classmethod
    def _gateway_is_safe(cls, gateway: str) -> str:
        url = urlsplit(gateway)
        if url.scheme not in ("http", "https", "ws", "wss") or not url.hostname:
            raise ValueError("must be an https:// or wss:// URL")
        if url.scheme in ("http", "ws") and url.hostname not in _LOOPBACK:
            raise ValueError("without TLS only a gateway on this host is dialled")
        return gateway

    @model_validator(mode="after")
    def _one_engine(self) -> "AgentSettings":
        if (self.weights is None) == (self.engine_url is None):
            raise ValueError("give weights or engine_url, one of them")
        return self

    @property
    def ask_nano_per_slot_second(self) -> int:
        """The ask in nano."""
        return parse_amount(self.ask)

    @property
    def connect_url(self) -> str:
        """Where the WebSocket is opened."""
        url = urlsplit(self.gateway)
        scheme = "wss" if url.scheme in ("https", "wss") else "ws"
        return f"{scheme}://{url.netloc}{url.path.rstrip('/').removesuffix(_CONNECT_PATH)}" + (
            _CONNECT_PATH
        )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Options, then the environment, then the TOML file."""
        del dotenv_settings, file_secret_settings
        toml = TomlConfigSettingsSource(settings_cls, toml_file=cls.toml)
        return init_settings, env_settings, toml


def load_settings(toml: Path | None, options: dict[str, object]) -> AgentSettings:
    """Return the settings; options that are None were not given.

    Raises:
        BadConfig: the file cannot be read, or a setting is missing, unknown or wrong.
    """
    if toml is not None and not toml.is_file():
        raise BadConfig(f"{toml}: no such file")
    source = type("AgentSettings", (AgentSettings,), {"toml": toml, "__module__": __name__})
    given = {name: value for name, value in options.items() if value is not None}
    try:
        settings = source(**given)
    except ValidationError as error:
        lines = (
            f"{'.'.join(map(str, item['loc'])) or 'settings'}: {item['msg']}"
            for item in error.errors(include_url=False, include_input=False)
        )
        raise BadConfig("; ".join(lines)) from error
    except ValueError as error:  # not TOML
        raise BadConfig(f"{toml}: {error}") from error
    assert isinstance(settings, AgentSettings)
    return settings
