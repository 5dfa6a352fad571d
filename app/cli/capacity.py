"""`offpeak capacity`."""

from typing import TYPE_CHECKING

from app.cli.options import DEFAULT_HOME, Home, Json, Url
from app.cli.output import Output, columns

if TYPE_CHECKING:
    from app.capacity.schemas import CapacityList, ModelList, RatesNow

EXAMPLE = "Example: offpeak capacity"
PER_MILLION = "in/Mtok"


def capacity(*, url: Url = None, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """Show slots offered and occupied, load, cost floor and rates now."""
    from app.cli.buyer import BuyerOptions, looking  # noqa: PLC0415  # --help does without
    from app.cli.wallets import WalletOptions  # noqa: PLC0415

    output = Output(as_json=as_json)
    with looking(BuyerOptions(wallet=WalletOptions(home=home), url=url)) as client:
        slots, listed = client.capacity(), client.models()
    names = ["model", "region", "offered", "occupied", "load", "floor in/out", "rates in/out"]
    rows = capacity_rows(slots, listed)
    document = {
        **slots.model_dump(mode="json"),
        "rates": [
            {"model": model.id, **region.model_dump(mode="json")}
            for model in listed.models
            for region in model.regions
        ],
    }
    output.show(document, lambda data: data.print(columns(names, rows)))


def capacity_rows(slots: "CapacityList", listed: "ModelList") -> list[list[str]]:
    """Return one row per market: its slots, load, floor and rates per million tokens."""
    rates = {
        (model.id, region.region): region.rates
        for model in listed.models
        for region in model.regions
    }
    return [
        [
            each.model,
            each.region,
            str(each.offered),
            str(each.occupied),
            each.load or "-",
            _pair(each.price_point.floor if each.price_point else None),
            _pair(rates.get((each.model, each.region))),
        ]
        for each in slots.capacity
    ]


def _pair(rates: "RatesNow | None") -> str:
    return f"{rates.input_per_mtok} / {rates.output_per_mtok}" if rates else "-"
