"""The binary frame that carries a stream: 13 bytes of header, then the engine's own bytes.

```
type 1 B (0x01 = DATA) | stream id 8 B | seq 4 B | payload        all integers big-endian
```
"""

import struct
from dataclasses import dataclass
from uuid import UUID

from supplier_agent.protocol.errors import BadFrame

MAX_DATA_PAYLOAD_BYTES = 65_536
"""A sender splits what its engine gave in one loop tick into payloads of at most this."""

_HEADER = struct.Struct(">BQI")
_TYPE_DATA = 1
_UINT64 = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class DataFrame:
    """One piece of one stream. `seq` counts a stream's frames from 0 within one session."""

    stream: int
    seq: int
    payload: bytes


def encode_data(stream: int, seq: int, payload: bytes) -> bytes:
    """Return the binary frame; 1 to `MAX_DATA_PAYLOAD_BYTES` of payload."""
    assert 1 <= len(payload) <= MAX_DATA_PAYLOAD_BYTES
    return _HEADER.pack(_TYPE_DATA, stream, seq) + payload


def decode_data(frame: bytes) -> DataFrame:
    """Return the parts of a binary frame.

    Raises:
        BadFrame: too short, too long, empty payload, or of an unknown type.
    """
    size = len(frame) - _HEADER.size
    if size < 1:
        raise BadFrame(f"binary frame of {len(frame)} bytes carries no payload")
    if size > MAX_DATA_PAYLOAD_BYTES:
        raise BadFrame(f"payload of {size} bytes is over {MAX_DATA_PAYLOAD_BYTES}")
    kind, stream, seq = _HEADER.unpack_from(frame)
    if kind != _TYPE_DATA:
        raise BadFrame(f"unknown binary frame type {kind}")
    return DataFrame(stream, seq, frame[_HEADER.size :])


def stream_of(lease: str) -> int:
    """Return a lease's stream id: the last 8 bytes of its UUID as an unsigned integer.

    Derived, not assigned, so that a gateway that has never seen the lease (another replica,
    after a crash) places the frames an agent sends again. 62 of the 64 bits are random in a
    UUIDv7 or v4.
    """
    return UUID(lease.removeprefix("lease_")).int & _UINT64
