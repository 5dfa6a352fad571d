"""Random prices, costs and curves that are valid but otherwise anything."""

from hypothesis import strategies as st

from ledger.money import MAX_NANO, Nano
from pricing.curve import Curve
from pricing.floor import CostTotals, Floor
from pricing.rates import Rates

AMOUNTS = st.integers(1, 10**12).map(Nano)
ANY_AMOUNTS = st.integers(1, MAX_NANO).map(Nano)
FLOORS = st.builds(Floor, AMOUNTS, AMOUNTS, AMOUNTS)
RATES = st.builds(Rates, AMOUNTS, AMOUNTS, AMOUNTS)
ANY_RATES = st.builds(Rates, ANY_AMOUNTS, ANY_AMOUNTS, ANY_AMOUNTS)
LOADS = st.integers(0, 1_000_000)
SPEEDS = st.fractions(min_value="0.01", max_value=100_000, max_denominator=1000)

POSITIVE = st.integers(1, 10**15)
PRIORS = st.builds(
    CostTotals,
    supplier_nano=POSITIVE,
    overhead_nano=POSITIVE,
    failed_nano=st.integers(0, 10**15),
    input_tokens=POSITIVE,
    output_tokens=POSITIVE,
    requests=POSITIVE,
    prefill_us=POSITIVE,
    decode_us=POSITIVE,
)
MEASURED = st.builds(CostTotals, *[st.integers(0, 10**15)] * 8)


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    """Draw a monotone table with up to six inner points."""
    inner = sorted(draw(st.sets(st.integers(1, 999_999), max_size=6)))
    count = len(inner) + 2
    multipliers = draw(st.lists(st.integers(1, 10_000_000), min_size=count, max_size=count))
    return Curve(1, tuple(zip([0, *inner, 1_000_000], sorted(multipliers), strict=True)))
