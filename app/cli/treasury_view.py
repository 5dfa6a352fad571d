"""A treasury's status as lines and as JSON."""

from collections.abc import Iterator

from app.client.units import coin_text, token_text
from app.kit.clock import format_time
from app.treasury.status import Pending, SenderState, TreasuryStatus
from ledger.encoding import checksum_address
from ledger.money import Nano, format_amount


def status_lines(status: TreasuryStatus) -> Iterator[str]:
    """Yield a status for people: the comparison, what waits, the keys, the alarms."""
    yield f"as of {format_time(status.as_of)}, chain {status.chain_id}"
    yield from _comparison(status)
    books = status.books
    yield _line("not told the chain", f"{token_text(books.commit_due)} spent")
    if books.refund_due:
        yield _line("to be refunded", token_text(books.refund_due))
    yield _line("suspense", format_amount(books.suspense_nano))
    yield _line("receivable", format_amount(books.owed_nano))
    yield "waiting"
    for pending in books.pending:
        yield _line(pending.kind, _waiting(pending, status))
    yield "keys"
    for sender in status.senders:
        yield _line(checksum_address(sender.address), _sender(sender))
    alarms = status.alarms()
    for alarm in alarms:
        yield f"ALARM {alarm.name}: {alarm.detail}"
    if not alarms:
        yield "no alarm"


def _comparison(status: TreasuryStatus) -> Iterator[str]:
    chain, books = status.chain, status.books
    if chain is None:
        yield _line("compared", "nothing: no block has been scanned yet")
        return
    yield _line("at block", f"{chain.block.number} (0x{chain.block.hash.hex()})")
    yield _line("final block", str(status.head.number))
    parts = (
        f"{token_text(chain.liability)} owed to wallets + {token_text(chain.earned)} earned"
        f" + {token_text(chain.unaccounted)} unaccounted"
    )
    yield _line("tokens on chain", f"{token_text(chain.tokens)} = {parts}")
    yield _line("tokens by the books", format_amount(books.tokens_nano))
    if books.early:
        yield _line("  booked early", f"{token_text(books.early)} after that block")
    if books.late:
        yield _line("  not booked yet", token_text(books.late))
    events = f"{books.events} stored, {chain.events} by the contract"
    yield _line("events", events)
    differ = Nano(status.tokens_differ_nano)
    state = "chain and books agree to the unit" if status.holds else "CHAIN AND BOOKS DIFFER"
    yield _line("result", state + (f" by {format_amount(differ)}" if differ else ""))
    if chain.paused:
        yield _line("paused", "only exits work")


def _waiting(pending: Pending, status: TreasuryStatus) -> str:
    if not pending.count:
        return "none"
    return f"{pending.count}, the oldest for {int(pending.age(status.as_of).total_seconds())} s"


def _sender(sender: SenderState) -> str:
    nonces = f"{sender.open} open, nonce gap {sender.nonce_gap}"
    gas = f"{coin_text(sender.balance_wei)} coins, {coin_text(sender.needed_wei)} needed"
    return f"{nonces}; {gas}"


def _line(name: str, text: str) -> str:
    return f"  {name:<22} {text}"


def status_document(status: TreasuryStatus) -> dict[str, object]:
    """Return a status as JSON; amounts are decimal strings of the token, gas of native coins."""
    chain, books = status.chain, status.books
    return {
        "as_of": format_time(status.as_of),
        "chain_id": status.chain_id,
        "final_block": status.head.number,
        "holds": status.holds,
        "block": None
        if chain is None
        else {"number": chain.block.number, "hash": "0x" + chain.block.hash.hex()},
        "chain": None
        if chain is None
        else {
            "tokens": token_text(chain.tokens),
            "liability": token_text(chain.liability),
            "earned": token_text(chain.earned),
            "unaccounted": token_text(chain.unaccounted),
            "events": chain.events,
            "paused": chain.paused,
        },
        "books": {
            "tokens": format_amount(books.tokens_nano),
            "booked_early": token_text(books.early),
            "not_booked_yet": token_text(books.late),
            "events": books.events,
            "suspense": format_amount(books.suspense_nano),
            "receivable": format_amount(books.owed_nano),
            "not_committed": token_text(books.commit_due),
            "to_be_refunded": token_text(books.refund_due),
        },
        "tokens_differ": format_amount(Nano(status.tokens_differ_nano)),
        "events_differ": status.events_differ,
        "pending": {
            str(each.kind): {
                "count": each.count,
                "oldest_seconds": int(each.age(status.as_of).total_seconds()),
            }
            for each in books.pending
        },
        "keys": [
            {
                "address": checksum_address(each.address),
                "open": each.open,
                "nonce_gap": each.nonce_gap,
                "coins": coin_text(each.balance_wei),
                "coins_needed": coin_text(each.needed_wei),
            }
            for each in status.senders
        ],
        "alarms": [{"name": each.name, "detail": each.detail} for each in status.alarms()],
    }
