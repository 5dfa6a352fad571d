"""What a quote of a 1,000-token prompt costs the gateway, whole and in parts."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from app.models.catalogue import Catalogue
from app.models.messages import Message
from app.models.tokenizer import CountingTokenizer
from pricing.charge import max_charge
from pricing.curve import DEFAULT_CURVE
from pricing.floor import NOTHING_MEASURED, Speeds, blended_speeds, cost_floor, typical_request
from pricing.load import CapacityEvent, load_ppm, smoothed_load
from pricing.rates import covered_ask, rates_for, run_seconds
from tests.bench.asgi import Post, call
from tests.bench.buying import inference_request, quote_body
from tests.bench.market import MODEL, open_market
from tests.bench.measure import (
    MILLI,
    Effort,
    Measurement,
    Row,
    at_most,
    cpu_per_call,
    median,
    own_cpu,
    run_async,
)
from tests.integration.prompts import long_text

NOW_US = 1_800_000_000_000_000
TOKENS = 1_000


def prompt_of(tokenizer: CountingTokenizer, tokens: int) -> str:
    """Return the longest prompt of whole words with at most so many tokens."""
    words = 1
    while tokenizer.count_prompt((Message("user", long_text(words + 1)),)) <= tokens:
        words += 1
    return long_text(words)


def price() -> None:
    """Do all the arithmetic of one quote and, once a second, of one price point."""
    prior = typical_request(
        (400, 100), Speeds(Fraction(800), Fraction(20)), ask_nano=20_000, overhead_nano=3_000
    )
    floor = cost_floor(prior, NOTHING_MEASURED, margin_ppm=100_000)
    speeds = blended_speeds(prior, NOTHING_MEASURED)
    rates = rates_for(floor, DEFAULT_CURVE, 650_000)
    covered_ask(rates, speeds.prefill, speeds.decode, 100_000)
    run_seconds(1000, 200, speeds.prefill, speeds.decode)
    max_charge(rates, 1000, 200)


def load_of_events() -> None:
    """Smooth a busy minute's load, as the worker does each second."""
    events = [
        CapacityEvent(f"dep-{number % 8}", NOW_US - number * 100_000, 4, number % 5)
        for number in range(600)
    ]
    load_ppm(smoothed_load(events, NOW_US))


async def whole_quote(prompt: str, effort: Effort) -> float:
    """Return CPU seconds of `POST /v1/quotes` through the whole application."""
    calls, found = effort.of(200, quick=20), []
    async with open_market(agents=8, slots=4, wallets=1) as market:
        request = inference_request(prompt, max_output_tokens=200)
        post = Post("/v1/quotes", quote_body(market.wallets[0], request))
        for _ in range(effort.of(7, quick=2)):
            await market.refresh()
            with own_cpu() as spent:
                for _ in range(calls):
                    reply = await call(market.app, post)
                    assert reply.status == 200, reply.body
            found.append(spent.cpu / calls)
    return median(found)


def measure(effort: Effort) -> Sequence[Row]:
    """Return the whole quote, then what it is made of."""
    catalogue = Catalogue()
    release = catalogue.get(MODEL)
    tokenizer = CountingTokenizer(release, catalogue.folder_of(release))
    prompt = prompt_of(tokenizer, TOKENS)
    messages = (Message("user", prompt),)
    parts: dict[str, Callable[[], object]] = {
        f"quote counting {TOKENS} tokens": partial(tokenizer.count_prompt, messages),
        "quote arithmetic": price,
        "quote load of 600 events": load_of_events,
    }
    calls = effort.of(200, quick=20)
    return [
        Row(
            name="quote CPU",
            measured=run_async(whole_quote(prompt, effort)) * MILLI,
            unit="ms",
            bar=at_most(2),
            note=f"POST /v1/quotes of {TOKENS} tokens through the whole application",
        ),
        *(
            Row(name=name, measured=cpu_per_call(part, calls=calls) * MILLI, unit="ms")
            for name, part in parts.items()
        ),
    ]


MEASUREMENTS = (Measurement("quote", measure),)
