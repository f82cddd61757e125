"""Traces, metrics and events of whole runs, as a collector of OpenTelemetry's protocol gets them."""

from __future__ import annotations

import base64
import json
import random
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace

from aeon import Aeon, ConfigError
from aeon.domain.result import RunResult
from aeon.observability.otel import Tracing
from aeon.tools.function import tool
from tests.support.fixtures import StartServer
from tests.support.input_files import make_png
from tests.support.openai_server import Completion, Failure
from tests.support.otlp_collector import OtlpCollector, Span
from tests.support.simulated_server import simulated
from tests.support.timing import SOON, wait_for

TASK = "plan a move with the cat Archimedes"
CORE = ("mode=core", "store=off")


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtlpCollector]:
    with OtlpCollector() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        yield running


def run(
    *overrides: str, environ: dict[str, str] | None = None, tools: Any = (), **more: Any
) -> RunResult:
    keys = ["observability.otel=true", "provider=simulated", *overrides]
    with Aeon.from_config(keys, environ=environ or {}, tools=tools) as aeon:
        return aeon.run(TASK, **more)


def at(url: str, *more: str) -> tuple[str, ...]:
    return (
        "provider=openai",
        f"provider.base_url={url}",
        "provider.model=m-1",
        "provider.retry.initial_seconds=0",
        *more,
    )


def test_a_run_is_a_tree_of_spans_with_the_times_of_the_run(collector: OtlpCollector) -> None:
    before = time.time()
    result = run("store=off")
    (root,) = collector.of("invoke_workflow")
    passes, by_id = collector.of("invoke_agent"), {span.id: span for span in collector.spans}
    assert root.name == "invoke_workflow aeon"
    assert not root.parent
    assert {span.trace for span in collector.spans} == {root.trace}
    assert (
        root.attributes["gen_ai.conversation.id"] == root.attributes["aeon.run_id"] == result.run_id
    )
    assert root.attributes["aeon.termination_reason"] == "converged"
    assert [span.name for span in passes] == [
        f"invoke_agent pass {n}" for n in range(result.passes + 1)
    ]
    assert {span.parent for span in passes} == {root.id}
    for span in collector.spans:
        above = by_id.get(span.parent, span)
        assert before <= above.start <= span.start <= span.end <= above.end <= time.time()
        assert span.status != 2
    chats = collector.of("chat")
    assert len(chats) == result.usage.total.requests > 10
    above = Counter(
        (by_id[chat.parent].operation, chat.attributes["gen_ai.prompt.name"]) for chat in chats
    )
    assert above["invoke_workflow", "task_profile"] == 1
    assert above["plan", "plan"] == 1
    assert above["plan", "refinement"] >= 1
    assert above["step", "step"] > 2
    assert above["evaluate", "convergence"] == result.passes
    assert above["evaluate", "semantic_validation"] > result.passes
    assert not above["invoke_agent", "plan"] + above["invoke_agent", "step"] + above["plan", "step"]
    for chat in chats:
        owner = by_id[chat.parent]
        if owner.operation in ("plan", "evaluate", "step"):
            owner = by_id[owner.parent]
        assert chat.attributes["aeon.pass"] == owner.attributes.get("aeon.pass", 0)


def test_assessments_are_events_of_their_pass(collector: OtlpCollector) -> None:
    result = run("store=off")
    last = collector.of("invoke_agent")[-1]
    found = {
        event.attributes["gen_ai.evaluation.name"]: event
        for event in collector.events
        if event.span == last.id
    }
    assert {event.name for event in collector.events} == {"gen_ai.evaluation.result"}
    assert set(found) >= {"convergence", "completeness", "coherence", "consistency"}
    told = found["completeness"].attributes
    assert result.scores is not None
    assert told["gen_ai.evaluation.score.value"] == result.scores.completeness_score
    assert told["gen_ai.evaluation.score.label"] == "pass"
    assert told["gen_ai.evaluation.explanation"] == result.explanation
    labels = [
        e.attributes["gen_ai.evaluation.score.label"]
        for e in collector.events
        if "convergence" in str(e)
    ]
    assert labels == [*["fail"] * (result.passes - 1), "pass"]


