"""Changes of a receipt's document in place, as the mutation tests name them."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass

from ledger.encoding import checksum_address
from ledger.signing import CURVE_ORDER
from ledger.verify.verdict import Step
from tests.receipt_world import TREASURY
from tests.unit.ledger.verify.checking import Document, compact, document, other_world, world


@dataclass(frozen=True, slots=True)
class Case:
    """A change of the document in place, and the step that refuses it."""

    name: str
    change: Callable[[Document], object]
    step: Step
    word: str = ""


def other(text: str) -> str:
    """Another text of the same form: the last digit or letter is another one."""
    last = text[-1]
    return text[:-1] + {"0": "1", "f": "e", "9": "8"}.get(last, chr(ord(last) + 1))


def in_message(part: str, member: str, change: Callable[[str], str] = other) -> Case:
    """A member of a signed message is another; addresses stay right addresses."""
    text = "statement" if part == "supplier" else "message"

    def apply(given: Document) -> None:
        inner = json.loads(given[part][text])
        was = inner[member]
        inner[member] = (
            checksum_address(TREASURY) if was.startswith("0x") and len(was) == 42 else change(was)
        )
        given[part][text] = compact(inner).decode()

    step = {"record": Step.RECORD_SIGNATURE, "quote": Step.QUOTE}
    step |= {"acceptance": Step.ACCEPTANCE, "supplier": Step.STATEMENT}
    return Case(f"{part}.{member} is another", apply, step[part])


def in_header(member: str, step: Step) -> Case:
    def apply(given: Document) -> None:
        header = json.loads(given["batch"]["header"])
        header[member] = other(header[member])
        given["batch"]["header"] = compact(header).decode()

    return Case(f"header.{member} is another", apply, step)


def flip_hex(*path: str, place: int = 4) -> Callable[[Document], None]:
    """One bit of the hex text at a path is another."""

    def apply(given: Document) -> None:
        at: Document = given
        for name in path[:-1]:
            at = at[name]
        text = at[path[-1]]
        at[path[-1]] = text[:place] + format(int(text[place], 16) ^ 1, "x") + text[place + 1 :]

    return apply


def put(*path: str, value: object) -> Callable[[Document], None]:
    """Another value at a path."""

    def apply(given: Document) -> None:
        at: Document = given
        for name in path[:-1]:
            at = at[name]
        at[path[-1]] = value

    return apply


def take(*path: str) -> Callable[[Document], None]:
    """The value that another world's receipt has at this path."""

    def apply(given: Document) -> None:
        theirs = document(other_world().receipt(other_world().batches[2].jobs[2]))
        for name in path[:-1]:
            given, theirs = given[name], theirs[name]
        given[path[-1]] = theirs[path[-1]]

    return apply


def neighbour(*path: str) -> Callable[[Document], None]:
    """The value that the receipt of another record of the same batch has at this path."""

    def apply(given: Document) -> None:
        theirs = document(world().receipt(world().batches[2].jobs[5]))
        for name in path[:-1]:
            given, theirs = given[name], theirs[name]
        given[path[-1]] = theirs[path[-1]]

    return apply


def high_s(part: str) -> Callable[[Document], None]:
    """The other signature that the curve allows: r, order - s, the other v."""

    def apply(given: Document) -> None:
        raw = bytes.fromhex(given[part]["signature"][2:])
        s = CURVE_ORDER - int.from_bytes(raw[32:64])
        given[part]["signature"] = "0x" + (raw[:32] + s.to_bytes(32) + bytes((55 - raw[64],))).hex()

    return apply


def v_of_zero(given: Document) -> None:
    raw = bytes.fromhex(given["record"]["signature"][2:])
    given["record"]["signature"] = "0x" + (raw[:64] + bytes((raw[64] - 27,))).hex()


