"""`offpeak finance ...`: each command has a module of its own."""

import typer

from app.cli import finance_correct, finance_export, finance_period, finance_statement

app = typer.Typer(
    help="Exports, statements, corrections and accounting periods.", no_args_is_help=True
)
app.command("export", epilog=finance_export.EXAMPLE)(finance_export.export)
app.command("statement", epilog=finance_statement.EXAMPLE)(finance_statement.statement)
app.command("correct", epilog=finance_correct.EXAMPLE)(finance_correct.correct)
app.add_typer(finance_period.app, name="period")
