"""`python -m ledger.verify`, the same as `offpeak-verify`."""

import sys

from ledger.verify.cli import main

sys.exit(main())