def proof_lines(change: Callable[[list[str]], object], part: str = "log") -> Callable[..., None]:
    """The lines of a log proof are others: its tag, its index, its hashes, then the checkpoint."""

    def apply(given: Document) -> None:
        holder = given if part == "log" else given["keys"][int(part)]
        lines = holder["log_proof"].split("\n")
        change(lines)
        holder["log_proof"] = "\n".join(lines)

    return apply


def flip_base64(line: str, place: int) -> str:
    raw = bytearray(base64.b64decode(line))
    raw[place] ^= 1
    return base64.b64encode(raw).decode()


def at(number: int, change: Callable[[str], str]) -> Callable[[list[str]], None]:
    def apply(lines: list[str]) -> None:
        lines[number] = change(lines[number])

    return apply


def in_every_checkpoint(change: Callable[[str], str]) -> Callable[[Document], None]:
    def apply(given: Document) -> None:
        for holder in (given, *given["keys"]):
            proof, _, note = holder["log_proof"].partition("\n\n")
            holder["log_proof"] = proof + "\n\n" + change(note)

    return apply


def note_line(number: int, change: Callable[[str], str]) -> Callable[[str], str]:
    def apply(note: str) -> str:
        lines = note.split("\n")
        lines[number] = change(lines[number])
        return "\n".join(lines)

    return apply


def signature_of_checkpoint(line: str) -> str:
    dash, name, encoded = line.split(" ")
    return f"{dash} {name} {flip_base64(encoded, 20)}"


def other_batch(given: Document) -> None:
    """Header, index and proofs of a job in another batch: right in themselves."""
    theirs = document(world().receipt(world().batches[0].jobs[0]))
    given["batch"], given["log_proof"] = theirs["batch"], theirs["log_proof"]


def header_of_another_batch(given: Document) -> None:
    given["batch"]["header"] = world().batches[0].header.decode()


def log_index_for_batch_index(given: Document) -> None:
    given["batch"]["index"] = str(world().batches[2].index)


def batch_index_for_log_index(given: Document) -> None:
    proof_lines(at(1, lambda _: f"index {given['batch']['index']}"))(given)


def earlier_checkpoint(given: Document) -> None:
    given["log_proof"] = given["log_proof"].partition("\n\n")[0] + "\n\n"
    given["log_proof"] += world().checkpoint(4).decode()


def swap_batch_proof(given: Document) -> None:
    proof = given["batch"]["proof"]
    proof[0], proof[1] = proof[1], proof[0]


def entry_text(change: Callable[[str], str]) -> Callable[[Document], None]:
    def apply(given: Document) -> None:
        given["keys"][1]["entry"] = change(given["keys"][1]["entry"])

    return apply


def drop_signature(number: int) -> Callable[[str], str]:
    def apply(entry: str) -> str:
        text, _, signatures = entry.rpartition("\n\n")
        lines = signatures.split("\n")
        del lines[number]
        return text + "\n\n" + "\n".join(lines)

    return apply


def whole_other_log(given: Document) -> None:
    given.update(document(other_world().receipt(other_world().batches[2].jobs[2])))


def delete(*path: str) -> Callable[[Document], None]:
    def apply(given: Document) -> None:
        for name in path[:-1]:
            given = given[name]
        del given[path[-1]]

    return apply


ELSEWHERE = checksum_address(TREASURY)


def in_anchor(member: str, change: Callable[[str], str]) -> Callable[[Document], None]:
    """The receipt claims an anchor of which one member is another."""

    def apply(given: Document) -> None:
        given["anchor"] = world().anchor().document()
        given["anchor"][member] = change(given["anchor"][member])

    return apply


def anchor_of_another_log(given: Document) -> None:
    given["anchor"] = other_world().anchor().document()


def flip_proof(given: Document) -> None:
    proof = given["batch"]["proof"]
    proof[0] = proof[0][:5] + format(int(proof[0][5], 16) ^ 1, "x") + proof[0][6:]


def lower_payer(given: Document) -> None:
    inner = json.loads(given["record"]["message"])
    inner["payer"] = inner["payer"].lower()
    given["record"]["message"] = compact(inner).decode()
