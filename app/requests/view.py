"""What a buyer is shown of a job."""

from dataclasses import dataclass

from app.jobs.content import StoredAnswer
from app.jobs.job import Job, JobState
from app.kit.clock import format_time
from app.kit.ids import IdPrefix, format_id
from app.receipts.record import SignedRecord
from ledger.money import Nano, format_amount


@dataclass(frozen=True, slots=True)
class JobView:
    """A job with its answer in the clear and, once it has ended, its signed usage record."""

    job: Job
    answer: StoredAnswer | None
    record: SignedRecord | None


def job_body(view: JobView) -> dict[str, object]:
    """Return the JSON form, as `schemas.JobOut` states it."""
    job = view.job
    return {
        "id": format_id(IdPrefix.JOB, job.id),
        "state": job.state,
        "model": job.release,
        "region": job.region,
        "supplier": job.supplier,
        "attempts": job.attempts,
        "quote_id": format_id(IdPrefix.QUOTE, job.quote_id),
        "created_at": format_time(job.accepted_at),
        "deadline_at": format_time(job.deadline_at),
        "completed_at": format_time(job.ended_at) if job.ended_at else None,
        "answer": _answer(view.answer),
        "answer_until": format_time(job.content_until),
        **_money(view),
        "failure": _failure(job),
        "record": _record(view.record),
    }


def _answer(answer: StoredAnswer | None) -> dict[str, str] | None:
    if answer is None:
        return None
    return {"content": answer.content, "finish_reason": answer.finish_reason}


def _money(view: JobView) -> dict[str, object]:
    """Return usage and amounts; before the end the hold is open and nothing is charged."""
    signed = view.record
    if signed is None:
        return {
            "usage": None,
            "held": format_amount(Nano(view.job.held)),
            "charge": None,
            "released": None,
        }
    record = signed.record
    return {
        "usage": {
            "input_tokens": record.input_tokens,
            "cached_input_tokens": record.cached_input_tokens,
            "output_tokens": record.output_tokens,
        },
        "held": format_amount(record.held_nano),
        "charge": format_amount(record.charge_nano),
        "released": format_amount(record.released_nano),
    }


def _failure(job: Job) -> dict[str, str] | None:
    if not job.state.is_final or job.state is JobState.COMPLETED:
        return None
    return {"code": job.failure_code or job.state, "detail": job.failure_detail or ""}


def _record(signed: SignedRecord | None) -> dict[str, object] | None:
    if signed is None:
        return None
    return {
        "message": signed.record.message(),
        "digest": "0x" + signed.digest.hex(),
        "signature": "0x" + signed.signature.hex(),
        "key_id": signed.key_id,
    }
