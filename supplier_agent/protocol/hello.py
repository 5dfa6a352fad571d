"""What an agent's device key (Ed25519) signs to open a session."""

from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from supplier_agent.protocol.errors import ProtocolError
from supplier_agent.protocol.messages import Hello

NONCE_BYTES = 32
_TAG = b"offpeak/agent-hello@v1\n"


class BadHello(ProtocolError):
    """The hello's signature is not the registered device key's over this nonce."""

    code = "bad-signature"

    def __init__(self, agent_id: str) -> None:
        super().__init__(f"{agent_id} did not prove its device key")
        self.agent_id = agent_id


def hello_bytes(*, nonce: bytes, session: str, version: int, agent_id: str, host: str) -> bytes:
    """Return the signed bytes.

    Domain tag, nonce (32 B), session UUID (16 B), version (2 B, big-endian), agent UUID (16 B),
    host (UTF-8, to the end). Only the last part varies in length, so no two hellos share bytes.
    """
    assert len(nonce) == NONCE_BYTES
    return b"".join(
        (
            _TAG,
            nonce,
            UUID(session).bytes,
            version.to_bytes(2, "big"),
            UUID(agent_id.removeprefix("agent_")).bytes,
            host.encode(),
        )
    )


def check_hello(hello: Hello, *, nonce: bytes, public_key: bytes) -> None:
    """Accept a hello that `public_key` (32 raw bytes, registered for its agent) signed.

    Raises:
        BadHello: any other key, nonce, session, version, agent or host.
    """
    signed = hello_bytes(
        nonce=nonce,
        session=hello.session,
        version=hello.version,
        agent_id=hello.agent_id,
        host=hello.host,
    )
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(
            bytes.fromhex(hello.signature), signed
        )
    except (InvalidSignature, ValueError) as error:
        raise BadHello(hello.agent_id) from error
