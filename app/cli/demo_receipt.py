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

    The verifier is a process of its own that gets three files and nothing else.

    Raises:
        ReceiptUnproved: it does not verify, or its tampered copy does.
        ClientError: the gateway did not give it.
    """
    asyncio.run(seal(settings))
    raw = client.receipt(job_id)
    policy, good, bad = (folder / name for name in ("policy.txt", "receipt.json", "tampered.json"))
    policy.write_text(policy_text(client.log_keys(), client.terms))
    good.write_bytes(raw)
    altered, tampering = tampered(raw)
    bad.write_bytes(altered)
    proved = ProvedReceipt(
        job_id=job_id,
        size=len(raw),
        tampering=tampering,
        good=verdict(good, policy),
        tampered=verdict(bad, policy),
    )
    if proved.good.exit != 0 or proved.tampered.exit != 1:
        raise ReceiptUnproved(f"the verifier ended with {proved.good.exit}, {proved.tampered.exit}")
    return proved


def tampered(raw: bytes) -> tuple[bytes, str]:
    """Return a receipt with one nano more charged and one less released, and what was done."""
    message = json.loads(Receipt.parse(raw).record.message)
    old = f'\\"chargeNano\\":\\"{message["chargeNano"]}\\"'
    new = f'\\"chargeNano\\":\\"{int(message["chargeNano"]) + 1}\\"'
    altered = raw.replace(old.encode(), new.encode())
    assert altered != raw
    return altered, f"chargeNano {message['chargeNano']} made {int(message['chargeNano']) + 1}"


def verdict(receipt: Path, policy: Path) -> Verdict:
    """Run `offpeak-verify` on a file and return what it says."""
    ended = subprocess.run(
        [sys.executable, "-m", "ledger.verify", str(receipt), "--policy", str(policy), "--json"],
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
