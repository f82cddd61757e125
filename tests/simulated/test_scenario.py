from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from aeon.domain import errors
from aeon.domain.errors import ConfigError
from aeon.domain.request import LLMRequest
from aeon.llm.settings import SimulatedProvider
from aeon.simulated.adapter import SimulatedAdapter
from aeon.simulated.scenario import FailureKind, Scenario, load_scenario
from tests.simulated.simulated_requests import a_step, of_plan, of_step, of_task, request, schema_of
from tests.support.timing import SOON

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "scenarios").glob("*.yaml"))

SCHEMA = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Scenario.model_json_schema()}
Scripted = Callable[[str], SimulatedAdapter]


@pytest.fixture
def scripted(tmp_path: Path) -> Scripted:
    """An adapter that follows a scenario, given as YAML."""

    def make(text: str) -> SimulatedAdapter:
        path = tmp_path / "scenario.yaml"
        path.write_text(text, encoding="utf-8")
        return SimulatedAdapter(SimulatedProvider(scenario=path))

    return make


def a_request(step_id: str = "draft", text: str = "", **site: Any) -> LLMRequest:
    return request("step", of_task(), of_step(2, 4, step_id=step_id), text, step_id=step_id, **site)


def outputs(adapter: SimulatedAdapter, *requests: LLMRequest) -> list[str]:
    return [json.loads(adapter.complete(asked).text)["step_output"] for asked in requests]


def test_an_answer_is_sent_and_its_missing_properties_are_filled_in(scripted: Scripted) -> None:
    adapter = scripted("calls: {step: {answer: {step_output: Done.}}}")
    value = json.loads(adapter.complete(a_request()).text)
    assert Draft202012Validator(schema_of("step")).is_valid(value)
    assert value["step_output"] == "Done."
    assert value["clarity_state"] in ("CLEAR", "PARTIALLY_CLEAR")  # the request decides which


def test_steps_of_a_scripted_plan_need_only_id_and_description(scripted: Scripted) -> None:
    adapter = scripted("calls: {plan: {answer: {steps: [{step_id: a, description: Do it}]}}}")
    value = json.loads(adapter.complete(request("plan", of_task())).text)
    assert Draft202012Validator(schema_of("plan")).is_valid(value)
    assert value["steps"][0] == {
        "step_id": "a",
        "description": "Do it",
        "dependencies": [],
        "provides": [],
        "handoff_to_next": None,
        "tool": None,
        "arguments": None,
    }


def test_scores_that_are_not_scripted_follow_the_share_of_finished_steps(
    scripted: Scripted,
) -> None:
    adapter = scripted("calls: {convergence: {answer: {coherence_score: 0.5}}}")
    steps = [a_step("a", status="complete"), a_step("b", "a")]
    value = json.loads(adapter.complete(request("convergence", of_plan(*steps))).text)
    assert (value["completeness_score"], value["coherence_score"]) == (0.45, 0.5)


def test_what_does_not_match_the_schema_is_sent_all_the_same(scripted: Scripted) -> None:
    adapter = scripted("calls: {convergence: {answer: {completeness_score: 1.7, surprise: true}}}")
    value = json.loads(adapter.complete(request("convergence")).text)
    assert (value["completeness_score"], value["surprise"]) == (1.7, True)


@pytest.mark.parametrize("answer", ["null", "[1]", "5", "text", "2020-01-01"])
def test_an_answer_may_be_any_json(scripted: Scripted, answer: str) -> None:
    expected = answer if answer in ("text", "2020-01-01") else json.loads(answer)
    text = scripted(f"calls: {{step: {{answer: {answer}}}}}").complete(a_request()).text
    assert json.loads(text) == expected


def test_a_text_is_sent_as_it_is(scripted: Scripted) -> None:
    response = scripted('calls: {step: {text: "not {json"}}').complete(a_request())
    assert (response.text, response.synthetic) == ("not {json", True)


def test_what_is_not_scripted_is_simulated_calmly(scripted: Scripted) -> None:
    adapter = scripted("calls: {}")
    assert json.loads(adapter.complete(a_request()).text)["clarity_state"] != "BLOCKED"
    assert json.loads(
        adapter.complete(request("semantic_validation", of_plan(a_step("a")))).text
    ) == {"checked": None, "issues": []}


