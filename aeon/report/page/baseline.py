"""The direct call that a run was compared with: what it took, and where its own page is."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pydantic

from aeon.domain.result import BaselineReport, UsageReport
from aeon.observability.artefacts import RESULT
from aeon.report.ending import REPORT
from aeon.report.record import Record
from aeon.report.runs import is_of_baseline, read_document
from aeon.report.words import count_noun


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineView:
    """The direct call of a run: its report, a sentence on its usage, its page, and the way there
    from the page of the run; None and empty where there is none."""

    report: BaselineReport
    spent: str
    page: Path | None
    address: str


def view_baseline(record: Record, folder: Path) -> BaselineView | None:
    """Return the direct call of a run for a page in this folder; None where none was made."""
    report = record.result.baseline
    if report is None:
        return None
    # The result may be a stranger's: only a folder of the run itself is read.
    name = report.folder if report.folder and is_of_baseline(report.folder) else None
    page = record.directory / name / REPORT if name else None
    if page is None or not page.is_file():
        page = None
    address = quote(Path(os.path.relpath(page, folder)).as_posix()) if page else ""
    usage = _read_usage(record.directory / name) if name else None
    spent = _describe_spent(report, usage)
    return BaselineView(report=report, spent=spent, page=page, address=address)


def _read_usage(directory: Path) -> UsageReport | None:
    """Return the usage of the direct call and the comparison; None where its result is gone."""
    with suppress(pydantic.ValidationError):
        return UsageReport.model_validate(read_document(directory / RESULT).get("usage"))
    return None


def _describe_spent(report: BaselineReport, usage: UsageReport | None) -> str:
    taken = f"{report.tokens:,} tokens"
    if usage and "direct" in usage.by_call:
        calls = count_noun(usage.by_call["direct"].requests, "call")
        all_calls = count_noun(usage.total.requests, "call")
        taken = f"{calls} and {taken}, with the comparison {all_calls} and "
        taken += f"{usage.total.total_tokens:,} tokens"
    return f"It took {taken}; the figures of the run do not count them."
