"""A measurement as a table of texts, as JSON, as rows of CSV, and as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from xml.etree import ElementTree

from aeon.domain.values import JsonObject
from aeon.evaluation.models import ArmSummary, GradedAnswer, MeasuredRow, Measurement
from aeon.evaluation.sentences import (
    describe_unreported,
    format_interval,
    format_share,
    format_tokens,
)
from aeon.files.tables import write_csv
from aeon.observability.artefacts import write_json
from aeon.report.words import encode_for_xml, escape_controls, one_line, shorten

_LONGEST_TEXT = 4_000
_LONGEST_REASON = 300
CSV_COLUMNS = (
    "id",
    "arm",
    "repeat",
    "verdict",
    "score",
    "target_met",
    "checks",
    "reason",
    "ended",
    "tokens",
    "usage_reported",
    "calls",
    "cost",
    "seconds",
    "simulated",
    "answer",
)
"""The columns of `rows.csv`."""


def list_columns(evaluation: Measurement) -> list[tuple[str, list[str]]]:
    """Return the columns of the table of arms, each with its title and a text for each arm."""
    lines = [_list_cells_of(arm, evaluation.repeat) for arm in evaluation.arms]
    titles = [title for title, _ in lines[0]]
    return [(title, [cells[number][1] for cells in lines]) for number, title in enumerate(titles)]


def _list_cells_of(arm: ArmSummary, repeat: int) -> list[tuple[str, str]]:
    """Return the line of an arm: a text below each title."""
    repeated = [
        (f"pass@{repeat}", format_share(arm.pass_at[repeat])),
        (f"pass^{repeat}", format_share(arm.pass_all[repeat])),
    ]
    return [
        ("arm", arm.name),
        ("passed", f"{arm.passed:,} of {arm.answers:,}"),
        ("rate", format_share(arm.pass_rate)),
        ("95 %", format_interval(arm.pass_rate_interval)),
        *_list_corrected(arm),
        ("not measured", f"{arm.not_measured:,}"),
        ("score", f"{arm.mean_score:.3f}"),
        ("95 %", _format_score_interval(arm)),
        *(repeated if repeat > 1 else ()),
        ("tokens", format_tokens(arm.tokens, is_reported=not arm.unreported)),
        ("calls", f"{arm.calls:,}"),
        ("cost", "unknown" if arm.cost is None else f"{arm.cost:,.4f}"),
        ("seconds", f"{arm.seconds:,.1f}"),
    ]


def _list_corrected(arm: ArmSummary) -> list[tuple[str, str]]:
    corrected = arm.corrected
    if corrected is None:
        return []
    interval = format_interval(corrected.interval)
    return [("corrected", format_share(corrected.share)), ("95 %", interval)]


def _format_score_interval(arm: ArmSummary) -> str:
    interval = arm.mean_score_interval
    return "unknown" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"


def write_text(evaluation: Measurement, width: int | None = None) -> str:
    """Return the table of arms and the sentences below it, as plain text. Where a line for each arm
    is wider than `width`, each arm has a column."""
    columns = list_columns(evaluation)
    by_figure = [[title, *texts] for title, texts in columns]
    by_arm = [list(cells) for cells in zip(*by_figure, strict=True)]
    table = align(by_arm)
    if width is not None and max(map(len, table)) > width:
        table = align(by_figure)
    return "\n".join([*table, "", *list_sentences(evaluation)])


def align(lines: Sequence[Sequence[str]]) -> list[str]:
    """Align lines of cells as text, the first cell to the left, the others to the right of their
    columns."""
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    table = []
    for cells in lines:
        first, *rest = zip(cells, widths, strict=True)
        aligned = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
        table.append("  ".join(aligned).rstrip())
    return table


def list_sentences(evaluation: Measurement) -> list[str]:
    """Return the sentences below the table."""
    sentences = [comparison.sentence for comparison in evaluation.comparisons]
    judged = evaluation.arm(evaluation.judged)
    if evaluation.baseline is not None:
        sentences.append(evaluation.baseline.sentence)
    if evaluation.threshold is not None:
        state = "below" if judged.rate < evaluation.threshold else "at or above"
        rate = format_share(judged.rate)
        threshold = f"{evaluation.threshold:g}"
        sentences.append(f"{judged.name} passes {rate}: {state} threshold={threshold}.")
    sentences += filter(
        None, (evaluation.judging, evaluation.equality, describe_unreported(evaluation))
    )
    if evaluation.not_measured:
        sentences.append(_describe_unmeasured(evaluation))
    if any(arm.simulated for arm in evaluation.arms):
        sentences.append("SIMULATED: no model was called; these figures say nothing of any model.")
    return sentences


def _describe_unmeasured(evaluation: Measurement) -> str:
    unmeasured = [
        answer
        for row in evaluation.rows
        for answer in row.answers
        if answer.grade.verdict == "not_measured"
    ]
    reason = one_line(unmeasured[0].grade.reason, _LONGEST_REASON)
    count = len(unmeasured)
    return (
        f"Not measured: {count:,} of {sum(arm.answers for arm in evaluation.arms):,} answers. They "
        f"count as not passed, and nothing is decided by this measurement. The first: {reason}"
    )


def write_json_of(evaluation: Measurement) -> bytes:
    """Return the content of `eval.json`."""
    return write_json(evaluation.model_dump(mode="json"))


def write_csv_of(evaluation: Measurement) -> bytes:
    """Return the content of `rows.csv`: a line for each answer."""
    file = BytesIO()
    write_csv(file, CSV_COLUMNS, _list_cells(evaluation))
    return file.getvalue()


def _list_cells(evaluation: Measurement) -> Iterator[JsonObject]:
    for row in evaluation.rows:
        for answer in row.answers:
            grade = answer.grade
            yield {
                "id": row.id,
                "arm": answer.arm,
                "repeat": answer.repeat,
                "verdict": grade.verdict,
                "score": grade.score,
                "target_met": grade.is_target_met,
                "checks": ", ".join(_describe_checks(answer)),
                "reason": escape_controls(grade.reason),
                "ended": answer.ended,
                "tokens": answer.tokens if answer.is_usage_reported else answer.tokens or None,
                "usage_reported": answer.is_usage_reported,
                "calls": answer.calls,
                "cost": answer.cost,
                "seconds": answer.seconds,
                "simulated": answer.is_simulated,
                "answer": escape_controls(answer.answer),
            }


def _describe_checks(answer: GradedAnswer) -> Iterator[str]:
    for check in answer.grade.checks:
        state = "passed" if check.passed else "failed" if check.measured else "not measured"
        yield f"{check.name} {state}"


def write_junit(evaluation: Measurement) -> bytes:
    """Return the content of `junit.xml`: a suite for each arm, a case for each answer. A failed
    answer is a failure, an unmeasured one an error."""
    root = ElementTree.Element("testsuites", name=evaluation.dataset)
    for arm in evaluation.arms:
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=arm.name,
            tests=str(arm.answers),
            failures=str(arm.failed),
            errors=str(arm.not_measured),
            skipped="0",
            time=f"{arm.seconds:.3f}",
        )
        for row in evaluation.rows:
            for answer in row.of_arm(arm.name):
                _add_case(suite, row, answer, several=evaluation.repeat > 1)
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _add_case(
    suite: ElementTree.Element, row: MeasuredRow, answer: GradedAnswer, *, several: bool
) -> None:
    name = f"{row.id} ({answer.repeat})" if several else row.id
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=answer.arm,
        name=encode_for_xml(name),
        time=f"{answer.seconds:.3f}",
    )
    if answer.grade.verdict == "passed":
        return
    kind = "failure" if answer.grade.verdict == "failed" else "error"
    reason = one_line(answer.grade.reason, _LONGEST_REASON)
    found = ElementTree.SubElement(case, kind, message=encode_for_xml(reason))
    found.text = encode_for_xml(shorten(f"{answer.grade.reason}\n\n{answer.answer}", _LONGEST_TEXT))
