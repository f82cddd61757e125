"""`aeon eval format=inspect`: logs that Inspect reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aeon.cli.main import main

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, EvalLog]:
    """The logs of two arms on two rows, each answered twice, one row of which cannot be run."""
    from inspect_ai.log import read_eval_log

    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": "a", "task": "name a river", "target": "Rhine", "metadata": {"kind": "river"}},
        {"id": "b", "task": "name a lake", "overrides": {"no.such": 1}},
    ]
    Path("tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["dataset=tasks.jsonl", "out=out", "provider=simulated", "allow_simulated=true"]
    arms = ['arms.one=["mode=single"]', 'arms.core=["mode=core"]']
    words += [*arms, "repeat=2", "format=inspect", "batch.records=all"]
    assert main(["eval", *words]) == 5
    paths = sorted(Path("out/inspect").iterdir())
    return {path.stem: read_eval_log(str(path), resolve_attachments=True) for path in paths}


def test_there_is_a_log_for_each_arm_with_its_figures(logs: dict[str, EvalLog]) -> None:
    assert sorted(logs) == ["core", "one"]
    log = logs["one"]
    assert (log.status, log.eval.task, log.eval.config.epochs) == ("success", "tasks-one", 2)
    assert log.eval.task_args == {"arm": "one", "overrides": ["mode=single"]}
    assert log.eval.model == "simulated/simulated"
    assert log.results is not None
    metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    assert (metrics["accuracy"], metrics["not_measured"]) == (0.0, 2)
    assert (log.results.total_samples, log.results.completed_samples) == (4, 2)


def test_each_answer_is_a_sample_with_its_score_and_what_it_took(logs: dict[str, EvalLog]) -> None:
    samples = logs["one"].samples
    assert samples is not None
    found = {(sample.id, sample.epoch): sample for sample in samples}
    assert sorted(found) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    answered, unmeasured = found["a", 1], found["b", 1]
    assert (answered.input, answered.target) == ("name a river", "Rhine")
    assert answered.metadata["kind"] == "river"
    assert answered.scores is not None
    assert answered.scores["passed"].value == "I"
    assert answered.scores["passed"].explanation == "the answer is not the target"
    assert answered.model_usage["simulated/simulated"].total_tokens > 0
    assert unmeasured.scores is None
    assert unmeasured.error is not None
    assert "a row may not set no.such" in unmeasured.error.message


def test_the_events_of_a_sample_are_the_requests_of_its_record(logs: dict[str, EvalLog]) -> None:
    samples = logs["core"].samples
    assert samples is not None
    found = {(sample.id, sample.epoch): sample for sample in samples}
    events = [event for event in found["a", 2].events if event.event == "model"]
    assert [event.metadata["call"] for event in events if event.metadata][:2] == ["plan", "step"]
    assert "name a river" in events[0].input[-1].text
    assert events[0].output.usage is not None
    assert found["b", 2].events == []


def test_inspects_tables_read_the_logs(logs: dict[str, EvalLog]) -> None:
    from inspect_ai.analysis import samples_df

    frame = samples_df("out/inspect")
    assert len(frame) == 8
    assert frame["score_passed"].dropna().tolist() == ["I"] * 4