def test_a_scenario_with_a_seed_gets_its_character(scripted: Scripted) -> None:
    assert json.loads(scripted("seed: 6").complete(a_request()).text)["clarity_state"] == "BLOCKED"


def test_a_scenario_may_say_how_the_model_behaves(scripted: Scripted) -> None:
    adapter = scripted("seed: 1\nbehaviour: {blocked_times: 1}")
    assert json.loads(adapter.complete(a_request()).text)["clarity_state"] == "BLOCKED"
    reviewed = adapter.complete(request("semantic_validation", of_plan(a_step("a"))))
    assert json.loads(reviewed.text) == {"checked": None, "issues": []}


def test_a_rule_may_be_for_the_last_step_of_a_plan(scripted: Scripted) -> None:
    adapter = scripted("calls: {step: {when: {is_last_step: true}, text: the last}}")
    first, last = (request("step", of_task(), of_step(n, 2), step_id="s") for n in (1, 2))
    assert adapter.complete(last).text == "the last"
    assert adapter.complete(first).text != "the last"


def test_a_list_is_a_sequence_whose_last_answer_repeats(scripted: Scripted) -> None:
    adapter = scripted(
        "calls: {step: [{answer: {step_output: one}}, {answer: {step_output: two}}]}"
    )
    assert outputs(adapter, *[a_request()] * 4) == ["one", "two", "two", "two"]


def test_a_sequence_may_end_and_give_way_to_simulated_answers(scripted: Scripted) -> None:
    adapter = scripted(
        "calls: {step: [{answer: {step_output: one}}, {answer: {step_output: two}, times: 1}]}"
    )
    first, second, third = outputs(adapter, *[a_request()] * 3)
    assert (first, second) == ("one", "two")
    assert third.startswith("(simulated) Output of step draft")


def test_simulated_ends_a_sequence_too(scripted: Scripted) -> None:
    adapter = scripted("calls: {step: [{answer: {step_output: one}}, {simulated: true}]}")
    first, *rest = outputs(adapter, *[a_request()] * 3)
    assert first == "one"
    assert all(output.startswith("(simulated)") for output in rest)


def test_rules_are_tried_from_top_to_bottom_and_those_for_every_call_last(
    scripted: Scripted,
) -> None:
    adapter = scripted(
        """
        calls:
          "*":
            - answer: {step_output: any}
          step:
            - when: {step_id: draft}
              answer: {step_output: draft}
            - when: {step_id: [merge, check]}
              answer: {step_output: two}
        """
    )
    asked = [a_request(step_id) for step_id in ("draft", "other", "merge", "check", "draft")]
    assert outputs(adapter, *asked) == ["draft", "any", "two", "two", "draft"]


@pytest.mark.parametrize(
    ("when", "fitting", "other"),
    [
        ("{step_id: a}", a_request("a"), a_request("b")),
        ("{pass_number: [1, 3]}", a_request(pass_number=3), a_request(pass_number=2)),
        ("{phase: EXECUTE}", a_request(phase="EXECUTE"), a_request(phase="RE_EXECUTE")),
        ("{attempt: 0}", a_request(attempt=0), a_request(attempt=1)),
        ("{contains: user authentication}", a_request(), request("step", "something else")),
        ("{contains: [alpha, beta]}", a_request(text="beta alpha"), a_request(text="alpha")),
        (
            "{step_id: a, pass_number: 2}",
            a_request("a", pass_number=2),
            a_request("a", pass_number=1),
        ),
    ],
)
def test_a_rule_answers_only_when_everything_holds(
    scripted: Scripted, when: str, fitting: LLMRequest, other: LLMRequest
) -> None:
    adapter = scripted(f"calls: {{step: {{when: {when}, text: yes!}}}}")
    assert adapter.complete(fitting).text == "yes!"
    assert adapter.complete(other).text != "yes!"


