"""The caps of a batch, and going on in this process with what a cluster left."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from aeon.batch.ray.answers import Answers, write_entry
from aeon.cli.main import main
from aeon.domain.errors import StoreFailed
from aeon.store import opening
from aeon.store.interface import AnswerStore
from aeon.store.opening import open_source, open_store
from tests.support.openai_server import OpenAIServer
from tests.support.simulated_server import simulated

TASK = '{"task": "name three lakes"}\n'


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """A server, and a dataset of one row in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    Path("tasks.jsonl").write_text(TASK)
    with OpenAIServer(simulated()) as started:
        yield started


def batch(server: OpenAIServer, *overrides: str) -> int:
    place = ("provider=openai", f"provider.base_url={server.url}")
    return main(["batch", "dataset=tasks.jsonl", "out=out.jsonl", *place, *overrides])


def asked_once(server: OpenAIServer) -> bool:
    return len({json.dumps(request.body) for request in server.requests}) == len(server.requests)


@pytest.mark.slow
def test_a_cap_on_calls_holds_all_rows_together_and_the_batch_goes_on(
    server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("tasks.jsonl").write_text(
        "".join(json.dumps({"id": n, "task": f"name {n} lakes"}) + "\n" for n in range(4))
    )
    assert batch(server, "batch.max_llm_calls=20") == 3
    assert len(server.requests) == 20
    told = capfd.readouterr().err
    assert told.count("Stopping: batch.max_llm_calls=20 is reached (20 used). Nothing new") == 1
    assert (
        "Stopped: batch.max_llm_calls=20 is reached (20 used). Repeat the command to resume" in told
    )
    assert batch(server) == 0
    assert asked_once(server)


@pytest.mark.slow
def test_a_batch_whose_server_came_back_on_another_port_goes_on(server: OpenAIServer) -> None:
    assert batch(server, "batch.max_llm_calls=3") == 3
    before = {json.dumps(request.body) for request in server.requests}
    server.stop()
    with OpenAIServer(simulated()) as other:
        assert other.url != server.url
        assert batch(other) == 0
        assert before.isdisjoint(json.dumps(request.body) for request in other.requests)


@pytest.mark.slow
def test_rows_that_were_cut_off_go_on_wherever_they_stand_in_the_dataset_by_then(
    server: OpenAIServer,
) -> None:
    tasks = [json.dumps({"id": f"r{n}", "task": f"name {n} lakes"}) + "\n" for n in range(3)]
    Path("tasks.jsonl").write_text("".join(tasks[:2]))
    assert batch(server, "batch.max_llm_calls=10") == 3
    Path("tasks.jsonl").write_text("".join(tasks[::-1]))
    assert batch(server) == 0
    assert asked_once(server)
    assert not Path("out.jsonl.running").exists()


@pytest.mark.slow
@pytest.mark.parametrize("read_only", [True, False])
def test_what_a_row_was_answered_is_kept_when_its_store_cannot_be_opened(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, read_only: bool
) -> None:
    def fail(path: Path, *, backend: str = "sqlite", **how: bool) -> AnswerStore:
        if how.get("read_only", False) == read_only:
            raise StoreFailed("too many open files")
        return open_store(path, backend=backend, **how)

    assert batch(server, "batch.max_llm_calls=5") == 3
    with monkeypatch.context() as broken:
        broken.setattr(opening, "open_store", fail)
        assert batch(server) == 1
    assert batch(server) == 0
    assert asked_once(server)


@pytest.mark.slow
def test_a_row_that_stored_no_answers_begins_anew(server: OpenAIServer) -> None:
    assert batch(server, "batch.max_llm_calls=5", "store.mode=off") == 3
    assert batch(server) == 0


def test_a_cap_on_cost_needs_prices(
    server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    assert batch(server, "provider.model=nobody-sells-this", "batch.max_cost=1") == 2
    assert not server.requests
    assert (
        "batch.max_cost=1: no price is configured for nobody-sells-this" in capfd.readouterr().err
    )
    assert not Path("out.jsonl").exists()


@pytest.mark.slow
def test_what_rows_were_answered_on_a_cluster_is_not_asked_again_here(
    server: OpenAIServer, tmp_path: Path
) -> None:
    assert batch(server, "batch.max_llm_calls=5") == 3
    (left,) = (tmp_path / "out.jsonl.running").iterdir()
    answers, key = Answers(left.parent), left.name.partition("-")[0]
    answers.open()
    with closing(open_source(left)) as source:
        for entry in source.entries():
            answers.put(
                key, 0, entry.request.key, write_entry(entry), (left / "run.json").read_text()
            )
    answers._file.close()
    for path in left.iterdir():
        path.unlink()
    left.rmdir()
    assert batch(server) == 0
    assert asked_once(server)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out.jsonl",
        "out.jsonl.html",
        "tasks.jsonl",
    ]
