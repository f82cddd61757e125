"""Steps of a batch as they are begun."""

from __future__ import annotations

from typing import Any

from aeon.domain.request import LLMRequest
from aeon.execution.settings import ExecutionSettings
from aeon.kernel.control import RunControl
from tests.kernel.build import run
from tests.support.scripted_model import ScriptedModel, clear, plan


def test_a_step_that_waits_for_a_thread_is_not_begun_once_the_run_is_stopped() -> None:
    control = RunControl()

    def answer(_: LLMRequest) -> Any:
        control.request_stop()
        return clear("done")

    model = ScriptedModel(plan=plan("a", "b"), step=answer)
    settings = ExecutionSettings(max_parallel=1)
    outcome = run(model, ttl=25, execution=settings, control=control)
    assert outcome.termination_reason == "interrupted"
    assert [call for call in model.calls if call.startswith("step")] == ["step:a"]
