"""What several finance commands take: an interval and a token."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.errors import BadInput

if TYPE_CHECKING:
    from app.finance.interval import Interval

From = Annotated[
    str | None,
    typer.Option("--from", help="First month, day or second, UTC: 2026-01.", metavar="TIME"),
]
To = Annotated[
    str | None, typer.Option("--to", help="The time after the last: 2026-02.", metavar="TIME")
]
Month = Annotated[str | None, typer.Option(help="A calendar month instead: 2026-01.")]
Asset = Annotated[str | None, typer.Option(help="Token address; the settlement token by default.")]


def interval_of(start: str | None, end: str | None, month: str | None) -> "Interval | None":
    """Return the interval that the options name, None for none of them.

    Raises:
        BadInput: one end without the other, or a month and ends.
        BadInterval: they are no times, or in the wrong order.
    """
    from app.finance.interval import month_interval, parse_interval  # noqa: PLC0415  # --help

    if month is not None:
        if start is not None or end is not None:
            raise BadInput("--month stands for --from and --to; give one or the other")
        return month_interval(month)
    if start is None and end is None:
        return None
    if start is None or end is None:
        raise BadInput("--from and --to go together")
    return parse_interval(start, end)


def required_interval(start: str | None, end: str | None, month: str | None) -> "Interval":
    """Return the interval that the options name.

    Raises:
        BadInput, BadInterval: see `interval_of`; or they name none.
    """
    interval = interval_of(start, end, month)
    if interval is None:
        raise BadInput("which interval? --month 2026-01, or --from and --to")
    return interval
