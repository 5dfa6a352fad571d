"""`offpeak finance ...`."""

import typer

from app.cli import finance_export

app = typer.Typer(help="Exports for finance.", no_args_is_help=True)
app.command("export", epilog=finance_export.EXAMPLE)(finance_export.export)
