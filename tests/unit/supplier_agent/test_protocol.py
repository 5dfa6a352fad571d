"""Whatever comes over the socket is one of our messages or a typed refusal."""

import contextlib
import json
import re
import uuid
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from supplier_agent.protocol import (
    MAX_CONTROL_BYTES,
    MAX_DATA_PAYLOAD_BYTES,
    AgentMessage,
    BadFrame,
    BadHello,
    GatewayMessage,
    Hello,
    Run,
    check_hello,
    decode_data,
    decode_from_agent,
    decode_from_gateway,
    decode_request,
    encode,
    encode_data,
    hello_bytes,
    stream_of,
)
from tests.unit.supplier_agent.samples import AGENT, FROM_AGENT, FROM_GATEWAY, LEASE, SESSION

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@pytest.mark.parametrize("message", FROM_AGENT, ids=lambda m: type(m).__name__)
def test_an_agents_message_survives_the_wire(message: AgentMessage) -> None:
    assert decode_from_agent(encode(message)) == message


@pytest.mark.parametrize("message", FROM_GATEWAY, ids=lambda m: type(m).__name__)
def test_a_gateways_message_survives_the_wire(message: GatewayMessage) -> None:
    decoded = decode_from_gateway(encode(message))

    assert encode(decoded) == encode(message)
    if isinstance(message, Run):
        assert isinstance(decoded, Run)
        assert bytes(decoded.request) == bytes(message.request)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_bad_frame(data: bytes) -> None:
    for decode in (decode_from_agent, decode_from_gateway, decode_data, decode_request):
        with contextlib.suppress(BadFrame):
            assert decode(data) == decode(data)


@given(message=st.sampled_from(FROM_AGENT + FROM_GATEWAY), data=st.data())
def test_a_bent_message_is_a_message_or_a_bad_frame(
    message: AgentMessage | GatewayMessage, data: st.DataObject
) -> None:
    fields: dict[str, object] = json.loads(encode(message))
    key = data.draw(st.sampled_from(sorted(fields)) | st.text(max_size=8))
    fields[key] = data.draw(JSON_VALUES)
    text = json.dumps(fields)
    for decode in (decode_from_agent, decode_from_gateway):
        with contextlib.suppress(BadFrame):
            decoded = decode(text)
            assert encode(decode(encode(decoded))) == encode(decoded)


@pytest.mark.parametrize("message", FROM_AGENT + FROM_GATEWAY, ids=lambda m: type(m).__name__)
def test_an_unknown_field_is_refused(message: AgentMessage | GatewayMessage) -> None:
    fields = json.loads(encode(message)) | {"extra": 1}
    for decode in (decode_from_agent, decode_from_gateway):
        with pytest.raises(BadFrame):
            decode(json.dumps(fields))


def test_a_lone_surrogate_is_a_bad_frame() -> None:
    with pytest.raises(BadFrame):
        decode_from_agent('{"type":"busy","lease":"\ud800"}')


def test_deep_nesting_is_a_bad_frame() -> None:
    with pytest.raises(BadFrame):
        decode_from_gateway('{"type":"run","request":' + "[" * 100_000)


def test_a_control_frame_over_its_limit_is_refused_unread() -> None:
    text = " " * MAX_CONTROL_BYTES + encode(FROM_AGENT[2])
    with pytest.raises(BadFrame, match="over"):
        decode_from_agent(text)
    with pytest.raises(BadFrame, match="over"):
        decode_from_agent(encode(FROM_AGENT[0]), limit=10)


@pytest.mark.parametrize("lease", ["lease_1", LEASE.upper(), LEASE + "\n", AGENT])
def test_an_id_has_exactly_one_form(lease: str) -> None:
    with pytest.raises(BadFrame):
        decode_from_agent(json.dumps({"type": "accept", "lease": lease}))


@given(
    stream=st.integers(0, 2**64 - 1),
    seq=st.integers(0, 2**32 - 1),
    payload=st.binary(min_size=1, max_size=300),
)
def test_a_data_frame_survives_the_wire(stream: int, seq: int, payload: bytes) -> None:
    frame = encode_data(stream, seq, payload)

    assert len(frame) == 13 + len(payload)
    decoded = decode_data(frame)
    assert (decoded.stream, decoded.seq, decoded.payload) == (stream, seq, payload)


