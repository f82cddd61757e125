"""Whole runs under pressure: what their artefacts and the person are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aeon import Aeon
from aeon.cli.progress.view import RunView
from aeon.cli.progress.words import lines as told_lines
from aeon.cli.terminal.lines import ending
from aeon.domain.events import FallbackUsed
from aeon.domain.request import CallSite
from tests.integration.wire import TASK, overrides, script
from tests.support.fixtures import StartServer
from tests.support.openai_server import Completion, Failure, OpenAIServer


def chained(server: OpenAIServer, spare: OpenAIServer, *more: str) -> list[str]:
    keys = f"{{provider: openai, name: spare, model: of-the-spare, base_url: '{spare.url}', require_key: false}}"
    return [*overrides(server.url, *more), f"provider.fallbacks=[{keys}]"]


def test_a_run_goes_on_with_the_fallback_and_says_so_everywhere(
    start_server: StartServer, tmp_path: Path
) -> None:
    main, spare = start_server(script(step=Failure(500))), start_server(script())
    told: list[str] = []
    with Aeon.from_config(
        chained(main, spare, "roles.worker.model=of-the-role"), environ={"OPENAI_API_KEY": "k"}
    ) as aeon:
        result = aeon.run(
            TASK, directory=tmp_path, observers=[lambda r: told.append(type(r.event).__name__)]
        )
    assert result.converged
    assert result.provider.endpoints["spare"] == len(spare.requests) == spare.names.count("step")
    assert result.provider.endpoints["openai"] == len(
        [name for name in main.names if name != "step"]
    )
    assert told.count("FallbackUsed") == 1
    assert {asked.body["model"] for asked in spare.requests} == {"of-the-spare"}
    assert {asked.body["model"] for asked in main.of("step")} == {"of-the-role"}
    said = ending(result, tmp_path)
    assert (
        f"Answered by: openai {len(main.requests) - main.names.count('step')}, spare {len(spare.requests)}."
        in said
    )
    lines = [json.loads(line) for line in (tmp_path / "cycles.jsonl").read_text().splitlines()]
    assert {
        (line["call"], *line["endpoints"]) for line in lines if line["call"] in ("plan", "step")
    } == {
        ("plan", "openai"),
        ("step", "spare"),
    }
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    (fallback,) = [event for event in events if event["event"] == "fallback_used"]
    assert (fallback["failed"], fallback["endpoint"]) == ("openai", "spare")
    assert "500" in fallback["error"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (
        "The endpoint <code>spare</code> answered 1 request in place of <code>openai</code>, which failed"
        in page
    )


def test_a_model_without_a_price_is_named_and_its_cost_is_unknown(
    start_server: StartServer,
) -> None:
    server = start_server(script())
    with Aeon.from_config(overrides(server.url), environ={"OPENAI_API_KEY": "k"}) as aeon:
        result = aeon.run(TASK)
    assert result.usage.total.cost is None
    assert result.usage.unpriced == ("scripted-1",)
    assert "cost unknown (no price for scripted-1)." in ending(result, Path("here"))
    assert result.usage.unreported == ()
    priced = overrides(
        server.url, "provider.prices={scripted: {input: 1.0, output: 1.0}}", "limits.max_cost=1"
    )
    with Aeon.from_config(priced, environ={"OPENAI_API_KEY": "k"}) as aeon:
        result = aeon.run(TASK)
    assert result.usage.unpriced == ()
    assert result.usage.total.cost is not None
    assert result.usage.total.cost > 0


def test_usage_that_was_not_told_is_never_counted_as_free(start_server: StartServer) -> None:
    answers = script()
    server = start_server(
        {**answers, "task_profile": Completion(answers["task_profile"], usage=None)}
    )  # type: ignore[arg-type]
    prices = "provider.prices={*: {input: 1.0, output: 1.0}}"
    with Aeon.from_config(overrides(server.url, prices), environ={"OPENAI_API_KEY": "k"}) as aeon:
        result = aeon.run(TASK)
    assert result.usage.unreported == ("scripted-1",)
    assert "no usage reported for scripted-1" in ending(result, Path("here"))
    assert result.usage.total.cost is None


@pytest.mark.slow
def test_all_endpoints_down_ends_the_run_with_every_one_of_them_named(
    start_server: StartServer,
) -> None:
    main, spare = start_server(script(plan=Failure(500))), start_server(script(plan=Failure(503)))
    given = chained(main, spare, "provider.patience_seconds=0.5")
    with Aeon.from_config(given, environ={"OPENAI_API_KEY": "k"}) as aeon:
        result = aeon.run(TASK)
    assert result.exit_status == 1
    assert result.error is not None
    assert "spare: " in result.error.message
    assert "asked before it: openai: ServerFailed" in result.error.message


def test_a_fallback_is_a_line_of_the_progress() -> None:
    site = CallSite(pass_number=2, step_id="a")
    event = FallbackUsed(
        site=site, call="step", failed="openai", endpoint="groq", error="ServerFailed: 503"
    )
    (line,) = told_lines(event, RunView())
    assert line.endswith(
        "pass 2  fallback  step a  groq answers instead of openai (ServerFailed: 503)"
    )


def test_what_a_store_answers_is_not_spent_again(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server(script())
    cached = [
        "store.mode=cache",
        f"store.path={tmp_path / 'store.sqlite'}",
        "provider.prices={*: {input: 1, output: 1}}",
    ]
    with Aeon.from_config(overrides(server.url, *cached), environ={"OPENAI_API_KEY": "k"}) as aeon:
        first = aeon.run(TASK)
        bill = aeon.spent
        second = aeon.run(TASK)
        assert aeon.spent == bill
    assert bill.calls == len(server.requests) == first.usage.total.requests
    assert bill.cost == first.usage.total.cost
    assert second.usage.total == first.usage.total
    assert second.provider.endpoints == first.provider.endpoints
