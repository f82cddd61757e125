"""`aeon.inspect_solver()`: Inspect runs Aeon, and answers its calls."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

import aeon

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

pytestmark = pytest.mark.usefixtures("here")

_NUMBERS = count()
"""A model is registered once, for all tests."""


def evaluate(answers: dict[str, Any], *overrides: str) -> EvalLog:
    """The log of one sample that Aeon solves, with a model that answers the call whose schema names
    such a field."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelAPI, ModelOutput, ModelUsage, modelapi
    from inspect_ai.scorer import includes

    name = f"answering{next(_NUMBERS)}"

    @modelapi(name=name)
    class Answering(ModelAPI):
        def __init__(self, model_name: str, *_: Any, **__: Any) -> None:
            super().__init__(model_name)

        async def generate(self, input: Any, *_: Any, **__: Any) -> ModelOutput:
            asked = next((name for name in answers if f'"{name}"' in input[0].text), None)
            if asked is None:
                raise RuntimeError("no answer to this call")
            output = ModelOutput.from_content(f"{name}/one", json.dumps(answers[asked]))
            output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
            return output

    task = Task(
        dataset=[Sample(input="add 5 and 10", target="15")],
        solver=aeon.inspect_solver(overrides),
        scorer=includes(),
    )
    (log,) = eval(task, model=f"{name}/one", display="none", log_dir="logs")
    return log


def test_the_answer_of_a_run_is_the_output_of_its_sample() -> None:
    log = evaluate({"working": {"working": None, "answer": "15"}}, "mode=single")
    assert log.status == "success"
    assert log.samples is not None
    (sample,) = log.samples
    assert sample.output.completion == "15"
    assert sample.scores is not None
    assert sample.scores["includes"].value == "C"
    assert sample.metadata["aeon"]["calls"] == 1
    assert [usage.total_tokens for usage in log.stats.model_usage.values()] == [15]


def test_every_call_is_an_event_of_the_sample_that_it_belongs_to() -> None:
    log = evaluate({"working": {"working": None, "answer": "15"}}, "mode=single")
    assert log.samples is not None
    events = [event for event in log.samples[0].events if event.event == "model"]
    assert len(events) == 1
    assert "add 5 and 10" in events[0].input[-1].text


def test_a_run_that_fails_fails_its_sample_with_the_reason() -> None:
    log = evaluate({}, "mode=single")
    assert log.status == "error"
    assert log.error is not None
    assert "no answer to this call" in log.error.message
