"""The option `convergence=calibrated`, which `aeon calibrate` writes."""

from __future__ import annotations

from pathlib import Path

import yaml

from aeon.config.folder_content import Content, read_content
from aeon.config.trusted_folders import list_trusted, remember
from aeon.domain.assessment import SCORE_CODES, Calibration, ConvergenceSettings
from aeon.domain.errors import ConfigError
from aeon.evaluation.calibration.models import CalibrationReport, ThresholdReport
from aeon.evaluation.calibration.sentences import describe_promise
from aeon.observability.artefacts import as_artefact_error, replace_file
from aeon.report.words import one_line

OPTION = Path("convergence") / "calibrated.yaml"
_OWN = {"calibration", "margin", "when", "criteria_file", *SCORE_CODES}


def require_replaceable(path: Path) -> None:
    """Raise ConfigError for a file that `aeon calibrate` did not write: only its own files are
    replaced."""
    if not path.exists():
        return
    try:
        values = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError):
        values = None
    if not isinstance(values, dict) or not isinstance(values.get("calibration"), dict):
        raise ConfigError(
            f"{path}: exists already, and `aeon calibrate` did not write it",
            hint="Rename it: convergence=calibrated is the option that a calibration writes.",
        )


def write_option(path: Path, report: CalibrationReport, settings: ConvergenceSettings) -> None:
    """Write the option: the promised threshold, the figures behind it, and the configured rest of
    `convergence`. Raises ArtefactError."""
    promised = report.promised
    assert promised is not None
    with as_artefact_error(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    head = (
        f"# Written by `aeon calibrate {one_line(report.labels)}`: "
        f"{describe_promise(report)}\n# Run it again when the judge, its prompts "
        "or what counts as good change; a run reports where they have.\n\n"
    )
    values = {
        "defaults": ["default", "_self_"],
        **dict.fromkeys(SCORE_CODES, promised.threshold),
        "margin": 0.0,
        # The labelled answers were whole answers.
        "when": "plan_done",
        "criteria_file": None,
        **settings.model_dump(mode="json", exclude_defaults=True, exclude=_OWN),
        "calibration": _make_calibration(report, promised).model_dump(mode="json"),
    }
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=110)
    replace_file(path, (head + text).encode())


def _make_calibration(report: CalibrationReport, promised: ThresholdReport) -> Calibration:
    return Calibration(
        threshold=promised.threshold,
        max_false=report.max_false,
        at_most=promised.at_most or 0.0,
        passes=report.passes,
        models=report.models,
        hashes=report.hashes,
        good=report.good,
        bad=report.bad,
        repeat=report.repeat,
        sensitivity=promised.rates.sensitivity.share,
        specificity=promised.rates.specificity.share,
        spread={name: spread.deviation for name, spread in report.spread.items()},
    )


def trust_again(before: Content, path: Path) -> bool:
    """Trust a project's folder again after the option was written into it, if the person had
    trusted its content `before` and nothing else has changed. Returns whether it is trusted; else
    they are asked before the next run."""
    after = read_content(before.folder)
    name = path.resolve().relative_to(before.folder).as_posix()
    was_trusted = list_trusted().get(str(before.folder)) == before.digest
    if not was_trusted or _without(after, name) != _without(before, name):
        return False
    remember(after)
    return True


def _without(content: Content, name: str) -> dict[str, bytes]:
    return {other: data for other, data in content.files.items() if other != name}
