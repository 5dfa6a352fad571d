"""A gateway's view of the market for tests that build dispatch without the rest."""

import time
from datetime import timedelta

from app.capacity.costs import PriorCost
from app.capacity.loop import MarketLoop, PriceRules
from app.capacity.service import MarketService
from app.db.engine import Database
from app.dispatch.offers import SpeedLimits
from app.dispatch.work import SlotSpeeds
from ledger.money import Nano
from pricing.curve import DEFAULT_CURVE
from tests.integration.seed import ASK

STALE = timedelta(seconds=10)
LIMITS = SpeedLimits(SlotSpeeds(300, 20), slowest_ppm=50_000)
RULES = PriceRules(
    prior=PriorCost(400, 200, 300, 20, Nano(ASK), Nano(5_000)),
    margin_ppm=150_000,
    curve=DEFAULT_CURVE,
    window=timedelta(days=1),
    cost_age=timedelta(days=1),
)


def market_on(database: Database) -> tuple[MarketLoop, MarketService]:
    """Return the loop that reads a database's markets, and what it tells."""
    loop = MarketLoop(database, RULES, stale=STALE, watch=lambda _: None)
    return loop, MarketService(loop, RULES, stale=STALE, monotonic=time.monotonic)
