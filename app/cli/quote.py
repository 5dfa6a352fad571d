"""`offpeak quote`."""

from typing import Annotated

import typer

from app.cli.options import (
    DEFAULT_HOME,
    DEFAULT_MODEL,
    Account,
    Home,
    Json,
    KeystoreFile,
    MaxTokens,
    Model,
    Prompt,
    Region,
    Schema,
    Seed,
    System,
    Temperature,
    Url,
)
from app.cli.output import Output

EXAMPLE = 'Example: offpeak quote "Say hello." --max-tokens 32'

Payer = Annotated[
    str | None, typer.Option(help="Address that would pay; the keystore's by default.")
]


def quote(
    prompt: Prompt,
    *,
    model: Model = DEFAULT_MODEL,
    max_tokens: MaxTokens = 128,
    system: System = None,
    temperature: Temperature = None,
    seed: Seed = None,
    schema: Schema = None,
    region: Region = None,
    payer: Payer = None,
    keystore: KeystoreFile = None,
    account: Account = None,
    url: Url = None,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Get a signed quote and check it.

    Reserves nothing and signs nothing.
    """
    from app.cli.buyer import BuyerOptions, quoting  # noqa: PLC0415  # --help does without
    from app.cli.question import QuestionOptions, quoted, read_question  # noqa: PLC0415
    from app.cli.shown import quote_document, quote_rows  # noqa: PLC0415
    from app.cli.wallets import WalletOptions  # noqa: PLC0415

    output = Output(as_json=as_json)
    options = QuestionOptions(
        prompt=prompt,
        model=model,
        max_tokens=max_tokens,
        system=system,
        temperature=temperature,
        seed=seed,
        schema=schema,
        region=region,
    )
    question = read_question(options)
    wallet = WalletOptions(home=home, keystore=keystore, account=account)
    with quoting(BuyerOptions(wallet=wallet, url=url), payer) as client:
        checked = quoted(client, question, options)
    output.rows(quote_document(checked), quote_rows(checked))
