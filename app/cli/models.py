"""`offpeak models`."""

from app.cli.options import DEFAULT_HOME, Home, Json, Url
from app.cli.output import Output, columns

EXAMPLE = "Example: offpeak models --json"


def models(*, url: Url = None, home: Home = DEFAULT_HOME, as_json: Json = False) -> None:
    """List approved model releases with licence, context and rates now."""
    from app.cli.buyer import BuyerOptions, looking  # noqa: PLC0415  # --help does without
    from app.cli.wallets import WalletOptions  # noqa: PLC0415

    output = Output(as_json=as_json)
    with looking(BuyerOptions(wallet=WalletOptions(home=home), url=url)) as client:
        listed = client.models()
    rows = []
    for model in listed.models:
        for region in model.regions:
            rates = region.rates
            cells = (
                [rates.input_per_mtok, rates.output_per_mtok, rates.per_request] if rates else []
            )
            rows.append(
                [model.id, model.licence, str(model.context_tokens), region.region]
                + (cells or ["-", "-", "-"])
            )
        if not model.regions:
            rows.append([model.id, model.licence, str(model.context_tokens), *["-"] * 4])
    names = ["model", "licence", "context", "region", "in/Mtok", "out/Mtok", "per request"]
    output.show(listed.model_dump(mode="json"), lambda data: data.print(columns(names, rows)))
