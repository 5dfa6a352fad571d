"""What logs stand for: transfers of deposits are told from plain ones, whatever stands between."""

from collections.abc import Sequence

import hypothesis.strategies as st
import pytest
from hypothesis import given

from app.chain.blocks import Log
from app.chain.errors import MalformedAnswer
from app.chain.events import TREASURY_EVENTS, ChainEvent, Deposited, Published, Transfer
from app.treasury.events import NOT_COUNTED, EventKind, OurContracts, SeenEvent, read_events
from ledger.encoding import Address
from ledger.hashing import keccak256


def address(number: int) -> Address:
    return Address(f"0x{number:040x}")


OURS = OurContracts(token=address(1), treasury=address(2), anchor=address(3))
PEOPLE = [address(number) for number in range(10, 13)]


def word(value: int | bytes | str) -> bytes:
    if isinstance(value, bytes):
        return value.rjust(32, b"\0")
    return int(value, 16).to_bytes(32) if isinstance(value, str) else value.to_bytes(32)


def log(
    emitter: Address,
    kind: type[ChainEvent],
    values: Sequence[int | bytes | str],
    index: int,
    tx: int,
) -> Log:
    """A log as a node gives it; block and transaction by number."""
    parameters = kind.EVENT.parameters
    pairs = list(zip(parameters, values, strict=True))
    return Log(
        address=emitter,
        topics=(kind.EVENT.topic, *(word(value) for p, value in pairs if p.indexed)),
        data=b"".join(word(value) for p, value in pairs if not p.indexed),
        block_number=7,
        block_hash=word(7),
        transaction_hash=word(tx),
        index=index,
    )


def transfer(sender: Address, amount: int, index: int, *, tx: int = 1, to: int = 2) -> Log:
    return log(OURS.token, Transfer, [sender, address(to), amount], index, tx)


def deposited(payer: Address, amount: int, index: int, *, tx: int = 1) -> Log:
    return log(OURS.treasury, Deposited, [payer, address(99), amount, bytes(32)], index, tx)


def kinds(events: Sequence[SeenEvent]) -> list[tuple[EventKind, int, int]]:
    return [(event.kind, event.amount, event.place.log_index) for event in events]


DEPOSIT, PLAIN = EventKind.DEPOSITED, EventKind.PLAIN_TRANSFER


def test_a_deposits_own_transfer_is_not_a_plain_one() -> None:
    seen = read_events([transfer(PEOPLE[0], 5, 0), deposited(PEOPLE[0], 5, 1)], OURS)
    assert kinds(seen.events) == [(DEPOSIT, 5, 1)]
    assert [place.log_index for place in seen.of_deposits] == [0]


@pytest.mark.parametrize(
    "other",
    [
        transfer(PEOPLE[0], 5, 0),
        transfer(PEOPLE[0], 4, 0),
        transfer(PEOPLE[1], 5, 0),
        transfer(PEOPLE[0], 5, 9),
    ],
    ids=["the same before", "another amount", "another sender", "the same after"],
)
def test_a_plain_transfer_beside_a_deposit_stays_one(other: Log) -> None:
    seen = read_events([other, transfer(PEOPLE[0], 5, 3), deposited(PEOPLE[0], 5, 4)], OURS)
    assert (DEPOSIT, 5, 4) in kinds(seen.events)
    assert [kind for kind, _, index in kinds(seen.events) if index == other.index] == [PLAIN]
    assert [place.log_index for place in seen.of_deposits] == [3]


def test_a_deposit_of_another_transaction_accounts_for_nothing() -> None:
    logs = [transfer(PEOPLE[0], 5, 0, tx=1), deposited(PEOPLE[0], 5, 1, tx=2)]
    assert kinds(read_events(logs, OURS).events) == [(PLAIN, 5, 0), (DEPOSIT, 5, 1)]


