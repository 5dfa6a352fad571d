"""Receipts: one verified offline, process start included, and a batch of 100,000 with all proofs.

Each in processes of its own, as they run: start-up and peak memory are theirs alone.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.measure import MILLI, Effort, Measurement, Row, at_most, median, percentile
from tests.receipt_world import small_world

LEAVES = 100_000
ROOT = Path(__file__).parents[2]

SEALING = """
import json, re, sys, time
from ledger.hashing import sha256
from ledger.log_entry import record_leaf_hash
from ledger.merkle import Tree

def peak():  # of this program alone: getrusage would remember the process that forked it
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1]) * 1024 / 1e6

count = int(sys.argv[1])
records = [(sha256(b"%d" % n), b"%065d" % n) for n in range(count)]
before = peak()
begun = time.perf_counter()
tree = Tree(record_leaf_hash(digest, signature) for digest, signature in records)
root = time.perf_counter()
hashes = sum(len(proof) for proof in tree.proofs())
ended = time.perf_counter()
print(json.dumps({
    "tree": root - begun, "proofs": ended - root, "hashes": hashes,
    "before": before, "peak": peak(),
}))
"""


def measure_verifying(effort: Effort) -> Sequence[Row]:
    """Return how long `offpeak-verify receipt.json` takes from start to exit."""
    world = small_world()
    with TemporaryDirectory() as folder:
        receipt, policy = Path(folder, "receipt.json"), Path(folder, "policy.txt")
        receipt.write_bytes(world.receipt(world.batches[2].jobs[2]).encode())
        policy.write_text(world.policy())
        command = [sys.executable, "-m", "ledger.verify", str(receipt), "--policy", str(policy)]
        walls = []
        for _ in range(effort.of(40, quick=5)):
            begun = time.perf_counter()
            subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
            walls.append(time.perf_counter() - begun)
    return [
        Row(
            name="verify one receipt offline",
            measured=median(walls) * MILLI,
            unit="ms",
            bar=at_most(300),
            note=f"process start included, median of {len(walls)} runs; "
            f"fastest {min(walls) * MILLI:.0f}, p95 {percentile(walls, 95) * MILLI:.0f}",
        )
    ]


def measure_sealing(effort: Effort) -> Sequence[Row]:
    """Return seconds and peak memory of a tree of 100,000 records and the proof of each."""
    found = []
    for _ in range(effort.of(5, quick=1)):
        command = [sys.executable, "-c", SEALING, str(LEAVES)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        found.append(json.loads(done.stdout))
    name = f"Merkle: seal {LEAVES:,} records, all proofs"
    return [
        Row(
            name=name,
            measured=median([each["tree"] + each["proofs"] for each in found]),
            unit="s",
            bar=at_most(2),
            note=f"tree {median([each['tree'] for each in found]):.2f} s; hashes only, no database",
        ),
        Row(
            name=f"{name}, memory",
            measured=max(each["peak"] for each in found),
            unit="MB",
            bar=at_most(300),
            note=f"peak of the process; {found[0]['before']:.0f} MB of it the records themselves",
        ),
    ]


MEASUREMENTS = (
    Measurement("verify", measure_verifying),
    Measurement("seal", measure_sealing),
)
