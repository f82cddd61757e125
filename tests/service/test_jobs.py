"""Jobs: so many at once, a queue, and what goes on after a stop."""

from __future__ import annotations

import json
import stat
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from aeon.config import load
from aeon.domain.errors import ArtefactError, ConfigError
from aeon.interaction.desk import Desk
from aeon.observability import artefacts
from aeon.service.configurations import Configurations
from aeon.service.folder import JobFolder, UnreadableJob
from aeon.service.jobs import Capacity, Follower, JobNotFound, JobRequest, Jobs, QueueFull
from aeon.service.record import JobRecord
from tests.service.gates import GatedModel, OpenJobs, wait_for, wait_until
from tests.support.input_files import make_png

SIMULATED = ("provider=simulated", "provider.seed=1")
PLAN = """\
goal: g
task: Furnish the room
steps:
  - {id: m, description: Measure the room, agent: person}
  - {id: p, description: Plan the room, depends_on: [m]}
"""


def ask(task: str = "abc", **given: object) -> JobRequest:
    return JobRequest("aeon", task, **{"background": True, **given})  # type: ignore[arg-type]


def test_a_job_is_a_run_in_a_folder_of_its_own(open_jobs: OpenJobs, tmp_path: Path):
    jobs = open_jobs(*SIMULATED)
    job_id = jobs.submit(ask("make tea", note={"for": "me"}))
    status = wait_until(jobs, job_id, "done")

    assert status.run == tmp_path / "jobs" / job_id / "run-1"
    assert status.result["run_id"] == job_id
    assert status.result["converged"] is True
    assert status.record.note == {"for": "me"}
    assert status.has_ended
    assert stat.S_IMODE((tmp_path / "jobs").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "jobs" / job_id).stat().st_mode) == 0o700


def test_a_folder_that_was_there_keeps_its_mode(open_jobs: OpenJobs, tmp_path: Path):
    (tmp_path / "jobs").mkdir(mode=0o755)
    job_id = open_jobs(*SIMULATED).submit(ask())
    assert stat.S_IMODE((tmp_path / "jobs").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "jobs" / job_id).stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_made_is_a_mistake_of_the_configuration(
    open_jobs: OpenJobs, tmp_path: Path
):
    (tmp_path / "jobs").write_text("not a folder")
    with pytest.raises(ConfigError, match="jobs") as refused:
        open_jobs(*SIMULATED)
    assert "Name a folder of its own" in refused.value.hint


def test_named_configurations_differ(open_jobs: OpenJobs):
    jobs = open_jobs(*SIMULATED, small=("mode=single",), large=("mode=core",))
    ids = [jobs.submit(JobRequest(name, "tea")) for name in ("small", "large")]
    calls = [wait_until(jobs, each, "done").result["usage"]["by_call"] for each in ids]
    assert list(calls[0]) == ["direct"]
    assert "plan" in calls[1]


def test_what_cannot_be_run_is_refused_at_once(open_jobs: OpenJobs, tmp_path: Path):
    jobs = open_jobs(*SIMULATED)
    with pytest.raises(ConfigError, match="there is no configuration 'gpt-5'"):
        jobs.submit(JobRequest("gpt-5", "tea"))
    with pytest.raises(ConfigError, match="the task is empty"):
        jobs.submit(ask(" "))
    assert jobs.list_latest(10) == []


def test_beyond_the_queue_is_a_refusal(open_jobs: OpenJobs, model: GatedModel):
    jobs = open_jobs(*model.overrides, parallel=1, queue=1)
    first, second = jobs.submit(ask("abc")), jobs.submit(ask("def"))
    with pytest.raises(QueueFull):
        jobs.submit(ask("ghi"))
    assert jobs.count() == {"running": 1, "queued": 1, "waiting": 0}
    assert [jobs.find(each).state for each in (first, second)] == ["running", "queued"]

    model.open()
    assert wait_until(jobs, second, "done").result["answer"] == "fed"
    assert model.server.max_in_flight == 1
    assert [each.record.id for each in jobs.list_latest(10)] == [second, first]
    assert [each.record.id for each in jobs.list_latest(10, before=second)] == [first]
    assert wait_until(jobs, jobs.submit(ask("ghi")), "done").result["answer"] == "ihg"


