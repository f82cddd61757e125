"""The names of the directories of a multirun's jobs: the number, and the values in which the jobs
differ."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable

from aeon.config.compose.literal import key_of
from aeon.config.compose.resolvers import register_resolver

JOB_DIGITS = "AEON_JOB_DIGITS"
"""The environment variable that passes on how many digits the job numbers have."""
_LONGEST_VALUE = 24
_LONGEST_NAME = 80


def name_job(number: int, overrides: Iterable[str], constant: Iterable[str] = ()) -> str:
    """Return the name of a job's directory, safe on every file system: its number and its
    values."""
    digits = int(os.environ.get(JOB_DIGITS) or 1)
    values = ",".join(name_values(overrides, constant))
    return f"{number:0{digits}d}-{values}"[:_LONGEST_NAME].rstrip("-.,=")


def name_values(overrides: Iterable[str], constant: Iterable[str] = ()) -> list[str]:
    """Return each key that is not `constant` with its value, by its last part, or whole where two
    are equal."""
    left_out = set(constant)
    values = {key_of(text): text.partition("=")[2] for text in overrides}
    swept = {key: value for key, value in values.items() if key not in left_out}
    counts = Counter(map(_last_part, swept))
    names = {key: _last_part(key) if counts[_last_part(key)] == 1 else key for key in swept}
    return [f"{_clean(names[key])}={_clean(value)}" for key, value in swept.items()]


def _last_part(key: str) -> str:
    return key.rpartition(".")[2]


def _clean(text: str) -> str:
    text = text.strip("'\"").rstrip("/\\")
    last = re.split(r"[/\\]", text)[-1]  # of a path, or of a model name with its vendor
    return (
        re.sub(r"[^\w.+]+", "-", last, flags=re.ASCII).strip("-.")[:_LONGEST_VALUE].rstrip("-.")
        or "-"
    )


register_resolver("aeon.job_directory", name_job)
