"""Make a release's tokenizer.json and chat template from GGUF weights, once, by a maintainer.

    python -m app.models.make_tokenizer WEIGHTS.gguf FOLDER

The result is deterministic and committed; a test makes it again and compares. The
obvious conversion (transformers' own) misses SmolLM2's pre-tokenizer, which splits digits one
by one before the byte-level split, and miscounts every prompt with a number in it.
"""

import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import cast

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from app.models.gguf import read_metadata

CONTROL_TOKEN = 3
"""GGUF's token type of control tokens."""


class UnsupportedWeights(Exception):
    """The weights name a tokenizer that this script does not know how to rebuild."""


def build_tokenizer(metadata: Mapping[str, object]) -> Tokenizer:
    """Return the byte-level BPE tokenizer that llama.cpp runs for pre-tokenizer `smollm`.

    Raises:
        UnsupportedWeights: the weights use another model or pre-tokenizer.
    """
    kind = (metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre"))
    if kind != ("gpt2", "smollm"):
        raise UnsupportedWeights(f"tokenizer {kind} is not gpt2 with smollm")
    tokens = cast("Sequence[str]", metadata["tokenizer.ggml.tokens"])
    types = cast("Sequence[int]", metadata["tokenizer.ggml.token_type"])
    merges = cast("Sequence[str]", metadata["tokenizer.ggml.merges"])
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs: list[tuple[str, str]] = []
    for merge in merges:
        left, right = merge.split(" ", 1)
        pairs.append((left, right))

    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=pairs, fuse_unk=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind_of_token in zip(tokens, types, strict=True)
            if kind_of_token == CONTROL_TOKEN
        ]
    )
    return tokenizer


def main(weights: Path, folder: Path) -> None:
    """Write both files and print their digests."""
    metadata = read_metadata(weights)
    contents = {
        "tokenizer.json": build_tokenizer(metadata).to_str(pretty=False),
        "chat_template.jinja": str(metadata["tokenizer.chat_template"]),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{sha256(text.encode()).hexdigest()}  {name}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
