"""Errors from reading jobs."""

from typing import ClassVar


class JobError(Exception):
    """Base of every expected failure around jobs."""

    code: ClassVar[str]


class JobNotFound(JobError):
    """This wallet has no job with this id."""

    code = "job-not-found"
