"""What a wallet is shown of its money."""

from app.kit.clock import format_time
from app.kit.ids import IdPrefix, format_id
from app.wallets.balance import Balance, OpenExit, PendingDeposit, PendingWithdrawal, Unaccounted
from app.wallets.schemas import (
    BalanceOut,
    ExitOut,
    PendingDepositOut,
    PendingWithdrawalOut,
    UnaccountedOut,
)
from ledger.encoding import Address, checksum_address
from ledger.money import format_amount


def balance_out(balance: Balance, *, payer: Address, asset: Address) -> BalanceOut:
    """Return a balance on the wire."""
    return BalanceOut(
        payer=checksum_address(payer),
        asset=checksum_address(asset),
        available=format_amount(balance.available),
        held=format_amount(balance.held),
        pending=format_amount(balance.pending),
        withdrawing=format_amount(balance.withdrawing),
        exiting=format_amount(balance.exiting),
        unaccounted=format_amount(balance.unaccounted),
        owed=format_amount(balance.owed),
        deposits=[_deposit(each) for each in balance.deposits],
        withdrawals=[_withdrawal(each) for each in balance.withdrawals],
        exit=_exit(balance.exit, balance) if balance.exit else None,
        transfers=[_transfer(each) for each in balance.transfers],
        next_steps=balance.next_steps(),
        as_of=format_time(balance.as_of),
    )


def _deposit(each: PendingDeposit) -> PendingDepositOut:
    return PendingDepositOut(
        amount=format_amount(each.amount),
        transaction="0x" + each.transaction.hex(),
        block=each.block,
        waits_for=each.waits_for,
        blocks_left=each.blocks_left,
        next_step=each.next_step(),
    )


def _withdrawal(each: PendingWithdrawal) -> PendingWithdrawalOut:
    return PendingWithdrawalOut(
        id=format_id(IdPrefix.WITHDRAWAL, each.id),
        amount=format_amount(each.amount),
        fee=format_amount(each.fee),
        deadline=format_time(each.deadline),
        transaction=None if each.transaction is None else "0x" + each.transaction.hex(),
        block=each.block,
        blocks_left=each.blocks_left,
        next_step=each.next_step(),
    )


def _exit(leaving: OpenExit, balance: Balance) -> ExitOut:
    return ExitOut(
        wanted=format_amount(leaving.wanted),
        set_aside=format_amount(leaving.set_aside),
        ready_at=format_time(leaving.ready_at),
        until=format_time(leaving.until),
        next_step=leaving.next_step(balance.as_of),
    )


def _transfer(each: Unaccounted) -> UnaccountedOut:
    return UnaccountedOut(
        id=str(each.event),
        amount=format_amount(each.amount),
        transaction="0x" + each.transaction.hex(),
        block=each.block,
        final=each.is_final,
        claimed=each.is_claimed,
        next_step=each.next_step(),
    )