def test_uses_are_counted_for_each_step_whatever_the_order_of_arrival(scripted: Scripted) -> None:
    adapter = scripted("calls: {step: [{when: {contains: web}, times: 2, text: scripted}]}")
    asked = [a_request(f"step-{n}") for n in range(20) for _ in range(3)]
    with ThreadPoolExecutor(8) as pool:
        texts = list(
            pool.map(lambda one: (one.site.step_id, adapter.complete(one).text), reversed(asked))
        )
    for n in range(20):
        of_step = [text for step_id, text in texts if step_id == f"step-{n}"]
        assert of_step.count("scripted") == 2


def test_no_use_is_lost_or_doubled_between_threads(scripted: Scripted) -> None:
    adapter = scripted("calls: {step: [{times: 50, text: scripted}, {text: other}]}")
    with ThreadPoolExecutor(16) as pool:
        texts = [
            r.text for r in pool.map(adapter.complete, [a_request(str(n)) for n in range(120)])
        ]
    assert texts.count("scripted") == 50
    assert texts.count("other") == 70


@pytest.mark.parametrize(
    ("fail", "error", "status"),
    [
        ("connection", errors.ConnectionFailed, None),
        ("timeout", errors.ConnectionFailed, None),
        ("server", errors.ServerFailed, 500),
        ("503", errors.ServerFailed, 503),
        ("{status: 409}", errors.ServerFailed, 409),
        ("rate_limit", errors.RateLimited, 429),
        ("429", errors.RateLimited, 429),
        ("auth", errors.AuthenticationFailed, 401),
        ("403", errors.AuthenticationFailed, 403),
        ("request", errors.RequestRefused, 400),
        ("{kind: not_an_api}", errors.NotAnAPI, None),
    ],
)
def test_a_provider_fails_as_scripted(
    scripted: Scripted, fail: str, error: type[errors.ProviderError], status: int | None
) -> None:
    with pytest.raises(error) as caught:
        scripted(f"calls: {{step: {{fail: {fail}}}}}").complete(a_request())
    assert type(caught.value) is error
    assert caught.value.status == status
    assert "scenario" in caught.value.message


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("truncated", errors.Truncated),
        ("refused", errors.Refused),
        ("filtered", errors.Filtered),
        ("empty", errors.EmptyAnswer),
    ],
)
def test_an_answer_without_content_has_cost_its_tokens(
    scripted: Scripted, kind: FailureKind, error: type[errors.AnswerError]
) -> None:
    with pytest.raises(error) as caught:
        scripted(f"calls: {{step: {{fail: {kind}}}}}").complete(a_request())
    assert caught.value.usage.input_tokens > 0
    assert caught.value.model == "simulated"


def test_a_rate_limit_may_say_when_to_come_back_and_a_failure_what_it_is(
    scripted: Scripted,
) -> None:
    adapter = scripted(
        "calls: {step: {fail: {kind: rate_limit, retry_after: 2.5, message: Slow down}}}"
    )
    with pytest.raises(errors.RateLimited, match="Slow down") as caught:
        adapter.complete(a_request())
    assert caught.value.retry_after == 2.5


