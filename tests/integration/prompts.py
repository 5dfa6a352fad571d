"""200 conversations that a tokenizer may get wrong, the same on every machine."""

from collections.abc import Iterator
from random import Random

from app.models.messages import Message

COUNT = 200
DIALOGUES = 7
EXCHANGES = 6
Conversation = tuple[Message, ...]

SENTENCES = (
    "Summarize this in one line.",
    "Is this message about billing or delivery?",
    "It's what they'd said, isn't it?",
    "Translate: where is the station?",
    "MY ORDER #A-1047 NEVER ARRIVED!!!",
    "Write a haiku about a quiet machine room.",
    "E-mail a.b+c@example.org or see https://example.org/a?b=1&c=%20",
    "Antidisestablishmentarianism, pneumonoultramicroscopic",
)
NUMBERS = (
    "3.14159265358979",
    "1,234,567.89 and -0.000014250",
    "2026-11-30T17:35:00Z",
    "0xdeadbeef 0b1011 1e-9",
    "12 345 678",
    "v10.2.33-rc1",
    "2\u00b2 \u00bd \u2163 \u0664\u0665\u0666 \u0967\u0968 \uff11\uff12",
)
SCRIPTS = (
    "\u00c7a va tr\u00e8s bien, \u0153uvre \u00e0 No\u00ebl",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002",
    "\u3053\u3093\u306b\u3061\u306f \u4e16\u754c",
    "\uc548\ub155\ud558\uc138\uc694",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "\u05e9\u05dc\u05d5\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5",
    "Stra\u00dfe \u1e9e \u0130\u0131 \u01c5",
    "\U0001d54c\U0001d55f\U0001d55a \U00020bb7",
)
MARKS = (
    "\U0001f600\U0001f44d\U0001f3fd",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family",
    "\U0001f1eb\U0001f1f7\U0001f1ef\U0001f1f5",
    "e\u0301 \u00e9 n\u0303 Z\u0351\u036b\u0343",
    "\u1100\u1161 \uac00",
    "a\u200bb\u00adc\u2060d\ufeffe",
    "\u2028\u2029\u0085\u00a0\u3000",
    "\u201cquoted\u201d \u2014 \u2026 \u20ac5",
    "\ufffd \uffff \U0010ffff",
)
CODE = (
    "def f(x: int) -> int:\n    return x ** 2  # square\n",
    "for (let i=0;i<10;++i){console.log(`${i}`)}",
    "SELECT id, sum(n) FROM t WHERE a <> 'b' GROUP BY 1;",
    '{"a": [1, 2.5, null, true], "b": {"c": "\\u00e9"}}',
    "<div class='x'>&amp; &lt;b&gt;</div>",
    "#include <stdio.h>\nint main(void){return 0;}\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "\\frac{a}{b} \\sum_{i=1}^{n} x_i",
    "diff --git a/x b/x\n@@ -1,2 +1,2 @@\n-old\n+new\n",
    "$ grep -rn '^#' . | awk '{print $2}' > out.txt 2>&1",
    "\tif err != nil {\n\t\treturn err\n\t}\n",
)
SPACES = (
    "   leading",
    "trailing   ",
    "\n\n\nlines\n\n",
    "a  b   c    d     e",
    "\t\ttabs\t and\t spaces",
    "crlf\r\nline\r\n",
    " ",
    "\n",
    "a\x00b\x01c\x7f",
    "\x0b\x0cfeeds",
)
NEARLY = (
    "<|im_",
    "im_end|>",
    "< |im_end| >",
    "<|IM_END|>",
    "<im_start>",
    "<|im_end|",
    "<file name>",
    "[INST] <s> </s> <<SYS>>",
    "system\nuser\nassistant\n",
    "{{ messages[0].content }} {% endfor %}",
)
LIBRARY = (SENTENCES, NUMBERS, SCRIPTS, MARKS, CODE, SPACES, NEARLY)
LONG_TOKENS = (300, 700, 1200, 1700, 2000, 2047)
"""About how long the long conversations are; the last fills the context but for one token."""


def conversations() -> Iterator[tuple[str, Conversation]]:
    """Yield COUNT named conversations without the long ones, which need the tokenizer."""
    random = Random(20261130)
    for number, text in enumerate(sum(LIBRARY, ())):
        yield f"alone-{number}", (Message("user", text),)
    for number in range(45):
        yield f"mixed-{number}", (Message("user", _mixed(random, 2)),)
    for number in range(20):
        yield f"empty-system-{number}", (Message("system", ""), Message("user", _mixed(random, 1)))
    for number in range(20):
        instruction = Message("system", _mixed(random, 1))
        yield f"system-{number}", (instruction, Message("user", _mixed(random, 1)))
    for number in range(DIALOGUES):
        yield from _growing_dialogue(random, number)


def long_text(words: int) -> str:
    """Return a text of so many words; a shorter one is a prefix of a longer one.

    Engines keep the prefix they have just read, so growing texts cost only what is new.
    """
    random = Random(1)
    pieces = [random.choice((*SENTENCES, *NUMBERS, *SCRIPTS, *CODE)) for _ in range(words)]
    return " ".join(" ".join(pieces).split()[:words])


def _mixed(random: Random, pieces: int) -> str:
    glue = random.choice((" ", "\n", "", ", "))
    return glue.join(random.choice(random.choice(LIBRARY)) for _ in range(pieces))


def _growing_dialogue(random: Random, number: int) -> Iterator[tuple[str, Conversation]]:
    """Yield one dialogue after each of its exchanges; with an odd number it has instructions."""
    said: list[Message] = []
    if number % 2:
        said.append(Message("system", random.choice(("", "Be brief.", SCRIPTS[2]))))
    for exchange in range(EXCHANGES):
        said.append(Message("user", _mixed(random, 1)))
        yield f"dialogue-{number}-{exchange}", tuple(said)
        said.append(Message("assistant", _mixed(random, 1)))
        if random.random() < 0.1:
            said.append(Message("system", "Answer in one word."))
