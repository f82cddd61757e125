"""Whole runs against servers of many makes: all end well, and what that costs is known to the request."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.integration.wire import run, script
from tests.support import able_server as servers
from tests.support import raw_server as raw
from tests.support.able_server import AbleServer
from tests.support.openai_server import Failure, error
from tests.support.scripted_model import plan, planned

USUAL = [
    "task_profile",
    "plan",
    "semantic_validation",
    "refinement",
    "step",
    "step",
    "step",
    "step",
]
USUAL += ["semantic_validation", "convergence", "step", "semantic_validation", "convergence"]
NOT_TAKEN = "Unsupported parameter: '{}' is not supported with this model."


def not_taken(name: str) -> Failure:
    body = {
        "error": {"message": NOT_TAKEN.format(name), "param": name, "code": "unsupported_parameter"}
    }
    return Failure(400, body=body)


@pytest.fixture
def serve() -> Iterator[Any]:
    with ExitStack() as running:

        def start(**abilities: Any) -> AbleServer:
            answers = script(plan=plan("a", "b", "c", "d", planned("e", "a", "b", "c", "d")))
            answers["convergence"] = [
                {**answers["convergence"], "completeness_score": 0.3},
                answers["convergence"],
            ]
            answers["repair"] = answers["task_profile"]
            return running.enter_context(AbleServer(answers, **abilities))

        yield start


SERVERS: dict[str, tuple[Mapping[str, Any], int, int]] = {
    "does all it is asked": ({}, 0, 0),
    "answers 400 to json_schema": ({"forms": {"json_object", "text"}}, 1, 0),
    "answers 422": (
        {"forms": {"json_object", "text"}, "says": error(422, "json_schema is not supported")},
        1,
        0,
    ),
    "answers 404": ({"forms": {"json_object", "text"}, "says": error(404, "no endpoint")}, 1, 0),
    "answers 405": ({"forms": {"json_object", "text"}, "says": Failure(405, body="")}, 1, 0),
    "answers 415": ({"forms": {"json_object", "text"}, "says": Failure(415, body="")}, 1, 0),
    "answers 501": ({"forms": {"json_object", "text"}, "says": Failure(501, body="")}, 1, 0),
    "answers 200 with an error in the body": (
        {"forms": {"json_object", "text"}, "says": Failure(200, body={"error": "unsupported"})},
        2,
        0,
    ),
    "answers 500 and names the parameter": (
        {"forms": {"json_object", "text"}, "says": error(500, "response_format: not built")},
        1,
        0,
    ),
    "answers 500 and says nothing": (
        {"forms": {"json_object", "text"}, "says": Failure(500, body="")},
        2,
        0,
    ),
    "refuses json_object as well": ({"forms": {"text"}}, 2, 0),
    "takes no json_schema, and holds to a schema beside json_object": (
        {"forms": {"json_object"}, "shape": servers.reading_beside},
        1,
        1,
    ),
    "takes json_schema and no json_object": ({"forms": {"json_schema", "text"}}, 0, 0),
    "ignores json_schema: prose, a fence, other fields": ({"shape": servers.ignoring}, 0, 1),
    "enforces part of a schema": ({"shape": servers.half_enforcing}, 0, 1),
    "answers with a tool call": ({"shape": servers.calling_a_tool}, 0, 0),
    "has `<think>` in its answers": ({"shape": servers.thinking}, 0, 0),
    "has channel marks in its answers": ({"shape": servers.in_channels}, 0, 0),
    "answers in a list of parts": ({"shape": servers.in_parts}, 0, 0),
    "puts the answer where the reasoning should be": ({"shape": servers.as_reasoning}, 0, 0),
    "refuses `temperature`": ({"refuses": {"temperature": not_taken("temperature")}}, 1, 0),
    "answers 400 to json_schema and says nothing": (
        {"forms": {"json_object", "text"}, "says": Failure(400, body="")},
        2,
        0,
    ),
    "refuses `reasoning_effort` and says nothing of it": (
        {"refuses": {"reasoning_effort": error(400, '"llama3.1" does not support thinking')}},
        1,
        0,
    ),
    "refuses `reasoning_effort`": (
        {"refuses": {"reasoning_effort": not_taken("reasoning_effort")}},
        1,
        0,
    ),
    "calls the limit of tokens `max_tokens`": (
        {"refuses": {"max_completion_tokens": not_taken("max_completion_tokens")}},
        1,
        0,
    ),
    "refuses json_schema, json_object and those three": (
        {
            "forms": {"text"},
            "refuses": {
                name: not_taken(name)
                for name in ("temperature", "reasoning_effort", "max_completion_tokens")
            },
        },
        5,
        0,
    ),
    "reports no usage": ({"shape": servers.unmetered}, 0, 0),
}


PAGE = Path(__file__).parents[2] / "docs" / "providers.md"


def test_the_page_on_providers_tells_what_each_server_costs() -> None:
    rows = re.findall(
        r"^\| (.+?) \| (\d+) \| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {name: (int(refused), int(repairs)) for name, refused, repairs in rows} == {
        name: (refused, repairs) for name, (_, refused, repairs) in SERVERS.items()
    }


@pytest.mark.parametrize("make", SERVERS)
def test_a_run_ends_well_on_any_server_and_takes_no_more_requests_than_told(
    make: str, serve: Any
) -> None:
    abilities, refused, repairs = SERVERS[make]
    server = serve(**abilities)
    result = run(
        server, "provider.temperature=0.5", "provider.max_tokens=9000", "execution.max_parallel=4"
    )
    assert result.converged, result.error
    assert sorted(server.names) == sorted([*USUAL, *["repair"] * repairs])
    assert len(server.bodies) == len(USUAL) + refused + repairs
    assert len(result.repairs) == repairs


def test_two_runs_of_one_process_find_out_once(serve: Any) -> None:
    server = serve(forms={"text"})
    assert run(server).converged
    assert server.forms_asked[:3] == ["json_schema", "json_object+", "text+"]
    before = len(server.bodies)
    assert run(server).converged
    assert set(server.forms_asked[before:]) == {"text+"}


@pytest.mark.parametrize("form", ["json_schema", "json_object", "prompt"])
def test_a_form_that_is_set_is_used_and_nothing_is_found_out(form: str, serve: Any) -> None:
    server = serve()
    assert run(server, f"provider.structured_output={form}").converged
    assert {servers.form_of(body) for body in server.bodies} == {
        "text" if form == "prompt" else form
    }
    assert all(servers.shows_schema(body) == (form != "json_schema") for body in server.bodies)


def test_a_form_that_is_set_and_refused_is_an_error_and_no_other_is_tried(serve: Any) -> None:
    server = serve(forms={"text"})
    result = run(server, "provider.structured_output=json_schema")
    assert result.error is not None
    assert result.error.type == "RequestRefused"
    assert set(server.forms_asked) == {"json_schema"}


def test_what_was_found_out_is_in_every_result_and_said_in_the_first_run(serve: Any) -> None:
    server = serve(
        forms={"json_object"}, refuses={"reasoning_effort": not_taken("reasoning_effort")}
    )
    said: list[list[str]] = [[], []]
    results = [run(server, warn=said[number].append) for number in (0, 1)]
    expected = (
        "openai, model scripted: does not take json_schema: json_object and the schema in the prompt from now on; "
        "provider.structured_output=json_object skips the trial",
        "openai, model scripted: takes no reasoning_effort: it is left out from now on; reasoning=none skips the trial",
    )
    assert [result.provider.findings for result in results] == [expected, expected]
    assert said == [list(expected), []]


def test_a_run_without_usage_says_so_and_counts_nothing(serve: Any) -> None:
    result = run(serve(shape=servers.unmetered))
    assert result.usage.total.total_tokens == 0
    assert result.usage.unreported == ("scripted-1",)


def test_models_of_roles_are_found_out_one_by_one_even_side_by_side(serve: Any) -> None:
    server = serve(forms={"text"})
    result = run(server, "roles.worker.model=another", "execution.max_parallel=4")
    assert result.converged
    assert sorted(server.names) == sorted(USUAL)
    assert len(server.bodies) == len(USUAL) + 2 + 2


def silent(connection: socket.socket) -> None:
    connection.recv(1)


@pytest.mark.parametrize(
    ("respond", "error_type"),
    [
        pytest.param(silent, "ConnectionFailed", id="silence"),
        pytest.param(
            raw.sends(raw.response(raw.completion())[:-30]),
            "ConnectionFailed",
            id="half a response",
        ),
        pytest.param(
            raw.sends(raw.response(raw.completion()[:-30])), "ConnectionFailed", id="half a body"
        ),
        pytest.param(raw.sends(b"220 mail ready\r\n\r\n"), "NotAnAPI", id="not http"),
        pytest.param(
            raw.sends(raw.response(raw.bomb(64 * 2**20), headers={"content-encoding": "gzip"})),
            "NotAnAPI",
            id="bomb",
        ),
        pytest.param(raw.sends(raw.response(b"data: {}\n\n")), "NotAnAPI", id="a stream"),
        pytest.param(
            raw.sends(
                raw.response(
                    b'{"error": {"code": 503, "message": "busy"}}', headers={"connection": "close"}
                )
            ),
            "ServerFailed",
            id="busy",
        ),
    ],
)
def test_a_run_on_a_server_that_breaks_the_rules_ends_soon_with_a_clear_error(
    respond: raw.Respond, error_type: str, tmp_path: Path
) -> None:
    seconds = 0.3 if respond is silent else 30
    keys = (
        f"provider.timeout_seconds={seconds}",
        "provider.retry.attempts=2",
        "provider.breaker.failures=100",
        "provider.patience_seconds=0",
    )
    with raw.RawServer(respond) as server:
        result = run(server, *keys, directory=tmp_path)
    assert result.exit_status == 1
    assert result.error is not None
    assert result.error.type == error_type
    assert result.error.hint
    assert (tmp_path / "result.json").exists()
