"""The three tasks of the demonstration, and the one that must be refused.

The model has 135 million parameters. It does these well at temperature 0; the schemas keep it to
the form that a program can read.
"""

import json
from dataclasses import dataclass

from app.client.asking import Question, Turn

SEED = 7
CATEGORIES = ("billing", "delivery", "technical")

_CLASSIFIED = (
    ("My card was charged twice.", "billing"),
    ("The website shows an error.", "technical"),
    ("Where is my package?", "delivery"),
    ("The app freezes when I log in.", "technical"),
    ("The invoice has a wrong amount.", "billing"),
    ("My order has not arrived yet.", "delivery"),
)
_MESSAGE = "The app crashes every time I open the settings page."
_PRODUCT = "The Aurora X2 wireless headphones cost 79.90 USD. One charge lasts 32 hours."
_PARAGRAPH = (
    "The town of Millbrook opened its new public library on Saturday. The building cost four "
    "million euros and took two years to build. It holds 60,000 books, a reading room for "
    "children and a workshop with 3D printers. Residents can join for free. The mayor said that "
    "the library is the largest project in the town's history."
)


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to ask, with what a reader is shown of it."""

    title: str
    shown: str
    question: Question


def demo_tasks(model: str) -> tuple[Task, ...]:
    """Return the three tasks, each deterministic."""
    return (
        Task("Classify a support message", _MESSAGE, _classify(model)),
        Task("Extract fields from a product text", _PRODUCT, _extract(model)),
        Task("Summarize a paragraph", _PARAGRAPH, _summarize(model)),
    )


def unaffordable(model: str) -> Task:
    """Return a task whose ceiling alone costs more than the demonstration's wallet holds."""
    turns = (Turn("user", "Write a long story about a lighthouse."),)
    question = Question(model=model, turns=turns, max_output_tokens=1_900, temperature=0, seed=SEED)
    return Task("A request over the balance", turns[0].content, question)


def _classify(model: str) -> Question:
    turns = [Turn("system", f"Classify the support message as {', '.join(CATEGORIES)}.")]
    for message, category in _CLASSIFIED:
        answer = json.dumps({"category": category})
        turns += [Turn("user", message), Turn("assistant", answer)]
    turns.append(Turn("user", _MESSAGE))
    return Question(
        model=model,
        turns=tuple(turns),
        max_output_tokens=24,
        temperature=0,
        seed=SEED,
        schema_name="classification",
        schema={
            "type": "object",
            "properties": {"category": {"enum": list(CATEGORIES)}},
            "required": ["category"],
            "additionalProperties": False,
        },
    )


def _extract(model: str) -> Question:
    fields = {
        "name": {"type": "string", "maxLength": 60},
        "price": {"type": "number"},
        "currency": {"type": "string", "maxLength": 3},
        "battery_hours": {"type": "integer"},
    }
    prompt = f"Extract the product data as JSON with the fields {', '.join(fields)}.\n\nText: "
    return Question(
        model=model,
        turns=(Turn("user", prompt + _PRODUCT),),
        max_output_tokens=64,
        temperature=0,
        seed=SEED,
        schema_name="product",
        schema={
            "type": "object",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        },
    )


def _summarize(model: str) -> Question:
    prompt = f"Summarize the text in one sentence.\n\n{_PARAGRAPH}"
    return Question(
        model=model,
        turns=(Turn("user", prompt),),
        max_output_tokens=64,
        temperature=0,
        seed=SEED,
    )
