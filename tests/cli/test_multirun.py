import json
from pathlib import Path

import pytest

from aeon.cli.status import DONE, FAILED, INTERRUPTED, NOT_CONVERGED, USAGE, read_statuses, worst, write_status
from tests.cli.conftest import RunAeon

QUIET = ("provider=simulated", "progress=none")


def results(root: Path) -> list[dict[str, object]]:
    return [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((root / "multirun").glob("*/*/*/result.json"))
    ]


def test_a_sweep_over_task_files_runs_a_job_for_each(aeon: RunAeon, tmp_path: Path) -> None:
    texts = ["one, with a comma", "two\r\nlines"]
    for name, text in zip("ab", texts, strict=True):
        (tmp_path / f"{name}.md").write_bytes(text.encode())
    ended = aeon("--multirun", "task_file=a.md,b.md", *QUIET)
    assert ended.status == 0
    assert [result["task"] for result in results(tmp_path)] == texts


@pytest.mark.parametrize("flag", ["--multirun", "-m", "hydra.mode=MULTIRUN"])
def test_free_text_is_one_job_in_a_multirun_too(aeon: RunAeon, tmp_path: Path, flag: str) -> None:
    text = "a,b 'c' \"d\" [e,f] {g: h} #i ${j} k=l \\ \n日本語"
    assert aeon(flag, f"task={text}", f"inputs.more={text}", "experiment=quick", *QUIET).status in (0, 3)
    (result,) = results(tmp_path)
    assert result["task"] == text


def test_every_job_runs_and_the_worst_ending_is_the_status(aeon: RunAeon, tmp_path: Path) -> None:
    ended = aeon("--multirun", "task=x", "ttl.base=1,10", "output=json", *QUIET)
    assert ended.status == NOT_CONVERGED
    assert [result["converged"] for result in results(tmp_path)] == [False, True]
    assert [json.loads(line)["converged"] for line in ended.out.splitlines()] == [False, True]


def test_a_failing_job_does_not_keep_the_next_from_running(aeon: RunAeon, scenario: Path, tmp_path: Path) -> None:
    ended = aeon("--multirun", "task=x", f"provider.scenario={scenario},null", *QUIET)
    assert ended.status == FAILED
    assert [result["termination_reason"] for result in results(tmp_path)] == ["failed", "converged"]


def test_a_ready_made_sweep_is_used_in_a_multirun_alone(aeon: RunAeon, tmp_path: Path) -> None:
    assert aeon("task=x", "sweep=thresholds", *QUIET).status == 0
    assert aeon("--multirun", "task=x", "sweep=thresholds", *QUIET).status in (0, 3)
    assert len(results(tmp_path)) == 3


def test_a_multirun_directory_is_not_used_again(aeon: RunAeon) -> None:
    again = ("--multirun", "task=x", "hydra.sweep.dir=mine", "experiment=quick", *QUIET)
    assert aeon(*again).status in (0, 3)
    second = aeon(*again)
    assert second.status == USAGE
    assert "already holds a run" in second.err


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([DONE, DONE], DONE),
        ([DONE, NOT_CONVERGED], NOT_CONVERGED),
        ([NOT_CONVERGED, USAGE], USAGE),
        ([USAGE, FAILED, NOT_CONVERGED], FAILED),
        ([FAILED, INTERRUPTED, DONE], INTERRUPTED),
        ([], FAILED),
        ([DONE, 7], FAILED),
    ],
)
def test_the_worst_of_statuses(statuses: list[int], expected: int) -> None:
    assert worst(statuses) == expected


def test_statuses_are_left_where_the_jobs_were(tmp_path: Path) -> None:
    for number, status in enumerate((0, 3)):
        (tmp_path / str(number)).mkdir()
        write_status(tmp_path / str(number), status)
    assert read_statuses(tmp_path) == [0, 3]