def test_a_data_frame_has_exactly_the_specified_bytes() -> None:
    frame = encode_data(stream_of(LEASE), 2, b"data: x")

    assert frame.hex() == "01" + "8000000000000001" + "00000002" + b"data: x".hex()


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x01" * 13,
        b"\x02" + bytes(12) + b"x",
        b"\x01" + bytes(12) + b"x" * (MAX_DATA_PAYLOAD_BYTES + 1),
    ],
    ids=["empty", "no-payload", "unknown-type", "too-long"],
)
def test_a_bad_data_frame_is_refused(frame: bytes) -> None:
    with pytest.raises(BadFrame):
        decode_data(frame)


def test_a_request_read_back_has_the_canonical_form_it_came_in() -> None:
    canonical = (
        b'{"max_output_tokens":3,"messages":[{"content":"x","role":"user"}],"model":"m",'
        b'"response_format":{"json_schema":{"name":"n","schema":{"type":"object"}},'
        b'"type":"json_schema"},"temperature":0.5}'
    )

    assert decode_request(canonical).canonical() == canonical


@pytest.mark.parametrize(
    "extra",
    ['"tools":[]', '"n":2', '"temperature":3', '"seed":-1', '"logit_bias":{}', '"stream":true'],
)
def test_a_field_outside_the_whitelist_reaches_no_engine(extra: str) -> None:
    good = '{"model":"m","messages":[{"role":"user","content":"x"}],"max_output_tokens":3'
    decode_request((good + "}").encode())
    with pytest.raises(BadFrame):
        decode_request(f"{good},{extra}}}".encode())


class TestHello:
    """The hello is bound to key, nonce, session, version, agent and host."""

    nonce = bytes(range(32))
    key = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
    public = key.public_key().public_bytes_raw()

    def hello(self) -> Hello:
        signed = hello_bytes(
            nonce=self.nonce, session=SESSION, version=1, agent_id=AGENT, host="gpu-7"
        )
        sample = FROM_AGENT[0]
        assert isinstance(sample, Hello)
        return msgspec.structs.replace(sample, signature=self.key.sign(signed).hex())

    def test_the_signed_bytes_are_the_specified_ones(self) -> None:
        signed = hello_bytes(
            nonce=self.nonce, session=SESSION, version=1, agent_id=AGENT, host="gpu-7"
        )
        page = Path("docs/spec/agent-channel.md").read_text(encoding="utf-8")
        parts = re.findall(
            r"^([0-9a-f]+) +(?:tag|nonce|session|version|agent|host)$", page, re.MULTILINE
        )

        assert signed.hex() == "".join(parts)
        assert self.key.sign(signed).hex() in page
        assert self.public.hex() in page

    def test_the_right_key_is_let_in(self) -> None:
        assert self.is_let_in(nonce=self.nonce, public_key=self.public)

    def test_another_nonce_or_key_is_not(self) -> None:
        other = Ed25519PrivateKey.from_private_bytes(b"o" * 32).public_key().public_bytes_raw()
        assert not self.is_let_in(nonce=bytes(32), public_key=self.public)
        assert not self.is_let_in(nonce=self.nonce, public_key=other)
        assert not self.is_let_in(nonce=self.nonce, public_key=b"short")

    def is_let_in(self, *, nonce: bytes, public_key: bytes) -> bool:
        try:
            check_hello(self.hello(), nonce=nonce, public_key=public_key)
        except BadHello:
            return False
        return True

    @pytest.mark.parametrize(
        "change",
        [
            {"session": str(uuid.UUID(int=5))},
            {"version": 2},
            {"agent_id": f"agent_{uuid.UUID(int=6)}"},
            {"host": "gpu-8"},
        ],
    )
    def test_a_changed_field_is_not(self, change: dict[str, object]) -> None:
        bent = msgspec.structs.replace(self.hello(), **change)
        with pytest.raises(BadHello):
            check_hello(bent, nonce=self.nonce, public_key=self.public)
