"""What this wallet signs for. Set by the buyer and never taken from a gateway's answer."""

from dataclasses import dataclass

from ledger.authorization import authorization_domain
from ledger.encoding import Address, Domain
from ledger.usage import usage_record_domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Chain, contracts and token that signatures count under.

    `quote_signer` is the gateway's quote key when the buyer pins it; None accepts the key of
    each quote and holds the usage record to the same one.
    """

    chain_id: int
    treasury: Address
    receipt_anchor: Address
    token: Address
    quote_signer: Address | None = None

    @property
    def domain(self) -> Domain:
        """The domain of quotes and authorizations."""
        return authorization_domain(chain_id=self.chain_id, treasury=self.treasury)

    @property
    def record_domain(self) -> Domain:
        """The domain of usage records."""
        return usage_record_domain(chain_id=self.chain_id, receipt_anchor=self.receipt_anchor)