def test_a_job_is_followed_to_its_end(open_jobs: OpenJobs, model: GatedModel):
    jobs = open_jobs(*model.overrides)
    seen: list[str] = []
    texts: list[object] = []
    ended = threading.Event()
    follower = Follower(
        lambda each: seen.append(type(each.event).__name__), texts.append, ended.set
    )
    job_id = jobs.submit(ask(), follower)
    late = threading.Event()
    assert jobs.follow(job_id, Follower(end=late.set))
    model.open()

    assert ended.wait(30)
    assert late.wait(30)
    assert jobs.find(job_id).state == "done"
    assert seen[0] == "RunStarted"
    assert seen[-1] == "RunFinished"
    assert texts
    assert not jobs.follow(job_id, follower)


@pytest.mark.slow
def test_a_job_that_runs_is_cancelled_for_good(open_jobs: OpenJobs, model: GatedModel):
    jobs = open_jobs(*model.overrides, "execution.grace_seconds=0.1", parallel=1)
    running, queued = jobs.submit(ask()), jobs.submit(ask())
    wait_for(lambda: model.server.requests)
    ended = threading.Event()
    assert jobs.follow(queued, Follower(end=ended.set))
    assert jobs.cancel(queued, "enough").state == "cancelled"
    assert ended.wait(30)
    jobs.cancel(running, "enough")
    status = wait_until(jobs, running, "cancelled")

    assert status.record.cancelled == "enough"
    assert status.result["termination_reason"] == "interrupted"
    assert jobs.cancel(running, "again").record.cancelled == "enough"


@pytest.mark.slow
def test_a_job_that_failed_says_why(open_jobs: OpenJobs):
    jobs = open_jobs("provider=simulated", "provider.seed=8")
    status = wait_until(jobs, jobs.submit(ask()), "failed")
    assert status.result["error"]["message"]


@pytest.mark.slow
def test_a_stopped_job_goes_on_with_what_was_answered(
    open_jobs: OpenJobs, model: GatedModel, tmp_path: Path
):
    overrides = (*model.overrides, "execution.grace_seconds=0.1")
    jobs = open_jobs(*overrides, parallel=1)
    running, queued, attended = (
        jobs.submit(ask("abc")),
        jobs.submit(ask("def")),
        jobs.submit(ask("ghi", background=False)),
    )
    wait_for(lambda: model.server.requests)
    jobs.close()
    assert json.loads((tmp_path / "jobs" / running / "job.json").read_text())["ended"] is None
    with pytest.raises(QueueFull):
        jobs.submit(ask())

    model.open()
    again = open_again(tmp_path, overrides)
    with again as jobs:
        assert wait_until(jobs, running, "done").result["answer"] == "cba"
        assert wait_until(jobs, queued, "done").result["answer"] == "fed"
        assert jobs.find(attended).state == "cancelled"
        assert [path.name for path in jobs.folder.list_runs(running)] == ["run-1", "run-2"]
        asked = len(model.server.requests)
    with open_again(tmp_path, overrides) as jobs:
        assert jobs.find(running).result["answer"] == "cba"
        assert jobs.count() == {"running": 0, "queued": 0, "waiting": 0}
    assert len(model.server.requests) == asked


@pytest.mark.slow
def test_the_files_of_a_job_are_there_when_it_goes_on(
    open_jobs: OpenJobs, model: GatedModel, tmp_path: Path
):
    overrides = (*model.overrides, "provider.accepts=[image]", "execution.grace_seconds=0.1")
    jobs = open_jobs(*overrides, parallel=1)
    asked = JobRequest("aeon", "abc", background=True, files={"photo": make_png()})
    job_ids = [jobs.submit(asked), jobs.submit(asked)]
    wait_for(lambda: model.server.requests)
    jobs.close()
    model.open()
    with open_again(tmp_path, overrides) as jobs:
        for job_id in job_ids:
            assert wait_until(jobs, job_id, "done").result["answer"] == "cba"
    assert len(model.server.requests) == 3
    assert all("data:image/png;base64," in str(each.body) for each in model.server.requests)