def test_a_failure_used_once_lets_the_retry_through(scripted: Scripted) -> None:
    adapter = scripted("calls: {step: {fail: 500, times: 1}}")
    with pytest.raises(errors.ServerFailed):
        adapter.complete(a_request())
    assert outputs(adapter, a_request())


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("calls: {}", 0.06),
        ("latency_seconds: 0", 0.0),
        ("calls: {step: {latency_seconds: 0.1}}", 0.1),
        ("latency_seconds: 90\ncalls: {step: {latency_seconds: 0.1, text: x}}", 0.1),
    ],
)
def test_the_latency_of_the_rule_goes_before_that_of_the_scenario_and_that_before_the_provider_s(
    tmp_path: Path, text: str, least: float
) -> None:
    path = tmp_path / "slow.yaml"
    path.write_text(text, encoding="utf-8")
    adapter = SimulatedAdapter(SimulatedProvider(scenario=path, latency_seconds=0.06))
    start = time.perf_counter()
    adapter.complete(a_request())
    assert least <= time.perf_counter() - start < SOON


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            "calls:\n  stp:\n    text: x",
            2,
            r"calls\.stp: unknown key; did you mean `step`\? allowed are task_profile, .*, \*",
        ),
        (
            "sead: 3",
            1,
            r"sead: unknown key; did you mean `seed`\? allowed are seed, latency_seconds, description, behaviour, calls",
        ),
        (
            "calls:\n  step:\n    - text: x\n    - answers: {}",
            4,
            r"calls\.step\[2\]\.answers: .*`answer`\? allowed are when, ",
        ),
        ("calls:\n  step:\n    answers: {}", 3, r"calls\.step\.answers: unknown key"),
        (
            "calls:\n  step:\n    when:\n      pass: 1\n    text: x",
            4,
            r"calls\.step\.when\.pass: unknown key; .*allowed are step_id, pass_number, phase, attempt, is_last_step, contains",
        ),
        (
            "calls:\n  step:\n    - fail: nonsense",
            3,
            r"calls\.step\[1\]\.fail\.?.*'connection', 'timeout'.*'nonsense'",
        ),
        ("calls:\n  step:\n    - fail: 200", 3, r"greater than or equal to 400 \(it is 200\)"),
        ("calls:\n  step:\n    - fail: {}", 3, r"needs either `kind` or `status`"),
        (
            "calls:\n  step:\n    - fail: {kind: auth, retry_after: 1}",
            3,
            r"`retry_after` needs",
        ),
        (
            "calls:\n  step:\n    - text: x\n      answer: {}",
            3,
            r"has answer and text; a rule does one of",
        ),
        ("calls:\n  step:\n    - when: {step_id: a}", 3, r"does nothing"),
        (
            "calls:\n  step:\n    - text: x\n      times: 0",
            4,
            r"times: .* greater than or equal to 1 \(it is 0\)",
        ),
        ("calls:\n  step: []", 2, r"calls\.step: must not be empty"),
        ("calls:\n  step: 5", 2, r"calls\.step: .*\(it is 5\)"),
        (
            "calls:\n  step:\n    when: {contains: []}\n    text: x",
            3,
            r"contains: must not be empty",
        ),
        ("seed: -1", 1, r"seed: .* greater than or equal to 0"),
        ("seed: 1\nseed: 2", 2, r"`seed` is repeated here; it is already on line 1"),
        ("calls:\n  *: {text: x}", 2, "expected alphabetic or numeric"),
        ("calls: [", 1, "expected"),
        (
            "- a",
            1,
            r"a scenario is a mapping with any of: seed, latency_seconds, description, behaviour, calls",
        ),
        ("", 1, r"a scenario is a mapping"),
        ("seed: !!python/object:os.system {}", 1, r"python/object"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_line_and_what_is_allowed(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said) as caught:
        load_scenario(path)
    assert caught.value.message.startswith(f"{path}:{line}: ")
    assert "pydantic" not in caught.value.message


def test_every_mistake_is_named_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text("calls:\n  plan: {text: 5}\nseed: x\nsead: 1\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_scenario(path)
    assert [line.split(":")[1] for line in caught.value.message.splitlines()] == ["2", "3", "4"]


def test_an_unquoted_star_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text("calls:\n  *: {text: x}", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_scenario(path)
    assert '"*"' in caught.value.hint


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a: 1\nb: \x00"])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "my.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"not UTF-8 text|special characters are not allowed"):
        load_scenario(path)


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        SimulatedAdapter(SimulatedProvider(scenario=tmp_path / name))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_scenario_by_the_published_schema_too(path: Path) -> None:
    assert isinstance(load_scenario(path), Scenario)
    Draft202012Validator(SCHEMA).validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def test_the_scenario_in_the_documentation_is_one(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
    path = tmp_path / "documented.yaml"
    path.write_text(text.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    assert set(load_scenario(path).calls) == {"task_profile", "step", "*"}


def test_the_published_schema_is_up_to_date_and_refuses_what_the_program_refuses() -> None:
    published = json.loads((ROOT / "docs" / "scenario.schema.json").read_text(encoding="utf-8"))
    assert published == SCHEMA
    validator = Draft202012Validator(published)
    assert validator.is_valid(
        {"calls": {"*": {"fail": "timeout"}, "step": [{"when": {"step_id": "a"}, "text": "x"}]}}
    )
    assert not validator.is_valid({"calls": {"stp": {"text": "x"}}})
    assert not validator.is_valid({"sead": 1})
    assert not validator.is_valid({"calls": {"step": {"fail": "nonsense"}}})
