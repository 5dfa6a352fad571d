"""The buyer's side, as cheap as it can be: quote requests, and acceptances signed in advance."""

import orjson

from ledger.authorization import RequestAuthorization
from ledger.encoding import Domain, checksum_address
from ledger.signing import SigningKey

SALT = "0x" + "5a" * 32


def inference_request(prompt: str, *, max_output_tokens: int) -> dict[str, object]:
    """Return the request object."""
    return {
        "model": "smollm2-135m-instruct",
        "messages": [{"role": "user", "content": prompt}],
        "max_output_tokens": max_output_tokens,
    }


def quote_body(key: SigningKey, request: dict[str, object]) -> bytes:
    """Return the body of a quote request."""
    payer = checksum_address(key.address)
    return orjson.dumps({"payer": payer, "salt": SALT, "request": request})


def acceptance_body(
    key: SigningKey, request: dict[str, object], quoted: bytes, domain: Domain
) -> bytes:
    """Return the body that accepts a quote, signed without looking: the gateway is ours."""
    checked = orjson.loads(quoted)
    message = checked["authorization"]["message"]
    digest = RequestAuthorization.parse(message).digest(domain)
    return orjson.dumps(
        {
            "quote": checked["quote"],
            "quote_signature": checked["signature"],
            "request": request,
            "salt": SALT,
            "authorization": message,
            "signature": "0x" + key.sign(digest).hex(),
        }
    )
