import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from aeon.batch.runner import GroupControl
from aeon.cli.job.multirun import (
    compare_jobs,
    has_ended,
    name_stop,
    read_statuses,
    write_status,
)
from aeon.cli.main import main
from aeon.cli.terminal.side_by_side import draw_comparison
from aeon.cli.terminal.status import (
    DONE,
    FAILED,
    INTERRUPTED,
    NOT_CONVERGED,
    USAGE,
    status_of_all,
)
from aeon.report.compare.forms import COLUMNS_OF_JOBS, write_csv
from aeon.report.compare.rows import ComparedRun, compare_runs
from tests.cli.conftest import RunAeon
from tests.support.openai_server import OpenAIServer
from tests.support.simulated_server import simulated

QUIET = ("provider=simulated", "progress=none")


def results(root: Path) -> list[dict[str, Any]]:
    return [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((root / "multirun").glob("*/*/*/result.json"))
    ]


@pytest.mark.slow
def test_a_sweep_over_task_files_runs_a_job_for_each(aeon: RunAeon, tmp_path: Path) -> None:
    texts = ["one, with a comma", "two\r\nlines"]
    for name, text in zip("ab", texts, strict=True):
        (tmp_path / f"{name}.md").write_bytes(text.encode())
    ended = aeon("--multirun", "task_file=a.md,b.md", *QUIET)
    assert ended.status == 0
    assert [result["task"] for result in results(tmp_path)] == texts


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["--multirun", "-m", "hydra.mode=MULTIRUN"])
def test_free_text_is_one_job_in_a_multirun_too(aeon: RunAeon, tmp_path: Path, flag: str) -> None:
    text = "a,b 'c' \"d\" [e,f] {g: h} #i ${j} k=l \\ \n日本語"
    assert aeon(flag, f"task={text}", f"inputs.more={text}", "experiment=quick", *QUIET).status in (
        0,
        3,
    )
    (result,) = results(tmp_path)
    assert result["task"] == text


@pytest.mark.slow
def test_every_job_runs_and_the_worst_ending_is_the_status(aeon: RunAeon, tmp_path: Path) -> None:
    ended = aeon("--multirun", "task=x", "ttl.base=1,10", "output=json", *QUIET)
    assert ended.status == NOT_CONVERGED
    assert [result["converged"] for result in results(tmp_path)] == [False, True]
    assert [json.loads(line)["converged"] for line in ended.out.splitlines()] == [False, True]


@pytest.mark.slow
def test_a_failing_job_does_not_keep_the_next_from_running(
    aeon: RunAeon, scenario: Path, tmp_path: Path
) -> None:
    ended = aeon("--multirun", "task=x", f"provider.scenario={scenario},null", *QUIET)
    assert ended.status == FAILED
    assert [result["termination_reason"] for result in results(tmp_path)] == ["failed", "converged"]


@pytest.mark.slow
def test_a_ready_made_sweep_is_used_in_a_multirun_alone_and_what_it_sweeps_over_is_shown(
    aeon: RunAeon, tmp_path: Path
) -> None:
    assert aeon("task=x", "sweep=thresholds", *QUIET).status == 0
    ended = aeon("--multirun", "task=x", "sweep=thresholds", *QUIET)
    assert ended.status in (0, 3)
    assert len(results(tmp_path)) == 3
    assert [row["convergence"] for row in table(ended.err)] == ["lenient", "default", "strict"]


@pytest.mark.slow
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
    ],
)
def test_the_worst_of_statuses(statuses: list[int], expected: int) -> None:
    jobs = [ComparedRun(name="", directory=Path(), ended="", status=status) for status in statuses]
    assert status_of_all(GroupControl(), read_statuses(jobs)) == expected


def test_statuses_are_left_where_the_jobs_were(tmp_path: Path) -> None:
    (tmp_path / "multirun.yaml").touch()
    for number, status in enumerate((0, 3)):
        (tmp_path / str(number)).mkdir()
        write_status(tmp_path / str(number), status)
    (tmp_path / "2" / ".hydra").mkdir(parents=True)
    assert [job.status for job in compare_jobs(tmp_path).runs] == [0, 3, FAILED]


def table(err: str) -> list[dict[str, str]]:
    """The lines of the table at the end, by column; two blanks at least stand between columns."""
    block = next(part for part in err.split("\n\n") if part.startswith("run  "))
    head, *lines = (re.split(r"  +", line.strip()) for line in block.splitlines())
    return [dict(zip(head, line, strict=True)) for line in lines]


