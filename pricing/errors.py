"""Errors a caller of the pricing functions is expected to handle.

* PricingError
  - NoCapacity
  - BadCapacityEvent, BadLoad, BadCurve, BadCosts, BadSpeed, BadMargin, BadTokens, BadUsage
  - AmountOutOfRange
  - RunTooLong
"""

from typing import ClassVar


class PricingError(Exception):
    """Base of every expected pricing failure."""

    code: ClassVar[str]


class NoCapacity(PricingError):
    """No slot was on offer in the window, so there is no load to price from."""

    code = "no-capacity"

    def __init__(self, *, window_us: int) -> None:
        super().__init__(f"no slot was on offer in the last {window_us // 1_000_000} s")
        self.window_us = window_us


class BadCapacityEvent(PricingError):
    """A deployment's state has a negative count."""

    code = "bad-capacity-event"

    def __init__(self, *, offered: int, occupied: int) -> None:
        super().__init__(f"offered {offered} and occupied {occupied} must not be negative")
        self.offered = offered
        self.occupied = occupied


class BadLoad(PricingError):
    """A load is outside 0 to 1,000,000 ppm."""

    code = "bad-load"

    def __init__(self, *, load_ppm: int) -> None:
        super().__init__(f"load of {load_ppm} ppm is outside 0 to 1000000")
        self.load_ppm = load_ppm


class BadCurve(PricingError):
    """The configured curve is not a monotone table from load 0 to load 1."""

    code = "bad-curve"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class BadCosts(PricingError):
    """A total of the cost floor is negative, or one of the prior's is not above zero."""

    code = "bad-costs"

    def __init__(self, *, field: str, value: int) -> None:
        super().__init__(f"{field} of {value} is not allowed here")
        self.field = field
        self.value = value


class BadSpeed(PricingError):
    """A speed is not above zero tokens per second."""

    code = "bad-speed"

    def __init__(self, *, field: str) -> None:
        super().__init__(f"{field} must be above zero tokens per second")
        self.field = field


class BadMargin(PricingError):
    """A margin is outside its range."""

    code = "bad-margin"

    def __init__(self, *, margin_ppm: int, limit_ppm: int) -> None:
        super().__init__(f"margin of {margin_ppm} ppm is outside 0 to {limit_ppm}")
        self.margin_ppm = margin_ppm
        self.limit_ppm = limit_ppm


class BadTokens(PricingError):
    """A token count is negative or above the limit."""

    code = "bad-tokens"

    def __init__(self, *, field: str, tokens: int, limit: int) -> None:
        super().__init__(f"{field} of {tokens} is outside 0 to {limit}")
        self.field = field
        self.tokens = tokens
        self.limit = limit


class BadUsage(PricingError):
    """Measured usage names a part larger than its whole."""

    code = "bad-usage"

    def __init__(self, *, part: str, part_tokens: int, whole_tokens: int) -> None:
        super().__init__(f"{part} of {part_tokens} is more than the {whole_tokens} it is part of")
        self.part = part
        self.part_tokens = part_tokens
        self.whole_tokens = whole_tokens


class AmountOutOfRange(PricingError):
    """A price is not above zero, or does not fit the ledger's 64-bit amount."""

    code = "amount-out-of-range"

    def __init__(self, *, field: str, amount: int) -> None:
        super().__init__(f"{field} of {amount} nano is outside 1 to 2^63 - 1")
        self.field = field
        self.amount = amount


class RunTooLong(PricingError):
    """The request would need a slot for longer than a lease may last."""

    code = "run-too-long"

    def __init__(self, *, seconds: int, limit_seconds: int) -> None:
        super().__init__(f"needs {seconds} s of a slot, the limit is {limit_seconds} s")
        self.seconds = seconds
        self.limit_seconds = limit_seconds
