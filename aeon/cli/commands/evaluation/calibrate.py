"""`aeon calibrate labels.jsonl`: measures how well the judge tells good answers from bad ones, and
chooses a threshold that limits false convergence."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from aeon.batch.half_price import remove_journal
from aeon.batch.runner import GroupControl, group_endpoints
from aeon.batch.summary import Line
from aeon.cli.commands.evaluation.judging import make_folder, open_judge
from aeon.cli.job.prepare import read_settings
from aeon.cli.terminal.status import BELOW, DONE, INTERRUPTED, NOT_MEASURED
from aeon.cli.terminal.streams import put, say
from aeon.cli.terminal.width import fit_rows
from aeon.config.compose.literal import Composition
from aeon.config.folder_content import Content, read_content
from aeon.config.project_file import find_project
from aeon.config.settings import Settings
from aeon.domain.assessment import SCORE_CODES
from aeon.domain.errors import ConfigError
from aeon.evaluation.calibration.labels import (
    Label,
    list_judged_rows,
    read_labels,
    require_both_kinds,
)
from aeon.evaluation.calibration.measure import CalibrationTask, measure_judge
from aeon.evaluation.calibration.models import CalibrationReport
from aeon.evaluation.calibration.option import (
    OPTION,
    require_replaceable,
    trust_again,
    write_option,
)
from aeon.evaluation.calibration.sentences import describe_need, write_report
from aeon.evaluation.judging import explain_missing, is_judged
from aeon.observability.artefacts import replace_file, write_json
from aeon.report.words import command_of, one_line, relative_to_here

JUDGEMENTS = "judgements.jsonl"
REPORT = "calibration.json"
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class _CalibrationPlace:
    """The folder of a calibration's files, and the option file that it writes; `project` is the
    former content of the project file's folder."""

    folder: Path
    option: Path
    project: Content | None

    @property
    def judgements(self) -> Path:
        """The file of the judgements."""
        return self.folder / JUDGEMENTS


def calibrate(words: Namespace) -> int:
    """Measure the judge. 0 when a threshold is promised and written, 4 when none is, 5 when a
    judgement failed, 130 when interrupted. Raises ConfigError before any paid call."""
    path: Path = words.labels.expanduser()
    labels = read_labels(path)
    require_both_kinds(labels, path)
    composition, settings = read_settings(words, "sweep", "arms")
    _refuse_settings(settings)
    place = _find_place(words, path, composition)
    require_replaceable(place.option)
    control = GroupControl()
    with (
        closing(group_endpoints(settings.batch, control)) as endpoints,
        open_judge(
            composition,
            settings,
            endpoints,
            control,
            place.judgements,
            allows_simulated=words.allow_simulated == "true",
        ) as judge,
    ):
        make_folder(place.folder, "calibration")
        _announce_need(words, labels)
        judge.judge(str(words.labels), list_judged_rows(path, labels, words.repeat))
        lines = judge.read_lines()
        task = CalibrationTask(
            path.name,
            words.repeat,
            words.max_false,
            words.passes,
            judge.aeon.judge_digests,
            {name: getattr(settings.convergence, name) for name in SCORE_CODES},
        )
    report = measure_judge(task, labels, lines)
    if control.is_interrupted:
        return INTERRUPTED
    if report is None or report.not_measured:
        _show(report, place)
        _explain_failure(lines.values())
        return NOT_MEASURED
    remove_journal(place.judgements)
    _show(report, place)
    return _write(report, place, settings)


def _refuse_settings(settings: Settings) -> None:
    if settings.resume is not None or settings.store.mode in ("replay", "cache"):
        raise ConfigError(
            "a calibration resumes by itself, from its folder, and shares no judgements: "
            "leave out resume, store=replay and store=cache"
        )


def _find_place(words: Namespace, labels: Path, composition: Composition) -> _CalibrationPlace:
    folder = words.out or labels.with_suffix(".calibration")
    folder = folder.expanduser()
    own = composition.config_dir
    option = (own or folder / "conf") / OPTION
    project = None if words.no_project else find_project(Path.cwd())
    is_within = project is not None and option.resolve().is_relative_to(project.parent.resolve())
    return _CalibrationPlace(
        folder, option, read_content(project.parent) if project and is_within else None
    )


def _announce_need(words: Namespace, labels: Sequence[Label]) -> None:
    """Report before any paid call that there are too few good answers for any promise."""
    good = sum(label.good for label in labels)
    if need := describe_need(good, words.max_false, words.passes):
        say(need)


def _show(report: CalibrationReport | None, place: _CalibrationPlace) -> None:
    if report is None:
        say("Too few answers were judged for a result: repeat the command to judge the rest.")
        return
    replace_file(place.folder / REPORT, write_json(report.model_dump(mode="json")))
    put(fit_rows(write_report(report), hanging=0))


def _explain_failure(lines: Iterable[Line]) -> None:
    failed = next((line for line in lines if not is_judged(line)), None)
    if failed is not None:
        say(
            f"The first judgement that failed: {one_line(explain_missing(failed), _LONGEST_REASON)}"
        )


def _write(report: CalibrationReport, place: _CalibrationPlace, settings: Settings) -> int:
    shown = relative_to_here(place.option)
    if report.chosen is None:
        if place.option.exists():
            say(f"{shown} comes from an earlier calibration, which these labels do not confirm.")
        return BELOW
    write_option(place.option, report, settings.convergence)
    if place.option.is_relative_to(place.folder):
        conf = relative_to_here(place.folder / "conf")
        say(
            f"Written: {shown}. Use it: "
            f'{command_of(("--config-dir", str(conf), "convergence=calibrated"))} task="..."'
        )
        return DONE
    say(f'Written: {shown}. Use it: {command_of(("convergence=calibrated",))} task="..."')
    if place.project is not None and not trust_again(place.project, place.option):
        say(
            f"`aeon trust {place.project.folder}` shows what "
            "has changed, and asks, before the next run."
        )
    return DONE
