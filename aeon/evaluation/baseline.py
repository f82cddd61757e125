"""An earlier measurement as the baseline that a later one may not fall below."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from aeon.batch.dataset import Dataset, digest
from aeon.checks.selection import Check, CheckSet
from aeon.domain.checks import NamedCheck
from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, JsonObject
from aeon.evaluation import forms, statistics
from aeon.evaluation.models import BaselineComparison, MeasuredRow, Measurement
from aeon.evaluation.table import digest_row
from aeon.files.text import load_json
from aeon.observability.artefacts import as_artefact_error, replace_file
from aeon.report.words import count_noun

_RowName = tuple[str, str, int]


def digest_checks(checks: CheckSet, judge: JsonMapping | None = None) -> str:
    """Return a digest of what decides, besides the rows, which answers pass: the required checks
    of the configuration and of a plan file's steps, with the code that they call, and what
    describes the `judge`, if one grades."""
    prepared = (_describe_check(one) for one in checks.checks if one.settings.required)
    rubrics = (
        (name, {**one.model_dump(mode="json", exclude={"weight"}), "code": ""})
        for name, one in checks.rubrics.items()
        if one.required
    )
    required = dict((*prepared, *rubrics))
    return digest(json.dumps([required, dict(judge or {})], sort_keys=True)).hex()


def has_own_checks(dataset: Dataset) -> bool:
    """Check whether no configured check decides, since each row has its own and names none."""
    return all(
        row.checks and not any(isinstance(one, NamedCheck) for one in row.checks.values())
        for row in dataset.rows()
    )


def _describe_check(check: Check) -> tuple[str, JsonObject]:
    # Code counts by its content: its files may be in other folders elsewhere.
    left_out = {"weight", "value", "files"} if check.code else {"weight"}
    settings = check.settings.model_dump(mode="json", exclude=left_out)
    return check.name, {**settings, "code": check.code}


def read_baseline(
    path: Path, arm: str, dataset: Dataset, repeat: int, decided_by: str
) -> Measurement:
    """Read an earlier `eval.json`. Raises ConfigError before any paid call for any other file, and
    for one without the arm, with unmeasured answers of it, graded by anything else than
    `decided_by`, without any of the rows, or with another number of answers to each."""
    baseline = _read(path)
    names = [one.name for one in baseline.arms]
    if arm not in names:
        raise ConfigError(
            f"baseline={path}: it has no arm {arm}, but {', '.join(names)}",
            hint="arm=NAME names the arm that is compared.",
        )
    if baseline.repeat != repeat:
        raise ConfigError(
            f"baseline={path}: it has repeat={baseline.repeat}, this measurement repeat={repeat}",
            hint=f"Give repeat={baseline.repeat}, or write a new baseline with bless=true.",
        )
    earlier = baseline.arm(arm)
    if earlier.not_measured:
        raise ConfigError(
            f"baseline={path}: {earlier.not_measured:,} of the {count_noun(earlier.answers, 'answer')}"
            f" of the arm {arm} are not measured",
            hint="Repeat the command that measured it until all are, or give bless=true.",
        )
    if decided_by != baseline.decided_by.get(arm, decided_by):
        raise ConfigError(
            f"baseline={path}: what decides which answers of the arm {arm} pass has changed since: "
            "its checks, or the judge",
            hint="bless=true writes a new baseline from this measurement.",
        )
    present = _name_rows((row.id, digest_row(row)) for row in dataset.rows())
    if _name_measured(baseline).keys().isdisjoint(present):
        raise ConfigError(
            f"baseline={path}: it has none of the present rows of this dataset",
            hint="Give the dataset that it was measured on, or bless=true.",
        )
    return baseline


def _read(path: Path) -> Measurement:
    try:
        content = path.read_bytes()
        return Measurement.model_validate_json(content)
    except FileNotFoundError:
        raise ConfigError(
            f"baseline={path}: there is no such file",
            hint="bless=true writes it from this measurement.",
        ) from None
    except OSError as error:
        raise ConfigError(f"baseline={path}: {error.strerror or error}") from None
    except ValidationError:
        _require_measurement(path, content)
        raise ConfigError(
            f"baseline={path}: this is not an eval.json of this version",
            hint="bless=true replaces it by this measurement.",
        ) from None


def require_replaceable(path: Path) -> None:
    """Raise ConfigError for a file that is not the `eval.json` of any version: only such a file is
    replaced by a new baseline."""
    try:
        _require_measurement(path, path.read_bytes())
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"baseline={path}: {error.strerror or error}") from None


def _require_measurement(path: Path, content: bytes) -> None:
    try:
        found = load_json(content)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not str(found.get("format")).startswith("aeon.eval/"):
        raise ConfigError(
            f"baseline={path}: this is not an eval.json",
            hint="Name the eval.json of a measurement, or with bless=true a new file.",
        )


def compare_with_baseline(
    evaluation: Measurement, baseline: Measurement, name: str
) -> BaselineComparison:
    """Compare the judged arm with the same rows of an earlier measurement, called `name`."""
    arm = evaluation.judged
    changes = _list_changes(evaluation, baseline)
    improved = sum(change > 0 for change in changes)
    degraded = sum(change < 0 for change in changes)
    p = statistics.mcnemar_worse(improved, degraded)
    # With repeats, more rows may degrade than improve although more answers pass.
    is_worse = p <= statistics.LEVEL and sum(changes) < 0
    comparison = BaselineComparison(
        arm=arm,
        baseline=name,
        rows=len(changes),
        improved=improved,
        degraded=degraded,
        p=p,
        is_worse=is_worse,
        sentence="",
    )
    sentence = _describe(comparison, baseline)
    return comparison.model_copy(update={"sentence": sentence})


def _list_changes(evaluation: Measurement, baseline: Measurement) -> list[int]:
    """Return for each row that both have how many more answers of the judged arm passed."""
    arm = evaluation.judged
    before = _name_measured(baseline)
    return [
        row.count(arm) - before[name].count(arm)
        for name, row in _name_measured(evaluation).items()
        if name in before
    ]


def _name_measured(evaluation: Measurement) -> dict[_RowName, MeasuredRow]:
    """Return the rows of a measurement by their names in all measurements."""
    rows = evaluation.rows
    return dict(zip(_name_rows((row.id, row.asked) for row in rows), rows, strict=True))


def _name_rows(rows: Iterable[tuple[str, str]]) -> Iterator[_RowName]:
    """Yield a name for each row, given its id and what it asks for: these two, and its place among
    those of which both are equal. An id that is a number may be no more than the row's place in the
    dataset, which another row moves: it is left out."""
    seen = Counter[tuple[str, str]]()
    for row_id, asked in rows:
        known = "" if row_id.isdecimal() else row_id, asked
        seen[known] += 1
        yield *known, seen[known]


def _describe(comparison: BaselineComparison, baseline: Measurement) -> str:
    state = "worse than" if comparison.is_worse else "not worse, by this test, than"
    sentence = (
        f"{comparison.arm} is {state} the baseline {comparison.baseline}: of "
        f"{count_noun(comparison.rows, 'row')} that both have, {comparison.improved} improved and "
        f"{comparison.degraded} degraded, p = {comparison.p:.2g}."
    )
    if comparison.p <= statistics.LEVEL and not comparison.is_worse:
        sentence += " No fewer answers passed."
    rows = len(baseline.rows)
    if 2 * comparison.rows < rows:
        verb = "is" if comparison.rows == 1 else "are"
        sentence += (
            f" Only {comparison.rows:,} of the {rows:,} rows of the baseline {verb} among the "
            "present ones."
        )
    if comparison.arm not in baseline.decided_by:
        sentence += " The baseline does not tell by which checks it was graded: bless=true writes one that does."
    return sentence


def bless(evaluation: Measurement, path: Path) -> None:
    """Make a measurement the baseline of later ones. Raises ArtefactError."""
    with as_artefact_error(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, forms.write_json_of(evaluation))
