"""Errors from talking to a gateway and from what it answered.

* ClientError
  - ProblemError               the gateway refused, with its typed problem
  - GatewayUnreachable         no answer at all
  - AnswerMalformed            an answer that is not what the API promises
  - JobFailed, JobUnfinished   how a job ended, or that it has not yet
  - Unanswered                 signed and sent, and we did not hear how it went on
  - QuoteRefused               we do not sign
    - WrongChain, WrongDomain, QuoteDiffers, QuoteForged, QuoteExpired, MaximumExceeded
  - NotBaseUnits               an amount that the token cannot express
  - RecordRefused              a usage record that does not prove what it should
  - KeystoreError              see the classes
    - NoKeystore, KeystoreUnreadable, WrongPassword, KeystoreExists
"""

from collections.abc import Mapping
from pathlib import Path


class ClientError(Exception):
    """Base of every expected failure of the client; `next_step` says what to do about it."""

    code: str
    next_step: str = ""


class ProblemError(ClientError):
    """The gateway refused with an RFC 9457 problem; `figures` are its extra members."""

    def __init__(
        self, *, code: str, status: int, title: str, detail: str, figures: Mapping[str, object]
    ) -> None:
        super().__init__(detail or title)
        self.code = code
        self.status = status
        self.title = title
        self.detail = detail
        self.figures = dict(figures)
        self.next_step = NEXT_STEPS.get(code, "")


NEXT_STEPS: Mapping[str, str] = {
    "no-capacity": "no supplier offers this model now; see `offpeak capacity`, try again shortly",
    "no-slot": "every slot is taken; try again in a few seconds, nothing was charged",
    "price-stale": "prices are being refreshed; try again in a few seconds",
    "busy": "the gateway's queue is full; try again in a second, nothing was charged",
    "database-unavailable": "send the same acceptance again in a few seconds; it is taken once",
    "database-conflict": "try again in a second; nothing was charged",
    "rpc-unavailable": "the chain cannot be asked now; try again in a few seconds",
    "insufficient-funds": "deposit more, or lower --max-tokens",
    "exit-open": "`offpeak exit finalize` once it is ripe, or `offpeak exit cancel`",
    "wallet-owes": "`offpeak deposit` what `offpeak wallet balance` shows as owed",
    "withdrawal-fee-too-low": "run it again: the fee has risen; nothing was taken",
    "withdrawal-too-small": "withdraw more, or `offpeak exit request`, which costs gas only",
    "withdrawal-nonce-used": "run it again",
    "withdrawal-deadline": "check this machine's clock",
    "too-many-withdrawals": "wait until one of them has ended: `offpeak wallet balance`",
    "withdrawals-halted": "the operator looks at the books; try again later, nothing was taken",
    "withdrawal-fee-unknown": "try again in a minute; nothing was taken",
    "chain-not-configured": "this gateway has no chain; ask its operator",
    "transfer-not-found": "see `offpeak wallet balance` for what can be claimed",
    "transfer-not-yours": "claim with the wallet that sent the tokens",
    "transfer-not-final": "wait until its block is final",
    "transfer-claimed": "wait: it is being credited, see `offpeak wallet balance`",
    "claim-too-small": "deposit it instead of sending it: the credit would cost more gas",
    "funds-on-hold": "the money is held by running jobs; it comes back when they end",
    "quote-expired": "ask for a new quote; nothing was charged",
    "context-exceeded": "shorten the prompt or lower --max-tokens",
    "prompt-too-long": "shorten the prompt",
    "unknown-model": "see `offpeak models`",
    "signature-not-checkable": "the chain cannot be asked now; nothing was charged, send it again",
    "too-many-signature-checks": "this contract wallet asks too often; try again in a second",
    "bad-signature": "check OFFPEAK_CHAIN_ID and OFFPEAK_TREASURY_ADDRESS",
    "too-many-open-jobs": "wait until some of this wallet's jobs have ended",
    "accepts-halted": "the operator looks at the ledger; try again later, nothing was charged",
    "authorization-expired": "ask for a new quote; nothing was charged",
    "special-token-in-text": "remove the model's control token from the text",
    "job-not-found": "it belongs to another wallet, or to another gateway",
    "job-failed": "nothing was charged; ask again with a new quote",
    "supplier-exists": "choose another name; one agent's key belongs to one supplier",
}
"""What a buyer can do about a refusal, by its code."""


class GatewayUnreachable(ClientError):
    """No answer came from the gateway."""

    code = "gateway-unreachable"

    def __init__(self, url: str, *, reason: str) -> None:
        super().__init__(f"{url} does not answer: {reason}")
        self.url = url
        self.next_step = "start one with `offpeak up`, or name another with --url or OFFPEAK_URL"


