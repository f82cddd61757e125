"""Runs for people: the list, the pages, the events and the questions."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest

from aeon.interaction.desk import Desk
from aeon.service.jobs import JobRequest
from tests.service.gates import GatedModel, wait_for, wait_until
from tests.service.http.conftest import Served, Start
from tests.service.test_jobs import PLAN
from tests.support.openai_server import OpenAIServer, Received
from tests.support.scripted_model import clear, plan, planned

SIMULATED = ("provider=simulated", "provider.seed=1")
HTML = {"accept": "text/html"}


def ask(served: Served, task: str | None = "make tea") -> str:
    return served.jobs.submit(JobRequest("aeon", task, background=True))


@pytest.fixture
def waiting(start: Start, tmp_path: Path) -> tuple[Served, str]:
    """A server with a run that waits for a person."""
    (tmp_path / "plan.yaml").write_text(PLAN)
    plan = f"plan_file={tmp_path}/plan.yaml"
    served = start(*SIMULATED, "mode=core", plan, "interaction=defer")
    job_id = ask(served, None)
    wait_until(served.jobs, job_id, "waiting")
    return served, job_id


def test_runs_are_listed_and_what_clients_sent_is_text(start: Start):
    served = start(*SIMULATED)
    assert "No run has been asked for" in httpx2.get(f"{served.url}/runs").text
    job_id = ask(served, "<script>alert(1)</script>")
    page = httpx2.get(f"{served.url}/runs").text
    assert f'href="/runs/{job_id}"' in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert job_id not in httpx2.get(f"{served.url}/runs?before={job_id}").text


def test_the_page_of_a_run_that_has_ended_is_its_own_in_a_sandbox(start: Start):
    served = start(*SIMULATED)
    job_id = ask(served)
    wait_until(served.jobs, job_id, "done")
    page = httpx2.get(f"{served.url}/runs/{job_id}")
    assert 'id="end"' in page.text
    policy = page.headers["content-security-policy"]
    assert policy.startswith("sandbox")
    assert "allow-same-origin" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"


def test_the_page_of_a_run_under_way_loads_only_from_the_server(start: Start, model: GatedModel):
    served = start(*model.overrides)
    job_id = ask(served)
    page = httpx2.get(f"{served.url}/runs/{job_id}")
    assert '<script src="/live.js">' in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert httpx2.get(f"{served.url}/live.js").headers["content-type"].startswith("text/javascript")
    assert httpx2.get(f"{served.url}/page.css").status_code == 200


def test_the_page_of_a_run_under_way_shows_its_course(start: Start, tmp_path: Path):
    (tmp_path / "plan.yaml").write_text(PLAN)
    served = start(*SIMULATED, "mode=core", f"plan_file={tmp_path}/plan.yaml", "interaction=defer")
    job_id = ask(served, None)
    wait_until(served.jobs, job_id, "waiting")
    page = httpx2.get(f"{served.url}/runs/{job_id}").text
    course = httpx2.get(f"{served.url}/runs/{job_id}/course")
    assert course.headers["content-security-policy"].startswith("default-src 'none'")
    assert course.text in page
    assert "Answer so far" in course.text
    assert re.search(r"TTL \d+ of \d+, 0 calls, 0 tokens", course.text)
    assert "Measure the room" in course.text


def test_what_a_course_shows_is_text(start: Start, openai_server: OpenAIServer):
    """A run between two steps, the first of which wrote HTML."""
    gate = threading.Event()

    def write(request: Received) -> dict[str, Any]:
        if "executing step 2" in request.user:
            assert gate.wait(30)
        return clear("<img src=x onerror=alert(1)>")

    openai_server.script["step"] = write
    openai_server.script["plan"] = plan("a", planned("b", "a"))
    served = start(*openai_server.overrides, "provider.require_key=false", "mode=core")
    address = f"{served.url}/runs/{ask(served)}/course"
    try:
        wait_for(lambda: "onerror" in httpx2.get(address, timeout=30).text)
        course = httpx2.get(address, timeout=30).text
    finally:
        gate.set()
    assert "<img" not in course
    assert "under way" in course


@pytest.mark.parametrize(
    "path",
    ["/runs/x", "/runs/x/course", "/runs/..%2f..%2fetc", "/runs/x/events", "/runs/x/questions"],
)
def test_what_is_no_run_is_not_found(start: Start, path: str):
    served = start(*SIMULATED)
    assert httpx2.get(served.url + path).status_code == 404


@pytest.mark.slow
def test_events_come_as_they_happen_and_go_on_where_a_client_was(start: Start, model: GatedModel):
    served = start(*model.overrides)
    job_id = ask(served)
    address = f"{served.url}/runs/{job_id}/events"
    seen = []
    with httpx2.stream("GET", address, timeout=30) as response:
        for line in response.iter_lines():
            seen.append(line)
            if line.startswith("data:") and not model.gate.is_set():
                assert json.loads(line[5:])["event"] == "run_started"
                model.open()
    events = [json.loads(line[5:]) for line in seen if line.startswith("data:")]
    assert events[-2]["event"] == "run_finished"
    assert events[-1] == {"state": "done"}

    ids = [line[4:] for line in seen if line.startswith("id: ")]
    again = httpx2.get(address, headers={"last-event-id": ids[0]}).text
    assert again.count("data:") == len(events) - 1
    for place in ("x", "9.0", "0.999999", "-1.-1", "0." + "9" * 25):
        assert "event: end" in httpx2.get(address, headers={"last-event-id": place}).text


def test_questions_are_answered_by_programs(waiting: tuple[Served, str]):
    served, job_id = waiting
    address = f"{served.url}/runs/{job_id}/questions"
    (question,) = httpx2.get(address).json()["questions"]
    assert "Measure the room" in question["text"]
    assert httpx2.post(address, json={question["id"]: 3}).status_code == 400
    assert httpx2.post(address, json={"step-1": "x"}).status_code == 400
    settled = httpx2.post(address, json={question["id"]: "4 by 5"})
    assert settled.json()["run_id"] == job_id
    wait_until(served.jobs, job_id, "done")
    assert httpx2.get(address).json()["questions"] == []
    assert httpx2.post(address, json={question["id"]: "4 by 5"}).status_code == 400


def test_questions_are_answered_by_people(waiting: tuple[Served, str]):
    served, job_id = waiting
    address = f"{served.url}/runs/{job_id}/questions"
    assert "Answer what it waits for" in httpx2.get(f"{served.url}/runs/{job_id}").text
    form = httpx2.get(address, headers=HTML).text
    (question,) = served.jobs.list_open_questions(job_id)
    assert f'<label for="{question.id}">' in form
    own = {**HTML, "origin": served.url}
    left = httpx2.post(address, data={question.id: " "}, headers=own)
    assert left.status_code == 400
    assert 'role="alert"' in left.text
    sent = httpx2.post(address, data={question.id: "4 by 5\r\nmetres"}, headers=own)
    assert sent.status_code == 303
    assert sent.headers["location"] == f"/runs/{job_id}"
    run = wait_until(served.jobs, job_id, "done").run
    assert run is not None
    (answer,) = Desk(run.with_name("run-1")).list_answers().values()
    assert answer.answer == "4 by 5\nmetres"
    assert "Nothing waits" in httpx2.get(address, headers=HTML).text


def test_the_page_of_a_cancelled_run_asks_nobody(waiting: tuple[Served, str]):
    served, job_id = waiting
    served.jobs.cancel(job_id, "its client cancelled it")
    page = httpx2.get(f"{served.url}/runs/{job_id}").text
    assert "<h1>Cancelled</h1>" in page
    assert "Waiting for a person" not in page
    assert "Answer what it waits for" not in page


@pytest.mark.parametrize("origin", [None, "null", "https://evil.example"])
def test_a_form_of_another_page_settles_nothing(waiting: tuple[Served, str], origin: str | None):
    served, job_id = waiting
    (question,) = served.jobs.list_open_questions(job_id)
    headers = {**HTML, **({"origin": origin} if origin else {})}
    address = f"{served.url}/runs/{job_id}/questions"
    refused = httpx2.post(address, data={question.id: "4 by 5"}, headers=headers)
    assert refused.status_code == 403
    assert served.jobs.list_open_questions(job_id) == (question,)


def test_a_chat_that_waits_for_a_person_says_so(start: Start, tmp_path: Path):
    (tmp_path / "plan.yaml").write_text(PLAN)
    plan = f"plan_file={tmp_path}/plan.yaml"
    client = start(*SIMULATED, "mode=core", plan, "interaction=defer").connect()
    said = [{"role": "user", "content": "Furnish it"}]
    completion = client.chat.completions.create(model="aeon", messages=said)  # type: ignore[arg-type]
    metadata = completion.metadata
    assert "Measure the room" in str(completion.choices[0].message.content)
    assert metadata["termination_reason"] == "waiting"  # type: ignore[index]
    response = client.responses.create(model="aeon", input="Furnish it")
    assert response.status == "in_progress"
    assert response.metadata
    assert response.metadata["questions"].endswith("/questions")


def test_figures_are_counted(start: Start):
    served = start(*SIMULATED)
    wait_until(served.jobs, ask(served), "done")
    wait_for(lambda: 'aeon_jobs{state="running"} 0' in httpx2.get(f"{served.url}/metrics").text)
    text = httpx2.get(f"{served.url}/metrics").text
    assert 'aeon_jobs_ended_total{model="aeon",state="done"} 1\n' in text
    assert "aeon_llm_calls_total " in text


@pytest.mark.parametrize("content", ["{", '{"id": 3}', "[]"])
def test_a_run_whose_record_cannot_be_read_is_the_servers_mistake(start: Start, content: str):
    served = start(*SIMULATED)
    job_id = "0" * 32
    record = served.jobs.folder.path / job_id / "job.json"
    record.parent.mkdir()
    record.write_text(content)
    for path in (f"/runs/{job_id}", f"/runs/{job_id}/questions", f"/v1/responses/resp_{job_id}"):
        answer = httpx2.get(served.url + path)
        assert answer.status_code == 500
        assert answer.json()["error"]["type"] == "server_error"
        assert str(record.parent.parent) not in answer.text
