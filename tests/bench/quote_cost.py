"""CPU of the pure parts of a quote: count the prompt's tokens, price them.

Run from the repository's root: `python -m tests.bench.quote_cost`. The whole quote, these and
its signature, has a bar of 2 ms of CPU for a prompt of 1,000 tokens.
"""

import resource
import time
import timeit
from collections.abc import Callable
from fractions import Fraction
from functools import partial

from app.models.catalogue import Catalogue
from app.models.messages import Message
from app.models.tokenizer import CountingTokenizer
from pricing.charge import max_charge
from pricing.curve import DEFAULT_CURVE
from pricing.floor import (
    NOTHING_MEASURED,
    Speeds,
    blended_speeds,
    cost_floor,
    typical_request,
)
from pricing.load import CapacityEvent, load_ppm, smoothed_load
from pricing.rates import covered_ask, rates_for, run_seconds
from tests.integration.prompts import long_text

NOW_US = 1_800_000_000_000_000


def milliseconds(call: Callable[[], object], *, number: int, repeat: int = 5) -> float:
    """The fastest of `repeat` means over `number` calls, CPU time."""
    return (
        min(timeit.repeat(call, number=number, repeat=repeat, timer=time.process_time))
        * 1e3
        / number
    )


def prompt_of(tokenizer: CountingTokenizer, tokens: int) -> tuple[Message, ...]:
    """The longest prompt of whole words with at most so many tokens."""
    words = 1
    while tokenizer.count_prompt((Message("user", long_text(words + 1)),)) <= tokens:
        words += 1
    return (Message("user", long_text(words)),)


def price() -> None:
    """All the arithmetic of one quote and, once a second, of one price point."""
    prior = typical_request(
        (400, 100), Speeds(Fraction(800), Fraction(20)), ask_nano=20_000, overhead_nano=3_000
    )
    floor = cost_floor(prior, NOTHING_MEASURED, margin_ppm=100_000)
    speeds = blended_speeds(prior, NOTHING_MEASURED)
    rates = rates_for(floor, DEFAULT_CURVE, 650_000)
    covered_ask(rates, speeds.prefill, speeds.decode, 100_000)
    run_seconds(1000, 200, speeds.prefill, speeds.decode)
    max_charge(rates, 1000, 200)


def main() -> None:
    before = time.process_time()
    catalogue = Catalogue()
    release = catalogue.get("smollm2-135m-instruct")
    tokenizer = CountingTokenizer(release, catalogue.folder_of(release))
    print(f"{'load catalogue, tokenizer':28}{(time.process_time() - before) * 1e3:9.3f} ms")
    for size in (100, 1000, 2000):
        prompt = prompt_of(tokenizer, size)
        counted = tokenizer.count_prompt(prompt)
        cost = milliseconds(partial(tokenizer.count_prompt, prompt), number=100)
        print(f"{f'count {counted} tokens':28}{cost:9.3f} ms")
    print(f"{'all arithmetic':28}{milliseconds(price, number=2000):9.3f} ms")
    events = [
        CapacityEvent(f"dep-{number % 8}", NOW_US - number * 100_000, 4, number % 5)
        for number in range(600)
    ]
    load = milliseconds(lambda: load_ppm(smoothed_load(events, NOW_US)), number=100)
    print(f"{'load of 600 events':28}{load:9.3f} ms")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'peak memory of this process':28}{peak:9.1f} MB")


if __name__ == "__main__":
    main()