def test_what_cannot_go_on_is_reported_and_left_as_it_is(
    open_jobs: OpenJobs, model: GatedModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    overrides = (*model.overrides, "execution.grace_seconds=0.1")
    jobs = open_jobs(*overrides, other=())
    job_id = jobs.submit(JobRequest("other", "abc", background=True))
    jobs.close()
    unreadable = tmp_path / "jobs" / ("f" * 32)
    unreadable.mkdir()
    (unreadable / "job.json").write_text("{")
    with open_again(tmp_path, overrides) as jobs:
        assert jobs.find(job_id).state == "queued"
        assert jobs.count()["running"] == 0
    assert "there is no configuration 'other'" in caplog.text
    assert "its job.json cannot be read" in caplog.text


class open_again(ExitStack):  # noqa: N801
    """The jobs of the same folder, as another process has them: the first one has let go of it."""

    def __init__(self, folder: Path, overrides: tuple[str, ...], name: str = "aeon") -> None:
        super().__init__()
        self._name = name
        self._folder = folder
        self._overrides = overrides

    def __enter__(self) -> Jobs:  # type: ignore[override]
        configurations = Configurations(load.composition(self._overrides), {self._name: ()})
        self.callback(configurations.close)
        jobs = Jobs(JobFolder(self._folder / "jobs"), configurations, Capacity())
        jobs.go_on()
        self.callback(jobs.close)
        return jobs


def test_a_folder_is_one_servers(open_jobs: OpenJobs):
    open_jobs(*SIMULATED)
    with pytest.raises(ConfigError, match="the folder of jobs"):
        open_jobs(*SIMULATED)


def test_a_job_waits_for_a_person_and_goes_on(open_jobs: OpenJobs, tmp_path: Path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    jobs = open_jobs(*SIMULATED, "mode=core", f"plan_file={plan}", "interaction=defer")
    job_id = jobs.submit(JobRequest("aeon"))
    wait_until(jobs, job_id, "waiting")
    assert jobs.count()["waiting"] == 1
    (question,) = jobs.list_open_questions(job_id)
    with pytest.raises(ConfigError):
        jobs.settle(job_id, {question.id: " "})

    jobs.settle(job_id, {question.id: "4 by 5 metres"})
    status = wait_until(jobs, job_id, "done")
    assert status.result["termination_reason"] == "completed"
    assert status.record.background, (
        "whoever asked for it has been told of the question, and is gone"
    )
    assert jobs.list_open_questions(job_id) == ()
    with pytest.raises(ConfigError, match="waits for no answer"):
        jobs.settle(job_id, {question.id: "5 by 6"})


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", ["answered", "overdue"])
def test_a_job_goes_on_that_was_settled_elsewhere(
    open_jobs: OpenJobs, tmp_path: Path, elsewhere: str
):
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    overrides = [*SIMULATED, "mode=core", f"plan_file={plan}", "interaction=defer"]
    if elsewhere == "overdue":
        overrides.append("interaction.deadline_seconds=0.2")
    jobs = open_jobs(*overrides)
    job_id = jobs.submit(JobRequest("aeon"))
    status = wait_until(jobs, job_id, "waiting", "done", "failed")
    assert status.run is not None
    if elsewhere == "answered":
        desk = Desk(status.run)
        desk.settle({desk.list_open()[0].id: "4 by 5 metres"})
    assert wait_until(jobs, job_id, "done").record.ended == "done"


@pytest.mark.slow
def test_an_answered_job_without_its_configuration_is_left_for_a_later_start(
    open_jobs: OpenJobs, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    overrides = (*SIMULATED, "mode=core", f"plan_file={plan}", "interaction=defer")
    jobs = open_jobs(*overrides, other=())
    job_id = jobs.submit(JobRequest("other"))
    wait_until(jobs, job_id, "waiting")
    (question,) = jobs.list_open_questions(job_id)
    jobs.close()
    with open_again(tmp_path, overrides) as jobs:
        assert jobs.settle(job_id, {question.id: "4 by 5 metres"}).state == "waiting"
    assert "there is no configuration 'other'" in caplog.text
    with open_again(tmp_path, overrides, name="other") as jobs:
        assert wait_until(jobs, job_id, "done").result["termination_reason"] == "completed"


def test_a_job_that_waits_can_be_cancelled(open_jobs: OpenJobs, tmp_path: Path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    jobs = open_jobs(*SIMULATED, "mode=core", f"plan_file={plan}", "interaction=defer")
    job_id = jobs.submit(JobRequest("aeon"))
    wait_until(jobs, job_id, "waiting")
    assert jobs.cancel(job_id, "enough").state == "cancelled"
    assert jobs.count()["waiting"] == 0


def test_a_job_is_cancelled_that_begins_to_wait_at_that_moment(
    open_jobs: OpenJobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    jobs = open_jobs(*SIMULATED, "mode=core", f"plan_file={plan}", "interaction=defer")
    finish = jobs._finish

    def finish_and_cancel(job_id: str, *given: Any) -> None:
        finish(job_id, *given)
        cancelling = threading.Thread(target=jobs.cancel, args=(job_id, "enough"))
        cancelling.start()
        cancelling.join(0.2)

    monkeypatch.setattr(jobs, "_finish", finish_and_cancel)
    assert wait_until(jobs, jobs.submit(JobRequest("aeon")), "cancelled").has_ended
    assert jobs.count()["waiting"] == 0


def test_a_job_ends_whose_end_cannot_be_recorded(
    open_jobs: OpenJobs, monkeypatch: pytest.MonkeyPatch
):
    jobs = open_jobs(*SIMULATED)
    write = JobFolder.write

    def write_until_the_end(folder: JobFolder, record: JobRecord) -> None:
        if record.ended is not None:
            raise ArtefactError("no space left on device")
        write(folder, record)

    monkeypatch.setattr(JobFolder, "write", write_until_the_end)
    assert wait_until(jobs, jobs.submit(ask()), "done").has_ended


def test_a_run_that_was_killed_before_its_history_was_written_goes_on(
    open_jobs: OpenJobs, model: GatedModel, tmp_path: Path
):
    model.open()
    jobs = open_jobs(*model.overrides)
    status = wait_until(jobs, jobs.submit(ask("abc")), "done")
    jobs.close()
    assert status.run is not None
    (status.run / "history.json").unlink()
    jobs.folder.write(status.record.model_copy(update={"ended": None, "ended_at": None}))
    with open_again(tmp_path, tuple(model.overrides)) as jobs:
        again = wait_until(jobs, status.record.id, "done")
        assert again.result["answer"] == "cba"
        assert again.run is not None
        assert artefacts.load(again.run).history.passes
    assert len(model.server.requests) == 1


def test_folders_that_are_no_jobs_and_no_runs_hold_nothing_up(
    open_jobs: OpenJobs, model: GatedModel, tmp_path: Path
):
    jobs = open_jobs(*model.overrides)
    job_id, damaged = jobs.submit(ask("abc")), "0" * 32
    jobs.close()
    (tmp_path / "jobs" / damaged).mkdir()
    (tmp_path / "jobs" / damaged / "job.json").write_text("{")
    copied = tmp_path / "jobs" / job_id / "run-1 (copy)"
    copied.mkdir()
    (copied / "run.json").write_text("{}")
    model.open()
    with open_again(tmp_path, tuple(model.overrides)) as jobs:
        assert wait_until(jobs, job_id, "done").result["answer"] == "cba"
        with pytest.raises(UnreadableJob):
            jobs.find(damaged)


@pytest.mark.parametrize(
    "name", ["", "..", "../../etc", "0" * 31, "0" * 33, "G" * 32, "0" * 32 + "\n", "0" * 32]
)
def test_what_is_no_id_is_no_job(open_jobs: OpenJobs, name: str):
    jobs = open_jobs(*SIMULATED)
    with pytest.raises(JobNotFound):
        jobs.find(name)
    with pytest.raises(JobNotFound):
        jobs.cancel(name, "")


@pytest.mark.parametrize(
    "overrides", [("resume=x",), ("task=x",), ("task_file=x",), ("interaction=ask",)]
)
def test_a_configuration_of_jobs_brings_no_task_and_needs_no_terminal(
    open_jobs: OpenJobs, overrides: tuple[str, ...]
):
    with pytest.raises(ConfigError, match="one: "):
        open_jobs(*SIMULATED, one=overrides)


def test_a_mistake_in_a_configuration_is_found_before_anything_is_served(open_jobs: OpenJobs):
    with pytest.raises(ConfigError, match=r"(?s)two: .*ttl.bass"):
        open_jobs(*SIMULATED, one=(), two=("ttl.bass=3",))


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (("interaction=none",), "one: plan_file=.*: step text is left to a person"),
        (("interaction=defer", "store=off"), "one: interaction=defer: store.mode=off stores"),
    ],
)
def test_a_step_that_nobody_could_do_is_found_before_anything_is_served(
    open_jobs: OpenJobs, tmp_path: Path, overrides: tuple[str, ...], problem: str
):
    plan = tmp_path / "plan.yaml"
    plan.write_text("goal: g\nsteps:\n  - {id: text, description: d, agent: person}\n")
    with pytest.raises(ConfigError, match=problem):
        open_jobs(*SIMULATED, one=(f"plan_file={plan}", *overrides))
