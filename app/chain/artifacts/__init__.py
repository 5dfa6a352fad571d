"""ABI and bytecode of our contracts, as the compiler made them; compared with a fresh build.

`<Contract>.json` beside this file: `contractName`, `abi`, `bytecode`, `compiler`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final, Literal

ContractName = Literal["Treasury", "ReceiptAnchor", "MockUSDC", "SignatureProbe"]
CONTRACTS: Final[tuple[ContractName, ...]] = ("Treasury", "ReceiptAnchor", "MockUSDC")


@dataclass(frozen=True, slots=True)
class Artifact:
    """One contract: its interface and its creation code without constructor arguments."""

    name: str
    abi: Sequence[Mapping[str, Any]] = field(repr=False)
    bytecode: bytes = field(repr=False)

    def signatures(self, kind: Literal["function", "event", "error"]) -> Iterator[str]:
        """The canonical signatures of one kind: `deposit(address,uint256,bytes32)`."""
        for entry in self.abi:
            if entry["type"] == kind:
                yield f"{entry['name']}({','.join(map(_type_of, entry['inputs']))})"


def _type_of(parameter: Mapping[str, Any]) -> str:
    kind: str = parameter["type"]
    if not kind.startswith("tuple"):
        return kind
    inner = ",".join(map(_type_of, parameter["components"]))
    return f"({inner}){kind.removeprefix('tuple')}"


def load_artifact(name: ContractName) -> Artifact:
    """The packaged artifact of a contract, read anew at each call."""
    text = (resources.files(__name__) / f"{name}.json").read_text("utf-8")
    found = json.loads(text)
    return Artifact(found["contractName"], found["abi"], bytes.fromhex(found["bytecode"][2:]))
