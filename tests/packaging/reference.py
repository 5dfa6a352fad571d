"""Writes `docs/reference/`: what the code says about itself. `python -m tests.packaging.reference`.

A test compares the pages with a fresh run, so they cannot drift.
"""

import inspect
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import typer
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from app import problems
from app.cli.exits import MEANINGS
from app.cli.program import app as program
from app.client.errors import NEXT_STEPS
from app.config import Settings, default_replica_id
from ledger.verify import verdict
from ledger.verify.cli import export_parser
from ledger.verify.cli import parser as verify_parser
from ledger.verify.exits import MEANINGS as VERIFY_EXITS
from ledger.verify.export_report import OF_EXPORTS
from ledger.verify.limits import NOT_PROVED
from supplier_agent.cli import EXIT_CODES as AGENT_EXITS
from supplier_agent.cli import app as agent_program

DOCS = Path(__file__).parents[2] / "docs" / "reference"
NOTE = "Generated from the code by `python -m tests.packaging.reference`; a test holds it to that."


def pages() -> dict[str, str]:
    """Return each page's name and text."""
    return {
        "cli.md": cli_page(),
        "agent.md": agent_page(),
        "verify.md": verify_page(),
        "settings.md": settings_page(),
        "errors.md": errors_page(),
    }


def cli_page() -> str:
    """Return every command of `offpeak` with its exit codes."""
    lines = ["# Commands of `offpeak`", "", NOTE, "", "## Exit codes", "", "| code | meaning |"]
    lines += ["|---|---|"]
    lines += [f"| {int(code)} | {cell(meaning)} |" for code, meaning in MEANINGS.items()]
    lines += command_lines("offpeak", program)
    return "\n".join(lines) + "\n"


def agent_page() -> str:
    """Return every command of `offpeak-agent`."""
    lines = ["# Commands of `offpeak-agent`", "", NOTE, "", paragraph(AGENT_EXITS)]
    lines += command_lines("offpeak-agent", agent_program)
    return "\n".join(lines) + "\n"