def test_where_nobody_takes_events_they_stand_in_the_span(
    collector: OtlpCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    run("store=off")
    assert set(collector.paths) == {"/v1/traces"}
    told = [name for name, _ in collector.of("invoke_agent")[-1].events]
    assert told == ["gen_ai.evaluation.result"] * 4


def test_tokens_have_their_parts_in_spans_and_metrics(
    collector: OtlpCollector, start_server: StartServer
) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    script = simulated()
    server = start_server(
        {name: lambda asked, of=of: with_usage(of(asked), usage) for name, of in script.items()}
    )  # type: ignore[operator, misc]
    result = run(*at(server.url, *CORE))
    calls = result.usage.total.requests
    for chat in collector.of("chat"):
        known = {
            name: chat.attributes[f"gen_ai.usage.{name}"]
            for name in ("input_tokens", "output_tokens")
        }
        assert known == {"input_tokens": 100, "output_tokens": 20}
        assert chat.attributes["gen_ai.usage.cache_read.input_tokens"] == 60
        assert chat.attributes["gen_ai.usage.reasoning.output_tokens"] == 5
        assert (
            chat.attributes["gen_ai.provider.name"],
            chat.attributes["gen_ai.request.model"],
        ) == ("openai", "m-1")
        assert chat.attributes["server.port"] == int(
            server.url.rpartition(":")[2].removesuffix("/v1")
        )
    prefix = "gen_ai.client.inference.usage"
    sums = {name: sum(value for _, value in points) for name, points in collector.metrics.items()}
    assert sums[f"{prefix}.input_tokens"] == 100 * calls
    assert sums[f"{prefix}.cache_read.input_tokens"] == 60 * calls
    assert sums[f"{prefix}.reasoning.output_tokens"] == 5 * calls
    assert sums["gen_ai.client.token.usage"] == 120 * calls
    # In core mode one call follows the other, all of them within the run.
    of_run = max(span.end for span in collector.spans) - min(span.start for span in collector.spans)
    assert 0 < sums["gen_ai.client.inference.duration"] <= of_run
    assert {"gen_ai.client.operation.duration", "gen_ai.invoke_agent.duration"} < set(sums)


def with_usage(answer: Completion, usage: dict[str, Any]) -> Completion:
    return Completion(answer.content, usage=usage)


def test_each_request_carries_the_trace_of_its_own_span(
    collector: OtlpCollector, start_server: StartServer
) -> None:
    server = start_server(simulated())
    run(*at(server.url, "store=off", "execution.max_parallel=4"))
    sent = [request.headers["traceparent"].split("-") for request in server.requests]
    assert sorted((of, span) for _, of, span, _ in sent) == sorted(
        (chat.trace, chat.id) for chat in collector.of("chat")
    )
    assert all(int(flags, 16) & 1 for *_, flags in sent)
    server.requests.clear()
    with Aeon.from_config(at(server.url, *CORE), environ={}) as aeon:
        aeon.run(TASK)
    assert server.requests
    assert not any("traceparent" in request.headers for request in server.requests)


@pytest.mark.slow
def test_retries_and_repairs_are_linked_to_what_they_repeat(
    collector: OtlpCollector, start_server: StartServer
) -> None:
    script = simulated()
    script["plan"] = [Failure(503), Failure(503), Completion("no JSON at all"), "unused"]
    made = simulated()["plan"]
    script["repair"] = lambda asked: made(asked)  # type: ignore[operator]
    server = start_server(script)
    run(*at(server.url, *CORE))
    first, second, third = (
        chat for chat in collector.of("chat") if chat.attributes["gen_ai.prompt.name"] == "plan"
    )
    repair = next(
        chat for chat in collector.of("chat") if chat.attributes["gen_ai.prompt.name"] == "repair"
    )
    assert [links(span) for span in (first, second, third, repair)] == [
        [],
        [(first.id, "retry")],
        [(second.id, "retry")],
        [(third.id, "repair")],
    ]
    assert [span.attributes.get("error.type") for span in (first, second, third)] == [
        "ServerFailed"
    ] * 2 + [None]
    assert first.status == second.status == 2
    assert first.end <= second.start
    asked = [request.headers["traceparent"].split("-")[2] for request in server.requests[:4]]
    assert asked == [first.id, second.id, third.id, repair.id]


def links(span: Span) -> list[tuple[str, Any]]:
    return [(linked, attributes["aeon.link"]) for linked, attributes in span.links]


def test_a_tool_is_a_span_and_current_where_it_runs(
    collector: OtlpCollector, tmp_path: Path
) -> None:
    seen: list[str] = []

    def look(word: str) -> str:
        """Look something up."""
        seen.append(f"{trace.get_current_span().get_span_context().span_id:016x}")
        if word == "bad":
            raise RuntimeError("no key for it")
        return word

    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "goal: g\nsteps:\n- {id: a, description: d, tool: look, arguments: {word: good}}\n"
        "- {id: b, description: d, tool: look, arguments: {word: bad}}\n",
        encoding="utf-8",
    )
    run(f"plan_file={plan}", *CORE, tools=[tool(look)])
    good, bad = collector.of("execute_tool")
    assert [good.id, bad.id] == seen
    assert good.name == "execute_tool look"
    assert good.attributes["gen_ai.tool.name"] == "look"
    steps = {span.id: span for span in collector.of("step")}
    assert steps[good.parent].name == "step a"
    assert steps[good.parent].attributes["aeon.tool"] == "look"
    assert steps[good.parent].attributes["aeon.status"] == "complete"
    assert {span.name for span in collector.spans if span.id == steps[good.parent].parent} == {
        "invoke_agent pass 1"
    }
    assert bad.attributes["error.type"] == "raised"
    assert "no key for it" in bad.message
    assert steps[bad.parent].status == 2
    assert "no key for it" in steps[bad.parent].message
    assert b'"word"' not in collector.bodies


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (("convergence.completeness=0.99", "limits.max_passes=1"), "max_passes"),
        (("ttl.base=2", "ttl.limit=4"), "ttl_expired"),
    ],
)
def test_a_run_that_did_not_converge_has_the_status_of_an_error_with_its_reason(
    collector: OtlpCollector, overrides: tuple[str, ...], reason: str
) -> None:
    result = run("store=off", *overrides)
    (root,) = collector.of("invoke_workflow")
    assert result.termination_reason == reason
    assert (root.status, root.message) == (2, reason.replace("_", " "))
    assert root.attributes["error.type"] == reason


