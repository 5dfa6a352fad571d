"""Settings: parsed once from `OFFPEAK_*` and passed down.

Secrets are given as a value or as a file (`..._file`), held as `SecretStr` and never printed.
Development has working defaults for everything but the database and the keys; production refuses
whatever is only good for development.
"""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, StringConstraints, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app import config_rules as rules

Address = Annotated[str, StringConstraints(pattern="^0x[0-9a-fA-F]{40}$")]
Amount = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?$")]
Ppm = Annotated[int, Field(ge=0, le=100_000_000)]
Seconds = Annotated[int, Field(ge=1, le=366 * 86_400)]


def default_replica_id() -> str:
    """Return a name that tells gateway processes of one deployment apart."""
    return f"{socket.gethostname()}-{os.getpid()}"


class Settings(BaseSettings):
    """Everything an operator can set. Times in seconds, amounts in settlement tokens."""

    model_config = SettingsConfigDict(
        env_prefix="OFFPEAK_",
        frozen=True,
        extra="ignore",
        validate_default=True,
        hide_input_in_errors=True,  # it holds the secrets
    )

    environment: Literal["development", "production"] = Field(
        default="development",
        description="Production refuses whatever is only good for development.",
    )

    # Stores.
    database_url: SecretStr = Field(description="Postgres, as the restricted application role.")
    migration_database_url: SecretStr | None = Field(
        default=None, description="Postgres, as the owner of the schema; only `migrate` uses it."
    )
    operator_database_url: SecretStr | None = Field(
        default=None,
        description="Postgres, as a member of offpeak_operator, for `supplier`, `ledger clear` and"
        " `dev fund`; `database_url` when it is not set.",
    )
    redis_url: SecretStr | None = Field(
        default=None, description="Valkey or Redis. Without it the service is degraded, not down."
    )
    database_pool_size: int = Field(
        default=10, ge=1, le=200, description="Postgres connections of one process."
    )
    database_statement_seconds: float = Field(
        default=10.0, gt=0, le=600, description="Longest statement; the database ends a longer one."
    )
    database_lock_seconds: float = Field(
        default=5.0, gt=0, le=600, description="Longest wait for a lock of the database."
    )
    database_connect_seconds: int = Field(
        default=5, ge=1, le=60, description="Longest wait for a connection to the database."
    )

    # Where this process listens and how others reach it.
    public_url: str = Field(
        default="http://127.0.0.1:8700",
        description="Where buyers and agents reach the gateway; the OpenAPI document names it.",
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=8700, ge=0, le=65_535, description="Port to listen on; 0 takes a free one."
    )
    worker_metrics_port: int = Field(
        default=0,
        ge=0,
        le=65_535,
        description="Port on `host` where a worker shows its metrics to Prometheus; 0: none.",
    )
    replica_id: str = Field(
        default_factory=default_replica_id,
        min_length=1,
        max_length=128,
        description="Name of this process; every replica needs its own.",
    )

    # What wallets sign for.
    chain_id: int = Field(
        default=31_337, ge=1, lt=2**53, description="EIP-155 id of the chain that wallets sign for."
    )
    token_address: Address = Field(
        default=rules.placeholder_address(1), description="The settlement token."
    )
    treasury_address: Address = Field(
        default=rules.placeholder_address(2), description="verifyingContract of authorizations."
    )
    treasury_first_block: int = Field(
        default=0, ge=0, description="Block that the treasury was deployed in; read from there on."
    )
    receipt_anchor_address: Address = Field(
        default=rules.placeholder_address(3), description="verifyingContract of usage records."
    )

    # Keys.
    signing_key: SecretStr | None = Field(
        default=None, description="secp256k1 key of quotes and usage records, 64 hex digits."
    )
    signing_key_file: Path | None = Field(
        default=None, description="File holding `signing_key`; wins over the value."
    )
    content_key: SecretStr | None = Field(
        default=None,
        description="AES-256 key of stored content, 64 hex digits; more lines are older keys.",
    )
    content_key_file: Path | None = Field(
        default=None, description="File holding `content_key`; wins over the value."
    )
    checkpoint_key: SecretStr | None = Field(
        default=None,
        description="Ed25519 seed that signs the receipt log, 64 hex digits; not for gateways.",
    )
    checkpoint_key_file: Path | None = Field(
        default=None, description="File holding `checkpoint_key`; wins over the value."
    )
    log_origin: str = Field(
        default=rules.DEVELOPMENT_ORIGIN,
        min_length=1,
        max_length=255,
        description="Name of the receipt log for good, a URL without scheme.",
    )

    # The chain. Only the worker sends transactions; gateways read.
    rpc_urls: SecretStr | None = Field(
        default=None,
        description="JSON-RPC URLs of the chain, best first, with commas; else no chain.",
    )
    treasury_database_url: SecretStr | None = Field(
        default=None, description="Postgres, as a member of offpeak_treasury; else as the operator."
    )
    operator_keystore: Path | None = Field(
        default=None, description="web3 v3 keystore of the treasury's operator."
    )
    operator_password_file: Path | None = Field(
        default=None, description="File holding the password of `operator_keystore`."
    )
    operator_signer_command: str = Field(
        default="", description="Program that signs for the operator; instead of a keystore."
    )
    anchor_keystore: Path | None = Field(
        default=None, description="web3 v3 keystore of the key that anchors the receipt log."
    )
    anchor_password_file: Path | None = Field(
        default=None, description="File holding the password of `anchor_keystore`."
    )
    anchor_signer_command: str = Field(
        default="", description="Program that signs for the anchor key; instead of a keystore."
    )
    chain_poll_seconds: float = Field(
        default=4.0, gt=0, le=600, description="How often the chain is looked at."
    )
    log_range_blocks: int = Field(
        default=2_000, ge=1, le=100_000, description="Most blocks that one log query names."
    )
    deposit_safe_limit: Amount = Field(
        default="1000",
        description="Deposits up to this together count once `safe`, not `finalized`.",
    )
    withdrawal_minimum: Amount = Field(default="1", description="The smallest withdrawal.")
    gas_token_price: Amount = Field(
        default="0",
        description="Tokens for one native coin, to price withdrawals; 0: they are free.",
    )
    gas_low: Amount = Field(
        default="0.05", description="Native coins below which a sending key raises an alarm."
    )
    replace_after_seconds: Seconds = Field(
        default=90, description="How long a transaction may wait before it is sent with more fees."
    )
    max_fee_gwei: int = Field(default=500, ge=1, le=10**6, description="Most for a unit of gas.")
    commit_interval_seconds: Seconds = Field(
        default=3_600, description="How often the spending of wallets is committed on the chain."
    )
    anchor_interval_seconds: int = Field(
        default=3_600, ge=0, le=86_400, description="How often a checkpoint is anchored; 0: each."
    )

    # Limits.
    max_body_bytes: int = Field(
        default=262_144, ge=1_024, le=16_777_216, description="Largest request body."
    )
    max_prompt_tokens: int = Field(
        default=131_072, ge=1, description="Longest prompt, whatever the model's context."
    )
    open_jobs_per_wallet: int = Field(
        default=256, ge=1, description="Most unfinished jobs of one wallet."
    )
    accept_queue_length: int = Field(
        default=2_000,
        ge=1,
        description="Acceptances that may wait for the database; more get `busy`.",
    )
    settle_queue_length: int = Field(
        default=2_000, ge=1, description="Settlements that may wait for the database."
    )
    wait_default_seconds: Seconds = Field(
        default=60, description="How long POST /v1/requests waits for the answer without `Prefer`."
    )
    wait_max_seconds: int = Field(
        default=300, ge=1, le=300, description="The longest wait that `Prefer` may ask for."
    )
    run_seconds_min: Seconds = Field(
        default=20, description="The least time that a job gets, however short it looks."
    )
    run_seconds_max: Seconds = Field(
        default=600, description="The longest that one job may hold its slot."
    )

    # Times.
    quote_expiry_seconds: int = Field(
        default=60, ge=1, le=600, description="How long a quote may be accepted."
    )
    retention_seconds: Seconds = Field(
        default=86_400, description="How long request and answer texts are kept."
    )
    sweep_interval_seconds: float = Field(
        default=1.0, gt=0, le=60, description="How often overdue jobs are ended."
    )
    market_refresh_seconds: float = Field(
        default=1.0, gt=0, le=10, description="How often a gateway reads the market."
    )
    price_point_interval_seconds: float = Field(
        default=1.0, gt=0, le=10, description="How often a price point is stored."
    )
    price_stale_seconds: Seconds = Field(
        default=10, description="The oldest price point that may be quoted from."
    )
    floor_refresh_seconds: Seconds = Field(
        default=30, description="How long measured cost sums are reused."
    )
    market_keep_seconds: Seconds = Field(
        default=30 * 86_400, description="How long price points and capacity events are kept."
    )
    ledger_check_seconds: Seconds = Field(
        default=600, description="How often the worker recomputes the books."
    )
    seal_interval_seconds: float = Field(
        default=60.0,
        gt=0,
        le=3_600,
        description="How often records are sealed; a timer, so that batch sizes tell little.",
    )
    seal_batch_limit: int = Field(
        default=100_000, ge=1, le=1_000_000, description="Most records in one receipt batch."
    )
    drain_seconds: Seconds = Field(
        default=30, description="How long a stopping gateway finishes what runs."
    )

    # Pricing. The prior, one typical request, stands in for cost until enough is measured.
    prior_input_tokens: int = Field(
        default=400, ge=1, le=10**6, description="Prompt of the typical request that is the prior."
    )
    prior_output_tokens: int = Field(
        default=200, ge=1, le=10**6, description="Answer of the typical request."
    )
    prior_prefill_tokens_per_second: int = Field(
        default=300, ge=1, le=10**6, description="Prompt speed of one slot, until measured."
    )
    prior_decode_tokens_per_second: int = Field(
        default=20, ge=1, le=10**6, description="Answer speed of one slot, until measured."
    )
    prior_ask: Amount = Field(
        default="0.000002000", description="What its supplier asks for one slot-second."
    )
    prior_overhead: Amount = Field(
        default="0.000005000", description="Gateway and payment cost of one request."
    )
    slowest_speed_ppm: int = Field(
        default=50_000,
        ge=0,
        le=1_000_000,
        description="Offers below this share of the prior's speeds are refused, in millionths.",
    )
    price_margin_ppm: Ppm = Field(
        default=150_000, description="Margin on top of cost, in millionths."
    )
    price_curve: tuple[tuple[Ppm, Ppm], ...] = Field(
        default=(
            (0, 1_000_000),
            (500_000, 1_000_000),
            (800_000, 1_250_000),
            (1_000_000, 2_000_000),
        ),
        description="Load against price factor, both in millionths; factors never fall.",
    )
    floor_window_seconds: Seconds = Field(
        default=86_400, description="Trailing window of measured cost."
    )

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="Least severe level that is logged."
    )

    @model_validator(mode="before")
    @classmethod
    def read_secret_files(cls, given: dict[str, object]) -> dict[str, object]:
        """Fill each secret from its file; the file wins over the value."""
        for name in rules.SECRET_FILES:
            path = given.get(f"{name}_file")
            if path:
                given = {**given, name: rules.read_secret(Path(str(path)))}
        return given

    @model_validator(mode="after")
    def check_forms(self) -> Self:
        """Refuse keys and curves of the wrong form, and development values in production."""
        problems = list(rules.curve_problems(self.price_curve))
        for name in rules.SECRET_FILES:
            problems += rules.key_problems(name, getattr(self, name))
        problems += rules.url_problems(self.rpc_url_list, production=not self.is_development)
        for key in ("operator", "anchor"):
            held = (getattr(self, f"{key}_{part}") for part in rules.CHAIN_KEY_PARTS)
            problems += rules.chain_key_problems(key, *held)
        if not rules.is_log_origin(self.log_origin):
            problems.append("log_origin must be one word without + or control characters")
        for low, high in rules.ORDERED:
            if getattr(self, low) > getattr(self, high):
                problems.append(f"{low} is above {high}")
        if self.environment == "production":
            problems.extend(self._production_problems())
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _production_problems(self) -> Iterator[str]:
        for name in rules.SECRET_FILES:
            yield from rules.production_key_problems(name, getattr(self, name))
        for name in rules.CONTRACT_ADDRESSES:
            if rules.is_placeholder_address(getattr(self, name)):
                yield f"{name} is a placeholder"
        if self.log_origin == rules.DEVELOPMENT_ORIGIN:
            yield "log_origin is the development log's"
        if self.chain_id in rules.DEVELOPMENT_CHAIN_IDS:
            yield f"chain_id {self.chain_id} is a development chain"
        if rules.is_local_url(self.public_url):
            yield "public_url must be an https address that buyers can reach"

    @property
    def is_development(self) -> bool:
        """Whether `dev fund` and other shortcuts may exist."""
        return self.environment == "development"

    @property
    def operator_url(self) -> str:
        """Where the operator's commands connect."""
        return (self.operator_database_url or self.database_url).get_secret_value()

    @property
    def treasury_url(self) -> str:
        """Where the treasury's loops connect."""
        held = self.treasury_database_url
        return self.operator_url if held is None else held.get_secret_value()

    @property
    def rpc_url_list(self) -> list[str]:
        """The chain's URLs, best first; empty without a chain. They may hold keys."""
        return rules.url_list(self.rpc_urls)

    def signing_key_bytes(self) -> bytes:
        """Return the 32-byte key of quotes and usage records.

        Raises:
            MissingKey: neither value nor file is set.
        """
        return rules.required_keys("signing_key", self.signing_key)[0]

    def content_keys(self) -> list[bytes]:
        """Return the AES keys of stored content, the one for new content first."""
        return rules.required_keys("content_key", self.content_key)

    def checkpoint_key_bytes(self) -> bytes:
        """Return the 32-byte seed that signs the receipt log.

        Raises:
            MissingKey: neither value nor file is set.
        """
        return rules.required_keys("checkpoint_key", self.checkpoint_key)[0]

    def described(self) -> dict[str, str]:
        """Return every setting as text with secrets hidden, for `offpeak check`."""
        names = type(self).model_fields
        shown = {name: rules.described_value(getattr(self, name)) for name in names}
        return shown | {"rpc_urls": rules.described_hosts(self.rpc_url_list)}