def verify_page() -> str:
    """Return `offpeak-verify`: options, exit codes, steps, what is never proved."""
    parser = verify_parser()
    lines = ["# `offpeak-verify`", "", NOTE, "", parser.description or "", ""]
    lines += ["## Options", "", *option_rows(parser)]
    lines += ["", "## Exit codes", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {int(code)} | {cell(meaning)} |" for code, meaning in VERIFY_EXITS.items()]
    lines += ["", "Of several receipts the gravest speaks: 1, then 64, 4, 5, 2, 3, 0.", ""]
    lines += ["## Steps", "", "In this order; the first that is refused ends the check.", ""]
    lines += ["| step | holds when |", "|---|---|"]
    lines += [f"| `{step}` | {cell(meaning)} |" for step, meaning in verdict.MEANINGS.items()]
    lines += ["", "## What a verified receipt does not prove", ""]
    lines += [f"- {each}" for each in NOT_PROVED]
    export = export_parser()
    lines += ["", f"## `{export.prog}`", "", export.description or "", ""]
    lines += [*option_rows(export), ""]
    lines += [
        "Exit 0, 1 or 64 as above. Steps: [spec/export.md](../spec/export.md). Besides what no"
    ]
    lines += ["receipt proves, a verified export does not prove:", ""]
    return "\n".join([*lines, *(f"- {each}" for each in OF_EXPORTS)]) + "\n"


def option_rows(parser: ArgumentParser) -> list[str]:
    """Return a command line's options as a table."""
    lines = ["| option | meaning |", "|---|---|"]
    for each in parser._actions:
        names = ", ".join(f"`{name}`" for name in each.option_strings) or f"`{each.metavar}`"
        lines.append(f"| {names} | {cell((each.help or '') % vars(each))} |")
    return lines


def command_lines(program_name: str, typed: typer.Typer) -> list[str]:
    """Return a program's commands with their arguments and options."""
    lines: list[str] = []
    root: Any = typer.main.get_command(typed)
    for name, command in commands(program_name, root):
        lines += ["", f"## {name}", "", paragraph(command.help)]
        rows = [parameter(each) for each in command.params]
        if rows:
            lines += [
                "",
                "| parameter | default | environment | meaning |",
                "|---|---|---|---|",
                *rows,
            ]
        if command.epilog:
            example = command.epilog.partition("Example: ")[2]
            lines += ["", "```console", example, "```"]
    return lines


def commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with its full name."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for key, value in inner.items():
        yield from commands(f"{name} {key}", value)


def parameter(each: Any) -> str:
    """Return one table row."""
    default = each.default
    shown = "" if default is None or default is False or callable(default) else f"`{default}`"
    if each.required:
        shown = "required"
    names = ", ".join(f"`{name}`" for name in each.opts) if each.opts else f"`{each.name}`"
    if each.param_type_name == "argument":
        names = f"`{each.name.upper()}`"
    environment = f"`{each.envvar}`" if each.envvar else ""
    return f"| {names} | {cell(shown)} | {environment} | {cell(each.help or '')} |"


def settings_page() -> str:
    """Return every setting with its default."""
    lines = [
        "# Settings",
        "",
        NOTE,
        "Times are seconds, amounts decimal numbers of the settlement token, keys 64 hex digits.",
        "Each secret can also be read from a file: `..._FILE`. `offpeak check` prints what is in",
        "force, secrets hidden. Production refuses placeholders, development keys and local URLs.",
        "",
        "| variable | type | default | meaning |",
        "|---|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        variable = f"`OFFPEAK_{name.upper()}`"
        shown = [
            variable,
            type_text(field.annotation),
            default_text(field),
            field.description or "",
        ]
        lines.append("| " + " | ".join(cell(each) for each in shown) + " |")
    return "\n".join(lines) + "\n"


def type_text(annotation: Any) -> str:
    """Return a type as an operator reads it."""
    if annotation is SecretStr or SecretStr in get_args(annotation):
        return "secret"
    if get_origin(annotation) is tuple:
        return "JSON list"
    names = [each for each in (get_args(annotation) or (annotation,)) if each is not type(None)]
    return " or ".join(f"`{each}`" if isinstance(each, str) else name_of(each) for each in names)


def name_of(kind: Any) -> str:
    """Return one type's plain name."""
    known = {int: "integer", float: "number", str: "text", Path: "file", bool: "true or false"}
    return known.get(kind, "text")


def default_text(field: FieldInfo) -> str:
    """Return a setting's default."""
    if field.is_required():
        return "required"
    if field.default_factory is default_replica_id:
        return "host name and process id"
    value = field.default
    return "" if value is None or value == "" else f"`{value}`"


def errors_page() -> str:
    """Return every problem code with status, meaning and next step."""
    lines = [
        "# Error codes of the HTTP API",
        "",
        NOTE,
        f"Bodies are RFC 9457 problems; `type` is `{problems.TYPE_PREFIX}<code>`. Each carries its",
        "figures as extra members. 402, 409 and 410 also say `x-should-retry: false`. 500 means a",
        "bug or a broken store. Nothing is charged for a refused request.",
        "",
        "| code | status | meaning | next step |",
        "|---|---|---|---|",
    ]
    rows: dict[tuple[str, int], str] = {}
    for kind, status in problems.STATUS.items():
        code: str = kind.code  # type: ignore[attr-defined]  # every expected error has one
        meaning = (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")
        rows.setdefault((code, int(status)), meaning)
    for (code, status), meaning in sorted(rows.items()):
        lines.append(
            f"| `{code}` | {status} | {cell(meaning)} | {cell(NEXT_STEPS.get(code, ''))} |"
        )
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """Return text as it may stand in a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def paragraph(text: str | None) -> str:
    """Return a docstring as one paragraph."""
    return " ".join((text or "").split())


def main() -> None:
    """Write the pages."""
    DOCS.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (DOCS / name).write_text(text, "utf-8")
        sys.stdout.write(f"wrote docs/reference/{name}\n")


if __name__ == "__main__":
    main()
