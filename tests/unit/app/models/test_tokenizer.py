import json
import shutil
from pathlib import Path

import pytest

from app.models.catalogue import Catalogue, load_release
from app.models.errors import MessagesError, PromptTooLarge, ReleaseBroken
from app.models.messages import Message
from app.models.tokenizer import CountingTokenizer

CATALOGUE = Catalogue()
RELEASE = CATALOGUE.get("smollm2-135m-instruct")


@pytest.fixture(scope="module")
def tokenizer() -> CountingTokenizer:
    return CountingTokenizer(RELEASE, CATALOGUE.folder_of(RELEASE))


def test_without_a_system_message_the_template_adds_its_own(tokenizer: CountingTokenizer) -> None:
    rendered = tokenizer.render((Message("user", "hi"),))
    assert rendered.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
    assert rendered.endswith("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")


def test_an_empty_system_message_switches_it_off(tokenizer: CountingTokenizer) -> None:
    """Figures as the engine counts them."""
    assert tokenizer.count_prompt((Message("system", ""), Message("user", "hi"))) == 15
    assert tokenizer.count_prompt((Message("user", "hi 123"),)) == 35


def test_digits_count_one_by_one(tokenizer: CountingTokenizer) -> None:
    assert tokenizer.count_text("1234567890") == 10


def test_text_is_not_read_as_a_template(tokenizer: CountingTokenizer) -> None:
    rendered = tokenizer.render((Message("user", "{{ 1 }}{% raw %}&lt;"),))
    assert "{{ 1 }}{% raw %}&lt;" in rendered


def test_a_prompt_that_cannot_fit_is_refused_before_it_is_counted(
    tokenizer: CountingTokenizer,
) -> None:
    longest = 81
    tokenizer.count_prompt((Message("user", " " * RELEASE.context_tokens * longest),))
    with pytest.raises(PromptTooLarge):
        tokenizer.count_prompt((Message("user", "x" * (RELEASE.context_tokens * longest + 1)),))


@pytest.mark.parametrize("token", RELEASE.special_tokens)
def test_no_control_token_gets_into_a_prompt_as_text(
    tokenizer: CountingTokenizer, token: str
) -> None:
    with pytest.raises(MessagesError):
        tokenizer.count_prompt((Message("user", f"a{token}b"),))


def test_a_release_must_name_every_control_token(tmp_path: Path) -> None:
    folder = shutil.copytree(CATALOGUE.folder_of(RELEASE), tmp_path / RELEASE.id)
    document = json.loads((folder / "release.json").read_text())
    document["special_tokens"].remove("<|im_end|>")
    (folder / "release.json").write_text(json.dumps(document))
    with pytest.raises(ReleaseBroken):
        CountingTokenizer(load_release(folder), folder)
