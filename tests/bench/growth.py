"""Memory of a gateway under many whole requests: growth over the second half of them."""

from collections.abc import Sequence

from tests.acceptance.site import Site
from tests.bench.measure import Effort, Measurement, Row, resident_mb, run_async
from tests.bench.processes import open_serving_site
from tests.bench.whole import Buyers, open_buyers

CONCURRENT = 16
SLOTS = 32
ROUND = 500


async def residents(site: Site, buyers: Buyers, requests: int) -> list[float]:
    """Return the gateway's MB before the first request and after each round of them."""
    pid = site.processes["gateway"].pid
    found = [resident_mb(pid)]
    for _ in range(requests // ROUND):
        await buyers.send(await buyers.prepare(ROUND), concurrent=CONCURRENT)
        found.append(resident_mb(pid))
    return found


def measure(effort: Effort) -> Sequence[Row]:
    """Return the growth, with the number of requests it was seen over."""
    requests = effort.of(10_000, quick=1_000)
    with open_serving_site(slots=SLOTS) as site:
        found = run_async(residents(site, open_buyers(site, CONCURRENT), requests))
    half = found[len(found) // 2]
    return [
        Row(
            name="gateway memory growth",
            measured=found[-1] - half,
            unit="MB",
            note=f"over the second half of {requests:,} requests, quotes included "
            f"({found[0]:.0f}, {half:.0f}, {found[-1]:.0f} MB); "
            "the bar, 5 MB, is for 400,000",
        )
    ]


MEASUREMENTS = (Measurement("growth", measure),)
