"""What we declare of the contracts is in the packaged ABI, word for word."""

import pytest

from app.chain import calls, contracts, deploy, events
from app.chain.abi import Event, Function
from app.chain.artifacts import load_artifact
from app.chain.events import TREASURY_EVENTS
from app.chain.reverts import error_name
from ledger.hashing import keccak256
from ledger.typed_data import StructType

OURS = [load_artifact(name) for name in ("Treasury", "ReceiptAnchor", "MockUSDC")]
FUNCTIONS = [
    function
    for module in (calls, contracts, deploy)
    for function in vars(module).values()
    if isinstance(function, Function)
]
EVENTS = [
    kind.EVENT
    for kind in vars(events).values()
    if isinstance(kind, type)
    and issubclass(kind, events.ChainEvent)
    and kind is not events.ChainEvent
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_each_function_is_a_contracts_own_with_these_results(function: Function) -> None:
    found = [
        entry
        for artifact in OURS
        for entry in artifact.abi
        if entry["type"] == "function"
        and entry["name"] == function.name
        and tuple(one["type"] for one in entry["inputs"]) == function.inputs
    ]
    assert found, function.signature
    for entry in found:
        declared = [one["type"] for one in entry["outputs"]]
        if function.outputs or entry["stateMutability"] == "view":
            for mine, theirs in zip(function.outputs, declared, strict=True):
                assert mine == theirs or (mine == "uint256" and theirs.startswith("uint"))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.name)
def test_each_event_has_the_abis_types_names_and_indexes(event: Event) -> None:
    found = [
        entry
        for artifact in OURS
        for entry in artifact.abi
        if entry["type"] == "event" and entry["name"] == event.name
    ]
    mine = [(p.solidity, p.name, p.indexed) for p in event.parameters]
    assert (
        [[(one["type"], one["name"], one["indexed"]) for one in entry["inputs"]] for entry in found]
        == [mine] * len(found)
        != []
    )


def test_the_treasurys_counted_events_are_all_but_those_of_roles_pause_and_limit() -> None:
    others = {
        "DefaultAdminDelayChangeCanceled",
        "DefaultAdminDelayChangeScheduled",
        "DefaultAdminTransferCanceled",
        "DefaultAdminTransferScheduled",
        "EIP712DomainChanged",
        "Paused",
        "PayoutDayLimitSet",
        "RoleAdminChanged",
        "RoleGranted",
        "RoleRevoked",
        "Unpaused",
    }
    declared = {signature.partition("(")[0] for signature in OURS[0].signatures("event")}
    assert {kind.EVENT.name for kind in TREASURY_EVENTS.kinds.values()} == declared - others
    assert others <= declared


def test_the_fields_of_an_event_are_its_parameters_in_order() -> None:
    for kind in TREASURY_EVENTS.kinds.values():
        names = [
            StructType(f"X(uint256 {p.name})").fields[0].attribute for p in kind.EVENT.parameters
        ]
        assert list(getattr(kind, "__slots__", ())) == names


def test_reverts_are_known_by_name() -> None:
    assert error_name(keccak256(b"IdUsed(bytes32)")[:4] + bytes(32)) == "IdUsed"
    assert error_name(keccak256(b"Error(string)")[:4]) == "Error"
    assert error_name(keccak256(b"EnforcedPause()")[:4]) == "EnforcedPause"
    assert error_name(b"") == error_name(b"\0\0\0\0") == ""
