"""Runs whose answers are watched as they come, against a real server that streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.app.attendance import Attendance
from aeon.app.run import RunPlace
from aeon.domain.events import CallAnswered, Recorded
from aeon.llm.dialects.server import forget_servers
from aeon.llm.watching import Piece, Waiting, Watcher
from aeon.store.sqlite_store import SqliteStore
from tests.integration.wire import TASK, overrides, script
from tests.support import scripted_model as scripted
from tests.support.compared import artefacts, differences
from tests.support.openai_server import Answer, Completion, OpenAIServer, Received, Script, error

STRANGE = "{ no JSON"
TEXTS: dict[str, Script] = {
    "plain": {**scripted.clear('Write "tea" first\n\u00e9\u4e2d\U0001f375 ' + "and so on " * 40)},
    "malformed": [STRANGE, *[scripted.clear("well")] * 9],
    "cut off": [Completion(STRANGE, finish_reason="length"), *[scripted.clear("well")] * 9],
}


def stored_by_run(
    server: OpenAIServer, directory: Path, around: dict[str, Any], *more: str
) -> list[tuple[Any, ...]]:
    """What the store of a run holds, but for times."""
    with Aeon.from_config(
        overrides(server.url, *more), environ={"OPENAI_API_KEY": "sk-test"}
    ) as aeon:
        aeon.prepare_run(TASK).to_end(Attendance(**around), RunPlace(directory=directory))
    store = SqliteStore(directory / "store.sqlite", read_only=True)
    entries = sorted(
        (entry.request.key, entry.request.model_dump(), entry.answer) for entry in store.entries()
    )
    store.close()
    return entries


@pytest.mark.parametrize("case", TEXTS)
def test_a_streamed_run_leaves_what_the_same_run_leaves_without_a_stream(
    case: str, tmp_path: Path
) -> None:
    seen: list[Piece | Waiting] = []
    told: list[Recorded] = []
    watched = {"watcher": Watcher(seen.append, stream=True), "observers": [told.append]}
    directories = tmp_path / "whole", tmp_path / "streamed"
    stores, requests = [], []
    with OpenAIServer() as server:
        for directory, around in zip(directories, ({}, watched), strict=True):
            forget_servers()
            server.start_over(script(step=TEXTS[case]))
            stores.append(stored_by_run(server, directory, around, "execution.max_parallel=1"))
            requests.append([dict(request.body) for request in server.requests])
    streamed = [
        {"stream": one.pop("stream"), "options": one.pop("stream_options")} for one in requests[1]
    ]
    assert streamed == [{"stream": True, "options": {"include_usage": True}}] * len(requests[0])
    assert requests[0] == requests[1]
    assert stores[0] == stores[1]
    assert not differences(*map(artefacts, directories))
    texts: dict[int, str] = {}
    for piece in (one for one in seen if isinstance(one, Piece)):
        texts[piece.site.sequence] = (
            piece.text if piece.begins else texts[piece.site.sequence] + piece.text
        )
    answered = {one.sequence: one.event.text for one in told if isinstance(one.event, CallAnswered)}
    assert len(answered) >= 5
    assert {sequence: texts[sequence] for sequence in answered} == answered


def test_who_looks_on_and_fails_does_not_fail_the_run(tmp_path: Path) -> None:
    def fail(seen: Piece | Waiting) -> None:
        raise RuntimeError("of the display")

    with OpenAIServer(script()) as server:
        entries = stored_by_run(server, tmp_path, {"watcher": Watcher(fail, stream=True)})
    assert len(entries) >= 5
    assert "error" not in {name for _, _, answer in entries for name in answer}


def test_nobody_who_looks_on_without_a_stream_changes_what_is_asked(tmp_path: Path) -> None:
    with OpenAIServer(script()) as server:
        stored_by_run(server, tmp_path, {"watcher": Watcher(lambda seen: None)})
        assert not [request for request in server.requests if "stream" in request.body]


def test_a_stream_that_is_never_wanted_is_not_asked_for(tmp_path: Path) -> None:
    with OpenAIServer(script()) as server:
        stored_by_run(
            server,
            tmp_path,
            {"watcher": Watcher(lambda seen: None, stream=True)},
            "provider.stream=never",
        )
        assert not [request for request in server.requests if "stream" in request.body]


def test_a_server_that_takes_no_stream_is_asked_without_one(tmp_path: Path) -> None:
    def refusing(answer: Script) -> Script:
        def refuse(request: Received) -> Answer:
            if "stream" in request.body:
                return error(400, "Unrecognized request argument supplied: stream")
            return answer(request) if callable(answer) else answer

        return refuse

    seen: list[Piece | Waiting] = []
    whole = {name: refusing(answer) for name, answer in script().items()}
    with OpenAIServer(whole) as server:
        stored_by_run(server, tmp_path, {"watcher": Watcher(seen.append, stream=True)})
        asked = [request for request in server.requests if "stream" not in request.body]
    assert len(asked) >= 5
    assert len(server.requests) <= len(asked) + 2  # once it has refused, it is not asked again
    assert json.loads((tmp_path / "result.json").read_bytes())["converged"]
    assert not [piece for piece in seen if isinstance(piece, Piece) and piece.text]
