"""What is printed: exact amounts, and no text that steers the terminal."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from app.cli.buyer import funds_step, terms_of
from app.cli.errors import BadInput
from app.cli.exits import Exit
from app.cli.failures import describe
from app.cli.output import Output, print_pairs, printable
from app.cli.program import app
from app.cli.question import QuestionOptions, read_question
from app.cli.shown import quote_rows
from app.client.errors import ProblemError
from app.embedded.stack import ServiceEnded
from ledger.encoding import checksum_address, parse_address
from tests.unit.client.gateway import checked


def test_an_answer_cannot_steer_the_terminal() -> None:
    assert printable("red \x1b[31m text\x07\n\tend\x9b") == "red �[31m text�\n\tend�"


def test_json_keeps_text_as_it_is_and_escapes_what_steers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "é \x1b \x9b \x7f"
    Output(as_json=True).show({"text": text})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"text": text}
    assert "\x1b" not in printed
    assert "\x9b" not in printed


def test_figures_in_a_pipe_are_never_wrapped_or_cut(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).rows({}, [("signature", "0x" + "ab" * 65)])
    assert capsys.readouterr().out == "signature  0x" + "ab" * 65 + "\n"


def test_figures_on_a_terminal_are_one_word_that_can_be_copied() -> None:
    screen = Console(file=StringIO(), force_terminal=True, width=40, highlight=False)
    print_pairs(screen, [("signature", "0x" + "ab" * 65)])
    assert isinstance(screen.file, StringIO)
    assert "0x" + "ab" * 65 + "\n" in screen.file.getvalue()


def test_rates_at_the_cost_floor_are_one_line() -> None:
    quote = checked()
    names = ("input_per_mtok", "output_per_mtok", "per_request")
    floor = dict(zip(names, ("0.020000000", "0.100000000", "0.000005000"), strict=True))
    document = quote.document.model_copy(update={"price": {"floor": floor}})
    rows = dict(quote_rows(replace(quote, document=document)))
    assert rows["rates"].endswith("(the cost floor)")
    assert "floor" not in rows
    document = quote.document.model_copy(update={"price": {"floor": {**floor, "per_request": "0"}}})
    assert "floor" in dict(quote_rows(replace(quote, document=document)))


def test_sub_cent_amounts_are_shown_in_full() -> None:
    rows = dict(quote_rows(checked()))
    assert rows["maximum"] == "0.000008440 of the settlement token"
    assert rows["money"].endswith(checksum_address(checked().quote.token))
    assert "0.000005000 per request" in rows["rates"]


def test_an_unknown_failure_says_how_to_see_more() -> None:
    failure = describe(RuntimeError("boom\nand more"))
    assert failure.detail == "RuntimeError: boom"
    assert "--debug" in failure.next_step


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file") as missing:
        (tmp_path / "missing" / "policy.txt").write_text("")
    failure = describe(missing.value)
    assert (failure.code, failure.exit) == ("file-unusable", Exit.USAGE)
    assert "policy.txt" in failure.detail


def test_a_process_that_ended_is_told_with_the_last_words_of_its_log() -> None:
    failure = describe(ServiceEnded("gateway", status=1, log_tail="one\ntwo"))
    assert (failure.code, failure.exit) == ("service-ended", Exit.FAILED)
    assert failure.next_step == "its log ends: two"


def test_a_refusal_of_the_gateway_has_its_own_exit_code() -> None:
    problem = ProblemError(code="empty-message", status=422, title="No", detail="why", figures={})
    assert describe(problem).exit is Exit.REFUSED


def test_terms_never_come_from_the_gateway() -> None:
    terms = terms_of({}, environ={"OFFPEAK_CHAIN_ID": "8453"})
    assert terms.chain_id == 8453
    with pytest.raises(BadInput):
        terms_of({}, environ={"OFFPEAK_TREASURY_ADDRESS": "0x12"})


def test_only_a_development_gateway_can_make_money_up() -> None:
    payer = parse_address(f"0x{7:040x}")
    assert "offpeak dev fund 0x" in funds_step(payer, {}, chain_id=31_337)
    assert "dev fund" not in funds_step(payer, {}, chain_id=8453)
    assert checksum_address(payer) in funds_step(payer, {}, chain_id=8453)


def test_an_empty_prompt_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(BadInput, match="empty"):
        read_question(QuestionOptions(prompt="  ", model="m", max_tokens=1))


@pytest.mark.parametrize(("prompt", "system"), [("\udcff", None), ("a", "\udcff")])
def test_text_of_the_command_line_that_is_not_utf_8_is_refused(
    prompt: str, system: str | None
) -> None:
    with pytest.raises(BadInput, match="not UTF-8"):
        read_question(QuestionOptions(prompt=prompt, system=system, model="m", max_tokens=1))


def test_a_prompt_of_one_dash_reads_standard_input() -> None:
    done = CliRunner().invoke(app, ["quote", "-", "--url", "http://127.0.0.1:9"], input="\n")
    assert "the prompt is empty" in done.stderr