@pytest.mark.slow
def test_the_jobs_stand_side_by_side_at_the_end(aeon: RunAeon, tmp_path: Path) -> None:
    ended = aeon("--multirun", "task=x", "ttl.base=1,10", "limits.max_passes=9", *QUIET)
    rows = table(ended.err)
    left = results(tmp_path)
    assert [(row["run"], row["ttl.base"]) for row in rows] == [("0", "1"), ("1", "10")]
    assert [row["ended by"] for row in rows] == ["ttl_expired", "converged"]
    assert [row["passes"] for row in rows] == [str(result["passes"]) for result in left]
    tokens = [result["usage"]["total"]["total_tokens"] for result in left]
    assert [row["tokens"] for row in rows] == [f"{count:,}" for count in tokens]
    assert rows[1]["scores"].startswith(f"{left[1]['scores']['completeness_score']:.2f} ")
    assert "\n1 of 2 runs converged. Scores: " in ended.err
    assert ended.err.splitlines()[-2] == "Exit status 3, the worst of 2 jobs."


@pytest.mark.slow
def test_each_job_is_told_by_its_number_before_its_end(aeon: RunAeon) -> None:
    lines = aeon(
        "--multirun", "task=x", "provider.seed=0,1", "ttl=small", "provider=simulated"
    ).err.splitlines()
    for number in (0, 1):
        own = [line for line in lines if line.startswith(f"job {number}  ")]
        assert own[0] == f"job {number}  seed={number}  started"
        assert "convergence  completeness" in own[1]
        assert f"/{number}-seed={number}" in next(line for line in own if "Artefacts: " in line)


@pytest.mark.slow
def test_a_sweep_of_a_resumed_run_tells_what_was_saved(aeon: RunAeon, tmp_path: Path) -> None:
    assert aeon("task=x", "convergence.completeness=0.9", *QUIET).status == 0
    (recorded,) = tmp_path.glob("outputs/*/*")
    ended = aeon("-m", f"resume={recorded}", "convergence.completeness=0.2,0.9", "progress=none")
    assert "Some of these runs reused answers." in ended.err
    rows = summary(tmp_path)
    saved = [str(result["parent"]["saved"]["model_calls"]) for result in results(tmp_path)]
    assert [row["convergence.completeness"] for row in rows] == ["0.2", "0.9"]
    assert [row["saved"] for row in rows] == saved
    assert rows[1]["saved"] == rows[1]["calls"] != "0"


