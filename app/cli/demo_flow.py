"""The demonstration's steps, each a fact that was measured and checked; no printing here."""

from dataclasses import dataclass

from app.cli.demo_tasks import Task
from app.cli.shown import job_document, quote_document
from app.client.checks import CheckedQuote
from app.client.client import Client
from app.client.documents import JobDocument
from app.client.errors import ProblemError
from app.wallets.schemas import BalanceOut
from ledger.usage import UsageRecord


class RefusalMissing(Exception):
    """The request over the balance was accepted: the demonstration has failed."""

    code = "refusal-missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One finished task: what was offered, answered, charged and proved."""

    task: Task
    before: BalanceOut
    checked: CheckedQuote
    job: JobDocument
    record: UsageRecord
    after: BalanceOut

    def document(self) -> dict[str, object]:
        """Return it as JSON."""
        return {
            "task": self.task.title,
            "input": self.task.shown,
            "quote": quote_document(self.checked),
            "authorization_digest": "0x" + self.checked.authorization_digest.hex(),
            "signer": self.before.payer,
            "job": job_document(self.job),
            "balance_before": self.before.model_dump(mode="json"),
            "balance_after": self.after.model_dump(mode="json"),
            "record_verified": True,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The request that the wallet could not pay for."""

    task: Task
    checked: CheckedQuote
    problem: ProblemError
    after: BalanceOut

    def document(self) -> dict[str, object]:
        """Return it as JSON."""
        return {
            "task": self.task.title,
            "maximum": str(self.checked.document.price.get("max_charge")),
            "problem": {
                "code": self.problem.code,
                "status": self.problem.status,
                "detail": self.problem.detail,
                **self.problem.figures,
            },
            "balance_after": self.after.model_dump(mode="json"),
        }


def run_task(client: Client, task: Task) -> Done:
    """Quote, authorize, run, and verify the usage record of one task.

    Raises:
        ClientError: anything that does not go as it must.
    """
    before = client.balance()
    checked = client.quote(task.question)
    job = client.ask(checked)
    record = client.verify(job, checked)
    return Done(
        task=task, before=before, checked=checked, job=job, record=record, after=client.balance()
    )


def run_refusal(client: Client, task: Task) -> Refused:
    """Ask for more than the wallet holds and return the refusal.

    Raises:
        RefusalMissing: it was accepted.
    """
    checked = client.quote(task.question)
    try:
        client.accept(checked, wait_seconds=0)
    except ProblemError as problem:
        return Refused(task=task, checked=checked, problem=problem, after=client.balance())
    raise RefusalMissing(f"{task.title} was accepted")
