import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from aeon.cli.jobs import Job, read_jobs, summary, swept, swept_keys
from aeon.cli.status import DONE, FAILED, INTERRUPTED, NOT_CONVERGED, USAGE, read_statuses, worst, write_status
from tests.cli.conftest import RunAeon

QUIET = ("provider=simulated", "progress=none")


def results(root: Path) -> list[dict[str, Any]]:
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


def table(err: str) -> list[dict[str, str]]:
    """The lines of the table at the end, by column; columns begin where their headings do."""
    *_, block = err.rstrip().split("\n\n")
    head, *lines, _ = block.splitlines()
    starts = [head.index(name) for name in head.split()]
    spans = [*pairwise(starts), (starts[-1], None)]
    return [{head[a:b].strip(): line[a:b].strip() for a, b in spans} for line in lines]


def test_the_jobs_stand_side_by_side_at_the_end(aeon: RunAeon, tmp_path: Path) -> None:
    ended = aeon("--multirun", "task=x", "ttl.base=1,10", "limits.max_passes=9", *QUIET)
    rows = table(ended.err)
    left = results(tmp_path)
    assert [row["job"] for row in rows] == ["0", "1"]
    assert [row["overrides"] for row in rows] == ["ttl.base=1", "ttl.base=10"]
    assert [row["ended"] for row in rows] == [result["termination_reason"] for result in left]
    assert [row["converged"] for row in rows] == ["no", "yes"]
    assert [row["passes"] for row in rows] == [str(result["passes"]) for result in left]
    assert [row["calls"] for row in rows] == [str(result["usage"]["total"]["requests"]) for result in left]
    assert rows[1]["completeness"] == f"{left[1]['scores']['completeness_score']:.2f}"
    assert [row["exit"] for row in rows] == ["3", "0"]
    assert [(tmp_path / row["directory"] / "result.json").exists() for row in rows] == [True, True]
    assert ended.err.splitlines()[-1] == ("2 jobs, 1 converged. Exit status 3, the worst of the jobs, that of job 0.")


def test_each_job_is_told_before_its_own_lines(aeon: RunAeon) -> None:
    lines = aeon("--multirun", "task=x", "provider.seed=0,1", "ttl=small", *QUIET).err.splitlines()
    endings = [number for number, line in enumerate(lines) if "Artefacts: " in line]
    assert lines.index("job 0  provider.seed=0") < endings[0] < lines.index("job 1  provider.seed=1") < endings[1]


def test_what_a_ready_made_sweep_sweeps_over_is_told(aeon: RunAeon) -> None:
    ended = aeon("--multirun", "task=x", "sweep=thresholds", *QUIET)
    assert [row["overrides"] for row in table(ended.err)] == [
        f"convergence={name}" for name in ("lenient", "default", "strict")
    ]


def test_a_sweep_of_a_resumed_run_tells_what_was_saved(aeon: RunAeon, tmp_path: Path) -> None:
    assert aeon("task=x", "convergence.completeness=0.9", *QUIET).status == 0
    (recorded,) = tmp_path.glob("outputs/*/*")
    ended = aeon("-m", f"resume={recorded}", "convergence.completeness=0.2,0.9", "progress=none")
    rows = table(ended.err)
    saved = [str(result["parent"]["saved"]["model_calls"]) for result in results(tmp_path)]
    assert [row["overrides"] for row in rows] == ["convergence.completeness=0.2", "convergence.completeness=0.9"]
    assert [row["saved"] for row in rows] == saved
    assert rows[1]["saved"] == rows[1]["calls"] != "0"


def test_a_job_without_a_result_and_one_that_never_began_say_so(tmp_path: Path) -> None:
    hydra = tmp_path / "0" / ".hydra"
    hydra.mkdir(parents=True)
    (hydra / "hydra.yaml").write_text("hydra: {job: {num: 0}, overrides: {task: ['a=1', 'b=${none}']}}\n")
    write_status(tmp_path / "0", USAGE)
    jobs = read_jobs(tmp_path, {"b"}, [["a=1", "b=${none}"], ["a=1", "b=2"]])
    assert jobs == [Job(0, ("b=${none}",), tmp_path / "0", USAGE), Job(1, ("b=2",))]
    began, never = table(f"\n\n{summary(jobs, USAGE)}")
    assert (began["ended"], began["exit"], began["directory"]) == ("no result", "2", str(tmp_path / "0"))
    assert (never["ended"], never["exit"], never["directory"]) == ("not started", "-", "-")


def test_jobs_whose_configuration_hydra_was_told_not_to_write_are_known_by_their_directories(tmp_path: Path) -> None:
    for number in (10, 9):
        (tmp_path / str(number)).mkdir()
        write_status(tmp_path / str(number), DONE)
    assert [(job.number, job.overrides, job.status) for job in read_jobs(tmp_path, {"a"})] == [(9, (), 0), (10, (), 0)]


def test_what_is_swept_over_is_what_has_several_values() -> None:
    keys = swept_keys(["c=0.9", "c=0.8,0.9", "++d=1,2", "e=1", "task='a,b'"], ["f"])
    assert keys == {"c", "d", "f"}
    assert swept(["c=0.9", "e=1", "c=0.8", "++d=\x1b2", "f=3"], keys) == ("c=0.8", "d= 2", "f=3")
