"""`python -m app.cli`: the same as `offpeak`, without an installed script."""

from app.cli import main

main()
