"""`offpeak finance ...`: each command has a module of its own."""

import typer

from app.cli import (
    finance_correct,
    finance_export,
    finance_period,
    finance_reconcile,
    finance_statement,
)

app = typer.Typer(
    help="Exports, statements, corrections, reconciliation, periods.", no_args_is_help=True
)
app.command("export", epilog=finance_export.EXAMPLE)(finance_export.export)
app.command("statement", epilog=finance_statement.EXAMPLE)(finance_statement.statement)
app.command("correct", epilog=finance_correct.EXAMPLE)(finance_correct.correct)
app.command("reconcile", epilog=finance_reconcile.EXAMPLE)(finance_reconcile.reconcile)
app.add_typer(finance_period.app, name="period")
