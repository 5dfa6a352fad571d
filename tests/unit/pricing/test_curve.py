import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.curve import DEFAULT_CURVE, Curve
from pricing.errors import BadCurve, BadLoad
from tests.unit.pricing.strategies import LOADS, curves


@pytest.mark.parametrize(
    ("load_ppm", "multiplier_ppm"),
    [
        (0, 1_000_000),
        (500_000, 1_000_000),
        (500_001, 1_000_001),
        (650_000, 1_125_000),
        (800_000, 1_250_000),
        (900_000, 1_625_000),
        (1_000_000, 2_000_000),
    ],
)
def test_the_default_curve_is_flat_to_half_load_and_doubles_when_full(
    load_ppm: int, multiplier_ppm: int
) -> None:
    assert DEFAULT_CURVE.multiplier_ppm(load_ppm) == multiplier_ppm


def test_a_multiplier_between_two_points_is_rounded_up() -> None:
    curve = Curve(1, ((0, 1_000_000), (3, 1_000_001), (1_000_000, 1_000_001)))
    assert [curve.multiplier_ppm(load) for load in range(4)] == [1_000_000] + [1_000_001] * 3


@given(curves(), LOADS, LOADS)
def test_a_multiplier_never_falls_when_load_rises(curve: Curve, one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert curve.multiplier_ppm(low) <= curve.multiplier_ppm(high)


@given(curves())
def test_a_curve_goes_through_its_points(curve: Curve) -> None:
    for load, multiplier in curve.points:
        assert curve.multiplier_ppm(load) == multiplier


@pytest.mark.parametrize("load_ppm", [-1, 1_000_001])
def test_a_load_outside_0_to_1_is_refused(load_ppm: int) -> None:
    with pytest.raises(BadLoad):
        DEFAULT_CURVE.multiplier_ppm(load_ppm)


@pytest.mark.parametrize(
    ("version", "points"),
    [
        (0, ((0, 1), (1_000_000, 1))),
        (2**32, ((0, 1), (1_000_000, 1))),
        (1, ((0, 1),)),
        (1, ()),
        (1, ((1, 1), (1_000_000, 1))),
        (1, ((0, 1), (999_999, 1))),
        (1, ((0, 0), (1_000_000, 1))),
        (1, ((0, -1), (1_000_000, 1))),
        (1, ((0, 1), (1_000_000, 10**9))),
        (1, ((0, 1), (5, 2), (5, 2), (1_000_000, 3))),
        (1, ((0, 2), (5, 1), (1_000_000, 3))),
        (1, (*((load, 1) for load in range(100)), (1_000_000, 1))),
    ],
)
def test_a_table_prices_may_not_follow_is_refused(
    version: int, points: tuple[tuple[int, int], ...]
) -> None:
    with pytest.raises(BadCurve):
        Curve(version, points)


@given(st.integers(1, 64))
def test_a_flat_curve_is_flat(points: int) -> None:
    table = tuple((1_000_000 * i // points, 1_500_000) for i in range(points + 1))
    if len(table) <= 64:
        assert Curve(1, table).multiplier_ppm(333_333) == 1_500_000


def test_another_curve_has_another_version() -> None:
    points = DEFAULT_CURVE.points
    assert Curve.of(points) == DEFAULT_CURVE
    assert DEFAULT_CURVE.version == 1_452_267_005
    assert Curve.of((*points[:-1], (1_000_000, 2_000_001))).version != DEFAULT_CURVE.version
