"""A measurement as Inspect logs, for its viewer and its readers: one for each arm, with recorded
facts only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from aeon.batch.dataset import Dataset, Row
from aeon.batch.records import unpack_record
from aeon.batch.summary import Line
from aeon.domain.errors import ConfigError
from aeon.evaluation.arms import AnswerName
from aeon.evaluation.models import ArmSummary, GradedAnswer, Measurement
from aeon.observability.artefacts import as_artefact_error
from aeon.report.record import Call, load_record

# An extra: the functions that need it import it.
if TYPE_CHECKING:
    from inspect_ai.event import ModelEvent
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ModelUsage
    from inspect_ai.scorer import Score

FOLDER = "inspect"
_SCORER = "aeon"
_VALUES = {"passed": "C", "failed": "I"}


def require_inspect() -> None:
    """Raise ConfigError where Inspect is not installed."""
    try:
        import inspect_ai  # noqa: F401
    except ImportError:
        raise ConfigError(
            "format=inspect needs an extra", hint='pip install "aeon-engine[inspect]"'
        ) from None


def write_logs(
    measurement: Measurement,
    dataset: Dataset,
    lines: Mapping[str, Line],
    models: Mapping[str, str],
    results: Path,
) -> list[Path]:
    """Write a log for each arm next to the `results`, and return their paths. `lines` are those of
    the results by their ids, `models` the configured models of the arms. Raises ArtefactError."""
    from inspect_ai.log import write_eval_log

    folder = results.parent / FOLDER
    written = []
    with as_artefact_error(folder):
        folder.mkdir(exist_ok=True)
        for arm in measurement.arms:
            log = _make_log(measurement, arm, dataset, lines, models[arm.name], results)
            path = folder / f"{arm.name}.eval"
            write_eval_log(log, str(path), format="eval")
            written.append(path)
    return written


def _make_log(
    measurement: Measurement,
    arm: ArmSummary,
    dataset: Dataset,
    lines: Mapping[str, Line],
    model: str,
    results: Path,
) -> EvalLog:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec

    samples = []
    for row, answer in _list_answers(measurement, arm, dataset):
        name = AnswerName(arm.name, answer.repeat, row.id).id
        sample = _make_sample(row, answer, lines.get(name), model)
        sample.events = list(_read_events(results, lines.get(name), name))
        samples.append(sample)
    return EvalLog(
        status="success",
        eval=EvalSpec(
            created=datetime.now(UTC).isoformat(),
            task=f"{Path(measurement.dataset).stem}-{arm.name}",
            task_args={"arm": arm.name, "overrides": list(arm.overrides)},
            solver=_SCORER,
            solver_args={"overrides": list(arm.overrides)},
            dataset=EvalDataset(
                name=measurement.dataset,
                samples=len(measurement.rows),
                sample_ids=[row.id for row in measurement.rows],
                shuffled=False,
            ),
            model=model,
            config=EvalConfig(epochs=measurement.repeat),
        ),
        results=_make_results(arm),
        samples=samples,
    )


def _list_answers(
    measurement: Measurement, arm: ArmSummary, dataset: Dataset
) -> Iterator[tuple[Row, GradedAnswer]]:
    measured = {row.id: row for row in measurement.rows}
    for row in dataset.rows():
        if row.id in measured:
            yield from ((row, answer) for answer in measured[row.id].of_arm(arm.name))


def _make_results(arm: ArmSummary) -> Any:
    """Return shares of all answers: an unmeasured answer has not passed, as in the table."""
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore

    low, high = arm.pass_rate_interval
    figures = {
        "accuracy": arm.pass_rate,
        "accuracy_low": low,
        "accuracy_high": high,
        "mean_score": arm.mean_score,
        "not_measured": arm.not_measured,
    }
    metrics = {name: EvalMetric(name=name, value=value) for name, value in figures.items()}
    score = EvalScore(
        name="passed",
        scorer=_SCORER,
        scored_samples=arm.passed + arm.failed,
        unscored_samples=arm.not_measured,
        metrics=metrics,
    )
    return EvalResults(
        total_samples=arm.answers, completed_samples=arm.passed + arm.failed, scores=[score]
    )


def _make_sample(row: Row, answer: GradedAnswer, line: Line | None, model: str) -> EvalSample:
    from inspect_ai.log import EvalError, EvalSample
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput

    sample = EvalSample(
        id=row.id,
        epoch=answer.repeat,
        input=row.task,
        target=row.target,
        messages=[ChatMessageUser(content=row.task)],
        metadata={**row.metadata, "inputs": dict(row.inputs), "ended": answer.ended},
        total_time=answer.seconds,
    )
    if line is not None and answer.answer:
        sample.output = ModelOutput.from_content(model, answer.answer)
        sample.messages.append(ChatMessageAssistant(content=answer.answer))
        sample.model_usage = {model: _make_usage(line)}
    if answer.grade.verdict == "not_measured":
        sample.error = EvalError(message=answer.grade.reason, traceback="", traceback_ansi="")
    else:
        sample.scores = {"passed": _make_score(answer)}
    return sample


def _make_usage(line: Line) -> ModelUsage:
    from inspect_ai.model import ModelUsage

    given = line.get("input_tokens", 0)
    made = line.get("output_tokens", 0)
    return ModelUsage(
        input_tokens=given,
        output_tokens=made,
        total_tokens=given + made,
        total_cost=line.get("cost"),
    )


def _make_score(answer: GradedAnswer) -> Score:
    from inspect_ai.scorer import Score

    grade = answer.grade
    return Score(
        value=_VALUES[grade.verdict],
        answer=answer.answer,
        explanation=grade.reason or None,
        metadata={
            "score": grade.score,
            "checks": [check.model_dump(mode="json") for check in grade.checks],
        },
    )


def _read_events(results: Path, line: Line | None, name: str) -> Iterator[ModelEvent]:
    """Yield the requests of an answer's run, if its record was stored (`batch.records=all`)."""
    if line is None or not line.get("record"):
        return
    with TemporaryDirectory() as place:
        directory = Path(place) / "run"
        unpack_record(results, name, directory)
        yield from map(_make_event, load_record(directory).calls)


def _make_event(call: Call) -> ModelEvent:
    from inspect_ai.event import ModelEvent
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        GenerateConfig,
        ModelOutput,
        ModelUsage,
    )

    kinds = {
        "system": ChatMessageSystem,
        "user": ChatMessageUser,
        "assistant": ChatMessageAssistant,
    }
    messages = (call.request or {}).get("messages", ())
    output = ModelOutput.from_content(call.model, call.text or "", error=call.message or None)
    output.usage = ModelUsage(
        input_tokens=call.usage.input_tokens,
        output_tokens=call.usage.output_tokens,
        total_tokens=call.usage.total_tokens,
        total_cost=call.cost,
    )
    output.time = call.seconds
    return ModelEvent(
        timestamp=datetime.fromisoformat(call.started),
        model=call.model,
        role=call.role,
        input=[kinds[message["role"]](content=message["content"]) for message in messages],
        tools=[],
        tool_choice="none",
        config=GenerateConfig(),
        output=output,
        error=call.error,
        working_time=call.seconds,
        metadata={"call": call.call, "cycle": call.cycle, "step": call.step_id},
    )
