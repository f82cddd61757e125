"""What the directories of a multirun's jobs are called: the number, and the values that tell the
jobs apart."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from aeon.config.compose.literal import key_of
from aeon.config.compose.resolvers import register_resolver

JOB_DIGITS = "AEON_JOB_DIGITS"
"""The variable that tells every process of a multirun how many digits the jobs' numbers have."""
_LONGEST_VALUE = 24
_LONGEST_NAME = 80


def name_job(number: int, overrides: Iterable[str], constant: Iterable[str] = ()) -> str:
    """The name of a job's directory, safe on every file system: its number and its values."""
    digits = int(os.environ.get(JOB_DIGITS) or 1)
    parts = [
        f"{number:0{digits}d}",
        *([",".join(values)] if (values := name_values(overrides, constant)) else []),
    ]
    return "-".join(parts)[:_LONGEST_NAME].rstrip("-.,=")


def name_values(overrides: Iterable[str], constant: Iterable[str] = ()) -> list[str]:
    """The last part of each key that is not `constant`, or all of it where two are equal, with its
    value."""
    left_out = set(constant)
    values = {key_of(text): text.partition("=")[2] for text in overrides}
    swept = {key: value for key, value in values.items() if key not in left_out}
    last = [key.rpartition(".")[2] for key in swept]
    names = [
        short if last.count(short) == 1 else key for short, key in zip(last, swept, strict=True)
    ]
    return [
        f"{_clean(name)}={_clean(value)}" for name, value in zip(names, swept.values(), strict=True)
    ]


def _clean(text: str) -> str:
    text = text.strip("'\"").rstrip("/\\")
    last = re.split(r"[/\\]", text)[-1]  # of a path, or of a model with its maker
    return (
        re.sub(r"[^\w.+]+", "-", last, flags=re.ASCII).strip("-.")[:_LONGEST_VALUE].rstrip("-.")
        or "-"
    )


register_resolver("aeon.job_directory", name_job)