def summary(root: Path) -> list[dict[str, str]]:
    """The lines of the one `summary.csv` below a folder."""
    (path,) = root.glob("multirun/*/*/summary.csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def saved_of(job: dict[str, Any]) -> int:
    return int(job["parent"]["saved"]["model_calls"]) if job["parent"] else 0


def calls(root: Path) -> list[tuple[int, int]]:
    """Of each job how many calls were answered, and how many of these by the store."""
    return [(r["usage"]["total"]["requests"], saved_of(r)) for r in results(root)]


@pytest.mark.slow
def test_what_the_jobs_of_a_multirun_ask_alike_is_asked_once(aeon: RunAeon, tmp_path: Path) -> None:
    with OpenAIServer(simulated()) as server:
        provider = (
            "provider=openai",
            f"provider.base_url={server.url}",
            "provider.require_key=false",
            "progress=none",
        )
        ended = aeon("-m", "task=x", "limits.max_passes=1,2", *provider)
        bodies = [json.dumps(request.body, sort_keys=True) for request in server.requests]
        assert len(bodies) == len(set(bodies))
    (first, saved_by_first), (second, saved) = calls(tmp_path)
    assert first + second - saved_by_first - saved == len(bodies)
    assert ended.status == 3
    assert [row["saved"] for row in summary(tmp_path)] == [str(saved_by_first), str(saved)]
    (directory,) = tmp_path.glob("multirun/*/*/1-*")
    resumed = json.loads(aeon(f"resume={directory}", "output=json", "progress=none").out)
    assert resumed["parent"]["saved"]["model_calls"] == second


@pytest.mark.slow
@pytest.mark.parametrize("more", ["store.share_in_multirun=false", "store.sample=0,1"])
def test_jobs_that_are_to_ask_for_themselves_do(aeon: RunAeon, tmp_path: Path, more: str) -> None:
    assert aeon("-m", "task=x", "limits.max_passes=1,1", more, *QUIET).status in (0, 3)
    jobs = results(tmp_path)
    if more.endswith("false"):
        assert [job["parent"] for job in jobs] == [None, None]
    else:
        asked, saved = (
            [job["usage"]["total"]["requests"] for job in jobs],
            [saved_of(job) for job in jobs],
        )
        assert sum(saved) * 2 == sum(asked)


@pytest.mark.slow
def test_a_shared_store_that_cannot_be_used_costs_no_job(aeon: RunAeon, tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    (sweep / "store.sqlite").mkdir(parents=True)
    ended = aeon("-m", "task=x", "ttl.base=9,10", "hydra.sweep.dir=sweep", *QUIET)
    assert ended.status == 0
    assert "this job's answers are not shared with the other jobs" in ended.err


@pytest.mark.slow
def test_a_multirun_leaves_its_jobs_as_a_table_that_programs_read(
    aeon: RunAeon, tmp_path: Path
) -> None:
    aeon(
        "-m",
        "task=x",
        "ttl.base=1,10",
        "convergence=lenient,strict",
        "hydra.sweep.dir=sweep",
        *QUIET,
    )
    with (tmp_path / "sweep" / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    left = [json.loads((Path(row["directory"]) / "result.json").read_text()) for row in rows]
    assert [(row["ttl.base"], row["convergence"]) for row in rows] == [
        ("1", "lenient"),
        ("1", "strict"),
        ("10", "lenient"),
        ("10", "strict"),
    ]
    assert [row["ended"] for row in rows] == [result["termination_reason"] for result in left]
    names = [
        f"{row['job']}-base={row['ttl.base']},convergence={row['convergence']}" for row in rows
    ]
    assert [row["directory"] for row in rows] == [str(tmp_path / "sweep" / name) for name in names]
    compared = aeon("compare", "sweep").out.splitlines()
    assert [line.split()[:3] for line in compared[1:5]] == [
        [row["job"], *spread]
        for row, spread in zip(
            rows,
            [("1", "lenient"), ("1", "strict"), ("10", "lenient"), ("10", "strict")],
            strict=True,
        )
    ]
    scores = left[2]["scores"]["completeness_score"]
    assert (float(rows[2]["completeness"]), float(rows[2]["seconds"])) == (
        scores,
        left[2]["timings"]["total_seconds"],
    )
    assert (rows[0]["completeness"], rows[0]["converged"], rows[2]["cost"]) == ("", "false", "0.0")


@pytest.mark.slow
def test_the_table_fits_the_terminal(aeon: RunAeon, tmp_path: Path) -> None:
    given = f"convergence.criteria.cited={'a long text in wide 文字 ' * 5}"
    aeon("-m", "task=x", "ttl.base=1,10", given, "hydra.sweep.dir=sweep", *QUIET)
    comparison = compare_runs([tmp_path / "sweep"])
    for width in (20, 40, 60, 120):
        lines = draw_comparison(comparison, width=width).splitlines()
        plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
        assert max(map(cell_len, plain)) <= width
        assert "".join(plain).count("ttl_expired") == 1


def test_a_job_without_a_result_and_one_that_never_began_say_so(tmp_path: Path) -> None:
    hydra = tmp_path / "0-b=none" / ".hydra"
    hydra.mkdir(parents=True)
    (tmp_path / "multirun.yaml").touch()
    (hydra / "hydra.yaml").write_text("hydra: {job: {num: 0}}\n")
    (hydra / "overrides.yaml").write_text("[a=1, 'b=${none}']\n")
    write_status(hydra.parent, USAGE)
    comparison = compare_jobs(tmp_path, [["a=1", "b=${none}"], ["a=1", "b=2"]])
    began, never = comparison.runs
    assert (began.number, began.status, never.number, never.status) == (0, USAGE, 1, None)
    assert not has_ended(began)
    assert not has_ended(never)
    assert comparison.parameters == ("b",)
    assert (began.ended, began.parameters["b"], began.directory) == (
        "unfinished",
        "${none}",
        hydra.parent,
    )
    assert (never.name, never.ended, never.parameters["b"]) == ("1", "not started", "2")
    write_csv(comparison, tmp_path / "summary.csv", COLUMNS_OF_JOBS)
    with (tmp_path / "summary.csv").open(newline="") as file:
        assert [(row["job"], row["exit"]) for row in csv.DictReader(file)] == [
            ("0", "2"),
            ("1", ""),
        ]


@pytest.mark.slow
def test_a_job_that_a_setting_stopped_ended_by_it(aeon: RunAeon, tmp_path: Path) -> None:
    aeon("-m", "task=x", "mode=core", "ttl.base=9,10", "hydra.sweep.dir=sweep", *QUIET)
    path = next(tmp_path.glob("sweep/0-*/result.json"))
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "termination_reason": "interrupted"}))
    stopped, other = name_stop(compare_jobs(tmp_path / "sweep"), "sweep.max_cost").runs
    assert (stopped.ended, other.ended) == ("sweep.max_cost", "step_failed")


def test_jobs_whose_configuration_hydra_was_told_not_to_write_are_known_by_their_directories(
    tmp_path: Path,
) -> None:
    (tmp_path / "multirun.yaml").touch()
    for number in (10, 9):
        (tmp_path / str(number)).mkdir()
        write_status(tmp_path / str(number), DONE)
    jobs = compare_jobs(tmp_path).runs
    assert [(job.number, job.status) for job in jobs] == [(9, 0), (10, 0)]


def test_a_launcher_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    choice = "hydra/launcher=nothing"
    assert main(["-m", "task=x", "provider=simulated", choice, "mode=core,adaptive"]) == 2
    assert f"{choice}: there is no such option" in capsys.readouterr().err
