"""Errors from looking at the market.

* CapacityError
  - NoFreshOffer, PriceStale
"""

from typing import ClassVar


class CapacityError(Exception):
    """Base of every expected capacity failure."""

    code: ClassVar[str]


class NoFreshOffer(CapacityError):
    """No supplier offers a slot for this model right now."""

    code = "no-capacity"

    def __init__(
        self,
        *,
        release: str,
        region: str | None,
        too_dear: int = 0,
        retry_after_seconds: int = 5,
    ) -> None:
        """Take the market; `too_dear` deployments of it ask more than the present price covers."""
        where = f" in {region}" if region else ""
        why = f"no slot for {release} is on fresh offer{where}"
        if too_dear:
            why += f" at an ask that the present price covers; {too_dear} ask for more"
        super().__init__(why)
        self.release = release
        self.region = region
        self.too_dear = too_dear
        self.retry_after_seconds = retry_after_seconds


class PriceStale(CapacityError):
    """The latest price point is too old to quote from."""

    code = "price-stale"

    def __init__(self, *, age_seconds: int, limit_seconds: int) -> None:
        super().__init__(f"the price is {age_seconds} s old; at most {limit_seconds} s are quoted")
        self.age_seconds = age_seconds
        self.limit_seconds = limit_seconds
        self.retry_after_seconds = 2


class SupplierExists(CapacityError):
    """A supplier of this name, or with this device key, is registered already."""

    code = "supplier-exists"


class SupplierNotFound(CapacityError):
    """There is no supplier with this id."""

    code = "supplier-not-found"


class BadDeviceKey(CapacityError):
    """A device key is 32 bytes of an Ed25519 public key, 64 hex digits."""

    code = "bad-device-key"
