"""`offpeak capacity`."""

from typing import TYPE_CHECKING

from app.cli.options import DEFAULT_HOME, Home, Json, Url
from app.cli.output import Output, Rows

if TYPE_CHECKING:
    from app.capacity.schemas import CapacityList, ModelList, RatesNow

EXAMPLE = "Example: offpeak capacity"


def capacity(*, url: Url = None, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Show slots, load, cost floor and rates now."""
    from app.cli.buyer import BuyerOptions, looking  # noqa: PLC0415  # --help does without
    from app.cli.wallets import WalletOptions  # noqa: PLC0415

    with looking(BuyerOptions(wallet=WalletOptions(home=home), url=url)) as client:
        slots, listed = client.capacity(), client.models()
    document = {
        **slots.model_dump(mode="json"),
        "rates": [
            {"model": model.id, **region.model_dump(mode="json")}
            for model in listed.models
            for region in model.regions
        ],
    }
    Output(as_json=as_json).rows(document, capacity_rows(slots, listed))


def capacity_rows(slots: "CapacityList", listed: "ModelList") -> Rows:
    """Return each market's slots, load, floor and rates."""
    rates = {
        (model.id, region.region): region.rates
        for model in listed.models
        for region in model.regions
    }
    rows: Rows = []
    for each in slots.capacity:
        point = each.price_point
        rows += [
            ("market", f"{each.model} in {each.region}"),
            ("slots", f"{each.offered} offered, {each.occupied} occupied"),
            ("load", each.load or "unknown"),
            ("floor", _text(point.floor if point else None)),
            ("rates", _text(rates.get((each.model, each.region)))),
        ]
    return rows or [("market", "no supplier offers anything now")]


def _text(rates: "RatesNow | None") -> str:
    from app.cli.shown import rates_text  # noqa: PLC0415  # --help does without

    if rates is None:
        return "none now"
    return rates_text(rates.input_per_mtok, rates.output_per_mtok, rates.per_request)
