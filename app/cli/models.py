"""`offpeak models`."""

from typing import TYPE_CHECKING

from app.cli.options import DEFAULT_HOME, Home, Json, Url
from app.cli.output import Output, Rows

if TYPE_CHECKING:
    from app.capacity.schemas import ModelOut

EXAMPLE = "Example: offpeak models --json"


def models(*, url: Url = None, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """List approved models and their rates now."""
    from app.cli.buyer import BuyerOptions, looking  # noqa: PLC0415  # --help does without
    from app.cli.wallets import WalletOptions  # noqa: PLC0415

    with looking(BuyerOptions(wallet=WalletOptions(home=home), url=url)) as client:
        listed = client.models()
    rows: Rows = []
    for model in listed.models:
        rows += model_rows(model)
    Output(as_json=as_json).rows(listed.model_dump(mode="json"), rows)


def model_rows(model: "ModelOut") -> Rows:
    """Return a release and its rates in each region."""
    from app.cli.shown import rates_text  # noqa: PLC0415  # --help does without

    rows = [
        ("model", model.id),
        ("name", f"{model.name}, by {model.author}, {model.licence}"),
        ("context", f"{model.context_tokens} tokens"),
        ("revision", model.revision),
    ]
    if not model.regions:
        rows.append(("offer", "no supplier offers it now"))
    for region in model.regions:
        now = "nothing on offer"
        if region.rates is not None:
            rates = region.rates
            now = rates_text(rates.input_per_mtok, rates.output_per_mtok, rates.per_request)
        rows.append((region.region, now))
    return rows
