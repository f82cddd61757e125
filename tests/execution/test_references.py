"""What later steps may refer to: values that are whole, and nothing that was cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon.domain.errors import PlanError
from aeon.domain.history import StepResult
from aeon.execution.outcome import read_output
from aeon.plan.workflow.references import CutOutput, resolve_arguments
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry
from aeon.tools.settings import ToolSettings
from tests.tools.builders import a_tool

CUT = CutOutput(characters=30_023, kept=20_000)


def step_with(value: Any, *, own: int | None = None, limit: int = 20_000) -> StepResult:
    """What a step leaves behind whose tool returned the value."""
    registry = ToolRegistry([a_tool(lambda _: value, name="big", max_output_characters=own)])
    result = ToolInvoker(registry, ToolSettings(max_output_characters=limit)).invoke("big", {})
    return StepResult(
        step_id="b", step_output=result.text, tool_result=result.model_dump(mode="json")
    )


@pytest.mark.parametrize(
    "text",
    [
        "${steps.b.output}",
        "see ${steps.b.output}",
        "${steps.b.output.key}",
        "see ${steps.b.output.0.key}.",
    ],
)
def test_a_cut_output_is_refused_whole_and_in_part(text: str) -> None:
    with pytest.raises(PlanError) as caught:
        resolve_arguments({"q": [text]}, {}, {"b": CUT})
    assert caught.value.message.startswith("arguments.q[1]: `${steps.b.output")
    assert caught.value.message.endswith(
        "the output of step b was cut (30023 characters, tools.max_output_characters=20000): "
        "raise the limit to refer to it"
    )


def test_a_cut_output_that_nothing_refers_to_is_no_hindrance() -> None:
    arguments = {"a": "${steps.a.output}", "b": "$${steps.b.output}"}
    assert resolve_arguments(arguments, {}, {"a": 1, "b": CUT}) == {
        "a": 1,
        "b": "${steps.b.output}",
    }


@pytest.mark.parametrize("value", ["z" * 30_000, {"key": "v" * 30_000}, ["v" * 30_000]])
def test_an_output_longer_than_the_limit_is_known_to_be_cut(value: Any) -> None:
    length = len(value if isinstance(value, str) else json.dumps(value))
    assert read_output(step_with(value)) == CutOutput(characters=length, kept=20_000)


def test_a_tools_own_limit_is_the_one_that_is_named() -> None:
    found = read_output(step_with("z" * 30, own=10))
    assert found == CutOutput(characters=30, kept=10, limit="max_output_characters of tool 'big'")


@pytest.mark.parametrize("value", ["z" * 10, {"k": 1}, [1, 2], 12.5, None])
def test_an_output_within_the_limit_keeps_its_value_and_type(value: Any) -> None:
    assert read_output(step_with(value, limit=10)) == value


def test_a_text_that_only_looks_cut_is_a_value() -> None:
    text = "zzz... [10000 of 30000 characters cut]"
    assert read_output(step_with(text)) == text


def test_a_step_without_a_tool_is_referred_to_by_its_text() -> None:
    assert read_output(StepResult(step_id="b", step_output="said")) == "said"
