"""`python -m tests.bench [--json FILE] [--only ROW ...] [--quick]`: measure, print, keep.

`--only` takes beginnings of measurements' names. A measurement that breaks is reported and the
others go on; the exit status is then 1. A missed bar is no failure: it is what was measured.
"""

import argparse
import os
import sys
import time
import traceback
from pathlib import Path

from app.kit.log import configure_logging
from tests.bench import (
    accepting,
    growth,
    idle,
    lifecycles,
    publishing,
    quoting,
    receipts,
    redispatching,
    settling,
    signatures,
    whole,
)
from tests.bench.measure import Effort, Measurement, Row
from tests.bench.report import document, print_table

GROUPS = (
    signatures,
    quoting,
    accepting,
    settling,
    lifecycles,
    receipts,
    publishing,
    redispatching,
    idle,
    whole,
    growth,
)
JSON_FILE = Path("bench.json")


def main() -> int:
    """Return 0 when everything could be measured."""
    options = parsed()
    measurements = [each for group in GROUPS for each in group.MEASUREMENTS]
    if options.only:
        measurements = [m for m in measurements if m.name.startswith(tuple(options.only))]
    if not measurements:
        sys.stderr.write(f"no measurement begins with {', '.join(options.only)}\n")
        return 2
    rows: list[Row] = []
    with Path(os.devnull).open("w") as logs:
        configure_logging(stream=logs)  # the gateway's own logging is part of its cost
        broken = [each.name for each in measurements if not measure(each, options.quick, rows)]
    print_table(rows)
    options.json.write_text(document(rows, quick=options.quick))
    sys.stderr.write(f"written to {options.json}\n")
    if broken:
        sys.stderr.write(f"not measured: {', '.join(broken)}\n")
    return 1 if broken else 0


def measure(measurement: Measurement, quick: bool, rows: list[Row]) -> bool:  # noqa: FBT001
    """Append a measurement's rows; False when it broke."""
    sys.stderr.write(f"{measurement.name} ... ")
    sys.stderr.flush()
    begun = time.perf_counter()
    try:
        rows.extend(measurement.run(Effort(quick)))
    except Exception:  # noqa: BLE001 -- the other rows are still wanted
        sys.stderr.write(f"broke\n{traceback.format_exc()}")
        return False
    sys.stderr.write(f"{time.perf_counter() - begun:.0f} s\n")
    return True


def parsed() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(prog="tests.bench", description=__doc__)
    parser.add_argument("--json", type=Path, default=JSON_FILE, help="default: %(default)s")
    parser.add_argument("--only", nargs="+", metavar="ROW", help="beginnings of names")
    parser.add_argument("--quick", action="store_true", help="few rounds, rough figures")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