def test_a_call_says_whether_it_is_the_workers_or_the_judges(collector: OtlpCollector) -> None:
    run("store=off")
    roles = {
        chat.attributes["aeon.call"]: chat.attributes["aeon.role"] for chat in collector.of("chat")
    }
    assert roles["step"] == "worker"
    assert roles["convergence"] == roles["semantic_validation"] == "grader"
    assert {chat.name for chat in collector.of("chat")} == {"chat simulated"}


def test_no_text_leaves_unless_the_standard_variable_says_so(
    collector: OtlpCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*CORE)
    assert b"Archimedes" not in collector.bodies
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    collector.spans.clear()
    result = run(*CORE)
    chat = collector.of("chat")[0]
    assert "Archimedes" in chat.attributes["gen_ai.input.messages"]
    assert '"role":"assistant"' in chat.attributes["gen_ai.output.messages"]
    root = collector.of("invoke_workflow")[0].attributes
    assert TASK in root["gen_ai.input.messages"]
    (output,) = json.loads(root["gen_ai.output.messages"])
    assert output["parts"][0]["content"] == result.answer


def test_a_file_that_a_model_is_given_never_leaves_with_the_texts(
    collector: OtlpCollector, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    content = make_png(40, 30, random.Random(0).randbytes(3600))
    (tmp_path / "photo.png").write_bytes(content)
    run(*CORE, f"input_files.photo={tmp_path / 'photo.png'}", "provider.accepts=[image]")
    sent = collector.of("chat")[0].attributes["gen_ai.input.messages"]
    assert "[attached file: image/png" in sent
    for form in (content, base64.b64encode(content)):
        assert form[300:400] not in collector.bodies


def test_the_standard_variables_hold(
    collector: OtlpCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*CORE)
    assert collector.resource["service.name"] == "aeon"
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=blue")
    run(*CORE)
    assert (collector.resource["service.name"], collector.resource["team"]) == ("mine", "blue")


def test_what_is_not_sampled_is_not_sent_and_the_server_is_told(
    collector: OtlpCollector, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    server = start_server(simulated())
    run(*at(server.url, *CORE))
    assert not collector.spans
    assert not any(
        int(request.headers["traceparent"].split("-")[3], 16) & 1 for request in server.requests
    )


def test_a_disabled_sdk_sends_nothing(
    collector: OtlpCollector, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    server = start_server(simulated())
    run(*at(server.url, *CORE))
    assert not collector.paths
    assert not any("traceparent" in request.headers for request in server.requests)


def comparable(result: RunResult) -> dict[str, Any]:
    return result.model_dump(
        include={"answer", "converged", "termination_reason", "passes", "scores", "hashes", "ttl"}
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hangs", "refuses", "fails"])
def test_a_bad_collector_costs_the_run_nothing(
    kind: str, collector: OtlpCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, told = run("store=off"), list[str]()
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")  # it is sent to while the run goes on
    if kind == "hangs":
        collector.released.clear()
    elif kind == "fails":
        collector.status = 503
    else:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            monkeypatch.setenv(
                "OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{unused.getsockname()[1]}"
            )
    began = time.monotonic()
    result = run("store=off", warn=told.append)
    taken = time.monotonic() - began
    assert comparable(result) == comparable(usual)
    assert taken < SOON
    (said,) = told
    assert said.startswith("observability.otel: ")
    if kind != "hangs":  # what is still tried is given up
        wait_for(lambda: not [t for t in threading.enumerate() if "Otel" in t.name])


def test_a_defect_in_tracing_is_said_once_and_changes_no_run(
    collector: OtlpCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a defect")

    usual, told = run("store=off"), list[str]()
    monkeypatch.setattr(Tracing, "_parent", fail)
    result = run("store=off", warn=told.append)
    assert comparable(result) == comparable(usual)
    assert told == ["observability.otel: RuntimeError: a defect"]


def test_spans_of_a_run_go_where_the_program_sends_its_own(
    collector: OtlpCollector, monkeypatch: Any
) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider, kept = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    with provider.get_tracer("program").start_as_current_span("the program's") as own:
        run("store=off")
    assert any(span.events for span in kept.get_finished_spans())
    (root,) = (span for span in kept.get_finished_spans() if span.name == "invoke_workflow aeon")
    assert root.parent is not None
    assert root.parent.span_id == own.get_span_context().span_id
    assert not collector.paths


def test_the_configuration_is_the_same_with_and_without(collector: OtlpCollector) -> None:
    with Aeon.from_config(["provider=simulated", *CORE], environ={}) as aeon:
        assert run(*CORE).hashes == aeon.run(TASK).hashes


def test_without_the_extra_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "aeon.observability.otel")
    monkeypatch.setitem(sys.modules, "opentelemetry.util.genai.types", None)
    with pytest.raises(ConfigError, match="extra `otel`") as refused:
        run(*CORE)
    assert refused.value.hint == "pip install 'aeon-engine[otel]'"


def test_an_exporter_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(ConfigError, match="otlp_proto_grpc of traces: is not installed"):
        run(*CORE)
