"""The demonstration's receipt: sealed, fetched, verified, and a tampered copy refused."""

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli.policies import policy_text
from ledger.receipt import Receipt

if TYPE_CHECKING:
    from app.client.client import Client
    from app.config import Settings

VERIFY_SECONDS = 30
"""Most time that a run of `offpeak-verify` may take."""
ANCHOR_SECONDS = 60.0
BETWEEN_LOOKS_SECONDS = 0.25


class ReceiptUnproved(Exception):
    """A receipt of our own was not verified, or a tampered one was: the demonstration failed."""

    code = "receipt-unproved"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `offpeak-verify --json` said of one file."""

    document: dict[str, Any]
    exit: int

    @property
    def steps(self) -> list[dict[str, str]]:
        """The steps of its one receipt: `step`, `result`, `detail`."""
        steps: list[dict[str, str]] = self.document["receipts"][0]["steps"]
        return steps


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvedReceipt:
    """A receipt and what its verifier says of it and of a tampered copy."""

    job_id: str
    size: int
    """Bytes of the file."""
    tampering: str
    good: Verdict
    tampered: Verdict
    node: str | None = None
    """Which node the anchor was checked with; None without a chain."""

    def document(self) -> dict[str, object]:
        """Return it as JSON."""
        return {
            "job": self.job_id,
            "bytes": self.size,
            "verified": self.good.document,
            "tampering": self.tampering,
            "refused": self.tampered.document,
        }


def prove_receipt(
    client: "Client", settings: "Settings", *, job_id: str, folder: Path
) -> ProvedReceipt:
    """Seal what has ended, fetch a job's receipt and have `offpeak-verify` look at it twice.

    The verifier is a process of its own that gets three files and, where there is a chain, the URL
    of a node to check the anchor with; nothing else.

    Raises:
        ReceiptUnproved: it does not verify, or its tampered copy does.
        ClientError: the gateway did not give it.
    """
    asyncio.run(seal(settings))
    node = next(iter(settings.rpc_url_list), None)
    raw = client.receipt(job_id) if node is None else anchored_receipt(client, job_id)
    policy, good, bad = (folder / name for name in ("policy.txt", "receipt.json", "tampered.json"))
    policy.write_text(policy_text(client.log_keys(), client.terms))
    good.write_bytes(raw)
    altered, tampering = tampered(raw)
    bad.write_bytes(altered)
    proved = ProvedReceipt(
        job_id=job_id,
        size=len(raw),
        tampering=tampering,
        good=verdict(good, policy, node),
        tampered=verdict(bad, policy, node),
        node=node,
    )
    if proved.good.exit != 0 or proved.tampered.exit != 1:
        raise ReceiptUnproved(f"the verifier ended with {proved.good.exit}, {proved.tampered.exit}")
    return proved


def anchored_receipt(client: "Client", job_id: str) -> bytes:
    """Return a job's receipt once the worker has anchored its checkpoint and that is final.

    Raises:
        ReceiptUnproved: it took too long.
    """
    waited = 0.0
    while waited <= ANCHOR_SECONDS:
        raw = client.receipt(job_id)
        if Receipt.parse(raw).anchor is not None:
            return raw
        client.pause(BETWEEN_LOOKS_SECONDS)
        waited += BETWEEN_LOOKS_SECONDS
    raise ReceiptUnproved(f"its checkpoint was not anchored within {ANCHOR_SECONDS} s")


def tampered(raw: bytes) -> tuple[bytes, str]:
    """Return a receipt with one nano more charged and one less released, and what was done."""
    message = json.loads(Receipt.parse(raw).record.message)
    old = f'\\"chargeNano\\":\\"{message["chargeNano"]}\\"'
    new = f'\\"chargeNano\\":\\"{int(message["chargeNano"]) + 1}\\"'
    altered = raw.replace(old.encode(), new.encode())
    assert altered != raw
    return altered, f"chargeNano {message['chargeNano']} made {int(message['chargeNano']) + 1}"


def verdict(receipt: Path, policy: Path, node: str | None) -> Verdict:
    """Run `offpeak-verify` on a file and return what it says."""
    arguments = [str(receipt), "--policy", str(policy), "--json"]
    if node is not None:
        arguments += ["--rpc", node, "--require", "anchored"]
    ended = subprocess.run(
        [sys.executable, "-m", "ledger.verify", *arguments],
        capture_output=True,
        text=True,
        timeout=VERIFY_SECONDS,
        check=False,
    )
    if not ended.stdout:
        raise ReceiptUnproved(f"the verifier said nothing: {ended.stderr.strip()[:200]}")
    return Verdict(json.loads(ended.stdout), ended.returncode)


async def seal(settings: "Settings") -> None:
    """Do now what the worker does once a minute, again while its own round comes between."""
    from app.cli.log import sealed  # noqa: PLC0415
    from app.kit.log import configure_logging  # noqa: PLC0415
    from app.receipts.appending import retried  # noqa: PLC0415

    configure_logging(level="WARNING")
    await retried(lambda: sealed(settings))