class AnswerMalformed(ClientError):
    """The answer is not what the API promises."""

    code = "answer-malformed"
    next_step = "is this URL an OFFPEAK gateway of the same version?"

    def __init__(self, what: str, *, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what = what
        self.reason = reason


class JobFailed(ClientError):
    """The job ended without a result; the whole hold was released."""

    code = "job-failed"
    next_step = "nothing was charged; ask again with a new quote"

    def __init__(self, job: str, *, state: str, failure: str) -> None:
        super().__init__(f"{job} {state}: {failure}")
        self.job = job
        self.state = state
        self.failure = failure


class JobUnfinished(ClientError):
    """The job still runs after the time that we were ready to wait."""

    code = "job-unfinished"

    def __init__(self, job: str, *, state: str, waited_seconds: float) -> None:
        super().__init__(f"{job} is still {state} after {waited_seconds:g} s")
        self.job = job
        self.next_step = f"it goes on without us; look later: offpeak job show {job}"


class Unanswered(ClientError):
    """We stopped listening after the wallet had signed: the job may run and be charged.

    `code` is why: `interrupted`, or that of the failure on the way.
    """

    def __init__(self, code: str, *, reason: str, maximum: str, job: str | None) -> None:
        what = (
            f"{job} goes on and is charged up to {maximum}"
            if job
            else f"signed; it may have been accepted, and is then charged up to {maximum}"
        )
        super().__init__(f"{reason}; {what}")
        self.code = code
        self.job = job
        self.next_step = "look: " + (f"offpeak job show {job}" if job else "offpeak job list")


class QuoteRefused(ClientError):
    """Base of why a quote is not signed; nothing has been authorized."""

    next_step = "nothing was signed"


class WrongChain(QuoteRefused):
    """The gateway or the node is of another chain than the one that this wallet signs for."""

    code = "wrong-chain"

    def __init__(self, *, expected: int, found: int, of: str = "gateway") -> None:
        super().__init__(f"the {of} is of chain {found}, this wallet is set to chain {expected}")
        self.expected = expected
        self.found = found
        self.next_step = f"nothing was signed; set OFFPEAK_CHAIN_ID if the {of}'s is right"


class WrongDomain(QuoteRefused):
    """The signature would count under another name or contract than expected."""

    code = "wrong-domain"
    next_step = "nothing was signed; set OFFPEAK_TREASURY_ADDRESS if the gateway's is right"

    def __init__(self, field: str, *, expected: object, found: object) -> None:
        super().__init__(f"{field} of the signing domain is {found!r}, expected {expected!r}")
        self.field = field


class QuoteDiffers(QuoteRefused):
    """Quote or authorization say something else than what was asked for."""

    code = "quote-differs"
    next_step = "nothing was signed; do not use this gateway until this is explained"

    def __init__(self, field: str, *, expected: object, found: object) -> None:
        super().__init__(f"{field} is {found}, expected {expected}")
        self.field = field


class QuoteForged(QuoteRefused):
    """The quote's signature is not one by the expected quote key."""

    code = "quote-forged"
    next_step = "nothing was signed; do not use this gateway until this is explained"


class QuoteExpired(QuoteRefused):
    """The quote is over before it was signed."""

    code = "quote-expired"
    next_step = "nothing was signed; ask for a new quote and check this machine's clock"


class MaximumExceeded(QuoteRefused):
    """The quote could cost more than the buyer allows."""

    code = "maximum-exceeded"
    next_step = "nothing was signed; raise --max or lower --max-tokens"

    def __init__(self, *, maximum: str, limit: str) -> None:
        super().__init__(f"the quote's maximum is {maximum}, the limit is {limit}")
        self.maximum = maximum
        self.limit = limit


class NotBaseUnits(ClientError):
    """An amount that the token cannot express."""

    code = "bad-amount"
    next_step = "the token has six decimals: 0.000001 is the least"

    def __init__(self, amount: str) -> None:
        super().__init__(f"{amount} is not a positive number of base units of the token")


class RecordRefused(ClientError):
    """A usage record is not signed by the gateway, or contradicts the quote or itself."""

    code = "record-refused"
    next_step = "keep the answer and its record: together they show what is wrong"

    def __init__(self, rule: str, *, reason: str) -> None:
        super().__init__(f"{rule}: {reason}")
        self.rule = rule
        self.reason = reason


class KeystoreError(ClientError):
    """Base of what is wrong with a keystore. Never carries a key or a password."""

    path: Path | None = None


class NoKeystore(KeystoreError):
    """No wallet was named and none lies where one is looked for."""

    code = "no-keystore"
    next_step = "make one with `offpeak wallet new FILE`, or set ETH_KEYSTORE to yours"

    def __init__(self, looked_in: str) -> None:
        super().__init__(f"no wallet found: {looked_in}")


class KeystoreUnreadable(KeystoreError):
    """The file is not a web3 v3 keystore that we can read."""

    code = "keystore-unreadable"
    next_step = "name a web3 v3 keystore file with --keystore or ETH_KEYSTORE"

    def __init__(self, path: Path, *, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class WrongPassword(KeystoreError):
    """The password does not open the keystore."""

    code = "wrong-password"
    next_step = "give the right one at the prompt, or a file with --password-file or ETH_PASSWORD"

    def __init__(self, path: Path) -> None:
        super().__init__(f"the password does not open {path}")
        self.path = path


class KeystoreExists(KeystoreError):
    """A keystore is never overwritten: it may be the only copy of a key."""

    code = "keystore-exists"
    next_step = "name another file"

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} exists")
        self.path = path
