"""Streams take turns, keep their order and are cut into bounded frames."""

from supplier_agent.outbox import Outbox
from supplier_agent.protocol import (
    MAX_DATA_PAYLOAD_BYTES,
    DataFrame,
    First,
    Heartbeat,
    decode_data,
    encode,
    stream_of,
)
from tests.unit.supplier_agent.samples import new_lease


async def take_data(outbox: Outbox) -> DataFrame:
    frame = await outbox.take()
    assert isinstance(frame, bytes)
    return decode_data(frame)


async def test_streams_take_turns() -> None:
    outbox = Outbox()
    long, short = new_lease(), new_lease()
    outbox.send_data(long, b"x" * (3 * MAX_DATA_PAYLOAD_BYTES))
    outbox.send_data(short, b"y")

    turns = [(await take_data(outbox)).stream for _ in range(4)]

    assert turns == [stream_of(long), stream_of(short), stream_of(long), stream_of(long)]


async def test_control_frames_pass_streams_but_not_their_own() -> None:
    outbox = Outbox()
    lease = new_lease()
    first = First(lease=lease)
    outbox.send_after(lease, first)
    outbox.send_data(lease, b"a")
    outbox.send(Heartbeat(seq=0))

    assert await outbox.take() == encode(Heartbeat(seq=0))
    assert await outbox.take() == encode(first)
    assert (await take_data(outbox)).payload == b"a"


async def test_what_comes_between_two_sends_travels_in_one_frame() -> None:
    outbox = Outbox()
    lease = new_lease()
    for piece in (b"a", b"b", b"c"):
        outbox.send_data(lease, piece)
    first = await take_data(outbox)
    outbox.send_data(lease, b"d")
    second = await take_data(outbox)

    assert (first.seq, first.payload) == (0, b"abc")
    assert (second.seq, second.payload) == (1, b"d")


async def test_a_forgotten_lease_is_not_sent() -> None:
    outbox = Outbox()
    lease = new_lease()
    outbox.send_data(lease, b"a")
    outbox.forget(lease)
    outbox.send(Heartbeat(seq=0))

    assert await outbox.take() == encode(Heartbeat(seq=0))
