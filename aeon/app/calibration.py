"""Whether a run is judged as its thresholds were calibrated (`aeon calibrate`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

from aeon.app.process import Process
from aeon.checks.decision import describe_rubrics
from aeon.domain.assessment import SCORE_CODES, Calibration, ConvergenceSettings
from aeon.domain.checks import RubricCheck
from aeon.domain.history import ExecutionPass

_PARTS = {
    "templates": "prompt templates",
    "schema": "schema",
    "criteria": "criteria",
    "parameters": "parameters (roles.grader)",
}


def digest_judge(shared: Process, rubrics: Mapping[str, RubricCheck]) -> dict[str, str]:
    """Return SHA-256, hex, of each part of the judge's requests: its prompt templates, its schema,
    the criteria in words, those of `rubrics` too, and its parameters except the model."""
    criteria = {**shared.settings.convergence.criteria, **describe_rubrics(rubrics)}
    parameters = shared.settings.roles.grader.model_dump(mode="json", exclude={"model"})
    return {
        "templates": shared.prompts.digest_call("convergence"),
        "schema": shared.schemas.digest_call("convergence"),
        "criteria": _digest(criteria),
        "parameters": _digest(parameters),
    }


def _digest(values: Mapping[str, object]) -> str:
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def count_looks(passes: Iterable[ExecutionPass], settings: ConvergenceSettings) -> int:
    """Count the passes in which the judge could have ended the run: all that were assessed, or with
    `when=plan_done` those that had the whole answer."""
    assessments = [
        one.evaluation_results.convergence
        for one in passes
        if one.answer_complete or settings.when == "any"
    ]
    return sum(one is not None and one.evaluated for one in assessments)


def find_deviations(
    shared: Process, rubrics: Mapping[str, RubricCheck], judges: Sequence[str], looks: int
) -> Iterator[str]:
    """Yield in words how a run departs from the calibration of its thresholds; nothing where they
    were not calibrated. `judges` are the models that assessed it, `looks` the number of assessments
    that could have ended it."""
    settings = shared.settings.convergence
    calibration = settings.calibration
    if calibration is None:
        return
    yield from find_changes(calibration, digest_judge(shared, rubrics), judges)
    if any(getattr(settings, name) < calibration.threshold for name in SCORE_CODES):
        yield f"a threshold is below the calibrated {calibration.threshold:g}"
    if settings.margin > 0:
        yield "convergence.margin takes the median of several judgements, and one was calibrated"
    if looks > calibration.passes:
        yield (
            f"it could have converged in {looks} passes, "
            f"and the promise is for {calibration.passes}"
        )


def find_changes(
    calibration: Calibration, digests: Mapping[str, str], judges: Sequence[str]
) -> Iterator[str]:
    """Yield in words how the judge departs from the calibrated one: `judges` are the models that
    judged, `digests` those of the parts of its present requests."""
    others = [model for model in judges if model not in calibration.models]
    if others:
        known = ", ".join(calibration.models)
        yield f"the judge was {', '.join(others)}, and the calibrated one is {known}"
    if changed := list(_list_changed(calibration, digests)):
        yield f"the judge's {', '.join(changed)} changed since the calibration"


def _list_changed(calibration: Calibration, today: Mapping[str, str]) -> Iterator[str]:
    for part, words in _PARTS.items():
        if calibration.hashes.get(part) != today[part]:
            yield words