def test_transfers_of_nothing_and_to_others_are_no_events() -> None:
    logs = [transfer(PEOPLE[0], 0, 0), transfer(PEOPLE[0], 5, 1, to=77)]
    assert read_events(logs, OURS).events == []


def test_logs_that_are_not_ours_are_passed_over() -> None:
    foreign = log(address(50), Deposited, [PEOPLE[0], PEOPLE[0], 5, bytes(32)], 0, 1)
    unknown = Log(
        address=OURS.treasury,
        topics=(keccak256(b"Paused(address)"),),
        data=bytes(32),
        block_number=7,
        block_hash=word(7),
        transaction_hash=word(1),
        index=1,
    )
    assert read_events([foreign, unknown], OURS).events == []


def test_a_log_with_our_topic_and_other_arguments_is_refused() -> None:
    right = deposited(PEOPLE[0], 5, 0)
    wrong = log(OURS.treasury, Deposited, [PEOPLE[0], address(99), 5, bytes(32)], 0, 1)
    assert read_events([right], OURS) == read_events([wrong], OURS)
    with pytest.raises(MalformedAnswer):
        read_events(
            [
                Log(
                    address=right.address,
                    topics=right.topics,
                    data=b"",
                    block_number=7,
                    block_hash=word(7),
                    transaction_hash=word(1),
                    index=0,
                )
            ],
            OURS,
        )


def test_an_anchor_names_its_size_its_root_and_the_one_before() -> None:
    root = keccak256(b"root")
    [event] = read_events([log(OURS.anchor, Published, [9, root, 4], 0, 1)], OURS).events
    assert (event.kind, event.ref, event.payer) == (EventKind.PUBLISHED, root, None)
    assert event.extra == {"size": "9", "previous_size": "4"}


@pytest.mark.parametrize("kind", TREASURY_EVENTS.kinds.values(), ids=lambda kind: kind.__name__)
def test_every_event_that_the_treasury_counts_is_one_counted_event(kind: type[ChainEvent]) -> None:
    values: list[int | str] = [
        PEOPLE[0] if p.solidity == "address" else number + 1
        for number, p in enumerate(kind.EVENT.parameters)
    ]
    [event] = read_events([log(OURS.treasury, kind, values, 3, 1)], OURS).events
    assert event.kind not in NOT_COUNTED
    assert event.payer == PEOPLE[0]
    assert event.place.log_index == 3
    assert all(isinstance(value, str) for value in event.extra.values())


actions = st.lists(
    st.tuples(
        st.sampled_from(["deposit", "plain", "elsewhere"]),
        st.integers(0, 2),
        st.integers(1, 3),
        st.integers(1, 2),
    ),
    max_size=25,
)


@given(actions=actions, shuffled=st.randoms())
def test_every_token_that_comes_in_is_deposited_or_plain_and_no_other(
    actions: list[tuple[str, int, int, int]], shuffled: object
) -> None:
    """Transfers and deposits of one payer, amount and transaction, in any mixture."""
    logs: list[Log] = []
    came = deposits = 0
    for what, who, amount, tx in sorted(actions, key=lambda action: action[3]):
        index = len(logs)
        if what == "elsewhere":
            logs.append(transfer(PEOPLE[who], amount, index, tx=tx, to=60))
            continue
        logs.append(transfer(PEOPLE[who], amount, index, tx=tx))
        came += amount
        if what == "deposit":
            logs.append(deposited(PEOPLE[who], amount, index + 1, tx=tx))
            deposits += 1
    in_order = read_events(logs, OURS)
    shuffled.shuffle(logs)  # type: ignore[attr-defined]
    seen = read_events(logs, OURS)
    assert seen == in_order
    assert sum(event.amount for event in seen.events) == came
    found = [event.kind for event in seen.events]
    assert found.count(DEPOSIT) == deposits == len(seen.of_deposits)
    assert not {event.place for event in seen.events} & seen.of_deposits
    places = [event.place for event in seen.events]
    assert places == sorted(set(places))
