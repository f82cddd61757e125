"""A job: another program's request for a run, as `job.json` records it in the job's folder."""

from __future__ import annotations

import re
import secrets
import time
from typing import Literal

from pydantic import AwareDatetime, Field, JsonValue

from aeon.domain.values import Value

JobEnd = Literal["done", "failed", "cancelled"]
JobState = Literal["queued", "running", "waiting", "done", "failed", "cancelled"]
"""`waiting`: for a person; `done`: the run came to its end, converged or not."""
_ID = re.compile(r"[0-9a-f]{32}")


class JobProblem(Value):
    """Why a job has no result: the kind of error, the message, and a remedy."""

    kind: str
    message: str
    hint: str = ""


class JobRecord(Value):
    """`job.json`. `id` is also that of the job's first run; `configuration` is the name of its
    configuration. Without a `task` the plan file has it. `files` are the names of the inputs that
    are files in the job's folder. A job in the `background` continues without the program that
    requested it. `note` is that program's own. `cancelled` is the reason for cancelling, from the
    moment of the request; `ended` is None until the job has ended."""

    format: Literal["aeon.job/1"] = "aeon.job/1"
    id: str
    configuration: str
    task: str | None = None
    inputs: dict[str, str] = Field(default_factory=dict)
    files: tuple[str, ...] = ()
    background: bool = False
    note: dict[str, JsonValue] = Field(default_factory=dict)
    created_at: AwareDatetime
    cancelled: str | None = None
    problem: JobProblem | None = None
    ended: JobEnd | None = None
    ended_at: AwareDatetime | None = None


def make_id() -> str:
    """Return a new job id: ids sort in the order of their requests, and none can be guessed."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


def is_id(text: str) -> bool:
    """Check whether a text has the form of an id. No other text may become part of a path."""
    return _ID.fullmatch(text) is not None
