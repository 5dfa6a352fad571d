"""How prices rise with load: a configured, monotone, piecewise-linear table."""

import hashlib
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from pricing.errors import BadCurve, BadLoad
from pricing.units import PPM

MAX_POINTS = 64
MAX_MULTIPLIER_PPM = 100 * PPM
MAX_VERSION = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Curve:
    """Multipliers of the cost floor by load; between two points it is a straight line.

    Points are (load, multiplier), both in ppm: loads rise strictly from 0 to 1,000,000,
    multipliers never fall and are above zero. The version goes into price points and quotes;
    `of` makes it from the points, so that one version is one curve.
    """

    version: int
    points: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        """Raise BadCurve unless the table is one that prices may follow."""
        if not 0 < self.version <= MAX_VERSION:
            raise BadCurve(f"version {self.version} is not a positive 32-bit number")
        if not 2 <= len(self.points) <= MAX_POINTS:
            raise BadCurve(f"{len(self.points)} points, 2 to {MAX_POINTS} are allowed")
        if self.points[0][0] != 0 or self.points[-1][0] != PPM:
            raise BadCurve("the points must span loads 0 to 1000000 ppm")
        if not (self.points[0][1] > 0 and self.points[-1][1] <= MAX_MULTIPLIER_PPM):
            raise BadCurve(f"multipliers must be above 0 and at most {MAX_MULTIPLIER_PPM} ppm")
        for (load, multiplier), (next_load, next_multiplier) in pairwise(self.points):
            if next_load <= load:
                raise BadCurve(f"loads must rise: {load} then {next_load}")
            if next_multiplier < multiplier:
                raise BadCurve(f"multipliers must not fall: {multiplier} then {next_multiplier}")

    @classmethod
    def of(cls, points: tuple[tuple[int, int], ...]) -> "Curve":
        """Return a curve whose version is the first 31 bits of its points' SHA-256, at least 1.

        Hashed as ASCII `load:multiplier`, in ppm, joined by commas.

        Raises:
            BadCurve: prices may not follow these points.
        """
        text = ",".join(f"{load}:{multiplier}" for load, multiplier in points)
        digest = hashlib.sha256(text.encode()).digest()
        return cls(max(int.from_bytes(digest[:4]) >> 1, 1), points)

    def multiplier_ppm(self, load_ppm: int) -> int:
        """Return the multiplier at a load, both in ppm, rounded up.

        Raises:
            BadLoad: the load is outside 0 to 1,000,000 ppm.
        """
        if not 0 <= load_ppm <= PPM:
            raise BadLoad(load_ppm=load_ppm)
        right = bisect_right(self.points, load_ppm, key=lambda point: point[0])
        if right == len(self.points):
            return self.points[-1][1]
        (load, multiplier), (next_load, next_multiplier) = self.points[right - 1 : right + 1]
        rise = (next_multiplier - multiplier) * (load_ppm - load)
        return multiplier - -rise // (next_load - load)


DEFAULT_CURVE = Curve.of(
    ((0, 1_000_000), (500_000, 1_000_000), (800_000, 1_250_000), (1_000_000, 2_000_000))
)
"""Flat to half load, then a quarter dearer at 0.8 and twice the floor when full."""
